"""Cell F1, its precision and its recall, as the Denodo AI SDK Evaluator's document counts it."""

from __future__ import annotations

from pytest_queryeval.comparison.counts import cell_counts
from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Table

COUNTS = ("cell", lambda gold, predicted, policy: cell_counts(gold, predicted, policy).as_dict())


@metric(counts=COUNTS)
def cell_f1(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return how many cells are right, row by row in order, in any column.

    The i-th gold row is compared with the i-th predicted row. tp counts the multiset intersections of their cells, fp
    the other predicted cells, fn the other gold cells, including those of rows without partner:
    F1 = 2·tp / (2·tp + fp + fn), and 2·tp + fp + fn is the number of all cells. Both without rows 1, one without rows
    0; no cells on either side 1. In [0, 1].
    Source: the worked example in the document of the Denodo AI SDK Evaluator, whose code counts otherwise
    (`soft_f1_denodo`). Here it is, with tp 4, fp 2, fn 2:

    >>> gold = Table(columns=("a", "b", "c"), rows=(("apple", "red", 35), ("pear", "green", 28)))
    >>> rows = (("apple", "red"), ("pear", "green"), ("plum", "blue"))
    >>> round(cell_f1(gold, Table(columns=("x", "y"), rows=rows)), 3)
    0.667
    """
    return cell_counts(gold, predicted, policy).f1


@metric(counts=COUNTS)
def cell_precision(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return the share of predicted cells that are right: tp / (tp + fp), as `cell_f1` counts them.

    No predicted cells 1 if gold has none either, else 0. In [0, 1].
    """
    return cell_counts(gold, predicted, policy).precision


@metric(counts=COUNTS)
def cell_recall(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return the share of gold's cells that are predicted: tp / (tp + fn), as `cell_f1` counts them.

    No cells in gold 1 if predicted has none either, else 0. In [0, 1].
    """
    return cell_counts(gold, predicted, policy).recall
