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
    tables = pair(gold, predicted, policy)
    if tables.alignment is None:
        has_names = len(predicted.columns) < len(gold.columns)
        few = f"too few columns: gold has {len(gold.columns)}, predicted {len(predicted.columns)}"
        return Difference(summary=few if has_names else "no columns of gold's names")
    columns = tables.alignment.columns
    missing_at, extra_at, _ = tables.unpaired(columns)
    if not missing_at and not extra_at:
        return Difference(summary=_same_rows(tables, columns))
    gold_rows, predicted_rows = _rows(gold, tables.policy), _rows(predicted, tables.policy)
    gold_codes, predicted_codes = tables.coded.project(columns)
    gold_times, predicted_times = Counter(gold_codes), Counter(predicted_codes.values())
    unpaired = chain((gold_codes[at] for at in missing_at), (predicted_codes[at] for at in extra_at))
    repeated = dict.fromkeys(row for row in unpaired if row in gold_times and row in predicted_times)
    missing_at = [at for at in missing_at if gold_codes[at] not in repeated]
    extra_at = [at for at in extra_at if predicted_codes[at] not in repeated]
    missing = [gold_rows[at] for at in missing_at[: 2 * limit]]
    extra = [tuple([predicted_rows[at][column] for column in columns]) for at in extra_at[: 2 * limit]]
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
        parts = [f"missing {len(missing_at):,} of {pluralize(len(gold_rows), 'row')}"] * bool(missing_at)
        if extra_at:
            parts += [f"{len(extra_at):,} extra" if missing_at else pluralize(len(extra_at), "extra row")]
        if repeated:
            more = sum(gold_times[row] > predicted_times[row] for row in repeated)
            sides = {"gold": more, "predicted": len(repeated) - more}
            often = [f"{pluralize(number, 'row')} more often in {side}" for side, number in sides.items() if number]
            parts += [f"duplicates differ: {' and '.join(often)}"]
        parts += _further(tables, columns)
        summary = ", ".join(parts)
    changed = _changed(missing, extra, policy)
    return Difference(
        columns=gold.columns,
        predicted_columns=tuple([predicted.columns[column] for column in columns]),
        missing=tuple(missing[:limit]),
        extra=tuple(extra[:limit]),
        changed=tuple(changed[:limit]),
        repeated=tuple(
            (gold_rows[gold_codes.index(row)], gold_times[row], predicted_times[row]) for row in islice(repeated, limit)
        ),
        counts=(len(missing_at), len(extra_at)),
        summary=summary,
    )


def _further(tables: Pair, columns: tuple[int, ...]) -> list[str]:
    further = len(tables.predicted.columns) - len(columns)
    return [pluralize(further, "further column")] * (further > 0 and tables.policy.extra_columns != "allow")


def _same_rows(tables: Pair, columns: tuple[int, ...]) -> str:
    """Return how two answers with the same rows differ; where some are only close, their order is not compared."""
    if further := _further(tables, columns):
        return further[0]
    gold, predicted = tables.coded.project(columns)
    if list(predicted.values()) != gold and not tables.coded.has_chains:
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
    extra_values = [_values(row, policy) for row in extra]
    changed = []
    for row in list(missing):
        values = _values(row, policy)
        shared = [sum(map(is_equal, values, candidate, repeat(policy))) for candidate in extra_values]
        most = max(shared, default=0)
        if 2 * most >= len(row) > 1:
            place = shared.index(most)
            del extra_values[place]
            changed.append((row, extra.pop(place)))
            missing.remove(row)
    return changed


def _values(row: Row, policy: Policy) -> list[Hashable]:
    return [canonical(cell, policy) for cell in row]
