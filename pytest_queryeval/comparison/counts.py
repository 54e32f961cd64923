"""Counts of what is right, extra and missing in an answer, by rows, cells and distinct values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

from pytest_queryeval.comparison.pairing import Pair, pair
from pytest_queryeval.comparison.row_cells import merged_rows
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Table


@dataclass(frozen=True, slots=True)
class Counts:
    """True positives, false positives, which only predicted has, and false negatives, which only gold has."""

    tp: float
    fp: float
    fn: float

    @property
    def precision(self) -> float:
        """Return tp / (tp + fp); where predicted has nothing, 1 if gold has nothing either, else 0."""
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else float(not self.fn)

    @property
    def recall(self) -> float:
        """Return tp / (tp + fn); where gold has nothing, 1 if predicted has nothing either, else 0."""
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else float(not self.fp)

    @property
    def f1(self) -> float:
        """Return 2·tp / (2·tp + fp + fn), 1 if both have nothing."""
        total = 2 * self.tp + self.fp + self.fn
        return 2 * self.tp / total if total else 1.0

    def as_dict(self) -> dict[str, float]:
        """Return the counts in the form of reports."""
        return {"tp": self.tp, "fp": self.fp, "fn": self.fn}


@lru_cache(maxsize=2)
def row_counts(gold: Table, predicted: Table, policy: Policy) -> Counts:
    """Count rows under the best alignment, as multisets, without predicted columns that no gold column maps to."""
    if not gold.rows or not predicted.rows:
        return Counts(0, len(predicted.rows), len(gold.rows))
    tables = pair(gold, predicted, policy)
    return _rows(tables, None if tables.alignment is None else tables.alignment.columns)


@lru_cache(maxsize=2)
def exact_counts(gold: Table, predicted: Table, policy: Policy) -> Counts:
    """Count rows with columns aligned by position; none is right where there are more columns or fewer."""
    if not gold.rows or not predicted.rows:
        return Counts(0, len(predicted.rows), len(gold.rows))
    same_width = len(gold.columns) == len(predicted.columns)
    return _rows(pair(gold, predicted, policy), tuple(range(len(gold.columns))) if same_width else None)


def _rows(tables: Pair, columns: tuple[int, ...] | None) -> Counts:
    gold_size, predicted_size = len(tables.gold_rows), len(tables.predicted_rows)
    if columns is None:
        return Counts(0, predicted_size, gold_size)
    best = tables.alignment
    matched = (best if best is not None and best.columns == columns else tables.alignment_of(columns)).matched
    if tables.policy.duplicates == "ignore" and len(tables.predicted.columns) > len(columns):
        predicted_size = len(tables.coded.project(columns)[1])
    return Counts(matched, predicted_size - matched, gold_size - matched)


@lru_cache(maxsize=2)
def cell_counts(gold: Table, predicted: Table, policy: Policy) -> Counts:
    """Count the cells of the i-th gold row and of the i-th predicted row, as multisets."""
    if not gold.rows or not predicted.rows:
        # A row without cells counts as one.
        sizes = (len(table.rows) * max(len(table.columns), 1) for table in (predicted, gold))
        return Counts(0, *sizes)
    gold_rows, predicted_rows = merged_rows(pair(gold, predicted, policy))
    rows = zip_longest(gold_rows, predicted_rows, fillvalue=())
    common = sum((Counter(gold_row) & Counter(predicted_row)).total() for gold_row, predicted_row in rows)
    gold_size, predicted_size = len(gold_rows) * len(gold.columns), len(predicted_rows) * len(predicted.columns)
    return Counts(common, predicted_size - common, gold_size - common)


@lru_cache(maxsize=2)
def entity_counts(gold: Table, predicted: Table, policy: Policy) -> Sequence[Counts] | None:
    """Count the distinct values of each gold column under the best alignment; None if there is none."""
    tables = pair(gold, predicted, policy)
    alignment = tables.alignment
    if alignment is None:
        return None
    if alignment.matched == len(tables.gold_rows) == len(tables.predicted_rows):
        return [Counts(len(set(column)), 0, 0) for column in zip(*tables.gold_rows, strict=True)]
    gold_distinct, predicted_distinct = tables.coded.distinct_counts
    counts = []
    for gold_column, predicted_column in enumerate(alignment.columns):
        shared = tables.coded.overlap(gold_column, predicted_column)
        counts.append(
            Counts(shared, predicted_distinct[predicted_column] - shared, gold_distinct[gold_column] - shared)
        )
    return counts
