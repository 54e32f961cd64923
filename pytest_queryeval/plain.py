"""Values and texts that any output can hold: plain JSON without NaN, text without control characters."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_queryeval.table import IRI, BlankNode, Literal

CELL_CHARACTERS = 200
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    """Text that a terminal or a CI log shows and never obeys; tabs and line feeds stay.

    Control characters, which could move the cursor or hide text, become escapes; `##`, which starts commands of CI
    services anywhere in a line, is taken apart. Put untrusted text behind a margin: `::` at the start of a line is a
    command too.
    """
    text = text.replace("\r\n", "\n")
    return _UNPRINTABLE.sub(_escaped, text).replace("##", "#\\x23")


def one_line(text: str, characters: int = CELL_CHARACTERS) -> str:
    """`printable` text without line breaks, cut to a number of characters."""
    return shortened(printable(" ".join(text.split())), characters)


def shortened(text: str, characters: int) -> str:
    """The text, or its beginning with an ellipsis where it is longer."""
    return text if len(text) <= characters else text[: characters - 1] + "…"


def storable(text: str) -> str:
    """Text that can be written as UTF-8: lone surrogates become escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def plain(value: Any) -> Any:
    """The value as JSON knows it: NaN, infinities, bytes, dates and RDF terms become text."""
    match value:
        case None | bool() | int():
            return value
        case str():
            return storable(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes():
            return f"x'{value.hex()}'"
        case IRI(iri=text):
            return storable(f"<{text}>")
        case BlankNode(label=text):
            return storable(f"_:{text}")
        case Literal(lexical=text):
            return storable(text)
        case Mapping():
            return {storable(str(key)): plain(item) for key, item in value.items()}
        case Sequence() | set() | frozenset():
            return [plain(item) for item in value]
        case _:
            return storable(str(value))


def plain_cell(value: Any) -> Any:
    """A cell for a report: plain, and text of at most CELL_CHARACTERS characters."""
    if isinstance(value, bytes):
        value = value[:CELL_CHARACTERS]
    value = plain(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**CELL_CHARACTERS:
        value = "an integer of more than 200 digits"
    return shortened(value, CELL_CHARACTERS) if isinstance(value, str) else value


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
