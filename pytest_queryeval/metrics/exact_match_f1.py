"""Exact-match F1 (BuildingQA, BuildSys 2025)."""

from __future__ import annotations

from dataclasses import replace

from pytest_queryeval.comparison.counts import exact_counts
from pytest_queryeval.comparison.equality import is_wide_enough
from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Table


@metric(counts=("exact", lambda gold, predicted, policy: exact_counts(gold, predicted, policy).as_dict()))
def exact_match_f1(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return how many rows are right with the columns in gold's order; names are ignored.

    0 unless both have the same number of columns; else 2 * |multiset intersection of rows| / (n + m) with the i-th
    predicted column as the i-th gold column. Both without rows 1 if they have the same number of columns, else 0; one
    without rows 0. In [0, 1].
    Source: BuildingQA's exact match F1.

    >>> gold = Table(columns=("x", "y"), rows=((1, "a"), (2, "b")))
    >>> exact_match_f1(gold, Table(columns=("v", "w"), rows=(("b", 2), ("a", 1))))
    0.0
    """
    if not is_wide_enough(gold, predicted, replace(policy, extra_columns="reject")):
        return 0.0
    return exact_counts(gold, predicted, policy).f1
