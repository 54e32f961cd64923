"""Execution accuracy: whether both answers are the same."""

from __future__ import annotations

from pytest_queryeval.comparison.ordered import equal_in_order
from pytest_queryeval.comparison.pairing import pair
from pytest_queryeval.comparison.policy import Policy
from pytest_queryeval.metric import metric
from pytest_queryeval.table import Table


@metric()
def execution_accuracy(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """1 if the tables are equal under the policy, else 0.

    By default rows are a multiset, columns may stand in any order under any names, numbers are equal within a
    tolerance, and the order of rows counts where gold's query orders them (`gold.ties`), except among rows that tie.
    Two answers without rows are equal whatever their columns.

    >>> gold = Table(columns=("x",), rows=((0.3,), (1,)))
    >>> execution_accuracy(gold, Table(columns=("y",), rows=((1.0,), (0.1 + 0.2,))))
    1.0
    >>> execution_accuracy(gold, Table(columns=("y",), rows=((1.0,), (0.3,), (0.3,))))
    0.0
    """
    if not gold.rows or not predicted.rows:
        return float(len(gold.rows) == len(predicted.rows))
    policy = policy.of(gold)
    a, b = len(gold.columns), len(predicted.columns)
    if b < a or (b > a and policy.extra_columns == "reject"):
        return 0.0
    ordered = policy.row_order == "strict" or (policy.row_order == "auto" and gold.ties is not None)
    if ordered and policy.duplicates == "count":  # a set of rows has no order
        return float(equal_in_order(gold, predicted, policy))
    both = pair(gold, predicted, policy)
    return float(both.row_f1(both.alignment) == 1.0)
