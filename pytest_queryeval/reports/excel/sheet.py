"""A worksheet that takes any text as text: nothing in it is a formula, a link or markup, and none is too long."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_queryeval.core.report import CaseReport
from pytest_queryeval.reports.cells import Cell, cell

if TYPE_CHECKING:
    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet

MAX_ROWS = 1_048_576  # of a sheet; these are limits of Excel
MAX_COLUMNS = 16_384  # of a sheet
MAX_CHARACTERS = 32_767  # of a cell, in units of UTF-16
LINE_POINTS = 12.5  # the height of a line of the font of queries
HEADER_POINTS = 32  # two lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table: how to read its value of a case, and how it looks; `lines` of a query are visible."""

    header: str
    read: Callable[[CaseReport], Any]
    width: float = 12
    style: str = "text"
    note: str = ""
    lines: int = 8


@dataclass(slots=True, kw_only=True)
class Sheet:
    """A worksheet with the formats of its workbook by name.

    `cut` is how many of its texts had to be cut, `left_out` how many columns of its table.
    """

    name: str
    worksheet: Worksheet
    styles: Mapping[str, Format]
    cut: int = 0
    left_out: int = 0

    def put(self, row: int, column: int, value: Any, style: str = "text") -> None:
        """Write a plain value; None stays empty."""
        self._write(row, column, cell(value), style)

    def _write(self, row: int, column: int, value: Cell, style: str) -> None:
        if isinstance(value, str):
            self.worksheet.write_string(row, column, self._fitting(value), self.styles[style])
        elif value is not None:
            self.worksheet.write_number(row, column, value, self.styles[style])

    def line(self, row: int, values: Iterable[Any], style: str = "text") -> None:
        """Write values side by side."""
        for column, value in enumerate(values):
            self.put(row, column, value, style)

    def table(self, columns: Sequence[Column], items: Sequence[CaseReport]) -> int:
        """Write a table that fills the sheet, its header and first column frozen; return the rows written.

        Rows and columns beyond the limits of a sheet are left out.
        """
        self.left_out = max(0, len(columns) - MAX_COLUMNS)
        columns, items = columns[:MAX_COLUMNS], items[: MAX_ROWS - 1]
        for place, column in enumerate(columns):
            self.worksheet.set_column(place, place, column.width)
            self.heading(0, place, column.header, column.note)
        self.worksheet.set_row(0, HEADER_POINTS)
        for row, item in enumerate(items, start=1):
            lines = 1
            for place, column in enumerate(columns):
                value = cell(column.read(item))
                self._write(row, place, value, column.style)
                if column.style == "query" and isinstance(value, str):
                    needed = max(value.rstrip("\n").count("\n"), len(value) // int(column.width)) + 1
                    lines = max(lines, min(needed, column.lines))
            self.worksheet.set_row(row, LINE_POINTS * lines + 3)
        self.worksheet.freeze_panes(1, 1)
        self.worksheet.autofilter(0, 0, len(items), len(columns) - 1)
        return len(items)

    def heading(self, row: int, column: int, text: str, note: str = "") -> None:
        """Write the header of a column, with a note that appears where the pointer rests on it."""
        self.put(row, column, text, "header")
        if note:
            self.worksheet.write_comment(row, column, note, {"author": "", "x_scale": 2})

    def _fitting(self, text: str) -> str:
        """Return the text, with a mark where it is cut, and such that XlsxWriter finds no markup of its own in it."""
        if text.startswith("<r>") and text.endswith("</r>"):
            text += " "  # else it is written as it is, for the parts of a rich text
        if len(text) > MAX_CHARACTERS // 2 and (units := len(text.encode("utf-16-le")) // 2) > MAX_CHARACTERS:
            self.cut += 1
            mark = f" … [cut: {units:,} characters]"
            text = text.encode("utf-16-le")[: 2 * (MAX_CHARACTERS - len(mark))].decode("utf-16-le", "ignore") + mark
        return text
