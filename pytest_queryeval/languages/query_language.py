"""The base class of languages whose queries a source answers with a table."""

from __future__ import annotations

from types import MappingProxyType
from typing import ClassVar

from pytest_queryeval.comparison.difference import difference
from pytest_queryeval.core.case_report import DifferenceReport
from pytest_queryeval.core.errors import PredictorError
from pytest_queryeval.core.model import AddedAnswer, Answer, Case, Execution, QueryOrAnswer
from pytest_queryeval.core.table import Cell, Row, Table
from pytest_queryeval.documents.document import BLOCK_HINT, Node
from pytest_queryeval.documents.values import text
from pytest_queryeval.languages.extract_query import Language, after_prose, extract_query, text_hint
from pytest_queryeval.languages.kind import Kind
from pytest_queryeval.languages.stated_answers import TABLE_KEYS, read_table, stated_file, table_readers
from pytest_queryeval.sandbox.host import Hosts


class QueryLanguage(Kind):
    """A language whose queries a source answers with a table."""

    answer_type = Table
    default_metrics: ClassVar[tuple[str, ...]] = ("execution_accuracy", "row_matching_f1", "soft_f1", "valid_query")
    default_thresholds = MappingProxyType({"execution_accuracy": 1.0})
    has_queries = True
    language: ClassVar[Language]

    def csv_cell(self, node: Node) -> Cell:
        """Return a cell of a CSV file, whose texts are not quoted as in a suite."""
        return self.stated_cell(node)

    def read_gold(self, node: Node) -> QueryOrAnswer:
        if isinstance(node.value, dict) and not node.value.keys().isdisjoint(TABLE_KEYS):
            return self.read_table(node)
        query = _query(node)
        if node.empty or not query.strip():
            hint = "indent its lines below `|`" if node.form in ("literal", "folded") else "write the right query"
            raise node.problem(f"`gold` is empty: {hint}")
        return QueryOrAnswer(query=query)

    def read_predicted(self, node: Node) -> QueryOrAnswer:
        return QueryOrAnswer(query=_query(node))

    def read_table(self, node: Node) -> QueryOrAnswer:
        return QueryOrAnswer(answer=read_table(node, self.stated_cell))

    def read_file(self, node: Node) -> QueryOrAnswer:
        return stated_file(node, table_readers(self.stated_cell, self.csv_cell))

    def read_without_running(self, query_or_answer: QueryOrAnswer, case: Case, hosts: Hosts) -> Execution | None:
        if query_or_answer.query is not None:
            return None
        if not isinstance(query_or_answer.answer, Table):
            raise PredictorError(f"the prediction is not a table but a {type(query_or_answer.answer).__name__}")
        return Execution(query=None, answer=query_or_answer.answer)

    def extract_query(self, answer: str) -> tuple[str, str]:
        return extract_query(answer, self.language)

    def after_prose(self, answer: str, dialect: str) -> str:
        query = after_prose(answer, self.language)
        return query if query and self.parses(query, dialect) else ""

    def text_hint(self, query: str) -> str:
        return text_hint(query, self.language)

    def parses(self, query: str, dialect: str) -> bool:
        """Return whether a text is a query from its beginning to its end."""
        return not self.read_problem(query, dialect)

    def read_problem(self, query: str, dialect: str) -> str:
        """Return why and where a query cannot be read, so that it has no mutants.

        Empty if it can be read, and by default.
        """
        return ""

    def difference(self, gold: Answer, predicted: Answer, case: Case, *, limit: int) -> DifferenceReport[Row] | None:
        if isinstance(gold, AddedAnswer):
            return gold.difference(predicted, case, limit=limit)
        if not isinstance(gold, Table) or not isinstance(predicted, Table):
            return None
        return difference(gold, predicted, case.settings.policy, limit=limit)


def _query(node: Node) -> str:
    """Return the text of a query.

    Raise `CaseError` for other values, for a text that YAML cut, and for a text whose lines YAML joined.
    """
    if node.form == "mapping":
        # `gold:` with `SELECT a: b` on the next line is a mapping for YAML.
        raise node.problem(
            f"{node.key or 'gold_any'}: expected a query, found a mapping: {BLOCK_HINT}, and a table under `gold_table`"
        )
    if node.form == "sequence":
        hint = "write several right queries under `gold_any`" if node.key == "gold" else "write one query"
        raise node.problem(f"{node.key or 'gold_any'}: expected a query, found a list: {hint}")
    query = text(node)
    if node.form in ("cut", "clipped"):
        raise node.problem(f"YAML ends this query at ` #`: {BLOCK_HINT}, with comments as in the query's language")
    if node.form == "joined":
        raise node.problem(f"YAML joins the lines of this query, so a comment swallows the next line: {BLOCK_HINT}")
    return query
