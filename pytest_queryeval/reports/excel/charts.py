"""Excel's own charts of the groups on the sheet Summary; they change with its cells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_queryeval.reports.excel.sheet import Sheet

if TYPE_CHECKING:
    from xlsxwriter.workbook import Workbook

CHART_ROWS = 17  # what a chart of 480 x 320 pixels covers
ACROSS = 500  # pixels from one chart to the next
COLOURS = ("#2E5EAA", "#E07A1F", "#3A8F5C", "#8A4F9E")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A column chart: some columns of a table, its y axis, and the column of how far the first one spreads."""

    title: str
    columns: tuple[str, ...]
    unit: str
    max_value: float | None = None
    spread: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charted:
    """A table on a sheet: where its header is, how many rows it has, and its columns that are not empty by header."""

    sheet: Sheet
    header_row: int
    rows: int
    columns: dict[str, int]

    def cells(self, column: str) -> list[Any]:
        """Return the cells of a column, as XlsxWriter names them."""
        place = 0 if not column else self.columns[column]
        return [self.sheet.name, self.header_row + 1, place, self.header_row + self.rows, place]


def insert_charts(book: Workbook, table: Charted, charts: Iterable[Chart], *, row: int) -> int:
    """Insert charts of which any column has numbers, two side by side; return the first row below them."""
    drawn = [chart for chart in charts if any(name in table.columns for name in chart.columns)]
    for number, chart in enumerate(drawn):
        place = {"x_offset": ACROSS * (number % 2), "description": f"{chart.title} by difficulty"}
        table.sheet.worksheet.insert_chart(row + number // 2 * CHART_ROWS, 0, _drawn(book, table, chart), place)
    return row + (len(drawn) + 1) // 2 * CHART_ROWS


def _drawn(book: Workbook, table: Charted, chart: Chart) -> Any:
    drawn = book.add_chart({"type": "column"})
    names = [name for name in chart.columns if name in table.columns]
    for name, colour in zip(names, COLOURS, strict=False):
        series: dict[str, Any] = {
            "name": [table.sheet.name, table.header_row, table.columns[name]],
            "categories": table.cells(""),
            "values": table.cells(name),
            "fill": {"color": colour},
        }
        if chart.spread in table.columns:
            sheet, top, place, bottom, _ = table.cells(chart.spread)
            letter = chr(ord("A") + place)
            cells = f"='{sheet}'!${letter}${top + 1}:${letter}${bottom + 1}"
            series["y_error_bars"] = {"type": "custom", "plus_values": cells, "minus_values": cells}
        drawn.add_series(series)
    drawn.set_title({"name": chart.title, "name_font": {"size": 12}})
    drawn.set_y_axis({"name": chart.unit, "min": 0, **({"max": chart.max_value} if chart.max_value else {})})
    drawn.set_legend({"position": "bottom"} if len(names) > 1 else {"none": True})
    drawn.set_size({"width": 480, "height": 320})
    return drawn
