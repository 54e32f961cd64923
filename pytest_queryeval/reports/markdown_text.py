"""Pieces of GitHub's Markdown in which no untrusted text is markup."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_queryeval.text.escaping import escape_invisible

SPAN_CHARACTERS = 300
_READ_CHARACTERS = 10 * SPAN_CHARACTERS
_TICKS = re.compile("`+")


def code_span(text: str, *, cell: bool = False) -> str:
    """Return untrusted text as a code span, without markup, links or mentions; in a `cell` bars are escaped."""
    text = escape_invisible(" ".join(text[:_READ_CHARACTERS].split())).replace("##", "#\\x23")
    text = text if len(text) <= SPAN_CHARACTERS else f"{text[: SPAN_CHARACTERS - 1]}…"
    text = text.replace("|", "\\|") if cell else text
    fence = "`" * (1 + max(map(len, _TICKS.findall(text)), default=0))
    if not text:
        return ""
    return f"{fence} {text} {fence}" if len(fence) > 1 else f"`{text}`"


def table_head(cells: Sequence[str]) -> tuple[str, str]:
    """Return the first two lines of a table."""
    return table_row(cells), f"|{'---|' * len(cells)}"


def table_row(cells: Sequence[str]) -> str:
    """Return a line of a table; bars in cells have to be escaped."""
    return f"| {' | '.join(cells)} |"
