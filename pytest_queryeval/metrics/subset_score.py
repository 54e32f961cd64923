"""Subset score: how much of the predicted rows is in gold's."""

from __future__ import annotations

from pytest_queryeval.comparison.pairing import pair
from pytest_queryeval.comparison.row_cells import Codes, merged_rows
from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Table


@metric()
def subset_score(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return the mean over predicted rows of the share of their distinct values that are in the i-th gold row.

    Precision of rows: the i-th predicted row scores |gold row ∩ predicted row| / |predicted row|, both as sets of
    values, and a predicted row without partner 0. The order of rows counts, that of columns does not. Both without rows
    1, one without rows 0; a predicted row without cells 1 if gold's has none either. In [0, 1].
    Source: the "subsetting percentage" in the document of the Denodo AI SDK Evaluator, whose code counts otherwise
    (`subset_score_denodo`).

    >>> gold = Table(columns=("x", "y"), rows=((1, "a"), (2, "b")))
    >>> subset_score(gold, Table(columns=("v", "w"), rows=(("a", 1), ("b", 0))))
    0.75
    """
    if not gold.rows or not predicted.rows:
        return float(len(gold.rows) == len(predicted.rows))
    gold_rows, predicted_rows = merged_rows(pair(gold, predicted, policy))
    return sum(map(_share, gold_rows, predicted_rows)) / len(predicted_rows)


def _share(gold: Codes, predicted: Codes) -> float:
    values = set(predicted)
    return len(values.intersection(gold)) / len(values) if values else float(not gold)
