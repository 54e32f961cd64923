"""How strong cases are: mutants of golds that the data cannot distinguish from gold, and small databases that can.

Packages register how both are made for a kind; what is common to SQL and SPARQL is here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import islice, zip_longest
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from pytest_queryeval.cli.command import Command
from pytest_queryeval.core.db_schema import Tables
from pytest_queryeval.core.model import Case, Source
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.core.table import Cell, Table
from pytest_queryeval.text.formatting import truncate

if TYPE_CHECKING:
    from pytest_queryeval.engines import SmallDatabase
    from pytest_queryeval.evaluation.session import Session

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
    which the query is known to answer as gold on any data that keeps the constraints; empty for the others. If data
    do not tell it from gold either, `proof` looks for such a reason, which may take milliseconds.
    """

    query: str
    operator: str
    clause: str
    change: str
    equivalent: str = ""
    proof: Callable[[], Sequence[str]] = field(default=tuple, compare=False, repr=False)
    """Returns the rules that prove that the query answers as gold; empty without a proof."""


class Constraints(NamedTuple):
    """Constraints that every small database of a source satisfies."""

    text: str
    """The same as long as a search has the same databases to choose from."""
    tables: Tables
    """The tables with their constraints; empty for graphs."""


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


def distinct_mutants(
    gold: str, size: int, edits: Iterable[Iterator[T]], mutant_of: Callable[[T], Mutant | None]
) -> Sequence[Mutant]:
    """Return mutants of a query whose tree has `size` nodes, none of them twice, and none with the text of gold.

    `edits` are those of each operator. Operators take turns, so that of more than `MAX_MUTANTS`, or fewer of a long
    query, each operator makes some.
    """
    most = min(MAX_MUTANTS, max(MIN_MUTANTS, MAX_NODES // size))
    mutants: dict[str, Mutant] = {}
    in_turn = (edit for turn in zip_longest(*edits) for edit in turn if edit is not None)
    for edit in islice(in_turn, 2 * most):  # few are made twice
        mutant = mutant_of(edit)
        if mutant is not None and mutant.query != gold and mutant.query not in mutants:
            mutants[mutant.query] = replace(mutant, change=truncate(mutant.change, CHANGE_CHARACTERS))
        if len(mutants) == most:
            break
    return list(mutants.values())


def numbers_beside(number: str) -> Iterator[str]:
    """Yield a number that is one more and one that is one less, with as many decimals.

    >>> [*numbers_beside("-3")], [*numbers_beside("2.50")], [*numbers_beside("1e3")]
    (['-2', '-4'], ['3.50', '1.50'], [])
    """
    digits = number.lstrip("+-")
    if digits.isdecimal() and len(number) < 16:
        yield from (str(int(number) + step) for step in (1, -1))
    elif digits.replace(".", "", 1).isdecimal():
        places = len(digits.partition(".")[2])
        yield from (f"{float(number) + step:.{places}f}" for step in (1, -1))


def neighbours(value: str | float) -> list[Cell]:
    """Return a value, and for numbers, ISO dates and texts of whole numbers, those just below and above it.

    >>> neighbours(30)
    [30, 29, 31]
    >>> neighbours("2020-03-01")
    ['2020-03-01', '2020-02-29', '2020-03-02']
    """
    if not isinstance(value, str):
        step = 1 if isinstance(value, int) else 0.5
        return [value, value - step, value + step]
    if value.isascii() and value.isdigit():
        return [value, *(str(int(value) + step) for step in (-1, 1))]
    with suppress(ValueError, OverflowError):
        day = date.fromisoformat(value)
        return [value, *((day + timedelta(days=step)).isoformat() for step in (-1, 1))]
    return [value]


State = TypeVar("State")  # what a database holds: the rows of tables, or triples


class SmallDatabases(Protocol[State]):
    """Small databases that satisfy every declared constraint which the data of a case's source satisfy.

    Methods raise `SourceError` if the source does not answer, or if none can be built.
    """

    def candidates(self, queries: Sequence[str], random: Random, count: int, *, plain_first: bool) -> Iterator[State]:
        """Yield at most `count` states on which these queries may differ.

        With `plain_first`, simple ones are first, and the first half satisfies what the data of the source does.
        """

    @property
    def constraints(self) -> Constraints:
        """What all states keep."""

    def state_of(self, source: Source) -> State | None:
        """Return what a variant of the source holds; None for too much, and for what breaks a constraint."""

    def satisfies_data(self, state: State) -> bool:
        """Return whether a state satisfies what the data of the source does, declared or not."""

    def database(self, state: State) -> SmallDatabase:
        """Return what makes a database with a state."""

    def reduced(self, state: State, is_enough: Callable[[State], bool], attempts: int) -> State:
        """Return a smaller state that is still enough, tried at most `attempts` times."""

    def reversed(self, state: State) -> State:
        """Return the state in the opposite order: of rows, or of the names of nodes."""

    def reordered(self, state: State, random: Random) -> Sequence[State]:
        """Return the state in further orders."""

    def script(self, state: State) -> str:
        """Return the script that makes a database with a state."""

    def contents(self, state: State) -> dict[str, Table]:
        """Return what a database holds, as tables by their names."""


@runtime_checkable
class Joinable(Protocol):
    """Small databases whose states can be put together."""

    def joined(self, state: Any, addition: Any) -> Any:
        """Return a state with what both hold; None if that is too much."""


class OpenSmallDatabases(Protocol):
    """Prepares the small databases of a kind; raises `SourceError` if the source does not answer."""

    def __call__(self, case: Case, session: Session, read_by: Sequence[str]) -> SmallDatabases[Any]:
        """Return small databases for the source of a case; with `read_by`, they need only what these queries read."""


SMALL_DATABASES: Registry[OpenSmallDatabases] = Registry(
    "kind with small databases",
    group="pytest_queryeval.small_databases",
    used_by_workers=True,
    members={
        "sql": f"{__name__}.sql.candidates:CandidateDatabases",
        "sparql": f"{__name__}.sparql.candidates:CandidateGraphs",
    },
)
