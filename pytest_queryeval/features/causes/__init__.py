"""Why answers are wrong: edits from a predicted query to gold, by the kind of the query."""

from __future__ import annotations

from typing import Protocol

from pytest_queryeval.core.cause import QueryEdits
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.registry import Registry


class EditFinder(Protocol):
    """Finds the differences of two queries of a kind, as edits that lead from the predicted one to gold."""

    def __call__(self, predicted: str, gold: str, *, schema: Schema, dialect: str) -> QueryEdits | None:
        """Return the single edits; None where there are none, or one of the queries cannot be read."""


EDITS: Registry[EditFinder] = Registry(
    "kind with edits",
    group="pytest_queryeval.edits",
    used_by_workers=True,
    members={"sql": f"{__name__}.sql.sql_edits:sql_edits", "sparql": f"{__name__}.sparql:sparql_edits"},
)
