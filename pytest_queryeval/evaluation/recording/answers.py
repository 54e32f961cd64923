"""Cells, texts and answers as JSON that people can read, and back again without a loss.

What JSON has no word for is an object with one key that starts with `$`: `{"$decimal": "1.10"}`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.core.model import Answer
from pytest_queryeval.core.selection import DatasetSelection, DimensionSelection, Selection, Term
from pytest_queryeval.core.table import IRI, BlankNode, Cell, Literal, Row, Table, Tie

_DECIMAL_DIGITS = 4_000  # Python writes and reads no integer of more than 4,300
_LARGE = 10**_DECIMAL_DIGITS
_SPLIT_PAIR = re.compile("(?<=[\ud800-\udbff])(?=[\udc00-\udfff])")
_INEXACT = re.compile("nan|inf")


def written(value: Any) -> Any:
    """A cell, or a JSON document, as values that JSON has; raises TypeError for anything else, and for too many levels.

    Objects keep the order of their keys.
    """
    try:
        return _written(value)
    except RecursionError as error:
        raise TypeError("it nests too deep") from error


def _written(value: Any) -> Any:
    match value:
        case None | bool():
            return value
        case int():
            return int(value) if abs(value) < _LARGE else {"$integer": hex(value)}
        case float():
            number = float(value)
            return {"$float": repr(number)} if _INEXACT.search(repr(number)) else number
        case str():
            return _written_text(str.__str__(value))
        case list():
            return [_written(item) for item in value]
        case dict():
            return _written_object(value)
    return _written_term(value)


def _written_text(text: str) -> Any:
    """A text; where halves of a surrogate pair meet, its parts, as JSON would make one character of them."""
    return {"$parts": _SPLIT_PAIR.split(text)} if not text.isascii() and _SPLIT_PAIR.search(text) else text


def _written_object(items: Mapping[Any, Any]) -> Any:
    if not all(isinstance(key, str) for key in items):
        raise TypeError("an object with a key that is no text")
    if any(key.startswith("$") or _written(key) != key for key in items):
        return {"$object": [[_written(key), _written(item)] for key, item in items.items()]}
    return {key: _written(item) for key, item in items.items()}


def _written_term(value: Any) -> Any:
    match value:
        case Decimal():
            return {"$decimal": str(value)}
        case bytes():
            return {"$bytes": value.decode("latin-1")}
        case datetime():
            return {"$datetime": value.isoformat()}
        case date():
            return {"$date": value.isoformat()}
        case time():
            return {"$time": value.isoformat()}
        case IRI(iri=text):
            return {"$iri": written(text)}
        case BlankNode(label=text):
            return {"$blank": written(text)}
        case Literal(lexical=text, datatype=datatype, language=language):
            return {"$literal": [written(part) for part in (text, datatype, language)]}
    raise TypeError(f"a value of the type {type(value).__name__}")


def read(value: Any) -> Any:
    """The cell, or the JSON document, that `written` wrote; raises ValueError for what it never writes."""
    if isinstance(value, list):
        return [read(item) for item in value]
    if not isinstance(value, dict):
        return value
    tag = next(iter(value), "")
    if not tag.startswith("$"):
        return {key: read(item) for key, item in value.items()}
    if len(value) != 1 or tag not in _READERS:
        raise ValueError(f"an object with the key {tag!a}")
    try:
        return _READERS[tag](value[tag])
    except (TypeError, AttributeError, InvalidOperation, UnicodeEncodeError, OverflowError) as error:
        raise ValueError(f"{tag!a} holds what is none") from error


def read_cell(value: Any) -> Cell:
    """The cell that `written` wrote; raises ValueError for what is none."""
    cell: Cell = read(value)
    if isinstance(cell, list | dict):
        raise ValueError("a list or an object as a cell")
    return cell


def read_text(value: Any) -> str:
    """The text that `written` wrote; raises ValueError for what is none."""
    text = read(value)
    if not isinstance(text, str):
        raise ValueError("something else where a text is expected")
    return text


def _integer(text: str) -> int:
    return int(text, 16)


def _float(text: str) -> float:
    if not _INEXACT.search(text):
        raise ValueError("a number that JSON has a word for")
    return float(text)


def _parts(parts: list[str]) -> str:
    return "".join(map(read_text, parts))


def _object(items: list[list[Any]]) -> dict[str, Any]:
    return {read_text(key): read(item) for key, item in items}


def _literal(parts: list[Any]) -> Literal:
    text, datatype, language = map(read_text, parts)
    # Most cells of a column share their datatype.
    return Literal(text, sys.intern(datatype), language)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "$integer": _integer,
    "$float": _float,
    "$parts": _parts,
    "$object": _object,
    "$decimal": lambda text: Decimal(read_text(text)),
    "$bytes": lambda text: read_text(text).encode("latin-1"),
    "$datetime": datetime.fromisoformat,
    "$date": date.fromisoformat,
    "$time": time.fromisoformat,
    "$iri": lambda text: IRI(read_text(text)),
    "$blank": lambda text: BlankNode(read_text(text)),
    "$literal": _literal,
}


def written_answer(answer: Answer | None) -> dict[str, Any]:
    """One key, which names the form of the answer, or none where there is no answer.

    Raises TypeError for a table with a cell, or JSON with a value, that cannot be recorded.
    """
    match answer:
        case None:
            return {}
        case Table():
            return {"table": _written_table(answer)}
        case JsonAnswer(value=value):
            return {"json": written(value)}
        case Selection():
            return {"selection": _written_selection(answer)}


def read_answer(entry: Mapping[str, Any]) -> Answer | None:
    """The answer in an entry, None where it holds none; raises ValueError, TypeError or KeyError for what is none."""
    if "table" in entry:
        return _read_table(entry["table"])
    if "json" in entry:
        return JsonAnswer(read(entry["json"]))
    return _read_selection(entry["selection"]) if "selection" in entry else None


def written_lines(text: str) -> Any:
    """A text as it is, or its lines as a list where it has several."""
    lines = text.split("\n")
    return [written(line) for line in lines] if len(lines) > 1 else written(text)


def read_lines(value: Any) -> str:
    """The text that `written_lines` wrote; raises ValueError for what is none."""
    return "\n".join(map(read_text, value)) if isinstance(value, list) else read_text(value)


def _written_table(table: Table) -> dict[str, Any]:
    found: dict[str, Any] = {
        "columns": [written(name) for name in table.columns],
        "rows": _written_rows(table.rows),
    }
    if table.is_graph:
        found["is_graph"] = True
    if table.ties is not None:
        found["ties"] = [[tie.size, _written_rows(tie.rows)] for tie in table.ties]
    return dict(sorted(found.items()))


def _written_rows(rows: Sequence[Row]) -> list[list[Any]]:
    return [[written(cell) for cell in row] for row in rows]


def _read_table(entry: Mapping[str, Any]) -> Table:
    columns = tuple(map(read_text, entry["columns"]))
    ties = entry.get("ties")
    return Table(
        columns=columns,
        rows=[*_read_rows(entry["rows"], len(columns))],
        ties=None if ties is None else tuple(_read_tie(tie, len(columns)) for tie in ties),
        is_graph=entry.get("is_graph", False) is True,
    )


def _read_tie(entry: Sequence[Any], width: int) -> Tie:
    size, rows = entry
    if type(size) is not int or not 0 <= size <= len(rows):
        raise ValueError("a tie of another size than its rows")
    return Tie(size=size, rows=tuple(_read_rows(rows, width)))


def _read_rows(rows: Sequence[Any], width: int) -> Iterator[Row]:
    for row in rows:
        if not isinstance(row, list) or len(row) != width:
            raise ValueError("a row that is not as long as the columns")
        yield tuple(map(read_cell, row))


def _written_selection(selection: Selection) -> dict[str, Any]:
    datasets = [
        [
            written(dataset.id),
            [[written(dimension.name), _written_terms(dimension)] for dimension in dataset.dimensions],
        ]
        for dataset in selection.datasets
    ]
    return {"by_id": selection.by_id, "datasets": datasets}


def _written_terms(dimension: DimensionSelection) -> list[list[Any]]:
    return [[written(term.id), written(term.name), written(term.label)] for term in dimension.terms]


def _read_selection(entry: Mapping[str, Any]) -> Selection:
    datasets = tuple(
        DatasetSelection(
            read_text(name),
            tuple(DimensionSelection(read_text(of), tuple(map(_read_term, terms))) for of, terms in dimensions),
        )
        for name, dimensions in entry["datasets"]
    )
    return Selection(datasets, by_id=entry["by_id"] is True)


def _read_term(entry: Sequence[Any]) -> Term:
    term_id, name, label = (None if part is None else read_text(part) for part in entry)
    return Term(term_id, name, label)
