"""Where two tables differ: rows that are missing, extra, changed in some cells, or repeated more or less often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import TypeAlias

from pytest_queryeval.comparison.canonical import canonical, canonical_rows, is_equal
from pytest_queryeval.comparison.pairing import Pair, pair
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Row, Table
from pytest_queryeval.text.plain import counted

_Codes: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """At most `limit` rows of each sort, predicted's cells in the order of gold's columns.

    `columns` are the names of gold's columns, or of what its rows are shown by where it is no table.
    `changed` pairs a gold row with the predicted row that shares most of its cells, at least half of them.
    `repeated` rows are on both sides: so many times in gold, so many times in predicted.
    `counts` are of all rows of gold that are not in predicted, and of all rows of predicted that are not in gold.
    """

    columns: tuple[str, ...] = ()
    missing: tuple[Row, ...] = ()
    extra: tuple[Row, ...] = ()
    changed: tuple[tuple[Row, Row], ...] = ()
    repeated: tuple[tuple[Row, int, int], ...] = ()
    counts: tuple[int, int] = (0, 0)
    summary: str = ""


def difference(gold: Table, predicted: Table, policy: Policy, *, limit: int) -> Difference:
    """How predicted differs from gold under the best alignment."""
    both = pair(gold, predicted, policy)
    shape = f"gold has {_shape(gold)}, predicted has {_shape(predicted)}"
    if both.alignment is None:
        return Difference(summary=f"{shape}: {_lacking(gold, predicted)}")
    columns = both.alignment.columns
    gold_left, predicted_left = both.leftover(columns)
    if not gold_left and not predicted_left:
        return Difference(summary=f"{shape}: {_same_rows(both, columns)}")
    gold_rows, predicted_rows = _counted(gold, both.policy), _counted(predicted, both.policy)
    mine, others = both.projected(columns)
    times, other_times = Counter(mine), Counter(others.values())
    left = chain((mine[at] for at in gold_left), (others[at] for at in predicted_left))
    repeated = dict.fromkeys(row for row in left if row in times and row in other_times)
    gold_left = [at for at in gold_left if mine[at] not in repeated]
    predicted_left = [at for at in predicted_left if others[at] not in repeated]
    missing = [gold_rows[at] for at in gold_left[: 2 * limit]]
    extra = [_in_order(predicted_rows[at], columns) for at in predicted_left[: 2 * limit]]
    changed = _changed(missing, extra, policy)
    counts = len(gold_left), len(predicted_left)
    return Difference(
        columns=gold.columns,
        missing=tuple(missing[:limit]),
        extra=tuple(extra[:limit]),
        changed=tuple(changed[:limit]),
        repeated=tuple((gold_rows[mine.index(row)], times[row], other_times[row]) for row in islice(repeated, limit)),
        counts=counts,
        summary=f"{shape}; {_rows_that_differ(*counts)}{_duplicates_that_differ(repeated, times, other_times)}",
    )


def _rows_that_differ(missing: int, extra: int) -> str:
    if not missing and not extra:
        return "the same rows"
    return f"{missing:,} of gold's rows are not in predicted, {extra:,} of predicted's not in gold"


def _duplicates_that_differ(
    repeated: Collection[_Codes], gold: Mapping[_Codes, int], predicted: Mapping[_Codes, int]
) -> str:
    """Return which side repeats how many of the rows more often than the other; empty where there are none."""
    gold_more = sum(gold[row] > predicted[row] for row in repeated)
    sides = {"gold": gold_more, "predicted": len(repeated) - gold_more}
    told = [f"{counted(number, 'row')} more often in {side}" for side, number in sides.items() if number]
    return f", but the duplicates differ: {' and '.join(told)}" if told else ""


def _shape(table: Table) -> str:
    rows, columns = len(table.rows), len(table.columns)
    return f"{rows:,} row{'s' * (rows != 1)} of {columns} column{'s' * (columns != 1)}"


def _lacking(gold: Table, predicted: Table) -> str:
    if len(predicted.columns) < len(gold.columns):
        return "too few columns to compare rows"
    return "no columns of gold's names to compare rows"


def _same_rows(both: Pair, columns: tuple[int, ...]) -> str:
    """In what two answers with the same rows differ; of rows that are equal within the tolerance, no order is told."""
    if len(columns) < len(both.predicted.columns):
        return "the rows agree once the extra columns are dropped"
    gold, predicted = both.projected(columns)
    if list(predicted.values()) != gold and not both.coded.rough:
        return "the same rows, in another order"
    return "the same rows" if list(columns) == sorted(columns) else "the same rows, with their columns in another order"


def _counted(table: Table, policy: Policy) -> Sequence[Row]:
    """The rows as they were answered, each once where the policy ignores duplicates, as a `Pair` counts them."""
    if policy.duplicates == "count":
        return table.rows
    first: dict[tuple[Hashable, ...], Row] = {}
    for row, value in zip(table.rows, canonical_rows(table, policy), strict=True):
        first.setdefault(value, row)
    return list(first.values())


def _in_order(row: Row, columns: Sequence[int]) -> Row:
    return tuple(row[column] for column in columns)


def _changed(missing: list[Row], extra: list[Row], policy: Policy) -> list[tuple[Row, Row]]:
    """Take pairs of alike rows out of both lists."""
    others = [_values(row, policy) for row in extra]
    changed = []
    for row in list(missing):
        values = _values(row, policy)
        shared = [sum(map(is_equal, values, other, repeat(policy))) for other in others]
        most = max(shared, default=0)
        if 2 * most >= len(row) > 1:
            place = shared.index(most)
            del others[place]
            changed.append((row, extra.pop(place)))
            missing.remove(row)
    return changed


def _values(row: Row, policy: Policy) -> list[Hashable]:
    return [canonical(cell, policy) for cell in row]
