"""The part of the sheet Summary that compares with a baseline: what changed besides the system, metrics, flips."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pytest_queryeval.core.report import BaselineReport, MetricChange
from pytest_queryeval.reports.excel.sheet import Sheet
from pytest_queryeval.reports.sections import CHANGE_HEADER, CHANGE_NOTE, COUNTS, FLIPS, changes_besides

LISTED = 100  # cases of each list
METRICS = 1_000
COLUMNS = (*CHANGE_HEADER[:4], "95 % low", "95 % high", *CHANGE_HEADER[5:])
STYLES = ("text", "score", "score", "change", "change", "change", "count", "score", "score")
Line: TypeAlias = Sequence[tuple[Any, str]]  # values side by side, each with its style


def write_baseline(sheet: Sheet, baseline: BaselineReport | None, row: int) -> int:
    """Write the comparison from a row on; returns the first row below it."""
    if not baseline:
        return row
    lines = list(_lines(baseline))
    for number, line in enumerate(lines, start=row):
        for place, (value, style) in enumerate(line):
            sheet.put(number, place, value, style)
    return row + len(lines) + 1


def _lines(baseline: BaselineReport) -> Iterator[Line]:
    yield (("Against the baseline", "title"),)
    yield from (((name, "name"), (value, "left")) for name, value in _facts(baseline))
    yield from ((("".join(sentence), "text"),) for sentence in changes_besides(baseline))
    if baseline["metrics"]:
        yield ()
        yield from _metrics(baseline["metrics"])
    for name, word in FLIPS.items():
        yield from _list(word, baseline[name])


def _facts(baseline: BaselineReport) -> Iterator[tuple[str, Any]]:
    counts = baseline["cases"]
    yield from (("baseline", baseline["path"]), ("created", baseline["created"]), ("cases in both", counts["common"]))
    yield from (("fixes", len(baseline["fixes"])), ("regressions", len(baseline["regressions"])))
    yield from ((word, counts[name]) for name, word in COUNTS.items())


def _metrics(metrics: Mapping[str, MetricChange]) -> Iterator[Line]:
    yield [(header, "header") for header in COLUMNS]
    for name, found in list(metrics.items())[:METRICS]:
        interval = found["ci95"] or (None, None)
        values = (name, found["before"], found["after"], found["change"], *interval)
        yield list(zip((*values, found["n"], found["p_holm"], found["detectable"]), STYLES, strict=True))
    if len(metrics) > METRICS:
        yield ((f"… and {len(metrics) - METRICS:,} more", "text"),)
    yield ((CHANGE_NOTE, "text"),)


def _list(title: str, cases: Sequence[str]) -> Iterator[Line]:
    """The cases below their title."""
    if not cases:
        return
    yield ()
    yield ((f"{title} ({len(cases):,})", "name"),)
    yield from (((case, "text"),) for case in cases[:LISTED])
    if len(cases) > LISTED:
        yield ((f"… and {len(cases) - LISTED:,} more", "text"),)
