"""Cell F1, as the Denodo AI SDK Evaluator's document counts it."""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest

from pytest_queryeval.comparison.pairing import pair
from pytest_queryeval.comparison.policy import Policy
from pytest_queryeval.comparison.row_cells import merged_rows
from pytest_queryeval.metric import metric
from pytest_queryeval.table import Table


@metric()
def cell_f1(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """How many cells are right, row by row in order, wherever they stand in their row.

    The i-th gold row is compared with the i-th predicted row. tp counts the multiset intersections of their cells, fp
    the other predicted cells, fn the other gold cells, those of rows without partner among them:
    F1 = 2·tp / (2·tp + fp + fn), and 2·tp + fp + fn is the number of all cells. Both without rows 1, one without rows
    0; no cells on either side 1. In [0, 1].
    Source: the worked example in the document of the Denodo AI SDK Evaluator, whose code counts otherwise
    (`soft_f1_denodo`). Here it is, with tp 4, fp 2, fn 2:

    >>> gold = Table(columns=("a", "b", "c"), rows=(("apple", "red", 35), ("pear", "green", 28)))
    >>> rows = (("apple", "red"), ("pear", "green"), ("plum", "blue"))
    >>> round(cell_f1(gold, Table(columns=("x", "y"), rows=rows)), 3)
    0.667
    """
    if not gold.rows or not predicted.rows:
        return float(len(gold.rows) == len(predicted.rows))
    golds, others = merged_rows(pair(gold, predicted, policy))
    cells = len(golds) * len(gold.columns) + len(others) * len(predicted.columns)
    common = sum((Counter(left) & Counter(right)).total() for left, right in zip_longest(golds, others, fillvalue=()))
    return 2 * common / cells if cells else 1.0
