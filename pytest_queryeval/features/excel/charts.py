"""Excel's own charts of tables on a sheet; their columns change with the cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_queryeval.features.excel.sheet import Sheet

if TYPE_CHECKING:
    from xlsxwriter.workbook import Workbook

CHART_ROWS = 17  # what a chart of 440 x 320 pixels covers
ACROSS = 456  # pixels from one chart to the next
COLOURS = ("#2F6DB5", "#D9822B", "#2E8B57", "#8A4F9E")
HIDDEN = 60  # the first of two columns with the ends of error bars, which LibreOffice reads from cells only
TEXT, QUIET, GRID = "#1D2327", "#586069", "#DFE3E6"


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
class Charted:
    """A table on a sheet, as charts need it."""

    sheet: Sheet
    header_row: int
    rows: int
    """The number of its rows."""
    columns: Mapping[str, int]
    """The positions of its columns that are not empty, by header."""
    bars: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    """How far each row spreads above and below its value, of columns with error bars."""

    def cells(self, place: int) -> list[Any]:
        """Return the cells of a column, as XlsxWriter names them."""
        return [self.sheet.name, self.header_row + 1, place, self.header_row + self.rows, place]


def insert_charts(book: Workbook, charts: Iterable[tuple[Charted, Chart]], *, row: int) -> int:
    """Insert charts of which any column has numbers, two side by side; return the first row below them."""
    drawn = [(table, chart) for table, chart in charts if any(name in table.columns for name in chart.columns)]
    for number, (table, chart) in enumerate(drawn):
        place = {"x_offset": 8 + ACROSS * (number % 2), "y_offset": 4, "description": chart.title}
        table.sheet.worksheet.insert_chart(row + number // 2 * CHART_ROWS, 0, _drawn(book, table, chart), place)
    return row + (len(drawn) + 1) // 2 * CHART_ROWS


def _drawn(book: Workbook, table: Charted, chart: Chart) -> Any:
    drawn = book.add_chart({"type": "column", "subtype": "stacked"} if chart.stacked else {"type": "column"})
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
            above, below = (_hidden_cells(table, HIDDEN + side, side, table.bars[name]) for side in (0, 1))
            line = {"color": QUIET, "width": 1.25}
            series["y_error_bars"] = {"type": "custom", "plus_values": above, "minus_values": below, "line": line}
        drawn.add_series(series)
    font = {"color": QUIET, "size": 9}
    axis = {"num_font": font, "line": {"color": GRID}}
    limit = {"max": chart.max_value} if chart.max_value else {}
    unit = {"name": chart.unit, "name_font": {**font, "bold": False}}
    drawn.set_title({"name": chart.title, "name_font": {"size": 12, "color": TEXT}, "overlay": False})
    drawn.set_x_axis(axis)
    drawn.set_y_axis({**axis, **unit, "min": 0, **limit, "major_gridlines": {"visible": True, "line": {"color": GRID}}})
    drawn.set_legend({"position": "bottom", "font": font} if len(names) > 1 else {"none": True})
    drawn.set_chartarea({"border": {"color": GRID}})
    drawn.show_hidden_data()
    drawn.set_size({"width": 440, "height": 320})
    return drawn


def _hidden_cells(table: Charted, column: int, side: int, bars: Sequence[tuple[float, float]]) -> str:
    """Write one side of error bars into a hidden column beside its table, and return a reference to the cells."""
    from xlsxwriter.utility import xl_range_abs

    first = table.header_row + 1
    for row, ends in enumerate(bars, start=first):
        table.sheet.put(row, column, ends[side], "score")
    table.sheet.worksheet.set_column(column, column, None, None, {"hidden": True})
    return f"={table.sheet.name}!{xl_range_abs(first, column, first + len(bars) - 1, column)}"


def axis_end(greatest: float) -> float:
    """Return a round number that is not below a number, for the end of its axis."""
    unit = 10 ** math.floor(math.log10(greatest)) if greatest > 0 else 1
    return float(next(unit * step for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if unit * step >= greatest))
