"""The workbook as a file: its formats and its sheets in their order; the same report gives the same bytes."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from xlsxwriter import Workbook

from pytest_queryeval.core.report import Report
from pytest_queryeval.features.excel.cases import write_cases
from pytest_queryeval.features.excel.published import SDMX, write_details, write_overview, write_summary
from pytest_queryeval.features.excel.run import write_run
from pytest_queryeval.features.excel.sheet import MAX_CHARACTERS, Sheet, utc_time
from pytest_queryeval.features.excel.statistics import write_statistics
from pytest_queryeval.results.verdict import listed_text, with_worst_cases

# Made in memory: temporary files would bring in their times, and modes that depend on the user's umask.
OPTIONS = {
    "in_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
    "nan_inf_to_errors": False,
}
CASES_LISTED = 20_000  # where not all fit in memory
Style: TypeAlias = Mapping[str, str | int | bool]
TOP: Style = {"valign": "top"}
WRAPPED: Style = {**TOP, "text_wrap": True}
HEADER: Style = {**WRAPPED, "bold": True, "bottom": 1, "bg_color": "#EEF1F3", "bottom_color": "#586069"}
STYLES: Mapping[str, Style] = {
    "text": TOP,
    "wrapped": WRAPPED,
    "query": {**WRAPPED, "font_name": "Consolas", "font_size": 9},
    "outcome": TOP,
    "score": {**TOP, "num_format": "0.000"},
    "share": {**TOP, "num_format": '0.0"%"'},
    "percent": {**TOP, "num_format": "0.0%"},
    "seconds": {**TOP, "num_format": "0.000"},
    "count": {**TOP, "num_format": "#,##0"},
    "time": {"num_format": "yyyy-mm-dd hh:mm", "align": "left"},
    "header": HEADER,
    "number header": {**HEADER, "align": "right"},
    "title": {"bold": True, "font_size": 14, "valign": "vcenter"},
    "name": {**TOP, "bold": True},
    "left": {"align": "left"},
    "change": {**TOP, "num_format": "+0.000;-0.000;0.000"},
    "good": {**TOP, "font_color": "#1A6E38", "bg_color": "#E3F3E8"},
    "bad": {**TOP, "font_color": "#A8281E", "bg_color": "#FBE6E4"},
    "warning": {**TOP, "font_color": "#7A5200", "bg_color": "#FAF0D9"},
    "dull": {**TOP, "font_color": "#586069", "bg_color": "#F6F7F8"},
}


def workbook(report: Report, *, published: bool = True) -> bytes:
    """Return the report as an xlsx file, with or without the sheets of the published evaluators."""
    file = io.BytesIO()
    book = Workbook(file, OPTIONS)
    book.set_properties({"title": "pytest-queryeval", "created": utc_time(report["created"])})
    styles = {name: book.add_format(style) for name, style in STYLES.items()}
    names = ["Cases", "Run", "Statistics"]
    if published:
        names += ["Summary", "Details", *(["Overview"] if SDMX in report["groups"]["kind"] else [])]
    sheets = {name: Sheet(name=name, worksheet=book.add_worksheet(name), styles=styles) for name in names}
    sheets["Run"].worksheet.activate()  # so that a spreadsheet program opens on the verdict
    writers = {"Cases": write_cases, "Details": write_details, "Overview": write_overview}
    listed_report = with_worst_cases(report, CASES_LISTED)
    missing_rows = {name: write(sheets[name], listed_report) for name, write in writers.items() if name in sheets}
    write_statistics(sheets["Statistics"], report)
    if published:
        write_summary(book, sheets["Summary"], report)
    write_run(
        book, sheets["Run"], report, filter(None, (listed_text(listed_report, report), *_limits(sheets, missing_rows)))
    )
    book.close()
    return file.getvalue()


def _limits(sheets: dict[str, Sheet], missing_rows: dict[str, int]) -> Iterator[str]:
    if cut_texts := sum(sheet.cut_texts for sheet in sheets.values()):
        yield f"{cut_texts:,} texts are longer than the {MAX_CHARACTERS:,} characters of a cell: they end with a mark."
    for name, number in missing_rows.items():
        if number:
            yield f"{number:,} cases have no row in {name}, since a sheet has no more rows; they count in all numbers."
    if metrics_left_out := sheets["Cases"].metrics_left_out:
        yield f"{metrics_left_out:,} metrics have no column in Cases, since a sheet has no more of them."
