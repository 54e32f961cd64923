"""A comparison of systems as a page."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_queryeval.core.report import Report
from pytest_queryeval.reports.blocks import Table, Untrusted
from pytest_queryeval.reports.html.templates import line, template
from pytest_queryeval.reports.leaderboard import leaderboard_blocks
from pytest_queryeval.results.baseline.leaderboard import Leaderboard


def comparison_page(board: Leaderboard, reports: Mapping[str, Report]) -> bytes:
    """Return the HTML of a comparison."""
    text = template("comparison.html.jinja").render(
        title=f"{len(reports)} systems",
        blocks=list(leaderboard_blocks(board)),
        is_table=lambda block: isinstance(block, Table),
        is_untrusted=lambda part: isinstance(part, Untrusted),
        shown=line,
    )
    return text.encode(errors="backslashreplace")
