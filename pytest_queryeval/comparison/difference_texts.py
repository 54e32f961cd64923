"""How a difference of two tables is shown: which columns, and of long cells the part that differs.

Also cells that differ in their type only, such as text 3 and integer 3, or text 1.10 and the number 1.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from itertools import islice, product
from typing import Any, cast

from pytest_queryeval.comparison.canonical import XSD, canonical_value, is_equal
from pytest_queryeval.core.case_report import (
    AnyRow,
    ChangedCell,
    ColumnDifference,
    DifferenceReport,
)
from pytest_queryeval.core.json_value import JsonValue, display_cell, report_cell, to_jsonable
from pytest_queryeval.core.table import (
    IRI,
    BlankNode,
    Cell,
    FrozenMapping,
    Literal,
    Policy,
    Row,
    TripleTerm,
)
from pytest_queryeval.text.formatting import (
    cell_text,
    cut_nested,
    excerpts,
    one_line,
    pluralize,
    shared_ends,
    tell_apart,
    utf8_safe,
)

SUMMARY_CELL_CHARACTERS = 40
ELEMENTS_CHARACTERS = 60  # of the elements that a list lacks
KEY_CHARACTERS = 24  # of a cell that identifies a row
# Behind the name of a column with lists or structs, how these differ, with what is said of them.
ORDER, MISSING, EXTRA, KEYS = " (order)", " (missing elements)", " (extra elements)", " (keys)"
SAID = {
    ORDER: "has the same elements in another order",
    MISSING: "lacks elements",
    EXTRA: "has extra elements",
    KEYS: "has other keys",
}
EXAMPLES = 3  # of rows in which a column differs
WIDE = 8  # columns, beyond which only those are shown that identify rows or differ
COLUMNS_NAMED = 4  # in a summary, of those that differ besides the first one
COLUMNS_SHOWN = 20  # with examples, of those that differ
NAMES_CHARACTERS = 120  # of the names of columns that are not shown otherwise
SUMMARY_CHARACTERS = 160  # beyond which a summary has no example
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


def column_labels(names: Sequence[str]) -> list[str]:
    """Return a unique label for each column: its name, or for an empty or repeated name a label with its place.

    >>> column_labels(["id", "", "id"])
    ['id', 'column 2', 'id (column 3)']
    """
    labels: dict[str, None] = {}
    for place, name in enumerate(names, start=1):
        label = name or f"column {place}"
        labels[label if label not in labels else f"{label} (column {place})"] = None
    return [*labels]


def shown_places(difference: DifferenceReport[AnyRow]) -> list[int]:
    """Return the positions of the columns to show in rows of a difference: all columns, unless they are many.

    Of many columns, those that identify rows and those that differ are shown.
    """
    names = column_labels(difference.get("columns", ()))
    by_column = difference.get("by_column", ())
    identifying = {name for found in by_column for example in found["examples"] for name in example["key"]}
    places = {place for place, name in enumerate(names) if name in identifying}
    for path in (found["column"] for found in by_column):
        paths = ((name, *(f"{name}{kind}" for kind in SAID)) for name in names)
        exact = [place for place, of_name in enumerate(paths) if path in of_name]
        inner = (place for place, name in enumerate(names) if path.startswith((f"{name}[", f"{name}.")))
        places |= {*exact} or {*islice(inner, 1)} or {*range(len(names))}
    shown = sorted(places) or _places_without_pairs(difference)
    return shown if shown and len(names) > WIDE else [*range(len(names))]


def _places_without_pairs(difference: DifferenceReport[AnyRow]) -> list[int]:
    """Return a column that identifies the missing and the extra rows, and the first columns in which they never agree.

    The list is empty if there are no such columns.
    """
    missing, extra = difference["missing"], difference["extra"]
    cells = [
        ({*golds}, {*others})
        for golds, others in zip(zip(*missing, strict=False), zip(*extra, strict=False), strict=False)
    ]
    keys = (
        place
        for place, (golds, others) in enumerate(cells)
        if len(golds) == len(missing) and len(others) == len(extra) and 2 * len((golds & others) - {None}) >= len(golds)
    )
    differing = [place for place, (golds, others) in enumerate(cells) if golds.isdisjoint(others)]
    return sorted([*key, *differing[:WIDE]]) if differing and (key := [*islice(keys, 1)]) else []


def shown_columns(difference: DifferenceReport[AnyRow]) -> DifferenceReport[AnyRow]:
    """Return a copy of a difference whose rows contain only the columns of `shown_places`."""
    places = shown_places(difference)
    if len(places) == len(difference.get("columns", places)):
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


def columns_summary(
    by_column: Sequence[ColumnDifference], others: Sequence[str], differing: tuple[int, int] = (0, 0)
) -> str:
    """Return a sentence on the columns that differ, followed by the texts `others`.

    `differing` is the number of columns that differ, and of all columns; if many differ, the sentence states these
    numbers instead of names. An example of the first column is added if there is room.
    """
    names = [f"{one_line(found['column'], KEY_CHARACTERS)} in {found['rows']:,}" for found in by_column[1:]]
    are_many = differing[0] > 1 + COLUMNS_NAMED
    behind = [*([first_columns(names)] if names and not are_many else []), *others]

    def first(examples: int) -> str:
        return _many_text(by_column, differing, examples) if are_many else column_text(by_column[0], examples)

    texts = ["; ".join([*([first(examples)] if by_column else []), *behind]) for examples in (1, 0)]
    return texts[1] if len(texts[0]) > SUMMARY_CHARACTERS and behind else texts[0]


def _many_text(by_column: Sequence[ColumnDifference], differing: tuple[int, int], examples: int) -> str:
    rows = [found["rows"] for found in by_column]
    up_to = "" if min(rows) == max(rows) else "up to "
    text = f"{differing[0]} of {differing[1]} columns differ in {up_to}{rows[0]:,} of "
    text += pluralize(by_column[0]["of"], "row")
    parts = [
        f"{one_line(by_column[0]['column'], KEY_CHARACTERS)} {_example_text(example)}, …"
        for example in by_column[0]["examples"][:examples]
    ]
    return ": ".join([text, *parts])


def first_columns(texts: Sequence[str]) -> str:
    """Return the texts of the first COLUMNS_NAMED columns, and the number of the others."""
    more = [pluralize(len(texts) - COLUMNS_NAMED, "more column")] if len(texts) > COLUMNS_NAMED else []
    return ", ".join([*texts[:COLUMNS_NAMED], *more])


def column_lines(
    by_column: Sequence[ColumnDifference], most: int = COLUMNS_SHOWN, characters: int | None = None
) -> list[str]:
    """Return a text for each of the first `most` columns that differ, and a line with the names of the others."""
    lines = [column_text(found, characters=characters) for found in by_column[:most]]
    if rest := [found["column"] for found in by_column[most:]]:
        lines.append(f"{pluralize(len(rest), 'more column')}: {one_line(', '.join(rest), NAMES_CHARACTERS)}")
    return lines


def column_text(difference: ColumnDifference, examples: int = EXAMPLES, characters: int | None = None) -> str:
    """Return in words in how many rows a column differs, with up to `examples` examples.

    Examples are left out as far as needed to keep to `characters`, but one remains.

    >>> example = {"key": {"id": 1}, "gold": 0, "predicted": 1}
    >>> column_text({"column": "c", "rows": 3, "of": 4, "examples": [example, example]}, 1)
    'c differs in 3 of 4 rows: 0 → 1 (id 1), …'
    """
    name, said = _name_and_said(difference["column"])
    text = f"{one_line(name, SUMMARY_CELL_CHARACTERS)} {said} in {difference['rows']:,} of "
    text += pluralize(difference["of"], "row")
    parts = [_example_text(example, said) for example in difference["examples"][:examples]]
    more = ["…"] * (difference["rows"] > len(parts) > 0)
    full_text = ": ".join([text, *([", ".join([*parts, *more])] if parts else [])])
    if characters is None or len(full_text) <= characters or len(parts) < 2:
        return full_text
    return column_text(difference, len(parts) - 1, characters)


def _name_and_said(column: str) -> tuple[str, str]:
    """Return the name of a column without its suffix of SAID, and the words for how it differs."""
    for kind, said in SAID.items():
        before, found, after = column.rpartition(kind)
        if found and (not after or after.startswith(" of ")):  # of a table that was written to
            return f"{before}{after}", said
    return column, "differs"


def _example_text(example: ChangedCell, said: str = "") -> str:
    cells = cast("tuple[Cell, Cell]", (example["gold"], example["predicted"]))
    if said in (SAID[MISSING], SAID[EXTRA]):
        change = shown_cell(cells[said == SAID[EXTRA]], ELEMENTS_CHARACTERS).removeprefix("[").removesuffix("]")
    else:
        change = " → ".join(change_texts(*cells))
    key = ", ".join(
        f"{one_line(name, KEY_CHARACTERS)} {shown_cell(cast('Cell', cell), KEY_CHARACTERS)}"
        for name, cell in example["key"].items()
    )
    return f"{change} ({key})" if key else change


def change_texts(gold: Cell, predicted: Cell) -> tuple[str, str]:
    """Return short texts of two different cells on one line; cells that look the same get their types added.

    Long cells are cut to the part that differs.
    """
    if texts := distinguish_cells(gold, predicted, SUMMARY_CELL_CHARACTERS):
        return texts
    first, second = (
        cell_text(cell, SUMMARY_CELL_CHARACTERS)
        if isinstance(cell, str)
        else shown_cell(cast("Cell", cell), SUMMARY_CELL_CHARACTERS)
        for cell in excerpt_cells(gold, predicted, SUMMARY_CELL_CHARACTERS)
    )
    if first != second and not is_number_text(gold, predicted, Policy()):
        return first, second
    first, second = (
        text if cell is None else f"{text} ({type_name(cell)})"
        for text, cell in zip((first, second), (gold, predicted), strict=True)
    )
    return first, second


def excerpt_cells(gold: Cell, predicted: Cell, characters: int) -> tuple[JsonValue, JsonValue]:
    """Return two different cells as reports show them, cut to about `characters` around the part that differs."""
    first, second = (utf8_safe(cell) if isinstance(cell, str) else display_cell(cell) for cell in (gold, predicted))
    if not isinstance(first, str) or not isinstance(second, str):
        return report_cell(first), report_cell(second)
    if isinstance(gold, tuple) and isinstance(predicted, tuple) and max(len(first), len(second)) > characters:
        shorter = _unshared_text(gold, predicted), _unshared_text(predicted, gold)
        if shorter[0] == shorter[1]:
            shorter = _unshared_text(gold, predicted[: (same := shared_ends(gold, predicted)[0])]), ""
            shorter = shorter[0], _unshared_text(predicted, gold[:same])
        first, second = shorter if shorter[0] != shorter[1] else (first, second)
    cut_first, cut_second = (cut_nested(text, characters) for text in (first, second))
    are_cut = max(len(cut_first), len(cut_second)) <= characters and cut_first != cut_second
    return (cut_first, cut_second) if are_cut else excerpts(first, second, characters)


def _unshared_text(cells: tuple[Cell, ...], others: tuple[Cell, ...]) -> str:
    """Return a list as text, with an ellipsis for the elements that the other list has, too."""
    shared = Counter(cells) & Counter(others)
    texts: list[str] = []
    for cell in cells:
        if shared[cell] > 0:
            shared[cell] -= 1
            texts += ["…"] if texts[-1:] != ["…"] else []
        else:
            texts.append(str(display_cell((cell,)))[1:-1])
    return f"[{', '.join(texts)}]"


def lookalikes(
    difference: DifferenceReport[Row], policy: Policy, text_of: Callable[[Cell], str]
) -> list[tuple[int, Cell, Cell]]:
    """Return the column, the gold cell and the predicted cell of pairs of cells that differ only in their types.

    Both cells have the same text, or a text spells a number in the other cell. All missing, extra and changed rows are
    compared with each other.
    """
    gold_rows, predicted_rows = (
        [[(type_name(cell), cell) for cell in row] for row in side] for side in differing_sides(difference)
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
    """Return texts that tell apart cells of the same type that look the same, by column and `repr` of the cell."""
    texts: dict[tuple[int, str], str] = {}
    gold_rows, predicted_rows = differing_sides(difference)
    for gold_row, predicted_row in product(gold_rows, predicted_rows):
        for column, cells in enumerate(zip(gold_row, predicted_row, strict=False)):
            for cell, text in zip(cells, distinguish_cells(*cells, characters) or (), strict=False):
                texts[column, repr(cell)] = text
    return texts


def closest_excerpts(difference: DifferenceReport[Row], characters: int) -> dict[tuple[int, str], str]:
    """Return excerpts of texts and lists longer than `characters`, by their column and `repr`.

    An excerpt shows what differs from the most similar cell of the other answer.
    """
    excerpts_of: dict[tuple[int, str], str] = {}
    columns = zip(*(zip(*rows, strict=False) for rows in differing_sides(difference)), strict=False)
    for column, cells in enumerate(columns):
        golds, others = (
            {text: cell for cell in side if isinstance(cell, str | tuple) and len(text := _text(cell)) > characters}
            for side in cells
        )
        for texts, counterparts in ((golds, others), (others, golds)):
            for text, cell in texts.items():
                candidates = (other for other in counterparts if other != text)
                if closest := max(candidates, key=partial(_alike, text), default=None):
                    excerpts_of[column, repr(cell)] = str(excerpt_cells(cell, counterparts[closest], characters)[0])
    return excerpts_of


def _text(cell: Cell) -> str:
    return str(display_cell(cell))


def _alike(text: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginning and end."""
    return sum(shared_ends(text, other))


