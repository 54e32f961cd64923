"""The part of the sheet Run that compares with a baseline: what changed besides the system, metrics, flips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from pytest_queryeval.core.report import BaselineReport
from pytest_queryeval.features.excel.sheet import Sheet, utc
from pytest_queryeval.reports.sections import CHANGE_HEADER, CHANGE_NOTE, COUNTS, FLIPS, changes_besides

MAX_CASES = 100  # of each list
MAX_METRICS = 1_000
COLUMNS = (*CHANGE_HEADER[:4], "95 % low", "95 % high", *CHANGE_HEADER[5:])
STYLES = ("text", "score", "score", "change", "change", "change", "count", "score", "score", "score")
Line: TypeAlias = Sequence[tuple[Any, str]]  # values side by side, each with its style


def write_baseline(sheet: Sheet, baseline: BaselineReport | None, row: int) -> int:
    """Write the comparison from a row on, and return the first row below it."""
    if not baseline:
        return row
    sheet.title(row, "Against the baseline")
    lines = list(_lines(baseline))
    for number, line in enumerate(lines, start=row + 1):
        for place, (value, style) in enumerate(line):
            sheet.put(number, place, value, style)
    return row + len(lines) + 2


def _lines(baseline: BaselineReport) -> Iterator[Line]:
    counts, metrics = baseline["cases"], baseline["metrics"]
    facts = {
        "baseline": baseline["path"],
        "created (UTC)": utc(baseline["created"]),
        "cases in both": counts["common"],
        "fixes": len(baseline["fixes"]),
        "regressions": len(baseline["regressions"]),
        **{word: counts[name] for name, word in COUNTS.items()},
    }
    yield from (((name, "name"), (value, "left")) for name, value in facts.items())
    yield from ((("".join(sentence), "text"),) for sentence in changes_besides(baseline))
    if metrics:
        yield ()
        yield [(COLUMNS[0], "header"), *((header, "number header") for header in COLUMNS[1:])]
        for name, change in list(metrics.items())[:MAX_METRICS]:
            interval = change["ci95"] or (None, None)
            values = (name, change["before"], change["after"], change["change"], *interval)
            values += (change["n"], change["p"], change["p_holm"], change["detectable"])
            yield list(zip(values, STYLES, strict=True))
        if len(metrics) > MAX_METRICS:
            yield ((f"… and {len(metrics) - MAX_METRICS:,} more", "text"),)
        yield ((CHANGE_NOTE, "text"),)
    for flip, word in FLIPS.items():
        if cases := baseline[flip]:
            yield ()
            yield ((f"{word} ({len(cases):,})", "name"),)
            yield from (((case, "text"),) for case in cases[:MAX_CASES])
            if len(cases) > MAX_CASES:
                yield ((f"… and {len(cases) - MAX_CASES:,} more", "text"),)
