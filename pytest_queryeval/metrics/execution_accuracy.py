"""Execution accuracy: whether both answers are the same."""

from __future__ import annotations

from pytest_queryeval.comparison.equality import equal_tables
from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Table


@metric()
def execution_accuracy(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return 1 if the tables are equal under the policy, else 0.

    By default rows are a multiset, columns may be in any order under any names, numbers are equal within a
    tolerance, and the order of rows counts where gold's query orders them (`gold.ties`), except among rows that tie.
    Two answers without rows are equal if they have equally many columns. Else a graph equals graphs only.

    >>> gold = Table(columns=("x",), rows=((0.3,), (1,)))
    >>> execution_accuracy(gold, Table(columns=("y",), rows=((1.0,), (0.1 + 0.2,))))
    1.0
    >>> execution_accuracy(gold, Table(columns=("y",), rows=((1.0,), (0.3,), (0.3,))))
    0.0
    """
    return float(equal_tables(gold, predicted, policy))
