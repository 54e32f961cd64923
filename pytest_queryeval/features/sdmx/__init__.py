"""SDMX data queries: selections of terms, their comparison, and the structures that define the terms.

The section of reports is here: precision and recall of each dimension over the cases of a run.
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_queryeval.core.report import Report
from pytest_queryeval.reports.added_sections import ReportSection
from pytest_queryeval.reports.blocks import Block, Table, Untrusted
from pytest_queryeval.text.formatting import format_score


def dimension_blocks(report: Report) -> Iterator[Block]:
    """Yield a table of the mean precision and recall of each dimension; nothing if the report has none."""
    rows = []
    for name, dimension in report.get("dimensions", {}).items():
        shares = (dimension.get("precision"), dimension.get("recall"))
        pairs = [(format_score(share["mean"]), f"{share['n']:,}") if share else ("n/a", "0") for share in shares]
        rows.append((Untrusted(name), *pairs[0], *pairs[1]))
    if rows:
        yield Table(("dimension", "precision", "n", "recall", "n"), rows)


DIMENSIONS = ReportSection(title="SDMX dimensions", blocks=dimension_blocks)
