"""A worksheet that writes any text as text, cut to the length of a cell: never as a formula, a link or markup.

Excel draws its charts from tables, so that they change with the cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.reports.blocks import Cell, cell, nested_value
from pytest_queryeval.results.report_file import moment_of

if TYPE_CHECKING:
    from xlsxwriter.format import Format
    from xlsxwriter.workbook import Workbook
    from xlsxwriter.worksheet import Worksheet

MAX_ROWS = 1_048_576  # of a sheet; these are limits of Excel
MAX_COLUMNS = 16_384  # of a sheet
MAX_CHARACTERS = 32_767  # of a cell, in units of UTF-16
LINE_POINTS = 15  # the height of a line of text
QUERY_POINTS = 12.5  # the height of a line of a query, whose font is smaller
FILTER_CHARACTERS = 4  # what the button of a filter covers, and the margins
TITLE_POINTS = 24
MIN_WIDTH = 8
UNWRAPPED_CHARACTERS = 12  # the longest header that is not wrapped
MAX_WIDTH = 40  # of a column of a block
MAX_LINES = 8  # of a text that are visible
PAGE_COLUMNS = 10  # that a paragraph goes over
PAGE_CHARACTERS = 130
A4 = 9  # Excel's number of this paper size
DECIMALS = {"score": 3, "share": 1, "seconds": 3, "count": 0}
TEXT_STYLES = ("wrapped", "query", "outcome")
OUTCOME_STYLES = {
    "passed": "good",
    "failed": "bad",
    "error": "bad",
    "missed": "warning",
    "xpassed": "warning",
    "skipped": "dull",
    "xfailed": "dull",
    "not_run": "dull",
}
LOW_COLOUR, MIDDLE_COLOUR, HIGH_COLOUR = "#F6C9C4", "#FAF0D9", "#C9E7D2"  # legible below black text
CHART_ROWS = 17  # what a chart of 440 x 320 pixels covers
CHART_STEP = 456  # pixels from one chart to the next
COLOURS = ("#2F6DB5", "#D9822B", "#2E8B57", "#8A4F9E")
HIDDEN_COLUMN = 60  # the first of two for the ends of error bars, which LibreOffice reads from cells only
TEXT_COLOUR, QUIET_COLOUR, GRID_COLOUR = "#1D2327", "#586069", "#DFE3E6"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table of cases."""

    header: str
    value: Callable[[CaseReport], Any] | str
    """The value of a case: a function, or the names that lead to the value in the case, separated by spaces."""
    width: int = 16
    """The greatest width in characters; a column is only as wide as its texts."""
    style: str = "wrapped"
    note: str = ""
    lines: int = MAX_LINES
    """The greatest number of visible lines of a long text."""

    def read(self, case: CaseReport) -> Any:
        """Return the value of this column for a case; None if it has none."""
        return nested_value(case, *self.value.split()) if isinstance(self.value, str) else self.value(case)


