"""Soft F1: how many cells are right in paired rows, by our rule and by those of BIRD and Denodo.

With w gold columns and b predicted columns, p counts the predicted cells that their partner holds in any column, and g
the gold cells that their partner holds. A pair adds p/w to tp, (b - p)/w to fp and (w - g)/w to fn, a row without
partner 1 to fp or fn. So for k pairs of n gold and m predicted rows, with the sums of p and g over all pairs,

    F1 = 2tp / (2tp + fp + fn) = 2p / (p - g + k·(b + w) + |n - m|·w)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from pytest_queryeval.comparison.equality import Counts
from pytest_queryeval.comparison.pairing import table_pair
from pytest_queryeval.comparison.row_cells import distinct_row_cells, pair_rows, text_rows
from pytest_queryeval.core.metric import Score, metric
from pytest_queryeval.core.table import Policy, Table

IGNORES = frozenset({"duplicates", "row_order", "columns", "extra_columns"})
ROWS = 100  # the Denodo AI SDK Evaluator asks the database for no more
UNPROVEN = "soft_f1: the search for the best pairs of rows stopped at its budget, so the score may be too low"


def _counts(gold: Table, predicted: Table, policy: Policy) -> dict[str, float]:
    return _soft(gold, predicted, policy).counts.as_dict()


@metric(counts=("soft", _counts), ignores=IGNORES)
def soft_f1(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float | Score:  # noqa: B008 (immutable)
    """Return the F1 of the cells in rows that are paired by their content.

    Repeated rows count once. Rows with the same cells are paired first, the rest one to one so that the F1 is the
    highest. Cells of a pair are matched one to one, too: a value is matched as often as both rows have it, so that a
    column predicted twice does not count twice. With w gold columns, a pair adds to tp the share (of w) of matched
    cells, to fp that of the other predicted cells, to fn that of the other gold cells; a row without partner adds 1 to
    fp or fn. F1 = 2·tp / (2·tp + fp + fn), which is the F1 of tp / (tp + fp) and tp / (tp + fn). The score is from 0 to
    1. It is 1 if neither answer has rows, and 0 if only one has.

    The best pairs are exact up to a million possible pairs of rows, without identical rows. Beyond, rows with the most
    cells in common are paired first; if the pairs may not be the best, the value is returned as a `Score` with a note.
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
    tables = table_pair(gold, predicted, policy)
    # Most tables have the same rows, which shows without coding any cell.
    gold_rows, predicted_rows = tables.gold_rows, tables.predicted_rows
    same_width = len(tables.gold.columns) == len(tables.predicted.columns)
    if gold_rows == predicted_rows or (same_width and set(gold_rows) == set(predicted_rows)):
        return _Soft(1.0, Counts(len(set(gold_rows)), 0, 0))
    gold_cells, predicted_cells, exact = distinct_row_cells(tables)
    pairing = pair_rows(gold_cells, predicted_cells)
    n, m, w, b = len(gold_cells.cells), len(predicted_cells), gold_cells.width, len(tables.predicted.columns)
    value = _f1_of_counts((n, m), (w, b), (pairing.common, pairing.common))
    pairs, width = min(n, m), max(w, 1)
    counts = Counts(
        pairing.common / width,
        (pairs * b - pairing.common) / width + m - pairs,
        (pairs * w - pairing.common) / width + n - pairs,
    )
    return _Soft(value, counts, is_proven=value == 1.0 or (pairing.is_proven and exact))


def _f1_of_counts(rows: tuple[int, int], columns: tuple[int, int], shared_cells: tuple[int, int]) -> float:
    """Return the F1 from numbers of rows, of columns and of shared cells, by the formula of this module.

    `rows` is (n, m), `columns` is (w, b), and `shared_cells` is (p, g), as defined there. 1 if all of them are 0.
    """
    (n, m), (w, b), (p, g) = rows, columns, shared_cells
    total = p - g + min(n, m) * (b + w) + abs(n - m) * max(w, 1)
    return 2 * p / total if total else 1.0


@metric(published=True)
def soft_f1_bird(gold: Table, predicted: Table) -> float:
    """Return the soft F1 of the i-th distinct gold row against the i-th distinct predicted row, by Python equality.

    With w gold columns, a pair adds to tp the share (of w) of predicted cells that gold's row has. It adds to fp the
    share of predicted cells that gold's row lacks, and to fn the share of gold cells that predicted's row lacks. A row
    without partner adds 1 to fp or fn. The score is the F1 of the sums; two empty answers are equal. Kept as published,
    to be compared with papers: the same rows in another order may score 0. `soft_f1` is the sound rule. Source:
    bird-bench/mini_dev, evaluation_f1.py (since June 2025).

    >>> gold = Table(columns=("x", "y"), rows=((1, "a"), (2, "b")))
    >>> soft_f1_bird(gold, Table(columns=("v", "w"), rows=(("a", 1), ("b", 0))))
    0.75
    """
    return _f1_by_position(gold.rows, predicted.rows, (len(gold.columns), len(predicted.columns)))


@metric(published=True)
def soft_f1_denodo(gold: Table, predicted: Table) -> float:
    """Return `soft_f1_bird` of the first 100 rows of both, with cells as the text that pandas 2 makes of them.

    A numeric column that holds a float or NULL is written as floats, with `nan`; any other NULL is `None`. Rows are
    made distinct by that text. Two empty answers score 0. Kept as published, to be compared with workbooks.
    Source: Denodo AI SDK Evaluator, f1_eval.py. Its document's count of cells is `cell_f1`.

    >>> gold = Table(columns=("a", "b", "c"), rows=(("apple", "red", 35), ("pear", "green", 28)))
    >>> rows = (("apple", "red"), ("pear", "green"), ("plum", "blue"))
    >>> round(soft_f1_denodo(gold, Table(columns=("x", "y"), rows=rows)), 3)
    0.615
    """
    if not gold.rows and not predicted.rows:
        return 0.0
    gold_rows, predicted_rows = text_rows(gold.rows[:ROWS]), text_rows(predicted.rows[:ROWS])
    return _f1_by_position(gold_rows, predicted_rows, (len(gold.columns), len(predicted.columns)))


def _f1_by_position(
    gold: Iterable[tuple[Hashable, ...]], predicted: Iterable[tuple[Hashable, ...]], columns: tuple[int, int]
) -> float:
    """Return the published F1, in which the i-th distinct gold row is compared with the i-th distinct predicted row.

    `columns` are the numbers of gold's and predicted's columns.
    """
    gold_rows, predicted_rows = list(dict.fromkeys(gold)), list(dict.fromkeys(predicted))
    pairs = list(zip(gold_rows, predicted_rows, strict=False))
    p = sum(_shared(predicted_row, gold_row) for gold_row, predicted_row in pairs)
    g = sum(_shared(gold_row, predicted_row) for gold_row, predicted_row in pairs)
    return _f1_of_counts((len(gold_rows), len(predicted_rows)), columns, (p, g))


def _shared(row: Iterable[Hashable], partner: Iterable[Hashable]) -> int:
    """Return how many cells of a row occur in its partner; a cell that occurs twice in the row counts twice."""
    partner_cells = set(partner)
    return sum([cell in partner_cells for cell in row])
