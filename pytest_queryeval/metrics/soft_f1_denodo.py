"""The soft F1 of the Denodo AI SDK Evaluator's workbook, as published in its code."""

from __future__ import annotations

from pytest_queryeval.comparison.pandas_text import text_rows
from pytest_queryeval.comparison.soft import Shape, sums_by_position
from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.table import Table

ROWS = 100  # the evaluator asks the database for no more


@metric(published=True)
def soft_f1_denodo(gold: Table, predicted: Table) -> float:
    """Return `soft_f1_bird` of the first 100 rows of both, with cells as the text that pandas 2 makes of them.

    A numeric column that holds a float or NULL is written as floats, with `nan`; any other NULL is `None`. Rows are
    made distinct by that text. Two empty answers score 0. Kept as published, to be compared with workbooks.
    Source: Denodo AI SDK Evaluator, f1_eval.py. Its document's count of cells is `cell_f1`.

    >>> gold = Table(columns=("a", "b", "c"), rows=(("apple", "red", 35), ("pear", "green", 28)))
    >>> rows = (("apple", "red"), ("pear", "green"), ("plum", "blue"))
    >>> round(soft_f1_denodo(gold, Table(columns=("x", "y"), rows=rows)), 3)
    0.615
    """
    gold_rows, predicted_rows = (list(dict.fromkeys(text_rows(table.rows[:ROWS]))) for table in (gold, predicted))
    if not gold_rows and not predicted_rows:
        return 0.0
    shape = Shape(n=len(gold_rows), m=len(predicted_rows), w=len(gold.columns), b=len(predicted.columns))
    return float(shape.f1(sums_by_position(gold_rows, predicted_rows)))
