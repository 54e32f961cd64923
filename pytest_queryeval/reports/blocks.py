"""Sentences and tables, the same data for each format; in them, text from outside this package is marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TypeAlias

from pytest_queryeval.text.escaping import escape_invisible
from pytest_queryeval.text.formatting import parts_of
from pytest_queryeval.text.truncation import one_line, one_line_with_end

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


NAME_CHARACTERS = 80  # of a cell
SENTENCE_CHARACTERS = 300  # of what a sentence names


class Untrusted(str):
    """Text from a suite, a system or a report: a format displays it, and never as markup, a command or a link."""

    __slots__ = ()


class CaseName(Untrusted):
    """The node id of a case of the report, which a page links to it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A header, and rows as long as it; the first column has the names."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


# The parts of a sentence, some of which are `Untrusted`.
Sentence: TypeAlias = tuple[str, ...]
Block: TypeAlias = Sentence | Table


def text_lines(blocks: Iterable[Block], width: int) -> Iterator[str]:
    """Yield the blocks as plain lines, of at most `width` characters where words, numbers and case names allow it."""
    for block in blocks:
        if isinstance(block, Table):
            header, *rows = (
                [one_line_with_end(cell, NAME_CHARACTERS) if isinstance(cell, Untrusted) else cell for cell in row]
                for row in (block.header, *block.rows)
            )
            whole_names = any(isinstance(row[0], CaseName) for row in block.rows)  # to be copied into a command
            for part in parts_of(header, rows, width=width, whole_names=whole_names):
                yield from part.lines
        else:
            yield from wrap(
                text_sentence(block), width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
            )


def text_sentence(sentence: Iterable[str]) -> str:
    """Return a sentence as plain text in one line."""
    return "".join(one_line(part, SENTENCE_CHARACTERS) if isinstance(part, Untrusted) else part for part in sentence)


def markdown_lines(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield the blocks as lines of Markdown, with an empty line between blocks; untrusted text is in code spans."""
    for number, block in enumerate(blocks):
        if number:
            yield ""
        if isinstance(block, Table):
            head, rows = markdown_table(block)
            yield from (*head, *rows)
        else:
            yield markdown_sentence(block)


def markdown_sentence(sentence: Iterable[str]) -> str:
    """Return a sentence as Markdown."""
    return "".join(code_span(part) if isinstance(part, Untrusted) else part for part in sentence)


def markdown_table(table: Table) -> tuple[tuple[str, str], Iterator[str]]:
    """Return the two lines of the head, and the rows, each of which is made when it is taken."""
    return table_head(_cells(table.header)), (table_row(_cells(row)) for row in table.rows)


def _cells(row: Sequence[str]) -> list[str]:
    return [code_span(cell, cell=True) if isinstance(cell, Untrusted) else cell for cell in row]
