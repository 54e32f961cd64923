"""The report report.xlsx: cases and results of a run, and the sheets of the Denodo AI SDK Evaluator and StatGPT."""

from __future__ import annotations

import gc
from functools import partial

from pytest_queryeval.core.report import Report
from pytest_queryeval.reports import PLAIN, PUBLISHED, REQUESTED, ReportFormat


def render_excel(report: Report, layout: str = REQUESTED) -> bytes:
    """Return the workbook of a report as an xlsx file: Cases, Run, Statistics, and sheets of published evaluators.

    `layout` decides whether these last sheets are included.
    """
    from pytest_queryeval.features.excel.workbook import workbook

    was_enabled = gc.isenabled()
    gc.disable()  # a workbook is hundreds of thousands of objects that all live until it is written
    try:
        return workbook(report, layout)
    finally:
        if was_enabled:
            gc.enable()


LAYOUTS = {name: partial(render_excel, layout=name) for name in (PUBLISHED, PLAIN)}
EXCEL = ReportFormat(render=render_excel, layouts=LAYOUTS, packages=("xlsxwriter",), extra="excel")
