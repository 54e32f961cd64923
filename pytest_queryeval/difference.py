"""Where two tables differ: rows that are missing, rows that are extra, rows of which some cells changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_queryeval.pairing import Pair, pair
from pytest_queryeval.policy import Policy
from pytest_queryeval.table import Row, Table

COMPARED_ROWS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """At most `limit` rows of each sort, predicted's cells in the order of gold's columns; `counts` are of all rows.

    `changed` pairs a gold row with the predicted row that shares most of its cells, at least half of them.
    """

    missing: tuple[Row, ...] = ()
    extra: tuple[Row, ...] = ()
    changed: tuple[tuple[Row, Row], ...] = ()
    counts: tuple[int, int] = (0, 0)
    summary: str = ""


def difference(gold: Table, predicted: Table, policy: Policy, *, limit: int) -> Difference:
    """How predicted differs from gold under the best alignment."""
    both = pair(gold, predicted, policy)
    shape = f"gold has {_shape(gold)}, predicted has {_shape(predicted)}"
    if both.alignment is None:
        return Difference(summary=f"{shape}: too few columns to compare rows")
    columns = both.alignment.columns
    gold_left, predicted_left = both.leftover(columns)
    if not gold_left and not predicted_left:
        return Difference(summary=_same_rows(gold, predicted, shape))
    counts = len(gold_left), len(predicted_left)
    missing = [_gold_row(both, row) for row in gold_left[:COMPARED_ROWS]]
    extra = [_predicted_row(both, row, columns) for row in predicted_left[:COMPARED_ROWS]]
    changed = _changed(missing, extra)
    return Difference(
        missing=tuple(missing[:limit]),
        extra=tuple(extra[:limit]),
        changed=tuple(changed[:limit]),
        counts=counts,
        summary=f"{shape}; {counts[0]:,} of gold's rows are not in predicted, {counts[1]:,} of predicted's not in gold",
    )


def _shape(table: Table) -> str:
    rows, columns = len(table.rows), len(table.columns)
    return f"{rows:,} row{'s' * (rows != 1)} of {columns} column{'s' * (columns != 1)}"


def _same_rows(gold: Table, predicted: Table, shape: str) -> str:
    if len(gold.columns) != len(predicted.columns):
        return f"{shape}: the rows agree once the extra columns are dropped"
    return f"{shape}: the same rows, in another order" if gold.rows != predicted.rows else f"{shape}: the same rows"


def _gold_row(both: Pair, position: int) -> Row:
    rows = both.gold.rows if both.policy.duplicates == "count" else both.gold_rows
    return rows[position]  # type: ignore[return-value]  # canonical values are cells too


def _predicted_row(both: Pair, position: int, columns: Sequence[int]) -> Row:
    rows = both.predicted.rows if both.policy.duplicates == "count" else both.predicted_rows
    row: Row = rows[position]  # type: ignore[assignment]
    return tuple(row[column] for column in columns)


def _changed(missing: list[Row], extra: list[Row]) -> list[tuple[Row, Row]]:
    """Take pairs of alike rows out of both lists."""
    changed = []
    for row in list(missing):
        near = max(extra, key=lambda other: _shared(row, other), default=None)
        if near is not None and 2 * _shared(row, near) >= len(row) > 1:
            changed.append((row, near))
            missing.remove(row)
            extra.remove(near)
    return changed


def _shared(left: Row, right: Row) -> int:
    return sum(x == y for x, y in zip(left, right, strict=True))
