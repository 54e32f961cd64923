"""What kinds have in common whose golds and predictions are queries that a source answers with a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_queryeval.comparison.difference import Difference, difference
from pytest_queryeval.comparison.ties import OrderPlan
from pytest_queryeval.core.errors import PredictorError
from pytest_queryeval.core.model import Answer, Case, Execution, Stated
from pytest_queryeval.core.table import Cell, Table
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.values import text
from pytest_queryeval.documents.yaml_errors import BLOCK_HINT
from pytest_queryeval.languages.extract_query import Language, unwrapped
from pytest_queryeval.languages.files import stated_file
from pytest_queryeval.languages.table_files import CellReader, table_readers
from pytest_queryeval.languages.tables import TABLE_KEYS, read_table
from pytest_queryeval.sandbox.host import Hosts

# What SQL takes for a comment: YAML or the folding of lines would make a query end there.
_COMMENT = re.compile(r"--|(?:^|\s)#")


def as_it_is(cell: Cell) -> Cell:
    """A cell that means what was written."""
    return cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """A kind of queries.

    `stated_cell` is a cell of a table as people write it into a suite, as the kind's engines would answer it;
    `csv_cell` the same for a file whose texts have no quotes that tell them from other values.
    """

    name: str
    language: Language
    default_metrics: tuple[str, ...]
    default_thresholds: Mapping[str, float] = field(default_factory=lambda: {"execution_accuracy": 1.0})
    has_queries: bool = True
    text_numbers: bool = False
    options: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    nothing: Answer | None = None
    stated_cell: CellReader = as_it_is
    csv_cell: CellReader = as_it_is

    def check(self, options: Mapping[str, Any]) -> None:
        """See `Kind`."""

    def gold(self, node: Node) -> Stated:
        """See `Kind`."""
        if isinstance(node.value, dict) and not node.value.keys().isdisjoint(TABLE_KEYS):
            return self.table(node)
        query = _query(node)
        if node.empty or not query.strip():
            hint = "indent its lines below `|`" if node.form in ("literal", "folded") else "write the right query"
            raise node.problem(f"gold is empty: {hint}")
        return Stated(query=query)

    def predicted(self, node: Node) -> Stated:
        """See `Kind`."""
        return Stated(query=_query(node))

    def table(self, node: Node) -> Stated:
        """See `Kind`."""
        return Stated(answer=read_table(node, self.stated_cell))

    def file(self, node: Node) -> Stated:
        """See `Kind`."""
        return stated_file(node, table_readers(self.stated_cell, self.csv_cell))

    def checked_gold(self, gold: Stated, case: Case) -> Stated:
        """See `Kind`; only its source can tell whether a query is right."""
        return gold

    def answered(self, predicted: Stated, case: Case, hosts: Hosts) -> Execution | None:
        """See `Kind`."""
        if predicted.query is not None:
            return None
        if not isinstance(predicted.answer, Table):
            raise PredictorError(f"the prediction is no table but a {type(predicted.answer).__name__}")
        return Execution(query=None, answer=predicted.answer)

    def unwrapped(self, said: str) -> tuple[str, str]:
        """See `Kind`."""
        return unwrapped(said, self.language)

    def difference(self, gold: Answer, predicted: Answer, case: Case, *, limit: int) -> Difference | None:
        """See `Kind`."""
        if not isinstance(gold, Table) or not isinstance(predicted, Table):
            return None
        return difference(gold, predicted, case.policy, limit=limit)

    def text(self, answer: Answer) -> str | None:
        """See `Kind`."""
        return None

    def difficulty(self, query: str, dialect: str) -> str | None:
        """See `Kind`; only some languages have a published rule."""
        return None

    def order_plan(self, query: str, table: Table, case: Case) -> OrderPlan | None:
        """See `Kind`."""
        return None


def _query(node: Node) -> str:
    """Return a query's text; one that YAML cut, or joined lines of so that a comment swallows the rest, is refused."""
    if node.form == "mapping":
        # `gold:` with `SELECT a: b` on the next line is a mapping for YAML.
        raise node.problem(f"expected a query, found a mapping: {BLOCK_HINT}, and a table under `gold_table`")
    if node.form == "sequence":
        hint = ": several right answers stand under `gold_any`" if node.key == "gold" else ""
        raise node.problem(f"expected a query, found a list{hint}")
    query = text(node)
    if _is_trap(query, node):
        raise node.problem(f"YAML would change this query, since it holds `--` or `#`: {BLOCK_HINT}")
    return query


def _is_trap(query: str, node: Node) -> bool:
    if node.form in ("literal", "quoted"):
        return False
    return node.form in ("cut", "clipped") or _COMMENT.search(query) is not None
