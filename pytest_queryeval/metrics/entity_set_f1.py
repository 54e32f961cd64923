"""Entity-set F1 (BuildingQA, BuildSys 2025)."""

from __future__ import annotations

from pytest_queryeval.comparison.pairing import pair
from pytest_queryeval.comparison.policy import Policy
from pytest_queryeval.metric import metric
from pytest_queryeval.table import Table


@metric()
def entity_set_f1(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Whether the right values stand in the right columns, however they are combined into rows.

    Under the best alignment, precision and recall of the distinct values of each column are averaged over gold's
    columns; the score is the F1 of these two means. NULL is an ordinary value. Both without rows 1, one without rows
    0, fewer predicted columns than gold columns 0. In [0, 1]. Source: BuildingQA's entity set F1.

    >>> gold = Table(columns=("x",), rows=((1,), (2,)))
    >>> round(entity_set_f1(gold, Table(columns=("y",), rows=((1,),))), 3)
    0.667
    """
    if not gold.rows or not predicted.rows:
        return float(len(gold.rows) == len(predicted.rows))
    both = pair(gold, predicted, policy)
    alignment = both.alignment
    if alignment is None:
        return 0.0
    if not alignment.columns:
        return float(not predicted.columns)
    if alignment.matched == len(both.gold_rows) == len(both.predicted_rows):
        return 1.0
    gold_sizes, predicted_sizes = both.distinct_counts
    shared = [both.overlap(mine, its) for mine, its in enumerate(alignment.columns)]
    precision = sum(number / predicted_sizes[its] for number, its in zip(shared, alignment.columns, strict=True))
    recall = sum(number / size for number, size in zip(shared, gold_sizes, strict=True))
    total = precision + recall
    return 2 * precision * recall / (total * len(shared)) if total else 0.0
