"""Soft F1: how many cells are right, in any order of rows and columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from pytest_queryeval.comparison.counts import Counts
from pytest_queryeval.comparison.pairing import pair
from pytest_queryeval.comparison.row_cells import distinct_row_cells
from pytest_queryeval.comparison.row_pairs import pair_rows
from pytest_queryeval.comparison.soft import Shape, Sums
from pytest_queryeval.core.metric import Score, metric
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Table

UNPROVEN = "soft_f1: the search for the best pairs of rows stopped at its budget, so the score may be too low"


def _counts(gold: Table, predicted: Table, policy: Policy) -> dict[str, float]:
    return _soft(gold, predicted, policy).counts.as_dict()


@metric(counts=("soft", _counts))
def soft_f1(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float | Score:  # noqa: B008 (immutable)
    """Return how many cells are right in rows that are paired by their content.

    Repeated rows count once. Rows with the same cells are paired first, the rest one to one so that the F1
    is the highest. Cells of a pair are matched one to one, too: a value is matched as often as both rows hold it, so
    that a column predicted twice does not count twice. With w gold columns, a pair adds to tp the share (of w) of
    matched cells, to fp that of the other predicted cells, to fn that of the other gold cells; a row without partner
    adds 1 to fp or fn. F1 = 2·tp / (2·tp + fp + fn), which is the F1 of tp / (tp + fp) and tp / (tp + fn). Both without
    rows 1, one without rows 0. In [0, 1].

    The best pairs are exact up to a million possible pairs of rows, without identical rows. Past it rows with the most
    cells in common are paired first, and where that may not be the best the value is returned as a `Score` with a note.
    Source: the soft F1 of bird-bench/mini_dev, there with rows paired by position and a value matched as often as
    predicted repeats it (`soft_f1_bird`).

    >>> gold = Table(columns=("x", "y"), rows=((1, "a"), (2, "b")))
    >>> soft_f1(gold, Table(columns=("v", "w"), rows=(("b", 2), ("a", 0))))
    0.75
    """
    soft = _soft(gold, predicted, policy)
    return soft.value if soft.is_proven else Score(value=soft.value, details={"notes": [UNPROVEN]})


@dataclass(frozen=True, slots=True)
class _Soft:
    value: float
    counts: Counts
    is_proven: bool = True


@lru_cache(maxsize=2)
def _soft(gold: Table, predicted: Table, policy: Policy) -> _Soft:
    if not gold.rows or not predicted.rows:
        n, m = len(set(gold.rows)), len(set(predicted.rows))
        return _Soft(float(n == m), Counts(0, m, n))
    tables = pair(gold, predicted, policy)
    # Most tables have the same rows, which shows without coding any cell.
    gold_rows, predicted_rows = tables.gold_rows, tables.predicted_rows
    same_width = len(tables.gold.columns) == len(tables.predicted.columns)
    if gold_rows == predicted_rows or (same_width and set(gold_rows) == set(predicted_rows)):
        return _Soft(1.0, Counts(len(set(gold_rows)), 0, 0))
    gold_cells, predicted_cells, exact = distinct_row_cells(tables)
    shape = Shape(n=len(gold_cells.cells), m=len(predicted_cells), w=gold_cells.width, b=len(tables.predicted.columns))
    pairing = pair_rows(gold_cells, predicted_cells)
    value = float(shape.f1(Sums(predicted_cells=pairing.common, gold_cells=pairing.common)))
    pairs, width = min(shape.n, shape.m), max(shape.w, 1)
    counts = Counts(
        pairing.common / width,
        (pairs * shape.b - pairing.common) / width + shape.m - pairs,
        (pairs * shape.w - pairing.common) / width + shape.n - pairs,
    )
    return _Soft(value, counts, is_proven=value == 1.0 or (pairing.proven and exact))
