"""Equality of two answers."""

from __future__ import annotations

from pytest_queryeval.comparison.ordered import equal_in_order
from pytest_queryeval.comparison.pairing import pair
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Table


def equal_tables(gold: Table, predicted: Table, policy: Policy) -> bool:
    """Return whether predicted equals gold under a policy; of answers without rows only the widths count."""
    if not gold.rows or not predicted.rows:
        return len(gold.rows) == len(predicted.rows) and is_wide_enough(gold, predicted, policy)
    policy = policy.of(gold, predicted)
    if gold.is_graph != predicted.is_graph or not is_wide_enough(gold, predicted, policy):
        return False
    ordered = policy.row_order == "strict" or (policy.row_order == "auto" and gold.ties is not None)
    if ordered and policy.duplicates == "count":  # a set of rows has no order
        return equal_in_order(gold, predicted, policy)
    if policy.duplicates == "count" and len(gold.rows) != len(predicted.rows):
        return False
    return pair(gold, predicted, policy).is_equal


def is_wide_enough(gold: Table, predicted: Table, policy: Policy) -> bool:
    """Return whether predicted has as many columns as gold, or at least as many where the policy allows more.

    An answer without a header fits any.
    """
    if not gold.has_header or not predicted.has_header:
        return True
    surplus = len(predicted.columns) - len(gold.columns)
    return surplus == 0 or (surplus > 0 and policy.extra_columns == "allow")
