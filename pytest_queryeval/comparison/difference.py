"""Differences of two tables: rows that are missing, extra, changed in some cells, or repeated more or less often.

Also cells that differ in their type only, such as text 3 and integer 3, or text 1.10 and the number 1.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain, islice, product
from typing import Any, cast

from pytest_queryeval.comparison.canonical import XSD, canonical_rows, canonical_value, is_equal
from pytest_queryeval.comparison.pairing import TablePair, table_pair
from pytest_queryeval.comparison.quantities import read_temporal
from pytest_queryeval.comparison.similar_rows import RowPairs, similar_rows
from pytest_queryeval.core.case_report import (
    NO_DIFFERENCE,
    AnyRow,
    ChangedCell,
    ChangedRow,
    ColumnDifference,
    DifferenceCounts,
    DifferenceReport,
)
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
from pytest_queryeval.text.formatting import CELL_AHEAD, cell_text, excerpts, one_line, pluralize, tell_apart

SUMMARY_CELL_CHARACTERS = 40
KEY_CHARACTERS = 24  # of a cell that identifies a row
MAX_ELEMENTS = 100  # of a list or a struct that are compared one by one
EXAMPLES = 3  # of rows in which a column differs
WIDE = 8  # columns, beyond which only those are shown that identify rows or differ
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

    At most `limit` rows of each kind, predicted's cells in the order of gold's columns. Changed rows are paired by
    `similar_rows`, and `by_column` says where they differ. Without a difference the summary is empty.
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
    equal_rows = len(gold_codes) - len(missing_at)
    missing_at = [at for at in missing_at if gold_codes[at] not in repeated]
    extra_at = [at for at in extra_at if predicted_codes[at] not in repeated]
    counts: DifferenceCounts = {"missing": len(missing_at), "extra": len(extra_at)}
    pairs = similar_rows(tables, columns, gold_codes, predicted_codes, missing_at, extra_at)

    def predicted_row(at: int) -> Row:
        return tuple([predicted_rows[at][column] for column in columns])

    changed: list[ChangedRow[Row]] = [
        {"gold": gold_rows[pair.gold], "predicted": predicted_row(pair.predicted)} for pair in pairs.rows
    ]
    paired_gold, paired_predicted = {pair.gold for pair in pairs.rows}, {pair.predicted for pair in pairs.rows}
    missing_at = [at for at in missing_at if at not in paired_gold]
    extra_at = [at for at in extra_at if at not in paired_predicted]
    by_column = _by_column(tables, pairs, changed, equal_rows + len(changed), limit)
    first_missing = [gold_rows[at] for at in missing_at[:limit]]
    first_extra = [predicted_row(at) for at in extra_at[:limit]]
    are_single = len(gold_rows) == len(predicted_rows) == len(gold.columns) == len(predicted.columns) == 1
    if are_single and limit and not {BlankNode} & {type(first_missing[0][0]), type(first_extra[0][0])}:
        # Blank nodes are named by engines.
        summary = "gold {}, predicted {}".format(*change_texts(first_missing[0][0], first_extra[0][0]))
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
        of_columns = [column_text(by_column[0], 1)] if by_column else []
        of_columns += [pluralize(len(by_column) - 1, "more column")] if by_column[1:] else []
        summary = "; ".join([*of_columns, *filter(None, [", ".join(parts)])])
    found: DifferenceReport[Row] = {
        "summary": summary,
        "columns": [*gold.columns],
        "predicted_columns": [predicted.columns[column] for column in columns],
        "counts": counts,
        "missing": first_missing,
        "extra": first_extra,
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
    return {**found, "by_column": by_column} if by_column else found


def _by_column(
    tables: TablePair, pairs: RowPairs, changed: Sequence[ChangedRow[Row]], paired_rows: int, limit: int
) -> list[ColumnDifference]:
    """Return where the rows of pairs differ, the columns that differ in most rows first."""
    names = column_labels(tables.gold.columns)
    policies = [tables.coded.policy_of(place) for place in range(len(names))]
    differing: dict[tuple[int, str], ColumnDifference] = {}
    for pair, rows in zip(pairs.rows, changed, strict=True):
        for place in pair.columns:
            cells = rows["gold"][place], rows["predicted"][place]
            is_nested = isinstance(cells[0], tuple | FrozenMapping)
            elements = _elements(*cells, names[place], policies[place]) if is_nested else ((names[place], *cells),)
            for name, gold, predicted in elements:
                if (place, name) not in differing:
                    differing[place, name] = {"column": name, "rows": 0, "of": paired_rows, "examples": []}
                found = differing[place, name]
                found["rows"] += 1
                if found["rows"] <= min(limit, EXAMPLES):
                    key: dict[str, Any] = {names[at]: rows["gold"][at] for at in pairs.key}
                    example: Any = {"key": key, "gold": gold, "predicted": predicted}
                    found["examples"].append(example)
    return [differing[at] for at in sorted(differing, key=lambda at: (-differing[at]["rows"], at[0]))]


def _elements(gold: Cell, predicted: Cell, name: str, policy: Policy) -> Iterator[tuple[str, Cell, Cell]]:
    """Yield the elements in which two cells differ, with their paths; the cells if they have other elements."""
    match gold, predicted:
        case tuple(), tuple() if len(gold) == len(predicted) <= MAX_ELEMENTS:
            parts = [(f"{name}[{at}]", *pair) for at, pair in enumerate(zip(gold, predicted, strict=True))]
        case FrozenMapping(), FrozenMapping() if gold.keys() == predicted.keys() and len(gold) <= MAX_ELEMENTS:
            parts = [(f"{name}.{key}", item, predicted[key]) for key, item in gold.items()]
        case _:
            yield name, gold, predicted
            return
    for path, item, other in parts:
        if not is_equal(canonical_value(item, policy), canonical_value(other, policy), policy):
            yield from _elements(item, other, path, policy)


def column_labels(names: Sequence[str]) -> list[str]:
    """Return a name for each column that no other one has: its own, or if that is empty or repeated with its place.

    >>> column_labels(["id", "", "id"])
    ['id', 'column 2', 'id (column 3)']
    """
    labels: dict[str, None] = {}
    for place, name in enumerate(names, start=1):
        label = name or f"column {place}"
        labels[label if label not in labels else f"{label} (column {place})"] = None
    return [*labels]


def shown_places(difference: DifferenceReport[AnyRow]) -> list[int]:
    """Return the columns to show of rows: of many columns those that identify rows, and those that differ."""
    names = column_labels(difference.get("columns", ()))
    by_column = difference.get("by_column", ())
    named = {name for found in by_column for example in found["examples"] for name in example["key"]}
    differing = [found["column"] for found in by_column]
    places = [
        place
        for place, name in enumerate(names)
        if name in named or any(other == name or other.startswith((f"{name}[", f"{name}.")) for other in differing)
    ]
    return places if places and len(names) > WIDE else [*range(len(names))]


def shown_columns(difference: DifferenceReport[AnyRow]) -> DifferenceReport[AnyRow]:
    """Return a difference whose rows have the columns to show."""
    places = shown_places(difference)
    if "by_column" not in difference:
        return difference

    def chosen(row: Any) -> Any:
        return type(row)(row[place] for place in places)

    return {
        **difference,
        "columns": chosen(difference["columns"]),
        "predicted_columns": chosen(difference["predicted_columns"]),
        "missing": [*map(chosen, difference["missing"])],
        "extra": [*map(chosen, difference["extra"])],
        "changed": [
            {"gold": chosen(rows["gold"]), "predicted": chosen(rows["predicted"])} for rows in difference["changed"]
        ],
        "repeated": [{**repeated, "row": chosen(repeated["row"])} for repeated in difference["repeated"]],
    }


def column_text(difference: ColumnDifference, examples: int = EXAMPLES, characters: int | None = None) -> str:
    """Return in how many rows a column differs, with at most so many examples; with fewer to keep to `characters`.

    >>> example = {"key": {"id": 1}, "gold": 0, "predicted": 1}
    >>> column_text({"column": "c", "rows": 3, "of": 4, "examples": [example, example]}, 1)
    'c differs in 3 of 4 rows: 0 → 1 (id 1), …'
    """
    text = f"{one_line(difference['column'], SUMMARY_CELL_CHARACTERS)} differs in {difference['rows']:,} of "
    text += pluralize(difference["of"], "row")
    parts = [_example_text(example) for example in difference["examples"][:examples]]
    more = ["…"] * (difference["rows"] > len(parts) > 0)
    full_text = ": ".join([text, *([", ".join([*parts, *more])] if parts else [])])
    if characters is None or len(full_text) <= characters or len(parts) < 2:
        return full_text
    return column_text(difference, len(parts) - 1, characters)


def _example_text(example: ChangedCell) -> str:
    change = " → ".join(change_texts(cast("Cell", example["gold"]), cast("Cell", example["predicted"])))
    key = ", ".join(
        f"{one_line(name, KEY_CHARACTERS)} {shown_cell(cast('Cell', cell), KEY_CHARACTERS)}"
        for name, cell in example["key"].items()
    )
    return f"{change} ({key})" if key else change


def change_texts(gold: Cell, predicted: Cell, characters: int = SUMMARY_CELL_CHARACTERS) -> tuple[str, str]:
    """Return two different cells in one line, with what differs, and with their types if they look the same."""
    if told := distinguish_cells(gold, predicted, characters):
        return told
    texts = shown_cell(gold, CELL_AHEAD), shown_cell(predicted, CELL_AHEAD)
    if isinstance(gold, str) and isinstance(predicted, str):  # which may differ far from their beginnings
        first, second = excerpts(gold, predicted, characters)
        texts = shown_cell(first, characters), shown_cell(second, characters)
    else:
        texts = excerpts(*texts, characters)
    if texts[0] != texts[1] and not is_number_text(gold, predicted, Policy()):
        return texts
    first, second = (
        text if cell is None else f"{text} ({type_name(cell)})"
        for text, cell in zip(texts, (gold, predicted), strict=True)
    )
    return first, second


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
