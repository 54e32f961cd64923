"""The base class of kinds: query languages, and answers that are read, not run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar

from pytest_queryeval.comparison.ties import OpenQuery, OrderPlan, TieQuery
from pytest_queryeval.core.case_report import DifferenceReport
from pytest_queryeval.core.cause import Cause, CauseLabel
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.metric import SchemaUse
from pytest_queryeval.core.model import Answer, Case, Execution, Failure, FailureKind, QueryOrAnswer, Source
from pytest_queryeval.core.table import Cell, Row, Table, freeze_cell
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.values import json_value
from pytest_queryeval.sandbox.host import Hosts

FAILURE_LABELS: Mapping[FailureKind, CauseLabel] = {
    "invalid": "syntax",
    "timeout": "timeout",
    "unsafe": "unsafe",
    "too_large": "too-large",
    "empty": "empty",
    "rejected": "rejected",
    "abstained": "abstained",
    "missing": "missing",
}


class Kind(ABC):
    """A query language, or a form of answers that need no source to be run on.

    A subclass sets `name`, `answer_type` and the defaults, and implements the reading of gold and predicted. For a
    language whose queries a source answers with tables, `query_language.QueryLanguage` has all of that.
    """

    name: ClassVar[str]
    answer_type: ClassVar[type[Answer]]
    """Metrics with `answers=` this type can score cases of the kind."""
    default_metrics: ClassVar[tuple[str, ...]]
    default_thresholds: ClassVar[Mapping[str, float]]
    has_queries: ClassVar[bool] = False
    text_numbers: ClassVar[bool] = False
    """The default of `compare: {text_numbers: …}`."""
    options: ClassVar[frozenset[str]] = frozenset()
    paths: ClassVar[frozenset[str]] = frozenset()
    """The options that may name a file."""
    empty_answer: ClassVar[Answer | None] = None
    """A placeholder for a failed prediction, to find out whether a metric applies to gold."""

    def check(self, options: Mapping[str, JsonValue]) -> None:  # noqa: B027 - most kinds have nothing to check
        """Raise `SettingError` for an option of the kind with an invalid value."""

    def stated_cell(self, node: Node) -> Cell:
        """Return the cell that a source would return for a cell that is written in a suite."""
        cell: Cell = freeze_cell(json_value(node))
        return cell

    @abstractmethod
    def read_gold(self, node: Node) -> QueryOrAnswer:
        """Return the gold that the value of `gold`, or an item of `gold_any`, states; raise `CaseError`."""

    @abstractmethod
    def read_predicted(self, node: Node) -> QueryOrAnswer:
        """Return the prediction that the value of `predicted` states.

        Raise `CaseError` if no predictor could return it.
        """

    @abstractmethod
    def read_file(self, node: Node) -> QueryOrAnswer:
        """Return the content of the file that `gold_file` or `predicted_file` names; raise `CaseError`."""

    def read_table(self, node: Node) -> QueryOrAnswer:
        """Return the table that the value of `gold_table` or `predicted_table` states; raise `CaseError`."""
        raise node.problem(f"answers of the kind '{self.name}' are not tables: write the answer under `gold`")

    def check_gold(self, gold: QueryOrAnswer, case: Case) -> QueryOrAnswer:
        """Return the gold with what the case's settings add to it; raise `ValueError` if it contradicts them."""
        return gold

    def uses_timeout(self, case: Case) -> bool:
        """Return whether a query or another program, which `timeout` can end, runs for a case."""
        return self.has_queries and case.runs_queries

    @abstractmethod
    def read_without_running(self, query_or_answer: QueryOrAnswer, case: Case, hosts: Hosts) -> Execution | None:
        """Return the answer to a gold or a prediction that no source has to run; None if a source has to run it.

        Raise `PredictorError` for an answer of another kind.
        """

    def translate(self, query: str, dialect: str, target: str) -> str:
        """Return a query of one dialect in the dialect `target`; languages without dialects return it as it is.

        Raise `ValueError` with the reason if it cannot be translated.
        """
        return query

    def extract_query(self, answer: str) -> tuple[str, str]:
        """Return the query in the answer of a model, and a note on the text around it.

        Return the whole answer if it is a query, or if no query can be found; the note then has the reason, or is
        empty. Kinds without queries leave the text to `read_without_running`.
        """
        return answer, ""

    def run_note(self, query: str, source: Source) -> str:
        """Return a note for readers on how a predicted query is run on `source`; empty by default."""
        return ""

    def after_prose(self, answer: str, dialect: str) -> str:
        """Return the query after prose in the answer of a model; empty if none can be parsed, and by default."""
        return ""

    def text_hint(self, query: str) -> str:
        """Return a likely reason why the text of a query is invalid, such as prose before it.

        Empty if none is found, and by default.
        """
        return ""

    def name_hint(self, query: str, message: str, schema: Schema) -> str:
        """Return a hint to append to an engine's `message`, such as on a name that is not in `schema`.

        Empty if there is no hint, and by default.
        """
        return ""

    def refusal_remedy(self, query: str, message: str, case: Case) -> str:
        """Return what to write instead of a gold query that an engine refused as unsafe, with this `message`."""
        return "write one query that only reads"

    def in_form_of(self, reference: Answer, answer: Answer) -> Answer:
        """Return an answer that the suite states in the form of `reference`, such as a graph.

        Most kinds have only one form.
        """
        return answer

    @abstractmethod
    def difference(self, gold: Answer, predicted: Answer, case: Case, *, limit: int) -> DifferenceReport[Row] | None:
        """Return where two answers differ, at most `limit` rows of each sort; None if they cannot be compared."""

    def failure_label(self, failure: Failure) -> CauseLabel:
        """Return the label of a failed prediction in causes."""
        return FAILURE_LABELS[failure.kind]

    def difference_cause(self, gold: Answer, predicted: Answer, case: Case) -> Cause | None:
        """Return the cause for which a predicted answer, of a kind without queries, is wrong.

        None if it is unknown, and by default.
        """
        return None

    def field_scores(self, gold: Answer, predicted: Answer | None, case: Case) -> Mapping[str, float]:
        """Return the share of each named part of gold that is right, from 0 to 1; none if answers have no named parts.

        `predicted` is None for a failed prediction. There are no named parts by default.
        """
        return {}

    def text(self, answer: Answer) -> str | None:
        """Return an answer as text for reports; None if it is a table, and by default."""
        return None

    def difficulty(self, query: str, dialect: str) -> str | None:
        """Return how hard a gold query is by a published rule for the language; None if there is no such rule.

        None also for a query that the rule cannot read. None by default.
        """
        return None

    def features(self, query: str, dialect: str) -> tuple[str, ...]:
        """Return the features of a gold query, such as `join`, by which reports group cases.

        () if the query cannot be read, and by default.
        """
        return ()

    def order_plan(self, query: str, table: Table, case: Case) -> OrderPlan | None:
        """Return how `query`, whose answer is `table`, orders and limits its rows.

        None if it does neither, and by default.
        """
        return None

    def sort_key_query(self, query: str, table: Table, case: Case) -> TieQuery | None:
        """Return a query that also selects the sort keys of `query`, whose answer is `table`.

        None if the query has no sort keys, and by default.
        """
        return None

    def open_query(self, query: str, case: Case, schema: Callable[[], Schema]) -> OpenQuery | None:
        """Return the choices of a gold query that leaves its answer open below its top level; None for any other query.

        `schema` returns the tables that the query is about. None by default.
        """
        return None

    def selected_columns(self, query: str, dialect: str) -> tuple[str, ...] | None:
        """Return the columns of any answer to a query; None if its text does not name them, as with `*`.

        Raise `ValueError` for a text that is not a query. None by default.
        """
        return None

    def schema_use(self, query: str, case: Case, schema: Schema) -> SchemaUse:
        """Return the names of the schema that a query uses; raise ValueError with the reason if it cannot be read.

        Raise ValueError by default.
        """
        raise ValueError(f"queries of the kind '{self.name}' use no schema")

    def reads_no_data(self, query: str, dialect: str) -> bool:
        """Return whether a query is known to read nothing of its source; false by default."""
        return False

    def reads_clock(self, query: str, dialect: str) -> str:
        """Return the part of a query that reads the current date or time; empty if none is known, and by default."""
        return ""

    def random_part(self, query: str, dialect: str) -> str:
        """Return the part of a query that gives another value each time; empty if none is known, and by default."""
        return ""

    def without_data(self, query: str, dialect: str) -> str | None:
        """Return a query for the same source that reads every table or graph as empty.

        None if the query cannot be rewritten so, for example because it does not parse. None by default.
        """
        return None

    def normal_text(self, query: str, dialect: str) -> str:
        """Return a text that is the same for queries that differ in their layout only."""
        return " ".join(query.split())
