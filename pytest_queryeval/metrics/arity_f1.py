"""Arity-matching F1 (BuildingQA, BuildSys 2025)."""

from __future__ import annotations

from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.table import Table


@metric()
def arity_f1(gold: Table, predicted: Table) -> float:
    """Return how well the numbers of columns agree: 2 * min(a, b) / (a + b) for a gold and b predicted columns.

    1 if neither has columns. Columns are those of the result's header, which an empty answer has, too. In [0, 1].
    Source: BuildingQA's arity matching F1, whose code counts the first row's keys or words of the query instead.

    >>> arity_f1(Table(columns=("a", "b"), rows=()), Table(columns=("x", "y", "z"), rows=()))
    0.8
    """
    a, b = len(gold.columns), len(predicted.columns)
    return 2 * min(a, b) / (a + b) if a + b else 1.0
