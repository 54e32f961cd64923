"""The part of the sheet Summary that compares with a baseline: flips, changes of metrics, changes of the suite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_queryeval.reports.excel.sheet import Sheet

# Headers of the table of metrics, what the report calls their values, and how these look.
COLUMNS = {
    "before": ("before", "score"),
    "after": ("after", "score"),
    "change": ("change", "change"),
    "n": ("n", "count"),
    "p": ("p", "score"),
    "p, adjusted": ("p_holm", "score"),
    "test": ("test", "text"),
    "detectable drop": ("detectable", "score"),
}
TITLES = {"broken": "Broken", "fixed": "Fixed", "errors": "Newly in error"}
LISTED = 100  # cases of each list
METRICS = 1_000


def write_baseline(sheet: Sheet, baseline: Mapping[str, Any] | None, row: int) -> int:
    """Write the comparison from a row on; returns the first row below it."""
    if not baseline:
        return row
    sheet.put(row, 0, "Against the baseline", "title")
    facts = list(_facts(baseline))
    for number, (name, value) in enumerate(facts, start=row + 1):
        sheet.put(number, 0, name, "name")
        sheet.put(number, 1, value, "left")
    row = _metrics(sheet, list(baseline["metrics"].items())[:METRICS], row + len(facts) + 2)
    for title, cases in _lists(baseline):
        sheet.put(row, 0, f"{title} ({len(cases):,})" if cases else title, "name")
        for number, case in enumerate(cases[:LISTED]):
            sheet.put(row + number, 1, case)
        if len(cases) > LISTED:
            sheet.put(row + LISTED, 1, f"… and {len(cases) - LISTED:,} more")
        row += max(1, min(len(cases), LISTED + 1))
    return row + 1


def _facts(baseline: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "Baseline", baseline["path"]
    yield "Created", baseline["created"]
    for name, number in baseline["cases"].items():
        yield f"Cases: {name.replace('_', ' ')}", number


def _metrics(sheet: Sheet, metrics: list[tuple[str, Mapping[str, Any]]], row: int) -> int:
    if not metrics:
        return row
    for place, header in enumerate(("metric", *COLUMNS, "95 % low", "95 % high")):
        sheet.heading(row, place, header)
    for number, (name, found) in enumerate(metrics, start=row + 1):
        sheet.put(number, 0, name)
        for place, (key, style) in enumerate(COLUMNS.values(), start=1):
            sheet.put(number, place, found.get(key), style)
        for place, end in enumerate(found.get("ci95") or (), start=len(COLUMNS) + 1):
            sheet.put(number, place, end, "change")
    return row + len(metrics) + 2


def _lists(baseline: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    yield from ((title, baseline[name]) for name, title in TITLES.items() if baseline[name])
    yield from ((f"Besides the system: {change['what']}", change["cases"]) for change in baseline["changes"])
