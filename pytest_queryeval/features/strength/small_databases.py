"""Small databases in place of a source, in which queries that agree on the source may differ, and values for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date, timedelta
from random import Random
from typing import Any, Protocol, TypeVar, runtime_checkable

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Case, Source
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.core.table import Cell, Table
from pytest_queryeval.engines import ENGINES, SmallDatabase
from pytest_queryeval.evaluation.extensions import Constraints
from pytest_queryeval.evaluation.session import Session

State = TypeVar("State")  # what a database holds: the rows of tables, or triples


class SmallDatabases(Protocol[State]):
    """Small databases that satisfy every declared constraint which the data of a case's source satisfy.

    Methods raise `SourceError` if the source does not answer, or if none can be built.
    """

    def candidates(self, queries: Sequence[str], random: Random, count: int, *, plain_first: bool) -> Iterator[State]:
        """Yield at most `count` states on which these queries may differ; with `plain_first`, simple ones first."""

    @property
    def constraints(self) -> Constraints:
        """What all states keep."""

    def state_of(self, source: Source) -> State | None:
        """Return what a variant of the source holds; None for too much, and for what breaks a constraint."""

    def is_unlike(self, state: State) -> bool:
        """Return whether a state breaks what the data of the source keeps without declaring it."""

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
        "sql": "pytest_queryeval.features.strength.sql.candidates:CandidateDatabases",
        "sparql": "pytest_queryeval.features.strength.sparql.candidates:CandidateGraphs",
    },
)


def small_databases(case: Case, session: Session, read_by: Sequence[str] = ()) -> SmallDatabases[Any]:
    """Return small databases for the source of a case; raise `SourceError` for a service, and for other kinds."""
    if case.settings.source is None or ENGINES[case.settings.source.engine].build is None:
        raise SourceError("no small database can be built: the source is a service")
    if case.settings.kind not in SMALL_DATABASES:
        raise SourceError(f"no small database can be built for the kind '{case.settings.kind}'")
    return SMALL_DATABASES[case.settings.kind](case, session, read_by)


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
