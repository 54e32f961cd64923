"""BIRD's soft F1, as published."""

from __future__ import annotations

from pytest_queryeval.comparison.soft import Shape, sums_by_position
from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.table import Table


@metric(published=True)
def soft_f1_bird(gold: Table, predicted: Table) -> float:
    """Return the soft F1 of the i-th distinct gold row against the i-th distinct predicted row, by Python equality.

    With w gold columns, a pair adds to tp the share (of w) of predicted cells that gold's row holds, to fp that of
    predicted cells which it does not hold, to fn that of gold cells which predicted's row does not hold; a row without
    partner adds 1 to fp or fn. F1 of the sums; two empty answers are equal. Kept as published, to be compared with
    papers: the same rows in another order may score 0. `soft_f1` is the sound rule.
    Source: bird-bench/mini_dev, evaluation_f1.py (since June 2025).

    >>> gold = Table(columns=("x", "y"), rows=((1, "a"), (2, "b")))
    >>> soft_f1_bird(gold, Table(columns=("v", "w"), rows=(("a", 1), ("b", 0))))
    0.75
    """
    gold_rows, predicted_rows = list(dict.fromkeys(gold.rows)), list(dict.fromkeys(predicted.rows))
    shape = Shape(n=len(gold_rows), m=len(predicted_rows), w=len(gold.columns), b=len(predicted.columns))
    return float(shape.f1(sums_by_position(gold_rows, predicted_rows)))
