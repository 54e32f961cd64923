"""Sentences and tables that a terminal, Markdown and a page show alike; foreign text in them is marked as such."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TypeAlias

from pytest_queryeval.reports.markdown_text import code_span, table_head, table_row
from pytest_queryeval.text.plain import one_line
from pytest_queryeval.text.text_table import parts_of

NAME_CHARACTERS = 80


class Foreign(str):
    """Text that came from a report: it is shown, and is never markup, a command or a link."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table: a header, and rows as long as it."""

    header: tuple[str, ...]
    rows: Sequence[Sequence[str]]


# A sentence is its parts, some of which are `Foreign`.
Sentence: TypeAlias = tuple[str, ...]
Passage: TypeAlias = Sentence | Table


def text_lines(passages: Iterable[Passage], width: int) -> Iterator[str]:
    """The passages as plain lines, of at most `width` characters where words and numbers allow it."""
    for passage in passages:
        if isinstance(passage, Table):
            header, *rows = ([_plain(cell) for cell in row] for row in (passage.header, *passage.rows))
            yield from (line for part in parts_of(header, rows, width=width) for line in part.lines)
        else:
            words = "".join(map(_plain, passage))
            yield from wrap(words, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def markdown_lines(passages: Iterable[Passage]) -> Iterator[str]:
    """The passages as Markdown, with an empty line between them; foreign text stands in code spans."""
    for number, passage in enumerate(passages):
        if number:
            yield ""
        if isinstance(passage, Table):
            yield from table_head([_marked(cell, cell=True) for cell in passage.header])
            yield from (table_row([_marked(cell, cell=True) for cell in row]) for row in passage.rows)
        else:
            yield "".join(map(_marked, passage))


def _plain(part: str) -> str:
    return one_line(part, NAME_CHARACTERS) if isinstance(part, Foreign) else part


def _marked(part: str, *, cell: bool = False) -> str:
    return code_span(part, cell=cell) if isinstance(part, Foreign) else part
