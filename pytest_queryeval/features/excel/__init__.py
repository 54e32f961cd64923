"""report.xlsx: cases and results of a run, beside the sheets of the Denodo AI SDK Evaluator and StatGPT."""

from __future__ import annotations

import gc

from pytest_queryeval.core.report import Report
from pytest_queryeval.reports import PLAIN, ReportFormat


def render_excel(report: Report) -> bytes:
    """Return the workbook of a report: Cases, Run, Statistics, and Summary, Details and Overview as published."""
    return _workbook(report, published=True)


def render_plain_excel(report: Report) -> bytes:
    """Return the workbook without the sheets of the published evaluators."""
    return _workbook(report, published=False)


def _workbook(report: Report, *, published: bool) -> bytes:
    from pytest_queryeval.features.excel.workbook import workbook

    was_enabled = gc.isenabled()
    gc.disable()  # a workbook is hundreds of thousands of objects that all live until it is written
    try:
        return workbook(report, published=published)
    finally:
        if was_enabled:
            gc.enable()


EXCEL = ReportFormat(render=render_excel, layouts={PLAIN: render_plain_excel}, packages=("xlsxwriter",), extra="excel")
