"""Small databases in which two queries differ that agree on the source: the proof that they are not the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pytest_queryeval.core.model import Case, Execution
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.core.table import Table
from pytest_queryeval.core.table_definition import Tables
from pytest_queryeval.evaluation.session import Session

MAX_DATABASES = 120  # that a search tries, attempts to leave rows out of one included


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A database on which the answers of two queries differ."""

    script: str
    """The script that creates the database: SQL, Turtle, or TriG."""
    tables: dict[str, Table]
    """The tables that have rows, by name; of a graph its triples, by the name of the graph."""
    gold: Execution
    predicted: Execution
    is_unlike: bool = False
    """Whether it breaks what the data of the source keeps without declaring it, such as a column without NULL."""

    @property
    def size(self) -> int:
        """How many rows, or triples, the database has."""
        return sum(len(table.rows) for table in self.tables.values())


class SearchResult(NamedTuple):
    """What a search came to."""

    counterexample: Counterexample | None
    """None if no database that was tried shows a difference."""
    tried: int
    """In how many databases both queries ran, without those that only make a counterexample smaller."""


class Find(Protocol):
    """Looks for a counterexample."""

    def __call__(self, case: Case, gold: str, predicted: str, session: Session) -> SearchResult:
        """Look for a database in which two queries differ by the policy of the case.

        Variants of the source are tried first. A counterexample keeps all declared constraints, has as few rows as
        possible, and the order of its rows does not matter. Raise `SourceError` if no database can be built.
        """


class Refute(Protocol):
    """Looks for a difference of two queries, without a counterexample to show."""

    def __call__(self, case: Case, gold: str, predicted: str, session: Session, databases: int) -> bool:
        """Return whether two queries differ by the policy of the case in one of several databases.

        Raise `SourceError` if no database can be built.
        """


class Constraints(NamedTuple):
    """What all small databases of a source keep."""

    text: str
    """The same as long as a search has the same databases to choose from."""
    tables: Tables
    """The tables with their constraints; empty for graphs."""


class StateConstraints(Protocol):
    """States what small databases for two queries keep."""

    def __call__(self, case: Case, gold: str, predicted: str, session: Session) -> Constraints:
        """Return the constraints of the tables that two queries read, as far as the rows of the source keep them.

        Raise `SourceError` if no database can be built.
        """


class CounterexampleSearch(NamedTuple):
    """A search for small databases in which two queries differ."""

    find: Find
    refute: Refute
    constraints: StateConstraints


COUNTEREXAMPLE_SEARCHES: Registry[CounterexampleSearch] = Registry(
    "search for counterexamples", group="pytest_queryeval.counterexamples", used_by_workers=True, members={}
)
