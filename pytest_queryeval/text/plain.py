"""Texts that any output can hold: without control characters and secrets, cut to a width."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_queryeval.text.redaction import redact
from pytest_queryeval.text.visible import visible

CELL_CHARACTERS = 200
CELL_AHEAD = 100 * CELL_CHARACTERS


def printable(text: str) -> str:
    """Text without secrets that a terminal or a CI log shows and never obeys; tabs and line feeds stay.

    Control characters, which could move the cursor or hide text, become escapes, and so do invisible ones; `##`, which
    starts commands of CI services anywhere in a line, is taken apart. Put untrusted text behind a margin: `::` at the
    start of a line is a command too.
    """
    return visible(redact(text)).replace("##", "#\\x23")


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
    return printable(" ".join(redact(text).split()))


def shortened(text: str, characters: int) -> str:
    """The text, or its beginning with an ellipsis where it is longer; no secret is cut in two."""
    text = text if len(text) <= characters else redact(text)
    return text if len(text) <= characters else text[: characters - 1] + "…"


def without_middle(text: str, characters: int) -> str:
    """The text, or its beginning and its end around an ellipsis where it is longer; no secret is cut in two."""
    end = characters // 2
    text = text if len(text) <= characters else redact(text)
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
    return storable(redact(text))
