"""The subset score of the Denodo AI SDK Evaluator's workbook, as published in its code."""

from __future__ import annotations

from pytest_queryeval.comparison.pandas_text import text_rows
from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.table import Table

ROWS = 100  # the evaluator asks the database for no more


@metric(published=True)
def subset_score_denodo(gold: Table, predicted: Table) -> float:
    """Return the sum of |gold row ∩ predicted row| / w, over distinct rows paired by position, divided by n.

    The first 100 rows of both count, with cells as the text that pandas 2 makes of them; w is the number of gold
    columns, n that of gold rows with their duplicates. So gold against itself scores less than 1 where it holds a row
    twice, or a row a value twice. Gold without rows or columns: 0. Kept as published (its "percent subset", there a
    hundredfold), to be compared with workbooks; `subset_score` is the sound rule.
    Source: Denodo AI SDK Evaluator, f1_eval.py.

    >>> gold = Table(columns=("a", "b", "c"), rows=(("apple", "red", 35), ("pear", "green", 28)))
    >>> rows = (("apple", "red"), ("pear", "green"), ("plum", "blue"))
    >>> round(subset_score_denodo(gold, Table(columns=("x", "y"), rows=rows)), 3)
    0.667
    """
    gold_rows, predicted_rows = text_rows(gold.rows[:ROWS]), text_rows(predicted.rows[:ROWS])
    if not gold_rows or not gold.columns:
        return 0.0
    pairs = zip(dict.fromkeys(gold_rows), dict.fromkeys(predicted_rows), strict=False)
    common = sum(len(set(gold_row) & set(predicted_row)) for gold_row, predicted_row in pairs)
    return common / (len(gold.columns) * len(gold_rows))
