"""How strong cases are: mutants of golds that the data cannot distinguish from gold, and small databases that can."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Protocol, TypeVar

from pytest_queryeval.cli.command import Command
from pytest_queryeval.core.db_schema import Tables
from pytest_queryeval.core.model import Case
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.core.table import Table

STRENGTH = Command(
    module=f"{__name__}.strength_command", summary="find weak cases: which mutants (wrong versions) of golds would pass"
)
STRENGTHEN = Command(
    module=f"{__name__}.strengthen_command",
    summary="build variants of databases, on which mutants of golds do not pass",
)
T = TypeVar("T")
MAX_MUTANTS = 200  # of a query
MIN_MUTANTS = 10  # that long ones may have, however long they are
MAX_NODES = 50_000  # of the trees of all mutants together
CHANGE_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A query that differs from gold in one place, as a wrong prediction might.

    `operator` names the sort of change, `clause` where it is and `change` what it is. `equivalent` is the reason for
    which the query is known to answer as gold on any data that keeps the constraints; empty for the others.
    """

    query: str
    operator: str
    clause: str
    change: str
    equivalent: str = ""


class Mutator(Protocol):
    """Makes mutants of the gold queries of a kind."""

    def __call__(self, query: str, case: Case, tables: Tables, run: Callable[[str], Table | None]) -> Sequence[Mutant]:
        """Return mutants of a gold query, none of them twice; none for a query that cannot be read.

        `tables` are those of the source with the constraints that its rows keep, empty if none are known. `run`
        returns the answer of another query on the source, None if it fails.
        """


MUTATORS: Registry[Mutator] = Registry(
    "kind with mutants",
    group="pytest_queryeval.mutators",
    members={kind: f"{__name__}.{kind}:mutate" for kind in ("sql", "sparql")},
)


def most_mutants(size: int) -> int:
    """Return how many mutants a query may have whose tree has `size` nodes."""
    return min(MAX_MUTANTS, max(MIN_MUTANTS, MAX_NODES // size))


def in_turn(edits: Iterable[Iterator[T]]) -> Iterator[T]:
    """Yield one edit of each operator, then the next one of each."""
    for turn in zip_longest(*edits):
        yield from (edit for edit in turn if edit is not None)
