"""The section on schema use: how many of gold's tables and columns predictions read, by group of cases."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_queryeval.core.report import Report
from pytest_queryeval.reports.added_sections import ReportSection
from pytest_queryeval.reports.blocks import Block, Table, Untrusted
from pytest_queryeval.reports.sections import MAX_MEMBERS, groups_in_tables, mean_of
from pytest_queryeval.text.formatting import format_score

METRICS = ("table_recall", "table_precision", "column_recall", "column_precision")


def schema_use_blocks(report: Report) -> Iterator[Block]:
    """Yield a table of the mean recall and precision of tables and columns, for all cases and by group.

    Only requested metrics have columns; without any there is no table.
    """
    names = [name for name in METRICS if name in report["metrics"]]
    if not names:
        return
    means = (format_score(report["metrics"][name]["mean"]) for name in names)
    rows = [("all cases", "", f"{max(report['metrics'][name]['n'] for name in names):,}", *means)]
    for group in groups_in_tables():
        members = report["groups"].get(group, {})
        for value, member in members.items() if 1 < len(members) <= MAX_MEMBERS else ():
            counts = [member["metrics"][name]["n"] for name in names if name in member["metrics"]]
            if counts:
                shares = (format_score(mean_of(member, name)) for name in names)
                rows.append((group, Untrusted(value), f"{max(counts):,}", *shares))
    yield Table(("group", "value", "n", *names), rows)


SCHEMA_USE = ReportSection(title="Schema use", blocks=schema_use_blocks)
