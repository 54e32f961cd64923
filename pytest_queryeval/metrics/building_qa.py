"""The metrics of BuildingQA (BuildSys 2025): columns, distinct values of columns, and rows."""

from __future__ import annotations

from dataclasses import replace

from pytest_queryeval.comparison.equality import entity_counts, exact_counts, has_allowed_width, row_counts
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.table import Policy, Table

IGNORES = frozenset({"row_order", "extra_columns"})


@metric(header=True)
def arity_f1(gold: Table, predicted: Table) -> float:
    """Return how well the numbers of columns agree: 2 * min(a, b) / (a + b) for a gold and b predicted columns.

    The score is from 0 to 1, and 1 if neither answer has columns. The columns are those of the result's header, which
    an empty answer also has. Without a source they are the columns that the query selects; `*` then has no score.
    Source: BuildingQA's arity matching F1, whose code counts the first row's keys or words of the query instead.

    >>> arity_f1(Table(columns=("a", "b"), rows=()), Table(columns=("x", "y", "z"), rows=()))
    0.8
    """
    a, b = len(gold.columns), len(predicted.columns)
    return 2 * min(a, b) / (a + b) if a + b else 1.0


def _by_column(gold: Table, predicted: Table, policy: Policy) -> list[dict[str, JsonValue]]:
    """Return the counts of each gold column with its name; empty if an answer has no rows or there is no alignment."""
    column_counts = entity_counts(gold, predicted, policy) if gold.rows and predicted.rows else ()
    pairs = zip(gold.columns, column_counts or (), strict=False)
    return [{"column": name, **counts.as_dict()} for name, counts in pairs]


ENTITY_COUNTS = ("entity", _by_column)


@metric(counts=ENTITY_COUNTS, ignores=IGNORES)
def entity_set_f1(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return the F1 of the distinct values of columns, in any rows.

    Under the best alignment, precision and recall of the distinct values of each column are averaged over gold's
    columns; the score is the F1 of these two means. NULL is an ordinary value. The score is from 0 to 1. It is 1 if
    neither answer has rows, and 0 if only one has. Otherwise it is 0 if predicted has fewer columns than gold. Source:
    BuildingQA's entity set F1.

    >>> gold = Table(columns=("x",), rows=((1,), (2,)))
    >>> round(entity_set_f1(gold, Table(columns=("y",), rows=((1,),))), 3)
    0.667
    """
    precision, recall, columns = _sums(gold, predicted, policy)
    total = precision + recall
    return 2 * precision * recall / (total * columns) if total else 0.0


@metric(counts=ENTITY_COUNTS, ignores=IGNORES)
def entity_precision(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return the mean over gold's columns of the share of predicted's distinct values that are right.

    Values, columns and special cases are as in `entity_set_f1`. The score is from 0 to 1.
    """
    precision, _, columns = _sums(gold, predicted, policy)
    return precision / columns


@metric(counts=ENTITY_COUNTS, ignores=IGNORES)
def entity_recall(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return the mean over gold's columns of the share of their distinct values that are predicted.

    Values, columns and special cases are as in `entity_set_f1`. The score is from 0 to 1.
    """
    _, recall, columns = _sums(gold, predicted, policy)
    return recall / columns


def _sums(gold: Table, predicted: Table, policy: Policy) -> tuple[float, float, int]:
    """Return the precision and the recall of gold's columns, each summed over them, and the number of columns.

    If an answer has no rows or there is no alignment, return the score of that case twice, and 1.
    """
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


ROW_COUNTS = ("row", lambda gold, predicted, policy: row_counts(gold, predicted, policy).as_dict())


@metric(counts=ROW_COUNTS, ignores=IGNORES)
def row_matching_f1(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return the F1 of the rows, whatever the names and the order of the columns.

    Under the best alignment, the score is 2 * |multiset intersection of rows| / (n + m) for n gold and m predicted
    rows. Predicted columns that no gold column maps to are dropped first. The score is from 0 to 1. It is 1 if neither
    answer has rows, and 0 if only one has. Otherwise it is 0 if predicted has fewer columns than gold. Source:
    BuildingQA's row matching F1.

    >>> gold = Table(columns=("x", "y"), rows=((1, "a"), (2, "b")))
    >>> row_matching_f1(gold, Table(columns=("v", "w"), rows=(("b", 2), ("a", 1))))
    1.0
    """
    return row_counts(gold, predicted, policy).f1


@metric(counts=ROW_COUNTS, ignores=IGNORES)
def row_precision(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return the share of predicted rows that are right: |multiset intersection of rows| / m, as in `row_matching_f1`.

    The score is from 0 to 1. It is 1 if neither answer has rows, and 0 if only one has. Otherwise it is 0 if predicted
    has fewer columns than gold.
    """
    return row_counts(gold, predicted, policy).precision


@metric(counts=ROW_COUNTS, ignores=IGNORES)
def row_recall(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return the share of gold's rows that are predicted: |multiset intersection of rows| / n, as in `row_matching_f1`.

    The score is from 0 to 1. It is 1 if neither answer has rows, and 0 if only one has. Otherwise it is 0 if predicted
    has fewer columns than gold.
    """
    return row_counts(gold, predicted, policy).recall


@metric(
    counts=("exact", lambda gold, predicted, policy: exact_counts(gold, predicted, policy).as_dict()),
    ignores=IGNORES | {"columns"},
)
def exact_match_f1(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return the F1 of the rows with the columns in gold's order; names are ignored.

    The score is 0 if the numbers of columns differ. Otherwise it is 2 * |multiset intersection of rows| / (n + m) for n
    gold and m predicted rows, with the i-th predicted column as the i-th gold column. It is then 1 if neither answer
    has rows, and 0 if only one has. The score is from 0 to 1. Source: BuildingQA's exact match F1.

    >>> gold = Table(columns=("x", "y"), rows=((1, "a"), (2, "b")))
    >>> exact_match_f1(gold, Table(columns=("v", "w"), rows=(("b", 2), ("a", 1))))
    0.0
    """
    if not has_allowed_width(gold, predicted, replace(policy, extra_columns="reject")):
        return 0.0
    return exact_counts(gold, predicted, policy).f1
