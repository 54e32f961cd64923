"""SQL: what its cases are scored by, and what ORDER BY and LIMIT of the gold query mean for the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pytest_queryeval.comparison.ordered import in_strict_order
from pytest_queryeval.comparison.policy import Policy
from pytest_queryeval.kinds import Run
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy
from pytest_queryeval.model import Execution
from pytest_queryeval.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Sql:
    """The kind `sql`."""

    name: str = "sql"
    default_metrics: tuple[str, ...] = (
        "execution_accuracy",
        "row_matching_f1",
        "valid_query",
    )
    default_thresholds: Mapping[str, float] = field(default_factory=lambda: {"execution_accuracy": 1.0})
    has_queries: bool = True
    text_numbers: bool = False
    options: frozenset[str] = frozenset()

    def settle_order(
        self, gold: Execution, predicted: Execution, *, policy: Policy, dialect: str, run: Run
    ) -> tuple[Table, tuple[str, ...]]:
        """Gold's answer with its ties where they decide the verdict. See `kinds.Kind`."""
        table, other = gold.answer, predicted.answer
        if table is None:
            raise ValueError("gold has no answer to settle the order of")
        if gold.query is None or other is None or policy.row_order != "auto" or policy.duplicates == "ignore":
            return table, ()
        if table.rows == other.rows or len(table.rows) != len(other.rows) or not _may_order(gold.query):
            return table, ()
        return _settle(gold.query, table, other, policy, dialect, run)


def _may_order(query: str) -> bool:
    """Whether a parse is worth its while; a query without these words has neither ORDER BY nor LIMIT."""
    text = query.lower()
    return "order" in text or "limit" in text


def _settle(
    query: str, table: Table, other: Table, policy: Policy, dialect: str, run: Run
) -> tuple[Table, tuple[str, ...]]:
    from pytest_queryeval.sql.order import order_plan, ties_of

    plan = order_plan(query, dialect)
    if plan is None:
        return table, ()
    same_rows = execution_accuracy(table, other, policy=replace(policy, row_order="ignore")) == 1.0
    if not plan.ordered and same_rows:
        return table, ()
    strict = replace(table, ties=in_strict_order(table)) if plan.ordered else table
    if not plan.limited and not same_rows:
        return strict, ()
    if same_rows and execution_accuracy(strict, other, policy=policy) == 1.0:
        return strict, ()
    ties, notes = ties_of(plan, table, policy, run)
    return (strict if ties is None else replace(table, ties=ties)), notes


SQL = Sql()
