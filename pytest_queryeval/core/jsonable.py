"""Values as plain JSON data: None, bool, int, finite float, text, list and dict."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from pytest_queryeval.core.table import IRI, BlankNode, Literal, RDFTerm, TripleTerm
from pytest_queryeval.text.escaping import utf8_safe

INTEGER_DIGITS = 200  # Python writes and reads no integer of more than 4,300 digits
LEVELS = 20
XSD = "http://www.w3.org/2001/XMLSchema#"
_LOOKS_TYPED = re.compile(r"[+-]?[0-9.]+([eE][+-]?[0-9]+)?|true|false|\d{4}-\d\d-\d\d.*|<.*>|_:.*|")
_TOO_LARGE = 10**INTEGER_DIGITS


def to_jsonable(value: Any, *, levels: int = LEVELS, text: Callable[[str], str] = utf8_safe) -> Any:
    """Return the value as plain JSON data, of exactly the types None, bool, int, float, str, list and dict.

    NaN, infinities, huge integers, bytes, dates and RDF terms become text; what is nested deeper than `levels`, or in
    itself, becomes an ellipsis. `text` is applied to each text, keys included.
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
        case dict() | Mapping() if levels:
            return {text(str(key)): to_jsonable(item, levels=levels - 1, text=text) for key, item in value.items()}
        case list() | Sequence() | AbstractSet() if levels:
            return [to_jsonable(item, levels=levels - 1, text=text) for item in value]
        case Mapping() | Sequence() | AbstractSet():
            return "…"
        case IRI() | BlankNode() | Literal() | TripleTerm():
            return text(_term(value))
        case _:
            return text(str(value))


def _term(term: RDFTerm) -> str:
    """Return an RDF term as text, a literal as short as it can be without looking like another one."""
    match term:
        case IRI(iri=text):
            return f"<{text}>"
        case BlankNode(label=text):
            return f"_:{text}"
        case TripleTerm():
            return f"<<( {' '.join(map(_part, term.parts))} )>>"
        case Literal(lexical=text, language=language) if language:
            return f'"{text}"@{language}'
        case Literal(lexical=text, datatype=datatype):
            if datatype and not datatype.startswith(XSD):
                return f'"{text}"^^<{datatype}>'
            return f'"{text}"' if not datatype and _LOOKS_TYPED.fullmatch(text) else text


def _part(cell: Hashable) -> str:
    return _term(cell) if isinstance(cell, RDFTerm) else str(cell)
