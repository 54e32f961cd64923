"""Equality of the shapes of two answers (as in the Denodo AI SDK Evaluator's workbook)."""

from __future__ import annotations

from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.table import Table


@metric()
def same_row_count(gold: Table, predicted: Table) -> float:
    """Return 1 if both have the same number of rows, else 0."""
    return float(len(gold.rows) == len(predicted.rows))


@metric()
def same_column_count(gold: Table, predicted: Table) -> float:
    """Return 1 if both have the same number of columns, else 0."""
    return float(len(gold.columns) == len(predicted.columns))
