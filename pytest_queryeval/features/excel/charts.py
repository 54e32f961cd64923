"""Charts of tables on a sheet, drawn by Excel, so that they change with the cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_queryeval.features.excel.sheet import Sheet

if TYPE_CHECKING:
    from xlsxwriter.workbook import Workbook

CHART_ROWS = 17  # what a chart of 440 x 320 pixels covers
CHART_STEP = 456  # pixels from one chart to the next
COLOURS = ("#2F6DB5", "#D9822B", "#2E8B57", "#8A4F9E")
HIDDEN_COLUMN = 60  # the first of two for the ends of error bars, which LibreOffice reads from cells only
TEXT_COLOUR, QUIET_COLOUR, GRID_COLOUR = "#1D2327", "#586069", "#DFE3E6"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A column chart of some columns of a table."""

    title: str
    columns: tuple[str, ...]
    unit: str
    """The title of the y axis."""
    max_value: float | None = None
    """The end of the y axis."""
    stacked: bool = False
    colours: Mapping[str, str] = field(default_factory=dict)
    """The colours of columns that have one of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartTable:
    """A table on a sheet, from which charts are drawn."""

    sheet: Sheet
    header_row: int
    rows: int
    """The number of its rows."""
    columns: Mapping[str, int]
    """The positions of its columns that are not empty, by header."""
    bars: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    """For columns with error bars, how far each row spreads above and below its value."""

    def cells(self, place: int) -> list[Any]:
        """Return the cells of a column, as XlsxWriter names them."""
        return [self.sheet.name, self.header_row + 1, place, self.header_row + self.rows, place]


def insert_charts(book: Workbook, charts: Iterable[tuple[ChartTable, Chart]], *, row: int) -> int:
    """Insert the charts that have a column with numbers, two side by side; return the first row below them."""
    drawable_charts = [
        (table, chart) for table, chart in charts if any(name in table.columns for name in chart.columns)
    ]
    for number, (table, chart) in enumerate(drawable_charts):
        options = {"x_offset": 8 + CHART_STEP * (number % 2), "y_offset": 4, "description": chart.title}
        table.sheet.worksheet.insert_chart(row + number // 2 * CHART_ROWS, 0, _make_chart(book, table, chart), options)
    return row + (len(drawable_charts) + 1) // 2 * CHART_ROWS


def _make_chart(book: Workbook, table: ChartTable, chart: Chart) -> Any:
    excel_chart = book.add_chart({"type": "column", "subtype": "stacked"} if chart.stacked else {"type": "column"})
    names = [name for name in chart.columns if name in table.columns]
    for number, name in enumerate(names):
        series: dict[str, Any] = {
            "name": [table.sheet.name, table.header_row, table.columns[name]],
            "categories": table.cells(0),
            "values": table.cells(table.columns[name]),
            "fill": {"color": chart.colours.get(name, COLOURS[number % len(COLOURS)])},
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
    return excel_chart


def _hidden_cells(table: ChartTable, column: int, side: int, bars: Sequence[tuple[float, float]]) -> str:
    """Write one side of error bars into a hidden column beside its table, and return a reference to the cells."""
    from xlsxwriter.utility import xl_range_abs

    first = table.header_row + 1
    for row, ends in enumerate(bars, start=first):
        table.sheet.put(row, column, ends[side], "score")
    table.sheet.worksheet.set_column(column, column, None, None, {"hidden": True})
    return f"={table.sheet.name}!{xl_range_abs(first, column, first + len(bars) - 1, column)}"


def axis_end(greatest: float) -> float:
    """Return a round number that is at least `greatest`, for the end of an axis."""
    unit = 10 ** math.floor(math.log10(greatest)) if greatest > 0 else 1
    return float(next(unit * step for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if unit * step >= greatest))
