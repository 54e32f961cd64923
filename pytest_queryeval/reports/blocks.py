"""Sentences and tables, the same data for each format, and a case's values as cells of spreadsheets.

Text from outside this package is marked in sentences and tables; in cells every character is visible.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, TypeAlias

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.groups import Surface, group_values, groups_shown
from pytest_queryeval.core.mappings import including
from pytest_queryeval.core.steps import STEP_MEASURES, count_steps
from pytest_queryeval.text.formatting import escape_invisible, one_line, one_line_with_end, split_table

SPAN_CHARACTERS = 300
_READ_CHARACTERS = 10 * SPAN_CHARACTERS
_TICKS = re.compile("`+")
Cell: TypeAlias = str | int | float | None
# As named in the metadata of a prediction.
TIMES = ("sql_execution_time", "vector_store_search_time", "llm_time", "total_execution_time")
# A spreadsheet may run a text that begins with one of these as a formula, those in full width too. The apostrophe,
# which is put before such a text, is one of them: so a reader can take one apostrophe away without a doubt.
ACTING = frozenset("=+-@'＝＋－＠")  # noqa: RUF001 - in full width
LEADING = frozenset("\t\n")


def code_span(text: str, *, cell: bool = False) -> str:
    """Return untrusted text as a Markdown code span of at most SPAN_CHARACTERS; empty for a blank text.

    It can contain no markup, links or mentions. In a `cell` of a table, bars are escaped.
    """
    text = escape_invisible(" ".join(text[:_READ_CHARACTERS].split())).replace("##", "#\\x23")
    text = text if len(text) <= SPAN_CHARACTERS else f"{text[: SPAN_CHARACTERS - 1]}…"
    text = text.replace("|", "\\|") if cell else text
    fence = "`" * (1 + max(map(len, _TICKS.findall(text)), default=0))
    if not text:
        return ""
    return f"{fence} {text} {fence}" if len(fence) > 1 else f"`{text}`"


def table_head(cells: Sequence[str]) -> tuple[str, str]:
    """Return the two lines that start a Markdown table: its header and the line below."""
    return table_row(cells), f"|{'---|' * len(cells)}"


def table_row(cells: Sequence[str]) -> str:
    """Return a line of a Markdown table; bars in the cells have to be escaped already."""
    return f"| {' | '.join(cells)} |"


NAME_CHARACTERS = 80  # of a cell
SENTENCE_CHARACTERS = 300  # of what a sentence names


class Untrusted(str):
    """Text from a suite, a system or a report, which a format shows but never as markup, a command or a link."""

    __slots__ = ()


class CaseName(Untrusted):
    """The node id of a case in the report, which a page turns into a link to the case."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A header, and rows of the same length; the first column contains the names."""

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
            for part in split_table(header, rows, width=width, whole_names=whole_names):
                yield from part.lines
        else:
            yield from wrap(
                text_sentence(block), width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
            )


def text_sentence(sentence: Iterable[str]) -> str:
    """Return a sentence as plain text; its untrusted parts are shortened and in one line."""
    return "".join(one_line(part, SENTENCE_CHARACTERS) if isinstance(part, Untrusted) else part for part in sentence)


def markdown_lines(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield the blocks as lines of Markdown, with an empty line between blocks.

    Untrusted text is in code spans.
    """
    for number, block in enumerate(blocks):
        if number:
            yield ""
        if isinstance(block, Table):
            head, rows = markdown_table(block)
            yield from (*head, *rows)
        else:
            yield markdown_sentence(block)


def markdown_sentence(sentence: Iterable[str]) -> str:
    """Return a sentence as Markdown, with untrusted parts in code spans."""
    return "".join(code_span(part) if isinstance(part, Untrusted) else part for part in sentence)


def markdown_table(table: Table) -> tuple[tuple[str, str], Iterator[str]]:
    """Return the two lines of a table's head, and an iterator that makes its rows when they are taken."""
    return table_head(_cells(table.header)), (table_row(_cells(row)) for row in table.rows)


def _cells(row: Sequence[str]) -> list[str]:
    return [code_span(cell, cell=True) if isinstance(cell, Untrusted) else cell for cell in row]


def cell(value: Any) -> Cell:
    """Return a plain value as a cell of a spreadsheet: numbers and None stay as they are.

    Texts, and other values as JSON, have escapes for invisible characters.
    """
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    return escape_invisible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def guard_cell(value: Any) -> Any:
    """Return a value as `cell` does, with an apostrophe before a text that a spreadsheet could run as a formula."""
    if value is None or type(value) is float:  # as most are
        return value
    plain_cell = escape_invisible(value) if type(value) is str else cell(value)
    if not isinstance(plain_cell, str):
        return plain_cell
    acts = plain_cell[:1] in LEADING or plain_cell.lstrip()[:1] in ACTING
    return f"'{plain_cell}" if acts else plain_cell


def metric_names(cases: Iterable[CaseReport]) -> list[str]:
    """Return the metrics that any case has a score entry for, in the order of their first case."""
    return list(dict.fromkeys(name for case in cases for name in case["scores"]))


def nested_value(case: CaseReport, *path: str) -> Any:
    """Return the value at a path of keys such as `"gold", "query"`; None if a part of the path is missing."""
    node: Any = case
    for name in path:
        node = node.get(name) if isinstance(node, dict) else None
    return node


# Whether no answer is right, whether the system abstained, and why; a file of predictions may have the last two.
ABSTENTION: Mapping[str, Callable[[CaseReport], str | None]] = {
    "answerable": lambda case: None if case.get("answerable", True) else "false",
    "abstained": lambda case: "true" if nested_value(case, "prediction", "abstained") else None,
    "reason": lambda case: nested_value(case, "prediction", "reason") or None,
}


def abstention_columns(cases: Iterable[CaseReport]) -> dict[str, Callable[[CaseReport], str | None]]:
    """Return the columns of ABSTENTION in which at least one case has a value, with their readers."""
    used_names = {name for case in cases for name, read in ABSTENTION.items() if read(case) is not None}
    return including(ABSTENTION, used_names)


def step_columns(cases: Iterable[CaseReport]) -> dict[str, Callable[[CaseReport], int | None]]:
    """Return a column for each measure of steps, with a function that reads a case; no columns if no case has steps.

    The function returns None for a case without steps.
    """

    def count(measure: str) -> Callable[[CaseReport], int | None]:
        def read(case: CaseReport) -> int | None:
            steps = nested_value(case, "prediction", "steps")
            return None if steps is None else count_steps(steps)[measure]

        return read

    has_steps = any(nested_value(case, "prediction", "steps") is not None for case in cases)
    return {measure: count(measure) for measure in STEP_MEASURES} if has_steps else {}


def group_columns(place: Surface, separator: str) -> dict[str, Callable[[CaseReport], str | None]]:
    """Return a column for each group that is shown at a place, with a function that reads a case.

    The function returns the case's values joined by `separator`, or None if it has none.
    """

    def values(name: str) -> Callable[[CaseReport], str | None]:
        return lambda case: separator.join(group_values(case, name)) or None

    return {group.heading: values(name) for name, group in groups_shown(place).items()}
