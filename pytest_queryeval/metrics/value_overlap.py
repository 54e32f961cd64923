"""Value overlap: how many of gold's values were predicted, in any row and column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from pytest_queryeval.comparison.coded_tables import Rows
from pytest_queryeval.comparison.pairing import pair
from pytest_queryeval.comparison.row_cells import Codes, merged_rows
from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Table


@metric()
def value_overlap(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return the recall of values: |multiset intersection of all cells| / gold's cells, without NULL on either side.

    Neither rows nor columns matter, and extra predicted cells cost nothing. Values are those of the policy,
    but without its tolerance: 1 equals 1.0, and 0.1 + 0.2 is not 0.3, as published. Gold without such cells: 1 if
    predicted has none either, else 0. In [0, 1].
    Source: the "percent overlap" of the Denodo AI SDK Evaluator, f1_eval.py, which gives 0 where neither has cells.

    >>> gold = Table(columns=("x", "y"), rows=((1, "a"), (2, None)))
    >>> round(value_overlap(gold, Table(columns=("x",), rows=(("a",), (2.0,), (2,)))), 3)
    0.667
    """
    tables = pair(gold, predicted, replace(policy, rel=0.0, abs=0.0))
    gold_values, predicted_values = (
        _values(*side) for side in zip((tables.gold_rows, tables.predicted_rows), merged_rows(tables), strict=True)
    )
    if not gold_values:
        return float(not predicted_values)
    return (gold_values & predicted_values).total() / gold_values.total()


def _values(rows: Rows, coded_rows: Sequence[Codes]) -> Counter[int]:
    cells, codes = chain.from_iterable(rows), chain.from_iterable(coded_rows)
    return Counter(code for cell, code in zip(cells, codes, strict=True) if cell is not None)
