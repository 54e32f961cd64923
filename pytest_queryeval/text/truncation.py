"""Texts cut to a number of characters, and texts as one line.

A truncated secret is no longer found, so secrets are removed first; `cut`, `cut_middle` and `escape_line` expect texts
without secrets.
"""

from __future__ import annotations

from pytest_queryeval.text.escaping import escape_for_terminal, escape_invisible
from pytest_queryeval.text.redaction import redact

CELL_CHARACTERS = 200
AHEAD = 100  # times the characters shown are read: removing blanks and secrets makes a text shorter
CELL_AHEAD = AHEAD * CELL_CHARACTERS


def cut(text: str, characters: int) -> str:
    """Return a text of a report, which holds no secrets, or its beginning with an ellipsis where it is longer.

    Secrets are not looked for again: in another environment, the same report would be rendered differently.
    """
    return text if len(text) <= characters else text[: characters - 1] + "…"


def cut_middle(text: str, characters: int) -> str:
    """Return a text as `cut` does, but without its middle."""
    end = characters // 2
    return text if len(text) <= characters else f"{text[: characters - end - 1]}…{text[len(text) - end :]}"


def truncate(text: str, characters: int) -> str:
    """Return the text; where it is longer, its beginning with an ellipsis, without secrets."""
    return text if len(text) <= characters else cut(redact(text), characters)


def truncate_middle(text: str, characters: int) -> str:
    """Return the text; where it is longer, its beginning and its end around an ellipsis, without secrets."""
    return text if len(text) <= characters else cut_middle(redact(text), characters)


def escape_line(text: str, characters: int) -> str:
    """Return a text of a stored report as one line without invisible characters, cut as by `cut`."""
    return cut(escape_invisible(" ".join(text.split())), characters)


def one_line(text: str, characters: int = CELL_CHARACTERS) -> str:
    """Return `terminal_safe` text without line breaks, truncated."""
    return cut(_line(text, characters), characters)


def one_line_with_end(text: str, characters: int) -> str:
    """Return `one_line` of a text whose end matters as well: it is truncated in the middle."""
    return cut_middle(_line(text, characters), characters)


def _line(text: str, characters: int) -> str:
    excerpt = cut_middle(redact(text), AHEAD * characters)  # the rest costs time and is not shown
    line = " ".join(excerpt.split())
    return escape_for_terminal(line if line == excerpt else redact(line))  # a secret may have been broken into lines


def cell_text(cell: object, characters: int) -> str:
    """Return a cell of a table on one line: a text with blanks at its ends, or without characters, in quotes.

    >>> cell_text(None, 40), cell_text(True, 40), cell_text(" a", 40), cell_text(0.5, 40)
    ('NULL', 'true', "' a'", '0.5')
    """
    if cell is None:
        return "NULL"
    if isinstance(cell, bool):
        return str(cell).lower()
    is_quoted = isinstance(cell, str) and (not cell or cell != cell.strip())
    return one_line_with_end(repr(cell) if is_quoted else str(cell), characters)
