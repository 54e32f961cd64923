"""Values and texts that any output can hold: plain JSON without NaN, text without control characters and secrets."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from pytest_queryeval.core.table import IRI, BlankNode, Literal
from pytest_queryeval.text.redaction import redacted
from pytest_queryeval.text.visible import visible

CELL_CHARACTERS = 200
CELL_AHEAD = 100 * CELL_CHARACTERS
INTEGER_DIGITS = 200  # Python writes and reads no integer of more than 4,300 digits
LEVELS = 20
XSD = "http://www.w3.org/2001/XMLSchema#"
_LOOKS_TYPED = re.compile(r"[+-]?[0-9.]+([eE][+-]?[0-9]+)?|true|false|\d{4}-\d\d-\d\d.*|<.*>|_:.*|")
_TOO_LARGE = 10**INTEGER_DIGITS


def printable(text: str) -> str:
    """Text without secrets that a terminal or a CI log shows and never obeys; tabs and line feeds stay.

    Control characters, which could move the cursor or hide text, become escapes, and so do invisible ones; `##`, which
    starts commands of CI services anywhere in a line, is taken apart. Put untrusted text behind a margin: `::` at the
    start of a line is a command too.
    """
    return visible(redacted(text)).replace("##", "#\\x23")


def log_line(text: str) -> str:
    """`printable` text as one line of a log that no CI service takes for a command, which would begin with `::`."""
    line = printable(text).replace("\n", " ")
    return f"| {line}" if line.lstrip().startswith("::") else line


def one_line(text: str, characters: int = CELL_CHARACTERS) -> str:
    """`printable` text without line breaks, cut to a number of characters."""
    return shortened(_line(text), characters)


def both_ends(text: str, characters: int) -> str:
    """`one_line` of a text whose end matters as well: where it is longer, its middle is cut."""
    return without_middle(_line(text), characters)


def _line(text: str) -> str:
    return printable(" ".join(redacted(text).split()))


def shortened(text: str, characters: int) -> str:
    """The text, or its beginning with an ellipsis where it is longer; no secret is cut in two."""
    text = text if len(text) <= characters else redacted(text)
    return text if len(text) <= characters else text[: characters - 1] + "…"


def without_middle(text: str, characters: int) -> str:
    """The text, or its beginning and its end around an ellipsis where it is longer; no secret is cut in two."""
    end = characters // 2
    text = text if len(text) <= characters else redacted(text)
    return text if len(text) <= characters else f"{text[: characters - end - 1]}…{text[len(text) - end :]}"


def score_text(value: float | None) -> str:
    """A score for people: three decimals, or n/a."""
    return "n/a" if value is None else f"{value:.3f}"


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "case"), counted(2_000, "case")
    ('1 case', '2,000 cases')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def interval_text(ci95: Sequence[float] | None, number: Callable[[float], str] = score_text) -> str:
    """An interval for people; empty where there is none."""
    return "" if ci95 is None else f"{number(ci95[0])} to {number(ci95[1])}"


def storable(text: str) -> str:
    """Text that can be written as UTF-8: lone surrogates become escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def told(text: str) -> str:
    """`storable` text without secrets, as reports have it."""
    return storable(redacted(text))


def plain(value: Any, *, levels: int = LEVELS, text: Callable[[str], str] = storable) -> Any:
    """The value as JSON knows it, of the very types None, bool, int, float, str, list and dict.

    NaN, infinities, huge integers, bytes, dates and RDF terms become text; what is nested deeper than `levels`, or in
    itself, becomes an ellipsis. `text` is what is done to each text, keys included.
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
        case IRI() | BlankNode() | Literal():
            return text(_term(value))
        case Mapping() | Sequence() | AbstractSet():
            return _plain_items(value, levels, text) if levels else "…"
        case _:
            return text(str(value))


def _plain_items(
    items: Mapping[Any, Any] | Sequence[Any] | AbstractSet[Any], levels: int, text: Callable[[str], str]
) -> Any:
    if isinstance(items, Mapping):
        return {text(str(key)): plain(item, levels=levels - 1, text=text) for key, item in items.items()}
    return [plain(item, levels=levels - 1, text=text) for item in items]


def _term(term: IRI | BlankNode | Literal) -> str:
    match term:
        case IRI(iri=text):
            return f"<{text}>"
        case BlankNode(label=text):
            return f"_:{text}"
        case Literal(lexical=text, datatype=datatype, language=language):
            return _literal(text, datatype, language)


def _literal(text: str, datatype: str, language: str) -> str:
    """A literal as short as it can be without looking like another one."""
    if language:
        return f'"{text}"@{language}'
    if datatype.startswith(XSD):
        return text
    looks_typed = _LOOKS_TYPED.fullmatch(text) is not None
    return f'"{text}"^^<{datatype}>' if datatype else f'"{text}"' if looks_typed else text


def plain_cell(value: Any) -> Any:
    """A cell for a report: plain, and text without secrets of at most CELL_CHARACTERS characters."""
    if isinstance(value, str | bytes):
        value = value[:CELL_AHEAD]  # looked through for secrets before it is cut to what is shown
    value = plain(value, text=told)
    return shortened(value, CELL_CHARACTERS) if isinstance(value, str) else value
