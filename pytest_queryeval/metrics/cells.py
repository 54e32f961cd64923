"""Values and cells, row by row, as the Denodo AI SDK Evaluator counts them in its document and in its code."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain

from pytest_queryeval.comparison.equality import cell_counts
from pytest_queryeval.comparison.pairing import table_pair
from pytest_queryeval.comparison.row_cells import merged_rows, text_rows
from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.table import Policy, Table

IGNORES = frozenset({"row_order", "columns", "extra_columns"})
ROWS = 100  # the evaluator asks the database for no more
COUNTS = ("cell", lambda gold, predicted, policy: cell_counts(gold, predicted, policy).as_dict())


@metric(counts=COUNTS, ignores=IGNORES)
def cell_f1(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return the F1 of the cells, row by row in order, in any column.

    The i-th gold row is compared with the i-th predicted row. tp counts the multiset intersections of their cells, fp
    the other predicted cells, fn the other gold cells, including those of rows without partner. F1 = 2·tp / (2·tp + fp
    + fn), and 2·tp + fp + fn is the number of all cells. The score is from 0 to 1. It is 1 if neither answer has rows,
    and 0 if only one has. It is 1 if both have rows, but neither has cells. Source: the worked example in the document
    of the Denodo AI SDK Evaluator, whose code counts differently (`soft_f1_denodo`). The example has tp 4, fp 2, fn 2:

    >>> gold = Table(columns=("a", "b", "c"), rows=(("apple", "red", 35), ("pear", "green", 28)))
    >>> rows = (("apple", "red"), ("pear", "green"), ("plum", "blue"))
    >>> round(cell_f1(gold, Table(columns=("x", "y"), rows=rows)), 3)
    0.667
    """
    return cell_counts(gold, predicted, policy).f1


@metric(counts=COUNTS, ignores=IGNORES)
def cell_precision(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return the share of predicted cells that are right: tp / (tp + fp), as `cell_f1` counts them.

    The score is from 0 to 1. If predicted has no cells, the score is 1 if gold has none either, otherwise 0.
    """
    return cell_counts(gold, predicted, policy).precision


@metric(counts=COUNTS, ignores=IGNORES)
def cell_recall(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return the share of gold's cells that are predicted: tp / (tp + fn), as `cell_f1` counts them.

    The score is from 0 to 1. If gold has no cells, the score is 1 if predicted has none either, otherwise 0.
    """
    return cell_counts(gold, predicted, policy).recall


@metric(ignores=IGNORES | {"numbers"})
def value_overlap(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return the recall of values: |multiset intersection of all cells| / gold's cells, without NULL on either side.

    Neither rows nor columns matter, and extra predicted cells cost nothing. Values are compared by the policy, but
    without its tolerance: 1 equals 1.0, and 0.1 + 0.2 is not 0.3, as published. The score is from 0 to 1. If gold has
    only NULL or no cells, the score is 1 if the same is true of predicted, otherwise 0.
    Source: the "percent overlap" of the Denodo AI SDK Evaluator, f1_eval.py, which gives 0 if neither has cells.

    >>> gold = Table(columns=("x", "y"), rows=((1, "a"), (2, None)))
    >>> round(value_overlap(gold, Table(columns=("x",), rows=(("a",), (2.0,), (2,)))), 3)
    0.667
    """
    tables = table_pair(gold, predicted, replace(policy, rel=0.0, abs=0.0, column_numbers=()))
    gold_values, predicted_values = (
        Counter(
            code
            for cell, code in zip(chain.from_iterable(rows), chain.from_iterable(codes), strict=True)
            if cell is not None
        )
        for rows, codes in zip((tables.gold_rows, tables.predicted_rows), merged_rows(tables), strict=True)
    )
    if not gold_values:
        return float(not predicted_values)
    return (gold_values & predicted_values).total() / gold_values.total()


@metric(ignores=IGNORES)
def subset_score(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return the mean over predicted rows of the share of their distinct values that are in the i-th gold row.

    The i-th predicted row scores |gold row ∩ predicted row| / |predicted row|, both as sets of values. A predicted row
    without partner scores 0. The order of rows counts, that of columns does not. The score is from 0 to 1. It is 1 if
    neither answer has rows, and 0 if only one has. A predicted row without cells scores 1 if its gold row has none
    either, otherwise 0.
    Source: the "subsetting percentage" in the document of the Denodo AI SDK Evaluator, whose code counts differently
    (`subset_score_denodo`).

    >>> gold = Table(columns=("x", "y"), rows=((1, "a"), (2, "b")))
    >>> subset_score(gold, Table(columns=("v", "w"), rows=(("a", 1), ("b", 0))))
    0.75
    """
    if not gold.rows or not predicted.rows:
        return float(len(gold.rows) == len(predicted.rows))
    gold_rows, predicted_rows = merged_rows(table_pair(gold, predicted, policy))
    shares = [
        len(predicted_row & gold_row) / len(predicted_row) if predicted_row else float(not gold_row)
        for gold_row, predicted_row in zip(map(set, gold_rows), map(set, predicted_rows), strict=False)
    ]
    return sum(shares) / len(predicted_rows)


@metric(published=True)
def subset_score_denodo(gold: Table, predicted: Table) -> float:
    """Return the sum of |gold row ∩ predicted row| / w, over distinct rows paired by position, divided by n.

    The first 100 rows of both count, with cells as the text that pandas 2 makes of them. w is the number of gold
    columns, n that of gold rows with their duplicates. So gold against itself scores less than 1 if it has a row twice,
    or a row has a value twice. The score is 0 if gold has no rows or no columns. Kept as published (its "percent
    subset", there a hundredfold), to be compared with workbooks; `subset_score` is the sound rule. Source: Denodo AI
    SDK Evaluator, f1_eval.py.

    >>> gold = Table(columns=("a", "b", "c"), rows=(("apple", "red", 35), ("pear", "green", 28)))
    >>> rows = (("apple", "red"), ("pear", "green"), ("plum", "blue"))
    >>> round(subset_score_denodo(gold, Table(columns=("x", "y"), rows=rows)), 3)
    0.667
    """
    gold_rows, predicted_rows = text_rows(gold.rows[:ROWS]), text_rows(predicted.rows[:ROWS])
    if not gold_rows or not gold.columns:
        return 0.0
    pairs = zip(dict.fromkeys(gold_rows), dict.fromkeys(predicted_rows), strict=False)
    common = sum(len(set(gold_row) & set(predicted_row)) for gold_row, predicted_row in pairs)
    return common / (len(gold.columns) * len(gold_rows))


@metric(ignores=frozenset({"gold_columns"}))
def same_row_count(gold: Table, predicted: Table) -> float:
    """Return 1 if both have the same number of rows, else 0."""
    return float(len(gold.rows) == len(predicted.rows))


@metric()
def same_column_count(gold: Table, predicted: Table) -> float:
    """Return 1 if both have the same number of columns, else 0."""
    return float(len(gold.columns) == len(predicted.columns))
