"""Differences of two tables: rows that are missing, extra, changed in some cells, or repeated more or less often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import chain, islice, repeat

from pytest_queryeval.comparison.canonical import canonical, canonical_rows, is_equal
from pytest_queryeval.comparison.lookalikes import is_number_text
from pytest_queryeval.comparison.pairing import Pair, pair
from pytest_queryeval.comparison.shown_cells import shown_cell, type_name
from pytest_queryeval.core.difference import Difference
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import BlankNode, Row, Table
from pytest_queryeval.text.formatting import pluralize

CELL_CHARACTERS = 40


def difference(gold: Table, predicted: Table, policy: Policy, *, limit: int) -> Difference:
    """Return how predicted differs from gold under the best alignment; a `limit` of 0 keeps all cells out of it."""
    both = pair(gold, predicted, policy)
    if both.alignment is None:
        has_names = len(predicted.columns) < len(gold.columns)
        few = f"too few columns: gold has {len(gold.columns)}, predicted {len(predicted.columns)}"
        return Difference(summary=few if has_names else "no columns of gold's names")
    columns = both.alignment.columns
    gold_left, predicted_left, _ = both.leftover(columns)
    if not gold_left and not predicted_left:
        return Difference(summary=_same_rows(both, columns))
    gold_rows, predicted_rows = _rows(gold, both.policy), _rows(predicted, both.policy)
    mine, others = both.projected(columns)
    times, other_times = Counter(mine), Counter(others.values())
    left = chain((mine[at] for at in gold_left), (others[at] for at in predicted_left))
    repeated = dict.fromkeys(row for row in left if row in times and row in other_times)
    gold_left = [at for at in gold_left if mine[at] not in repeated]
    predicted_left = [at for at in predicted_left if others[at] not in repeated]
    missing = [gold_rows[at] for at in gold_left[: 2 * limit]]
    extra = [tuple([predicted_rows[at][column] for column in columns]) for at in predicted_left[: 2 * limit]]
    are_single = len(gold_rows) == len(predicted_rows) == len(gold.columns) == len(predicted.columns) == 1
    if are_single and limit and not {BlankNode} & {type(missing[0][0]), type(extra[0][0])}:  # named by engines
        cells = (missing[0][0], extra[0][0])
        texts = [shown_cell(cell, CELL_CHARACTERS) for cell in cells]
        if texts[0] == texts[1] or is_number_text(*cells, policy):  # they differ in their types
            texts = [f"{text} ({type_name(cell)})" for text, cell in zip(texts, cells, strict=True)]
        summary = f"gold {texts[0]}, predicted {texts[1]}"
    elif not predicted_rows:
        summary = f"no rows, gold has {len(gold_rows):,}"
    elif not gold_rows:
        summary = f"{pluralize(len(predicted_rows), 'row')}, gold has none"
    else:
        found = [f"missing {len(gold_left):,} of {pluralize(len(gold_rows), 'row')}"] * bool(gold_left)
        if predicted_left:
            found += [f"{len(predicted_left):,} extra" if gold_left else pluralize(len(predicted_left), "extra row")]
        if repeated:
            more = sum(times[row] > other_times[row] for row in repeated)
            sides = {"gold": more, "predicted": len(repeated) - more}
            often = [f"{pluralize(number, 'row')} more often in {side}" for side, number in sides.items() if number]
            found += [f"duplicates differ: {' and '.join(often)}"]
        found += _further(both, columns)
        summary = ", ".join(found)
    changed = _changed(missing, extra, policy)
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


def _further(both: Pair, columns: tuple[int, ...]) -> list[str]:
    further = len(both.predicted.columns) - len(columns)
    return [pluralize(further, "further column")] * (further > 0 and both.policy.extra_columns != "allow")


def _same_rows(both: Pair, columns: tuple[int, ...]) -> str:
    """Return how two answers with the same rows differ; where some are only close, their order is not compared."""
    if further := _further(both, columns):
        return further[0]
    gold, predicted = both.projected(columns)
    if list(predicted.values()) != gold and not both.coded.is_rough:
        return "the same rows, in another order"
    return "" if list(columns) == sorted(columns) else "the same rows, with their columns in another order"


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
