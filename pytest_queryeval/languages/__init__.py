"""What a query language means for an evaluation: how its answers are stated and read, and what they are scored by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pytest_queryeval.comparison.difference import Difference
from pytest_queryeval.comparison.ties import OrderPlan
from pytest_queryeval.core.model import Answer, Case, Execution, Stated
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.core.table import Table
from pytest_queryeval.documents.document import Node
from pytest_queryeval.sandbox.host import Hosts


class Kind(Protocol):
    """A query language, or a form of answers that need no source to be run on."""

    name: str
    default_metrics: tuple[str, ...]
    default_thresholds: Mapping[str, float]
    has_queries: bool
    text_numbers: bool
    options: frozenset[str]
    paths: frozenset[str]
    nothing: Answer | None  # what a failed prediction amounts to, for metrics that may not apply to each gold

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise `SettingError` for an option of the kind whose value cannot be right."""

    def gold(self, node: Node) -> Stated:
        """Read what stands under `gold`, or an item of `gold_any`; raises `CaseError`."""

    def predicted(self, node: Node) -> Stated:
        """Read what stands under `predicted`; raises `CaseError` for what no system under test could have said."""

    def table(self, node: Node) -> Stated:
        """Read what stands under `gold_table` or `predicted_table`; raises `CaseError`."""

    def file(self, node: Node) -> Stated:
        """Read the file that `gold_file` or `predicted_file` names; raises `CaseError`."""

    def checked_gold(self, gold: Stated, case: Case) -> Stated:
        """The gold with what the case's settings say of it; raises `ValueError` where it breaks them."""

    def answered(self, predicted: Stated, case: Case, hosts: Hosts) -> Execution | None:
        """What a prediction says, where no source has to run it; None where one has to.

        Raises `PredictorError` for an answer that is none of this kind.
        """

    def unwrapped(self, said: str) -> tuple[str, str]:
        """The query in what a model said, and a note on what else it said.

        The text as it is where it is a query, or where it cannot be told what the query is; the note then says why, or
        is empty.
        """

    def difference(self, gold: Answer, predicted: Answer, case: Case, *, limit: int) -> Difference | None:
        """Where two answers differ, at most `limit` rows of each sort; None where they cannot be compared."""

    def text(self, answer: Answer) -> str | None:
        """An answer as text for reports, where it is not a table."""

    def difficulty(self, query: str, dialect: str) -> str | None:
        """How hard a gold query is, where the kind has a rule for that and no one has said it; None otherwise."""

    def order_plan(self, query: str, table: Table, case: Case) -> OrderPlan | None:
        """What `query`, whose answer is `table`, says of the order of rows; None where it says nothing."""


KINDS: Registry[Kind] = Registry(
    "kind",
    group="pytest_queryeval.languages",
    members={
        "sql": f"{__name__}.sql.kind:SQL",
        "sparql": f"{__name__}.sparql.kind:SPARQL",
        "json": f"{__name__}.json.kind:JSON",
        "sdmx": f"{__name__}.sdmx.kind:SDMX",
    },
)


def difficulty_of(case: Case) -> str | None:
    """How hard a case is: as its suite says, else by the rule of its kind, from its first gold."""
    query = case.golds[0].query
    if case.difficulty is not None or query is None:
        return case.difficulty
    return KINDS[case.kind].difficulty(query, case.dialect)
