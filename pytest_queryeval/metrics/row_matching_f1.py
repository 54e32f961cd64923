"""Row-matching F1 (BuildingQA, BuildSys 2025), its precision and its recall."""

from __future__ import annotations

from pytest_queryeval.comparison.counts import row_counts
from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Table

COUNTS = ("row", lambda gold, predicted, policy: row_counts(gold, predicted, policy).as_dict())


@metric(counts=COUNTS)
def row_matching_f1(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return how many rows are right, whatever the names and the order of the columns.

    Under the best alignment, 2 * |multiset intersection of rows| / (n + m) for n gold and m predicted rows; predicted
    columns that no gold column maps to are dropped first. Both without rows 1, one without rows 0, fewer predicted
    columns than gold columns 0. In [0, 1]. Source: BuildingQA's row matching F1.

    >>> gold = Table(columns=("x", "y"), rows=((1, "a"), (2, "b")))
    >>> row_matching_f1(gold, Table(columns=("v", "w"), rows=(("b", 2), ("a", 1))))
    1.0
    """
    return row_counts(gold, predicted, policy).f1


@metric(counts=COUNTS)
def row_precision(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return the share of predicted rows that are right: |multiset intersection of rows| / m, as in `row_matching_f1`.

    Both without rows 1, one without rows 0, fewer predicted columns than gold columns 0. In [0, 1].
    """
    return row_counts(gold, predicted, policy).precision


@metric(counts=COUNTS)
def row_recall(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return the share of gold's rows that are predicted: |multiset intersection of rows| / n, as in `row_matching_f1`.

    Both without rows 1, one without rows 0, fewer predicted columns than gold columns 0. In [0, 1].
    """
    return row_counts(gold, predicted, policy).recall