@dataclass(slots=True, kw_only=True)
class Sheet:
    """A worksheet of a workbook, with the formats and the state that writing it needs."""

    name: str
    worksheet: Worksheet
    styles: Mapping[str, Format]
    """The formats of the workbook by name."""
    cut_texts: int = 0
    """The number of texts that were cut to the length of a cell."""
    metrics_left_out: int = 0
    """The number of metrics that have no column."""
    widths: dict[int, int] = field(default_factory=dict)
    """The widths that the blocks need by column, in characters."""

    def put(self, row: int, column: int, value: Any, style: str = "text") -> None:
        """Write a plain value or a time into a cell, in a style of `styles`; None leaves the cell empty."""
        if isinstance(value, datetime):
            self.worksheet.write_datetime(row, column, value, self.styles["time"])
        else:
            self._write(row, column, cell(value), style)

    def _write(self, row: int, column: int, value: Cell, style: str) -> None:
        if isinstance(value, str):
            if value.startswith("<r>") and value.endswith("</r>"):
                value += " "  # else XlsxWriter takes it for a rich text
            if len(value) > MAX_CHARACTERS // 2 and (units := len(value.encode("utf-16-le")) // 2) > MAX_CHARACTERS:
                self.cut_texts += 1
                mark = f" … [cut: {units:,} characters]"
                units_left = value.encode("utf-16-le")[: 2 * (MAX_CHARACTERS - len(mark))]
                value = units_left.decode("utf-16-le", "ignore") + mark
            self.worksheet.write_string(row, column, value, self.styles[style])
        elif value is not None:
            self.worksheet.write_number(row, column, value, self.styles[style])

    def title(self, row: int, text: str) -> None:
        """Write a title into the first column of a row, which becomes higher."""
        self.put(row, 0, text, "title")
        self.worksheet.set_row(row, TITLE_POINTS)

    def block(self, row: int, title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
        """Write a title, a header and rows from a row on; return the row after an empty one below them.

        A value may be a pair of the value and its style. Columns become wide enough. All columns except the first are
        headed as numbers.
        """
        self.title(row, title)
        for column, name in enumerate(header):
            self.heading(row + 1, column, name, style="number header" if column else "header")
        lengths = [len(name) if len(name) <= UNWRAPPED_CHARACTERS else max(map(len, name.split())) for name in header]
        last = row + 1
        for last, values in enumerate(rows, start=row + 2):
            for column, value in enumerate(values):
                default_style = "text" if isinstance(value, str) else "count" if isinstance(value, int) else "score"
                content, style = value if isinstance(value, tuple) else (value, default_style)
                self.put(last, column, content, style)
                lengths[column] = max(lengths[column], len(content) if isinstance(content, str) else MIN_WIDTH)
        for column, characters in enumerate(lengths):
            self.fit(column, characters)
        self.worksheet.set_row(row + 1, _header_points(header, [self.widths[place] for place in range(len(header))]))
        return last + 2

    def paragraph(self, row: int, column: int, text: str) -> None:
        """Write a text across the columns of a page, from `column` on, with the height that it needs."""
        self.worksheet.merge_range(row, column, row, PAGE_COLUMNS - 1, "", self.styles["wrapped"])
        self.put(row, column, text, "wrapped")
        lines = len(text) // (PAGE_CHARACTERS - 30 * bool(column)) + 1
        self.worksheet.set_row(row, LINE_POINTS * min(lines, MAX_LINES))

    def notes(self, row: int, notes: Iterable[str]) -> int:
        """Write notes below each other under the title 'Notes', and return the first row below.

        Without notes there is no title.
        """
        note_texts = list(notes)
        if note_texts:
            self.title(row, "Notes")
        for note_row, note in enumerate(note_texts, start=row + 1):
            self.paragraph(note_row, 0, note)
        return row + len(note_texts) + 1

    def fit(self, column: int, characters: int) -> None:
        """Make a column at least wide enough for this number of characters, up to `MAX_WIDTH`."""
        self.widths[column] = max(self.widths.get(column, MIN_WIDTH), min(characters + 2, MAX_WIDTH))
        self.worksheet.set_column(column, column, self.widths[column])

    def table(self, columns: Sequence[Column], items: Sequence[CaseReport], *, printed: int) -> int:
        """Write a table that fills the sheet, with a frozen header and first column; return how many items have no row.

        Rows beyond the limit of a sheet are left out. The first `printed` columns are printed.
        """
        rows = items[: MAX_ROWS - 1]
        widths = [0] * len(columns)
        for row, item in enumerate(rows, start=1):
            height = 0.0
            for place, column in enumerate(columns):
                value = cell(column.read(item))
                if value is None:
                    continue
                self._write(row, place, value, column.style)
                if isinstance(value, str):
                    length = len(value)
                    if length > column.width or "\n" in value:
                        texts = value.rstrip("\n").split("\n", column.lines)
                        length = max(map(len, texts))
                        line_count = sum(len(text) // column.width + 1 for text in texts)
                        points = QUERY_POINTS if column.style == "query" else LINE_POINTS
                        height = max(height, points * min(column.lines, line_count))
                else:
                    length = len(f"{value:,.{DECIMALS.get(column.style, 0)}f}")
                if length > widths[place]:
                    widths[place] = length
            if height > LINE_POINTS:
                self.worksheet.set_row(row, height + 2)
        for place, column in enumerate(columns):
            header = "header" if column.style in TEXT_STYLES else "number header"
            self.heading(0, place, column.header, column.note, style=header)
            length = max(map(len, column.header.split())) + FILTER_CHARACTERS
            widths[place] = max(MIN_WIDTH, length, min(column.width, widths[place]) + 2)
            self.worksheet.set_column(place, place, widths[place])
        self.worksheet.set_row(
            0,
            _header_points([column.header for column in columns], [width - FILTER_CHARACTERS + 2 for width in widths]),
        )
        last = len(rows)
        self._colour(columns, last)
        self.worksheet.freeze_panes(1, 1)
        self.worksheet.autofilter(0, 0, last, len(columns) - 1)
        self.set_up_page(last, min(printed, len(columns)) - 1)
        self.worksheet.repeat_rows(0)
        return len(items) - last

    def set_up_page(self, last_row: int, last_column: int, *, pages: int = 0) -> None:
        """Print the cells up to a row and a column in landscape, as wide as the paper.

        `pages` is the number of pages in height; 0 means any number.
        """
        self.worksheet.print_area(0, 0, last_row, last_column)
        self.worksheet.set_landscape()
        self.worksheet.set_paper(A4)
        self.worksheet.set_margins(left=0.4, right=0.4, top=0.5, bottom=0.6)
        self.worksheet.fit_to_pages(1, pages)
        self.worksheet.set_footer("&L&8&A&R&8&P / &N")

    def _colour(self, columns: Sequence[Column], rows: int) -> None:
        """Add colours to outcomes, scores from 0 to 1 and shares from 0 to 100, with one rule for adjacent columns."""
        numbered_columns = enumerate(columns if rows else ())
        for style, group in groupby(numbered_columns, key=lambda column: column[1].style):
            places = [place for place, _ in group]
            rules: list[dict[str, Any]] = []
            if style == "outcome":
                rules = [
                    {"type": "cell", "criteria": "==", "value": f'"{outcome}"', "format": self.styles[look]}
                    for outcome, look in OUTCOME_STYLES.items()
                ]
            elif style in ("score", "share"):
                rules = [colour_scale(1 if style == "score" else 100)]
            for rule in rules:
                self.worksheet.conditional_format(1, places[0], rows, places[-1], rule)

    def heading(self, row: int, column: int, text: str, note: str = "", style: str = "header") -> None:
        """Write the header of a column, with a note that appears when the pointer rests on it."""
        self.put(row, column, text, style)
        if note:
            self.worksheet.write_comment(row, column, note, {"author": "", "x_scale": 2})


def _header_points(headers: Sequence[str], widths: Sequence[int]) -> float:
    """Return the height in points that the header of a table needs for these column widths, at most three lines."""
    lines = max(-(-len(header) // (width - 2)) for header, width in zip(headers, widths, strict=True))
    return LINE_POINTS * min(lines, 3) + 4


def value_at(*path: str) -> Callable[[CaseReport], Any]:
    """Return a function that reads the value at a path of names in a case."""
    return lambda case: nested_value(case, *path)


def utc_time(text: str) -> datetime:
    """Return the time of an ISO 8601 text as a datetime in UTC without a zone, because cells cannot have zones."""
    return moment_of(text).astimezone(UTC).replace(tzinfo=None)


def colour_scale(best: float) -> dict[str, Any]:
    """Return XlsxWriter's options of a three-colour scale from 0 to the best value."""
    numbers = {"min_type": "num", "mid_type": "num", "max_type": "num"}
    values = {"min_value": 0, "mid_value": best / 2, "max_value": best}
    colours = {"min_color": LOW_COLOUR, "mid_color": MIDDLE_COLOUR, "max_color": HIGH_COLOUR}
    return {"type": "3_color_scale", **numbers, **values, **colours}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """The title, columns and axis of a column chart that is drawn from a `ChartTable`."""

    title: str
    columns: tuple[str, ...]
    unit: str
    """The title of the y axis."""
    max_value: float | None = None
    """The end of the y axis; None lets Excel choose."""
    stacked: bool = False
    colours: Mapping[str, str] = field(default_factory=dict)
    """The colours of columns by header; other columns get a default colour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartTable:
    """A table on a sheet from which charts are drawn."""

    sheet: Sheet
    header_row: int
    rows: int
    """The number of rows below the header."""
    columns: Mapping[str, int]
    """The positions by header of the columns that are not empty."""
    bars: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    """For a column with error bars, how far they reach above and below the value in each row."""

    def cells(self, place: int) -> list[Any]:
        """Return the reference to the cells of a column below the header, as XlsxWriter takes it."""
        return [self.sheet.name, self.header_row + 1, place, self.header_row + self.rows, place]


def insert_charts(book: Workbook, charts: Iterable[tuple[ChartTable, Chart]], *, row: int) -> int:
    """Insert charts from a row on, two side by side; return the first row below them.

    A chart whose columns are all empty is left out.
    """
    drawable_charts = [
        (table, chart) for table, chart in charts if any(name in table.columns for name in chart.columns)
    ]
    for number, (table, chart) in enumerate(drawable_charts):
        options = {"x_offset": 8 + CHART_STEP * (number % 2), "y_offset": 4, "description": chart.title}
        excel_chart = book.add_chart({"type": "column", "subtype": "stacked"} if chart.stacked else {"type": "column"})
        names = [name for name in chart.columns if name in table.columns]
        for place, name in enumerate(names):
            series: dict[str, Any] = {
                "name": [table.sheet.name, table.header_row, table.columns[name]],
                "categories": table.cells(0),
                "values": table.cells(table.columns[name]),
                "fill": {"color": chart.colours.get(name, COLOURS[place % len(COLOURS)])},
                "gap": 80,
            }
            if name in table.bars:
                above, below = (_hidden_cells(table, HIDDEN_COLUMN + side, side, table.bars[name]) for side in (0, 1))
                line = {"color": QUIET_COLOUR, "width": 1.25}
                series["y_error_bars"] = {"type": "custom", "plus_values": above, "minus_values": below, "line": line}
            excel_chart.add_series(series)
        font = {"color": QUIET_COLOUR, "size": 9}
        axis = {"num_font": font, "line": {"color": GRID_COLOUR}}
        limit = {"max": chart.max_value} if chart.max_value else {}
        unit = {"name": chart.unit, "name_font": {**font, "bold": False}}
        excel_chart.set_title({"name": chart.title, "name_font": {"size": 12, "color": TEXT_COLOUR}, "overlay": False})
        excel_chart.set_x_axis(axis)
        excel_chart.set_y_axis(
            {**axis, **unit, "min": 0, **limit, "major_gridlines": {"visible": True, "line": {"color": GRID_COLOUR}}}
        )
        excel_chart.set_legend({"position": "bottom", "font": font} if len(names) > 1 else {"none": True})
        excel_chart.set_chartarea({"border": {"color": GRID_COLOUR}})
        excel_chart.show_hidden_data()
        excel_chart.set_size({"width": 440, "height": 320})
        table.sheet.worksheet.insert_chart(row + number // 2 * CHART_ROWS, 0, excel_chart, options)
    return row + (len(drawable_charts) + 1) // 2 * CHART_ROWS


def _hidden_cells(table: ChartTable, column: int, side: int, bars: Sequence[tuple[float, float]]) -> str:
    """Write one side of error bars into a hidden column, and return a reference to its cells.

    `side` is 0 for the part above the value, 1 for the part below.
    """
    from xlsxwriter.utility import xl_range_abs

    first = table.header_row + 1
    for row, ends in enumerate(bars, start=first):
        table.sheet.put(row, column, ends[side], "score")
    table.sheet.worksheet.set_column(column, column, None, None, {"hidden": True})
    return f"={table.sheet.name}!{xl_range_abs(first, column, first + len(bars) - 1, column)}"


def axis_end(greatest: float) -> float:
    """Return the end of an axis: a round number that is at least `greatest`."""
    unit = 10 ** math.floor(math.log10(greatest)) if greatest > 0 else 1
    return float(next(unit * step for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if unit * step >= greatest))
