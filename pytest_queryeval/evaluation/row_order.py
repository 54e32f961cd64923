"""The order of gold's rows, resolved as far as it decides whether predicted is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from pytest_queryeval.comparison.equality import in_strict_order
from pytest_queryeval.comparison.gold_columns import project
from pytest_queryeval.comparison.ties import OrderPlan, ties_of, without_choice
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Table
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy

ReadPlan: TypeAlias = Callable[[], OrderPlan | None]
Run: TypeAlias = Callable[[str], Table | str]


def resolve_row_order(
    gold: Table, predicted: Table, policy: Policy, *, read_plan: ReadPlan, run: Run
) -> tuple[Table, tuple[str, ...]]:
    """Return gold with the order of rows that its query asks for, and notes on what could not be determined.

    `read_plan` parses gold's query, and returns None if it cannot. `run` executes a rewritten query and returns its
    table, or why it failed. Both are called only where the verdict depends on them.
    """
    if policy.row_order != "auto" or policy.duplicates == "ignore":
        return gold, ()
    chosen = project(gold, policy.gold_columns)
    if chosen.rows == predicted.rows or len(gold.rows) != len(predicted.rows):
        return gold, ()
    plan = read_plan()
    if plan is None:
        return gold, ()
    same_rows = execution_accuracy(chosen, predicted, policy=replace(policy, row_order="ignore")) == 1.0
    if not plan.ordered and same_rows:
        return gold, ()
    strict = replace(gold, ties=in_strict_order(gold)) if plan.ordered else gold
    if not plan.limited and not same_rows:  # wrong in any order
        return strict, ()
    if same_rows and execution_accuracy(project(strict, policy.gold_columns), predicted, policy=policy) == 1.0:
        return strict, ()
    # Right or wrong depends on which rows tie, or on which of them a LIMIT chose.
    ties, notes = ties_of(plan, gold, policy, run)
    return (strict if ties is None else replace(gold, ties=ties)), notes


def depends_on_tie(gold: Table, predicted: Table, policy: Policy) -> bool:
    """Return whether predicted is right only because a LIMIT of gold, whose `ties` are known, cuts through a tie."""
    is_cut = any(len(tie.rows) > tie.size for tie in gold.ties or ())
    gold = project(gold, policy.gold_columns) if is_cut else gold
    if not is_cut or execution_accuracy(gold, predicted, policy=policy) != 1.0:
        return False
    return execution_accuracy(without_choice(gold), predicted, policy=policy) != 1.0
