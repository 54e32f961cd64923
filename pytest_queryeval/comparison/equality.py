"""Equality of two answers."""

from __future__ import annotations

from pytest_queryeval.comparison.ordered import equal_in_order
from pytest_queryeval.comparison.pairing import pair
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Table


def equal_tables(gold: Table, predicted: Table, policy: Policy) -> bool:
    """Return whether predicted equals gold under a policy; two answers without rows do, whatever their columns."""
    if not gold.rows or not predicted.rows:
        return len(gold.rows) == len(predicted.rows)
    if gold.is_graph != predicted.is_graph:
        return False
    policy = policy.of(gold, predicted)
    a, b = len(gold.columns), len(predicted.columns)
    if b < a or (b > a and policy.extra_columns == "reject"):
        return False
    ordered = policy.row_order == "strict" or (policy.row_order == "auto" and gold.ties is not None)
    if ordered and policy.duplicates == "count":  # a set of rows has no order
        return equal_in_order(gold, predicted, policy)
    both = pair(gold, predicted, policy)
    return both.row_f1(both.alignment) == 1.0