def distinguish_cells(gold: Cell, predicted: Cell, characters: int) -> tuple[str, str] | None:
    """Return texts that tell two different cells of one type apart that look the same; None if they look different.

    Only texts, RDF literals and IRIs are compared.
    """
    if not isinstance(gold, str | Literal | IRI) or type_name(gold) != type_name(predicted):
        return None
    return tell_apart(str(to_jsonable(gold)), str(to_jsonable(predicted)), characters)


def is_number_text(gold: Cell, predicted: Cell, policy: Policy) -> bool:
    """Return whether one cell is a number and the other cell a text that spells it, as `text_numbers` reads texts."""
    if not is_text_and_number(gold, predicted):
        return False
    reading = replace(policy, text_numbers=True)
    return is_equal(canonical_value(gold, reading), canonical_value(predicted, reading), reading)


def differing_sides(difference: DifferenceReport[Row]) -> tuple[Sequence[Row], Sequence[Row]]:
    """Return the rows of gold and of predicted that differ: missing or extra rows, followed by changed rows."""
    changed = difference["changed"]
    golds = (*difference["missing"], *(rows["gold"] for rows in changed))
    return golds, (*difference["extra"], *(rows["predicted"] for rows in changed))


def is_text_and_number(gold: Cell, predicted: Cell) -> bool:
    """Return whether one of the cells is a text and the other a number."""
    return {str} < {type(gold), type(predicted)} < {str, int, float, Decimal}


def shown_cell(cell: Cell, characters: int) -> str:
    """Return a cell on one line as reports show it, cut to `characters`."""
    return cell_text(display_cell(cell), characters)


def type_name(cell: Cell) -> str:
    """Return the name of a cell's type for messages; for an RDF literal, its datatype or language.

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
