"""Small databases in which two queries differ that agree on the source: the proof that they are not the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

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


class CounterexampleSearch(Protocol):
    """Looks for a counterexample."""

    def __call__(
        self, case: Case, gold: str, predicted: str, session: Session, *, candidates: int | None = None
    ) -> Counterexample | None:
        """Return a database in which two queries differ by the policy of the case; None where none is found.

        It has as few rows as possible, and the order of its rows does not matter. With `candidates`, only so many
        databases are tried, and the first in which the answers differ is returned as it is: enough to refute that the
        queries are the same. Raise `SourceError` where no database can be built.
        """


COUNTEREXAMPLE_SEARCHES: Registry[CounterexampleSearch] = Registry(
    "search for counterexamples", group="pytest_queryeval.counterexamples", used_by_workers=True, members={}
)
