"""Sections of reports."""

from collections.abc import Iterator

from pytest_queryeval.core.report import Report
from pytest_queryeval.reports.added_sections import ReportSection
from pytest_queryeval.reports.blocks import Block, CaseName, Table, Untrusted


def key_blocks(report: Report) -> Iterator[Block]:
    rows = [(CaseName(case["nodeid"]), Untrusted(case["gold"]["query"])) for case in report["cases"] if case["gold"]]
    yield Table(("case", "gold"), rows)


def failing_blocks(report: Report) -> Iterator[Block]:
    raise ValueError("<b>")


KEYS = ReportSection(title="Keys", blocks=key_blocks)
FAILING = ReportSection(title="A section that fails", blocks=failing_blocks)
