"""JSON as an answer, with the schema that it has to match; any value as plain JSON data."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

from pytest_queryeval.core.table import IRI, BlankNode, Cell, FrozenMapping, Literal, RDFTerm, TripleTerm
from pytest_queryeval.text.formatting import CELL_AHEAD, CELL_CHARACTERS, truncate, utf8_safe

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
INTEGER_DIGITS = 200  # Python writes and reads no integer of more than 4,300 digits
MAX_DEPTH = 20
XSD = "http://www.w3.org/2001/XMLSchema#"
_LOOKS_TYPED = re.compile(r"[+-]?[0-9.]+([eE][+-]?[0-9]+)?|true|false|\d{4}-\d\d-\d\d.*|<.*>|_:.*|")
_json_text = json.JSONEncoder(ensure_ascii=False).encode
_TOO_LARGE = 10**INTEGER_DIGITS


@dataclass(frozen=True, slots=True)
class JsonAnswer:
    """An answer that is a whole JSON document, which may be null."""

    value: JsonValue


@dataclass(frozen=True, slots=True, eq=False)
class JsonSchema:
    """A JSON Schema as a `document`, and the `file` that it was read from, spelled as messages show it.

    `resources` are the documents of the files that the schema refers to, by the URIs that it uses.
    """

    file: Path
    document: JsonValue
    resources: Mapping[str, JsonValue] = field(default_factory=dict)


def to_jsonable(value: Any, *, max_depth: int = MAX_DEPTH, text: Callable[[str], str] = utf8_safe) -> Any:
    """Return a value as plain JSON data, of exactly the types None, bool, int, float, str, list and dict.

    NaN, infinities, huge integers, bytes, dates and RDF terms become text. Values nested deeper than `max_depth`, also
    in themselves, become an ellipsis. `text` is applied to each text, including keys.
    """
    match value:
        case None | bool():
            return value
        case int():
            return int(value) if abs(value) < _TOO_LARGE else f"an integer of more than {INTEGER_DIGITS} digits"
        case str():
            return text(str.__str__(value))
        case float():
            return float(value) if math.isfinite(value) else str(float(value))
        case bytes():
            return text(f"x'{value.hex()}'")
        case dict() | Mapping() if max_depth:
            return {
                text(str(key)): to_jsonable(item, max_depth=max_depth - 1, text=text) for key, item in value.items()
            }
        case list() | Sequence() | AbstractSet() if max_depth:
            return [to_jsonable(item, max_depth=max_depth - 1, text=text) for item in value]
        case Mapping() | Sequence() | AbstractSet():
            return "…"
        case IRI() | BlankNode() | Literal() | TripleTerm():
            return text(_term(value))
        case _:
            return text(str(value))


def report_cell(cell: object) -> JsonValue:
    """Return a cell as reports show it: like `display_cell`, but with texts cut to CELL_CHARACTERS characters."""
    value = display_cell(cell)
    return truncate(value, CELL_CHARACTERS) if isinstance(value, str) else value


def display_cell(cell: object) -> JsonValue:
    """Return a cell as a JSON value for display, with a list or a mapping as JSON text.

    Of a long text or of many bytes, only the first CELL_AHEAD count.

    >>> display_cell((Decimal("1.10"), FrozenMapping({1: None, "a": "1"})))
    '[1.10, {1: null, "a": "1"}]'
    """
    if isinstance(cell, tuple | FrozenMapping):
        return utf8_safe(_nested_text(cell))
    value: JsonValue = to_jsonable(cell[:CELL_AHEAD] if isinstance(cell, str | bytes) else cell)
    return value


def _nested_text(cell: Cell) -> str:
    match cell:
        case tuple():
            return f"[{', '.join(map(_nested_text, cell))}]"
        case FrozenMapping():
            return f"{{{', '.join(f'{_nested_text(key)}: {_nested_text(item)}' for key, item in cell.items())}}}"
        case Decimal():
            return str(cell)
        case None | bool() | int() | float() | str():
            return _json_text(cell)
        case _:
            return _json_text(to_jsonable(cell))


def _term(term: RDFTerm) -> str:
    """Return an RDF term as text, close to Turtle; a literal in its shortest unambiguous form."""
    match term:
        case IRI(iri=text):
            return f"<{text}>"
        case BlankNode(label=text):
            return f"_:{text}"
        case TripleTerm():
            parts = (_term(part) if isinstance(part, RDFTerm) else str(part) for part in term.parts)
            return f"<<( {' '.join(parts)} )>>"
        case Literal(lexical=text, language=language) if language:
            return f'"{text}"@{language}'
        case Literal(lexical=text, datatype=datatype):
            if datatype and not datatype.startswith(XSD):
                return f'"{text}"^^<{datatype}>'
            return f'"{text}"' if not datatype and _LOOKS_TYPED.fullmatch(text) else text
