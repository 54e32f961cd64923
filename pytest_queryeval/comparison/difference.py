"""Differences of two tables: rows that are missing, extra, changed in some cells, or repeated more or less often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat

from pytest_queryeval.comparison.canonical import canonical, canonical_rows, is_equal
from pytest_queryeval.comparison.pairing import Pair, pair
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Row, Table
from pytest_queryeval.text.formatting import pluralize


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """At most `limit` rows of each kind of difference, predicted's cells in the order of gold's columns.

    `columns` are the names of gold's columns, or of the columns in which answers that are no tables are shown;
    `predicted_columns` are the names that predicted's have in their places.
    `changed` pairs a gold row with the predicted row that shares most of its cells, at least half of them.
    `repeated` rows are on both sides, each with its number in gold and in predicted.
    `counts` are the numbers of all gold rows that predicted lacks, and of all predicted rows that gold lacks.
    """

    columns: tuple[str, ...] = ()
    predicted_columns: tuple[str, ...] = ()
    missing: tuple[Row, ...] = ()
    extra: tuple[Row, ...] = ()
    changed: tuple[tuple[Row, Row], ...] = ()
    repeated: tuple[tuple[Row, int, int], ...] = ()
    counts: tuple[int, int] = (0, 0)
    summary: str = ""


def difference(gold: Table, predicted: Table, policy: Policy, *, limit: int) -> Difference:
    """Return how predicted differs from gold under the best alignment."""
    both = pair(gold, predicted, policy)
    shape = f"gold has {_shape(gold)}, predicted has {_shape(predicted)}"
    if both.alignment is None:
        lacks = "too few columns" if len(predicted.columns) < len(gold.columns) else "no columns of gold's names"
        return Difference(summary=f"{shape}: {lacks} to compare rows")
    columns = both.alignment.columns
    gold_left, predicted_left = both.leftover(columns)
    if not gold_left and not predicted_left:
        return Difference(summary=f"{shape}: {_same_rows(both, columns)}")
    gold_rows, predicted_rows = _rows(gold, both.policy), _rows(predicted, both.policy)
    mine, others = both.projected(columns)
    times, other_times = Counter(mine), Counter(others.values())
    left = chain((mine[at] for at in gold_left), (others[at] for at in predicted_left))
    repeated = dict.fromkeys(row for row in left if row in times and row in other_times)
    gold_left = [at for at in gold_left if mine[at] not in repeated]
    predicted_left = [at for at in predicted_left if others[at] not in repeated]
    missing = [gold_rows[at] for at in gold_left[: 2 * limit]]
    extra = [tuple([predicted_rows[at][column] for column in columns]) for at in predicted_left[: 2 * limit]]
    changed = _changed(missing, extra, policy)
    summary = f"{shape}; the same rows"
    if gold_left or predicted_left:
        summary = (
            f"{shape}; {len(gold_left):,} of gold's rows are not in predicted, "
            f"{len(predicted_left):,} of predicted's not in gold"
        )
    if repeated:
        gold_more = sum(times[row] > other_times[row] for row in repeated)
        sides = {"gold": gold_more, "predicted": len(repeated) - gold_more}
        more = [f"{pluralize(number, 'row')} more often in {side}" for side, number in sides.items() if number]
        summary += f", but the duplicates differ: {' and '.join(more)}"
    return Difference(
        columns=gold.columns,
        predicted_columns=tuple([predicted.columns[column] for column in columns]),
        missing=tuple(missing[:limit]),
        extra=tuple(extra[:limit]),
        changed=tuple(changed[:limit]),
        repeated=tuple((gold_rows[mine.index(row)], times[row], other_times[row]) for row in islice(repeated, limit)),
        counts=(len(gold_left), len(predicted_left)),
        summary=summary,
    )


def _shape(table: Table) -> str:
    return f"{pluralize(len(table.rows), 'row')} of {pluralize(len(table.columns), 'column')}"


def _same_rows(both: Pair, columns: tuple[int, ...]) -> str:
    """Return how two answers with the same rows differ; where some are only close, their order is not compared."""
    if len(columns) < len(both.predicted.columns):
        return "the rows agree once the extra columns are dropped"
    gold, predicted = both.projected(columns)
    if list(predicted.values()) != gold and not both.coded.is_rough:
        return "the same rows, in another order"
    return "the same rows" if list(columns) == sorted(columns) else "the same rows, with their columns in another order"


def _rows(table: Table, policy: Policy) -> Sequence[Row]:
    """Return the rows as they were answered, each once where the policy ignores duplicates, as in a `Pair`."""
    if policy.duplicates == "count":
        return table.rows
    first: dict[tuple[Hashable, ...], Row] = {}
    for row, value in zip(table.rows, canonical_rows(table, policy), strict=True):
        first.setdefault(value, row)
    return list(first.values())


def _changed(missing: list[Row], extra: list[Row], policy: Policy) -> list[tuple[Row, Row]]:
    """Take pairs of similar rows out of both lists, and return them."""
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
