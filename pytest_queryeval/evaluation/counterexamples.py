"""Small databases in which two queries differ that agree on the source: the proof that they are not the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pytest_queryeval.core.model import Case, Execution
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.core.table import Table
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


class Find(Protocol):
    """Looks for a counterexample."""

    def __call__(self, case: Case, gold: str, predicted: str, session: Session) -> Counterexample | None:
        """Return a database in which two queries differ by the policy of the case; None where none is found.

        It has as few rows as possible, and the order of its rows does not matter. Raise `SourceError` where no database
        can be built.
        """


class Refute(Protocol):
    """Looks for a difference of two queries, without a counterexample to show."""

    def __call__(self, case: Case, gold: str, predicted: str, session: Session, databases: int) -> bool:
        """Return whether two queries differ by the policy of the case in one of so many databases.

        Raise `SourceError` where no database can be built.
        """


class CounterexampleSearch(NamedTuple):
    """A search for small databases in which two queries differ."""

    find: Find
    refute: Refute


COUNTEREXAMPLE_SEARCHES: Registry[CounterexampleSearch] = Registry(
    "search for counterexamples", group="pytest_queryeval.counterexamples", used_by_workers=True, members={}
)
