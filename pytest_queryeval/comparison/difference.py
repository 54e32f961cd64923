"""Differences of two tables: rows that are missing, extra, changed in some cells, or repeated more or less often.

Also cells that differ in their type only, such as text 3 and integer 3, or text 1.10 and the number 1.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain, islice, product, repeat

from pytest_queryeval.comparison.canonical import XSD, canonical_rows, canonical_value, is_equal
from pytest_queryeval.comparison.pairing import TablePair, table_pair
from pytest_queryeval.comparison.quantities import read_temporal
from pytest_queryeval.core.case_report import NO_DIFFERENCE, ChangedRow, DifferenceReport
from pytest_queryeval.core.json_value import display_cell, to_jsonable
from pytest_queryeval.core.table import (
    IRI,
    BlankNode,
    Cell,
    FrozenMapping,
    Literal,
    Policy,
    Row,
    Table,
    TripleTerm,
)
from pytest_queryeval.text.formatting import cell_text, pluralize, tell_apart

SUMMARY_CELL_CHARACTERS = 40
TYPE_NAMES = {  # a type stands before those that it is derived from
    bool: "boolean",
    int: "integer",
    float: "float",
    Decimal: "decimal",
    str: "text",
    bytes: "bytes",
    datetime: "timestamp",
    date: "date",
    time: "time",
    tuple: "list",
    FrozenMapping: "mapping",
}


def difference(gold: Table, predicted: Table, policy: Policy, *, limit: int) -> DifferenceReport[Row]:
    """Return how predicted differs from gold under the best alignment; a `limit` of 0 keeps all cells out of it.

    At most `limit` rows of each kind, predicted's cells in the order of gold's columns. A changed row is paired with
    the predicted one that shares most of its cells, at least half of them. Without a difference the summary is empty.
    """
    tables = table_pair(gold, predicted, policy)
    if tables.alignment is None:
        has_too_few_columns = len(predicted.columns) < len(gold.columns)
        few = f"too few columns: gold has {len(gold.columns)}, predicted {len(predicted.columns)}"
        return {**NO_DIFFERENCE, "summary": few if has_too_few_columns else "no columns of gold's names"}
    columns = tables.alignment.columns
    missing_at, extra_at, _ = tables.unpaired(columns)
    if not missing_at and not extra_at:
        return {**NO_DIFFERENCE, "summary": _same_rows(tables, columns)}
    gold_rows, predicted_rows = _rows(gold, tables.policy), _rows(predicted, tables.policy)
    gold_codes, predicted_codes = tables.coded.project(columns)
    gold_counts, predicted_times = Counter(gold_codes), Counter(predicted_codes.values())
    unpaired = chain((gold_codes[at] for at in missing_at), (predicted_codes[at] for at in extra_at))
    repeated = dict.fromkeys(row for row in unpaired if row in gold_counts and row in predicted_times)
    missing_at = [at for at in missing_at if gold_codes[at] not in repeated]
    extra_at = [at for at in extra_at if predicted_codes[at] not in repeated]
    missing = [gold_rows[at] for at in missing_at[: 2 * limit]]
    extra = [tuple([predicted_rows[at][column] for column in columns]) for at in extra_at[: 2 * limit]]
    are_single = len(gold_rows) == len(predicted_rows) == len(gold.columns) == len(predicted.columns) == 1
    if are_single and limit and not {BlankNode} & {type(missing[0][0]), type(extra[0][0])}:  # named by engines
        cells = (missing[0][0], extra[0][0])
        texts = [shown_cell(cell, SUMMARY_CELL_CHARACTERS) for cell in cells]
        if told := distinguish_cells(*cells, SUMMARY_CELL_CHARACTERS):
            texts = [*told]
        elif texts[0] == texts[1] or is_number_text(*cells, policy):  # they differ in their types
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
            more = sum(gold_counts[row] > predicted_times[row] for row in repeated)
            sides = {"gold": more, "predicted": len(repeated) - more}
            often = [f"{pluralize(number, 'row')} more often in {side}" for side, number in sides.items() if number]
            parts += [f"duplicates differ: {' and '.join(often)}"]
        parts += _further(tables, columns)
        summary = ", ".join(parts)
    changed = _changed(missing, extra, policy)
    return {
        "summary": summary,
        "columns": [*gold.columns],
        "predicted_columns": [predicted.columns[column] for column in columns],
        "counts": {"missing": len(missing_at), "extra": len(extra_at)},
        "missing": missing[:limit],
        "extra": extra[:limit],
        "changed": changed[:limit],
        "repeated": [
            {
                "row": gold_rows[gold_codes.index(row)],
                "gold": gold_counts[row],
                "predicted": predicted_times[row],
            }
            for row in islice(repeated, limit)
        ],
    }


def _further(tables: TablePair, columns: tuple[int, ...]) -> list[str]:
    further = len(tables.predicted.columns) - len(columns)
    return [pluralize(further, "further column")] * (further > 0 and tables.policy.extra_columns != "allow")


def _same_rows(tables: TablePair, columns: tuple[int, ...]) -> str:
    """Return how two answers with the same rows differ; where some are only close, their order is not compared."""
    if further := _further(tables, columns):
        return further[0]
    gold, predicted = tables.coded.project(columns)
    if list(predicted.values()) != gold and not tables.coded.has_chains:
        return "the same rows, in another order"
    return "" if list(columns) == sorted(columns) else "the same rows, with their columns in another order"


def _rows(table: Table, policy: Policy) -> Sequence[Row]:
    """Return the rows as they were answered, each once where the policy ignores duplicates, as in a `TablePair`."""
    if policy.duplicates == "count":
        return table.rows
    first: dict[tuple[Hashable, ...], Row] = {}
    for row, value in zip(table.rows, canonical_rows(table, policy), strict=True):
        first.setdefault(value, row)
    return list(first.values())


def _changed(missing: list[Row], extra: list[Row], policy: Policy) -> list[ChangedRow[Row]]:
    """Take pairs of similar rows out of both lists, and return them."""
    extra_values = [_values(row, policy) for row in extra]
    changed: list[ChangedRow[Row]] = []
    for row in list(missing):
        values = _values(row, policy)
        shared = [sum(map(is_equal, values, candidate, repeat(policy))) for candidate in extra_values]
        most = max(shared, default=0)
        if 2 * most >= len(row) > 1:
            place = shared.index(most)
            del extra_values[place]
            changed.append({"gold": row, "predicted": extra.pop(place)})
            missing.remove(row)
    return changed


def _values(row: Row, policy: Policy) -> list[Hashable]:
    return [canonical_value(cell, policy) for cell in row]


def lookalikes(
    difference: DifferenceReport[Row], policy: Policy, text_of: Callable[[Cell], str]
) -> list[tuple[int, Cell, Cell]]:
    """Return pairs of a gold and a predicted cell of one column that differ in their types only.

    These have the same text, or one is a number and the other its text. The time is proportional to the pairs of rows.
    """
    gold_rows, predicted_rows = (
        [[(type_name(cell), cell) for cell in row] for row in side] for side in _sides(difference)
    )
    return [
        (column, gold, predicted)
        for gold_row in gold_rows
        for predicted_row in predicted_rows
        for column, ((gold_type, gold), (predicted_type, predicted)) in enumerate(
            zip(gold_row, predicted_row, strict=False)
        )
        if gold_type != predicted_type
        and (text_of(gold) == text_of(predicted) or is_number_text(gold, predicted, policy))
        and not is_equal(canonical_value(gold, policy), canonical_value(predicted, policy), policy)
    ]


def distinguishing_texts(difference: DifferenceReport[Row], characters: int) -> dict[tuple[int, str], str]:
    """Return what `distinguish_cells` returns for cells that look the same, by their column and their `repr`."""
    told: dict[tuple[int, str], str] = {}
    gold_rows, predicted_rows = _sides(difference)
    for gold_row, predicted_row in product(gold_rows, predicted_rows):
        for column, cells in enumerate(zip(gold_row, predicted_row, strict=False)):
            for cell, text in zip(cells, distinguish_cells(*cells, characters) or (), strict=False):
                told[column, repr(cell)] = text
    return told


def distinguish_cells(gold: Cell, predicted: Cell, characters: int) -> tuple[str, str] | None:
    """Return what tells two texts or terms of one type apart that look the same; None if they do not."""
    if not isinstance(gold, str | Literal | IRI) or type_name(gold) != type_name(predicted):
        return None
    return tell_apart(str(to_jsonable(gold)), str(to_jsonable(predicted)), characters)


def is_number_text(gold: Cell, predicted: Cell, policy: Policy) -> bool:
    """Return whether one of two cells is a number and the other one its text, as `text_numbers` reads texts."""
    if not is_text_and_number(gold, predicted):
        return False
    reading = replace(policy, text_numbers=True)
    return is_equal(canonical_value(gold, reading), canonical_value(predicted, reading), reading)


def has_midnight(difference: DifferenceReport[Row]) -> bool:
    """Return whether one answer has a date where the other one has a timestamp at midnight of that day."""
    (gold_dates, gold_timestamps), (predicted_dates, predicted_timestamps) = map(_moments, _sides(difference))
    return not gold_dates.isdisjoint(predicted_timestamps) or not gold_timestamps.isdisjoint(predicted_dates)


def _sides(difference: DifferenceReport[Row]) -> tuple[Sequence[Row], Sequence[Row]]:
    """Return the rows of gold and of predicted that the other one lacks."""
    changed = difference["changed"]
    golds = (*difference["missing"], *(rows["gold"] for rows in changed))
    return golds, (*difference["extra"], *(rows["predicted"] for rows in changed))


def _moments(rows: Sequence[Row]) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Return dates and timestamps, also those in texts, each as the number of its column and its seconds."""
    dates, timestamps = set[tuple[int, int]](), set[tuple[int, int]]()
    for column, cell in (place for row in rows for place in enumerate(row)):
        text = cell.lexical if isinstance(cell, Literal) else str(cell) if isinstance(cell, str | date) else ""
        moment = read_temporal(text)
        if moment is not None and moment.kind == "date":
            dates.add((column, moment.seconds))
        elif moment is not None and moment.kind == "datetime" and not moment.fraction:
            timestamps.add((column, moment.seconds))
    return dates, timestamps


def is_text_and_number(gold: Cell, predicted: Cell) -> bool:
    """Return whether one of two cells is a text and the other one a number."""
    return {str} < {type(gold), type(predicted)} < {str, int, float, Decimal}


def shown_cell(cell: Cell, characters: int) -> str:
    """Return a cell on one line, as reports show it."""
    return cell_text(display_cell(cell), characters)


def type_name(cell: Cell) -> str:
    """Return the name of a cell's type for messages; of an RDF literal its datatype or language.

    >>> type_name(Literal("20", f"{XSD}integer")), type_name("20")
    ('xsd:integer', 'text')
    """
    match cell:
        case Literal(datatype=datatype, language=language):
            short = datatype.replace(XSD, "xsd:", 1) if datatype.startswith(XSD) else f"<{datatype}>"
            return f"@{language}" if language else short if datatype else "xsd:string"
        case IRI():
            return "IRI"
        case BlankNode():
            return "blank node"
        case TripleTerm():
            return "triple term"
        case None:
            return "NULL"
    return next(name for cell_type, name in TYPE_NAMES.items() if isinstance(cell, cell_type))
