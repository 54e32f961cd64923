"""The section on reviewed golds: how many cases have a decision, and the means of the run with and without them."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_queryeval.core.report import Report
from pytest_queryeval.reports.added_sections import ReportSection
from pytest_queryeval.reports.blocks import Block, Table, Untrusted
from pytest_queryeval.reports.sections import errata_text
from pytest_queryeval.text.formatting import format_score


def errata_blocks(report: Report) -> Iterator[Block]:
    """Yield a sentence on the number of reviewed cases, and a table of means by the suites' golds and after review.

    Yield nothing for a report without errata.
    """
    if "errata" not in report:
        return
    before, after = report["errata"]["unreviewed"], report["errata"]["reviewed"]
    yield (errata_text(report),)
    rows = [
        (Untrusted(name), *(format_score(means.get(name)) for means in (before, after)))
        for name in dict.fromkeys((*after, *before))
    ]
    yield Table(("metric", "by the suites' golds", "after review"), rows)


ERRATA = ReportSection(title="Reviewed golds", blocks=errata_blocks)
