"""The report report.html: one file with charts and a link to every case, which needs no network."""

from __future__ import annotations

from pytest_queryeval.core.report import Report
from pytest_queryeval.reports import ReportFormat


def render_html(report: Report) -> bytes:
    """Return the report as an HTML page that needs no other file.

    Without scripts the page shows everything except the table of cases.
    """
    from pytest_queryeval.features.page.page import page

    # A lone surrogate, as in a path that is not UTF-8, cannot be written as it is.
    return page(report).encode(errors="backslashreplace")


HTML = ReportFormat(render=render_html)
