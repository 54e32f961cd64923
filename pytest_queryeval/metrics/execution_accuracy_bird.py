"""BIRD's execution accuracy, as published."""

from __future__ import annotations

from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.table import Table


@metric(published=True)
def execution_accuracy_bird(gold: Table, predicted: Table) -> float:
    """Return 1 if the sets of rows are equal as Python tuples, else 0.

    The order and the number of equal rows are ignored, the order of columns counts, 1 equals 1.0, nothing is rounded,
    and two empty answers are equal. Kept as published, to be compared with papers; `execution_accuracy` is the sound
    rule.
    Source: bird-bench/mini_dev, evaluation_ex.py.
    """
    return float(set(gold.rows) == set(predicted.rows))
