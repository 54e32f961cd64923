"""How strong cases are: mutants of golds that the data cannot distinguish from gold, and small databases that can."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pytest_queryeval.cli.command import Command
from pytest_queryeval.core.db_schema import Tables
from pytest_queryeval.core.model import Case
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.core.table import Table
from pytest_queryeval.features.strength.mutant import Mutant

STRENGTH = Command(
    module=f"{__name__}.strength_command", summary="find weak cases: which mutants (wrong versions) of golds would pass"
)
STRENGTHEN = Command(
    module=f"{__name__}.strengthen_command",
    summary="build variants of databases, on which mutants of golds do not pass",
)


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
    members={"sql": f"{__name__}.mutators:mutate_sql", "sparql": f"{__name__}.mutators:mutate_sparql"},
)
