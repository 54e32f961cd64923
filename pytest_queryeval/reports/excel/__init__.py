"""report.xlsx: a workbook with the sheets of the Denodo AI SDK Evaluator, and the Overview of StatGPT."""

from __future__ import annotations

from pytest_queryeval.core.report import Report
from pytest_queryeval.reports import ReportFormat


def render_excel(report: Report) -> bytes:
    """Return the workbook of a report: Summary, Details, Statistics and, where there are SDMX cases, Overview."""
    from pytest_queryeval.reports.excel.workbook import workbook

    return workbook(report)


EXCEL = ReportFormat(render=render_excel, packages=("xlsxwriter",), extra="excel")
