"""Texts cut to a number of characters, and texts as one line.

`truncate` does not look for secrets: redact a text first, since a secret that is cut in two is not found.
"""

from __future__ import annotations

from pytest_queryeval.text.escaping import escape_invisible, terminal_safe
from pytest_queryeval.text.redaction import redact

CELL_CHARACTERS = 200
CELL_AHEAD = 100 * CELL_CHARACTERS


def truncate(text: str, characters: int) -> str:
    """Return the text, or its beginning with an ellipsis where it is longer."""
    return text if len(text) <= characters else text[: characters - 1] + "…"


def truncate_middle(text: str, characters: int) -> str:
    """Return the text, or its beginning and its end around an ellipsis where it is longer."""
    end = characters // 2
    return text if len(text) <= characters else f"{text[: characters - end - 1]}…{text[len(text) - end :]}"


def escape_line(text: str, characters: int) -> str:
    """Return a text of a stored report as one line without invisible characters.

    Secrets are out of a report before it is stored; to look for them again would make another file of it where the
    environment is another one.
    """
    return truncate(escape_invisible(" ".join(text.split())), characters)


def one_line(text: str, characters: int = CELL_CHARACTERS) -> str:
    """Return `terminal_safe` text without line breaks, truncated."""
    return truncate(_line(text), characters)


def one_line_with_end(text: str, characters: int) -> str:
    """Return `one_line` of a text whose end matters as well: it is truncated in the middle."""
    return truncate_middle(_line(text), characters)


def _line(text: str) -> str:
    return terminal_safe(" ".join(redact(text).split()))


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
