"""The workbook as a file: its formats, its sheets in their order, the same bytes whenever it is made again."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from xlsxwriter import Workbook

from pytest_queryeval.core.report import Report
from pytest_queryeval.reports.excel.details import write_details
from pytest_queryeval.reports.excel.overview import SDMX, write_overview
from pytest_queryeval.reports.excel.sheet import MAX_CHARACTERS, Sheet
from pytest_queryeval.reports.excel.statistics import write_statistics
from pytest_queryeval.reports.excel.summary import write_summary

if TYPE_CHECKING:
    pass

# Files in between would have times, and modes that the user's umask gives, so all is made in memory.
OPTIONS = {
    "in_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
    "nan_inf_to_errors": False,
}
TOP = {"valign": "top"}
STYLES: Mapping[str, Mapping[str, str | int | bool]] = {
    "text": TOP,
    "wrapped": {**TOP, "text_wrap": True},
    "query": {**TOP, "text_wrap": True, "font_name": "Consolas", "font_size": 9},
    "score": {**TOP, "num_format": "0.000"},
    "share": {**TOP, "num_format": "0.0"},
    "seconds": {**TOP, "num_format": "0.000"},
    "count": {**TOP, "num_format": "#,##0"},
    "header": {**TOP, "text_wrap": True, "bold": True, "bottom": 1, "bg_color": "#DCE6F1"},
    "title": {"bold": True, "font_size": 14},
    "name": {"bold": True},
    "left": {"align": "left"},
    "change": {**TOP, "num_format": "+0.000;-0.000;0.000"},
    "good": {"font_color": "#0B5A2B", "bg_color": "#CDEBD3"},
    "bad": {"font_color": "#8B0D0D", "bg_color": "#F9D2CE"},
    "warning": {"font_color": "#6B4A00", "bg_color": "#FCEBB6"},
    "dull": {"font_color": "#555555", "bg_color": "#EEEEEE"},
}


def workbook(report: Report) -> bytes:
    """Return the report as an xlsx file."""
    file = io.BytesIO()
    book = Workbook(file, OPTIONS)
    created = datetime.fromisoformat(report["created"])
    created = created.astimezone(UTC) if created.tzinfo else created
    book.set_properties({"title": "pytest-queryeval", "created": created})
    styles = {name: book.add_format(style) for name, style in STYLES.items()}
    names = ("Summary", "Details", "Statistics", *(("Overview",) if SDMX in report["groups"]["kind"] else ()))
    sheets = {name: Sheet(name=name, worksheet=book.add_worksheet(name), styles=styles) for name in names}
    for name, sheet in sheets.items():
        sheet.worksheet.set_landscape()
        if name != "Details":  # which has too many columns for that
            sheet.worksheet.fit_to_pages(1, 0)
    hidden = {"Details": write_details(sheets["Details"], report)}
    if "Overview" in sheets:
        hidden["Overview"] = write_overview(sheets["Overview"], report)
    write_statistics(sheets["Statistics"], report)
    write_summary(book, sheets["Summary"], report, _limits(sheets, hidden))
    book.close()
    return file.getvalue()


def _limits(sheets: dict[str, Sheet], hidden: dict[str, int]) -> Iterator[str]:
    if cut := sum(sheet.cut for sheet in sheets.values()):
        yield f"{cut:,} texts are longer than the {MAX_CHARACTERS:,} characters of a cell: they end with a mark."
    for name, number in hidden.items():
        if number:
            yield f"{number:,} cases have no row in {name}, since a sheet has no more rows; they count in all numbers."
    if left_out := sheets["Details"].left_out:
        yield f"{left_out:,} metrics have no column in Details, since a sheet has no more of them."
