"""Entity-set F1 (BuildingQA, BuildSys 2025), its precision and its recall."""

from __future__ import annotations

from pytest_queryeval.comparison.counts import entity_counts
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Table


def _by_column(gold: Table, predicted: Table, policy: Policy) -> list[dict[str, JsonValue]]:
    """Return the counts of each gold column, with its name; none where there is nothing to align."""
    column_counts = entity_counts(gold, predicted, policy) if gold.rows and predicted.rows else ()
    pairs = zip(gold.columns, column_counts or (), strict=False)
    return [{"column": name, **counts.as_dict()} for name, counts in pairs]


COUNTS = ("entity", _by_column)


@metric(counts=COUNTS)
def entity_set_f1(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return whether the right values are in the right columns, in any rows.

    Under the best alignment, precision and recall of the distinct values of each column are averaged over gold's
    columns; the score is the F1 of these two means. NULL is an ordinary value. Both without rows 1, one without rows
    0, fewer predicted columns than gold columns 0. In [0, 1]. Source: BuildingQA's entity set F1.

    >>> gold = Table(columns=("x",), rows=((1,), (2,)))
    >>> round(entity_set_f1(gold, Table(columns=("y",), rows=((1,),))), 3)
    0.667
    """
    precision, recall, columns = _sums(gold, predicted, policy)
    total = precision + recall
    return 2 * precision * recall / (total * columns) if total else 0.0


@metric(counts=COUNTS)
def entity_precision(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return the mean over gold's columns of the share of predicted's distinct values that are right.

    As in `entity_set_f1`. Both without rows 1, one without rows 0, fewer predicted columns than gold columns 0.
    In [0, 1].
    """
    precision, _, columns = _sums(gold, predicted, policy)
    return precision / columns


@metric(counts=COUNTS)
def entity_recall(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return the mean over gold's columns of the share of their distinct values that are predicted.

    As in `entity_set_f1`. Both without rows 1, one without rows 0, fewer predicted columns than gold columns 0.
    In [0, 1].
    """
    _, recall, columns = _sums(gold, predicted, policy)
    return recall / columns


def _sums(gold: Table, predicted: Table, policy: Policy) -> tuple[float, float, int]:
    """Return precision and recall, each summed over columns, and the number of columns, at least 1."""
    if not gold.rows or not predicted.rows:
        score = float(len(gold.rows) == len(predicted.rows))
        return score, score, 1
    column_counts = entity_counts(gold, predicted, policy)
    if column_counts:
        precision = sum(counts.precision for counts in column_counts)
        recall = sum(counts.recall for counts in column_counts)
        return precision, recall, len(column_counts)
    score = float(column_counts is not None and not predicted.columns)
    return score, score, 1
