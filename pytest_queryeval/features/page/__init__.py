"""report.html: one file that needs no network, with charts, and a link to every case."""

from __future__ import annotations

from pytest_queryeval.core.report import Report
from pytest_queryeval.reports import ReportFormat


def render_html(report: Report) -> bytes:
    """Return a page that needs no other file; without scripts it has all but the table of cases."""
    from pytest_queryeval.features.page.page import page

    # A lone surrogate, as in a path that is not UTF-8, cannot be written as it is.
    return page(report).encode(errors="backslashreplace")


HTML = ReportFormat(render=render_html)
