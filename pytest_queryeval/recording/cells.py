"""Values of answers as JSON that people can read, and back again without a loss.

What JSON has no word for is an object with one key that starts with `$`: `{"$decimal": "1.10"}`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

from pytest_queryeval.table import IRI, BlankNode, Cell, Literal

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
