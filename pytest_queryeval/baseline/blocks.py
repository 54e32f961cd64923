"""Sentences and tables that a terminal, Markdown and a page show alike; foreign text in them is marked as such."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TypeAlias

from pytest_queryeval.plain import one_line
from pytest_queryeval.text_table import blocks_of

NAME_CHARACTERS = 80


class Foreign(str):
    """Text that came from a report: it is shown, and is never markup, a command or a link."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Rows:
    """A table: a header, and rows as long as it."""

    header: tuple[str, ...]
    rows: Sequence[Sequence[str]]


# A sentence is its parts, some of which are `Foreign`.
Sentence: TypeAlias = tuple[str, ...]
Block: TypeAlias = Sentence | Rows
Code: TypeAlias = Callable[[str], str]


def text_lines(blocks: Iterable[Block], width: int) -> Iterator[str]:
    """The blocks as plain lines, of at most `width` characters where words and numbers allow it."""
    for block in blocks:
        if isinstance(block, Rows):
            header, *rows = ([_plain(cell) for cell in row] for row in (block.header, *block.rows))
            yield from (line for part in blocks_of(header, rows, width=width) for line in part.lines)
        else:
            words = "".join(map(_plain, block))
            yield from wrap(words, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def markdown_lines(blocks: Iterable[Block], code: Code) -> Iterator[str]:
    """The blocks as Markdown, with an empty line between them; `code` makes a code span of foreign text."""
    for number, block in enumerate(blocks):
        if number:
            yield ""
        if isinstance(block, Rows):
            yield f"| {' | '.join(_marked(cell, code) for cell in block.header)} |"
            yield f"|{'---|' * len(block.header)}"
            yield from (f"| {' | '.join(_marked(cell, code) for cell in row)} |" for row in block.rows)
        else:
            yield "".join(_marked(part, code) for part in block)


def _plain(part: str) -> str:
    return one_line(part, NAME_CHARACTERS) if isinstance(part, Foreign) else part


def _marked(part: str, code: Code) -> str:
    return code(part) if isinstance(part, Foreign) else part
