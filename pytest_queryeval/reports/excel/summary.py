"""The sheet Summary: verdict, gates, metrics by difficulty with charts, and which metric each column has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_queryeval.core.report import GateReport, GroupReport, MetricStatistics, Report, TotalName
from pytest_queryeval.reports.cells import Cell
from pytest_queryeval.reports.excel.baseline import write_baseline
from pytest_queryeval.reports.excel.charts import Chart, Charted, insert_charts
from pytest_queryeval.reports.excel.details import scale
from pytest_queryeval.reports.excel.published import (
    DETAILS,
    OVERLAP,
    RESULTS_MATCH,
    ROW_COUNT,
    SOFT_F1,
    SUBSET,
    VES,
    Published,
    details_note,
    metric_of,
    summary_note,
    time_note,
    time_of,
)
from pytest_queryeval.reports.excel.sheet import HEADER_POINTS, Sheet
from pytest_queryeval.results.gates import GATE_WORDS, gate_text
from pytest_queryeval.results.verdict import COLOURS, verdict

if TYPE_CHECKING:
    from xlsxwriter.workbook import Workbook

MEAN_TIME, TIME_STD = "Mean Time (s)", "Time Std Dev"
SAMPLES = "Number of Samples"
ANSWERS = "Cases of Percent Correct"
COUNTS: Mapping[str, TotalName] = {
    "Passed": "passed",
    "Failed": "failed",
    "Missed": "missed",
    "Errors": "errors",
    "Skipped": "skipped",
    "Xfailed": "xfailed",
    "Xpassed": "xpassed",
}
HEADER = (
    *("Difficulty", SUBSET.summary.text, RESULTS_MATCH.summary.text, SAMPLES, MEAN_TIME, TIME_STD),
    *(column.summary.text for column in (ROW_COUNT, SOFT_F1, VES, OVERLAP)),
    ANSWERS,
    *COUNTS,
)
CHARTS = (
    Chart(
        title="Matching answers",
        columns=(RESULTS_MATCH.summary.text, SUBSET.summary.text, OVERLAP.summary.text, ROW_COUNT.summary.text),
        unit="percent",
        max_value=100,
    ),
    Chart(title="Bird Standard F1 and VES Score", columns=(SOFT_F1.summary.text, VES.summary.text), unit="score"),
    Chart(title="Mean time of a prediction", columns=(MEAN_TIME,), unit="seconds", spread=TIME_STD),
    Chart(title="Number of samples", columns=(SAMPLES,), unit="cases"),
)
TOTAL = "Total"
MAX_LISTED = 200  # difficulties, gates, or files that could not be read
GATE_STYLES = {True: "good", False: "bad", None: "warning"}


def write_summary(book: Workbook, sheet: Sheet, report: Report, notes: Iterable[str]) -> None:
    """Write the sheet; `notes` are added to those at its end."""
    sheet.worksheet.set_column(0, 0, 26)
    sheet.worksheet.set_column(1, len(HEADER), 14)
    row = _head(sheet, report)
    row = _gates(sheet, report["gates"], row)
    row = _by_difficulty(book, sheet, report, row)
    row = write_baseline(sheet, report.get("baseline"), row)
    sheet.put(row, 0, "Notes", "title")
    for number, note in enumerate((*_notes(report), *notes), start=row + 1):
        sheet.put(number, 0, note)


def _head(sheet: Sheet, report: Report) -> int:
    found = verdict(report)
    sheet.put(0, 0, "pytest-queryeval", "title")
    lines = [
        ("Verdict", found.state, {"green": "good", "red": "bad", "yellow": "warning"}[COLOURS[found.state]]),
        ("Rule", found.rule, "text"),
        ("Cases", found.counts, "text"),
        ("Created", report["created"], "text"),
        ("Predictions by", ", ".join(report["predictor"]["sources"]) or None, "text"),
        *(("Could not be read", path, "bad") for path in report["unreadable_files"][:MAX_LISTED]),
    ]
    for row, (name, value, look) in enumerate(lines, start=1):
        sheet.put(row, 0, name, "name")
        sheet.put(row, 1, value, look)
    return len(lines) + 2


def _gates(sheet: Sheet, gates: Sequence[GateReport], row: int) -> int:
    if not gates:
        return row
    sheet.put(row, 0, "Gates", "title")
    for number, gate in enumerate(gates[:MAX_LISTED], start=row + 1):
        sheet.put(number, 0, GATE_WORDS[gate["ok"]], GATE_STYLES[gate["ok"]])
        sheet.put(number, 1, gate_text(gate))
    if len(gates) > MAX_LISTED:
        sheet.put(row + MAX_LISTED + 1, 0, f"… and {len(gates) - MAX_LISTED:,} more")
    return row + min(len(gates), MAX_LISTED + 1) + 2


def _by_difficulty(book: Workbook, sheet: Sheet, report: Report, row: int) -> int:
    """Write the table and its charts, and return the first row below them."""
    levels = list(report["groups"]["difficulty"].items())[:MAX_LISTED]
    rows = [*(_row(report, name, member) for name, member in levels), _row(report, TOTAL, report)]
    notes = {column.summary.text: summary_note(column, report) for column in DETAILS}
    notes |= {MEAN_TIME: time_note(report), TIME_STD: time_note(report)}
    sheet.put(row, 0, "By difficulty", "title")
    sheet.worksheet.set_row(row + 1, HEADER_POINTS)
    for place, name in enumerate(HEADER):
        sheet.heading(row + 1, place, name, notes.get(name, ""))
    for number, values in enumerate(rows, start=row + 2):
        for place, value in enumerate(values):
            sheet.put(number, place, value, "text" if place == 0 else _style(HEADER[place]))
    for place, name in enumerate(HEADER):
        if _style(name) == "share":
            sheet.worksheet.conditional_format(row + 2, place, row + 1 + len(rows), place, scale(100))
    filled = {HEADER[place]: place for place in range(1, len(HEADER)) if any(each[place] is not None for each in rows)}
    table = Charted(sheet=sheet, header_row=row + 1, rows=len(rows), columns=filled)
    charts = CHARTS if report["totals"]["cases"] else ()
    return insert_charts(book, table, charts, row=row + len(rows) + 3) + 1


def _style(header: str) -> str:
    if header.startswith("Percent "):
        return "share"
    if header in (MEAN_TIME, TIME_STD):
        return "seconds"
    return "score" if header in (SOFT_F1.summary.text, VES.summary.text) else "count"


def _row(report: Report, name: str, member: GroupReport | Report) -> list[Cell]:
    times = member["measures"].get(time_of(report) or "")
    found = _found(RESULTS_MATCH, report, member)
    return [
        name,
        *(_mean(column, report, member) for column in (SUBSET, RESULTS_MATCH)),
        member["totals"]["cases"],
        times["mean"] if times else None,
        times["std"] if times else None,
        *(_mean(column, report, member) for column in (ROW_COUNT, SOFT_F1, VES, OVERLAP)),
        found["n_with_errors"] if found else None,
        *(member["totals"][count] for count in COUNTS.values()),
    ]


def _mean(column: Published, report: Report, member: GroupReport | Report) -> float | None:
    """Return the mean of the metric of a column, in the unit of the column."""
    found = _found(column, report, member)
    if found is None:
        return None
    mean = found["mean_with_errors"] if column.counts_errors else found["mean"]
    return None if mean is None else column.summary.scale * mean


def _found(column: Published, report: Report, member: GroupReport | Report) -> MetricStatistics | None:
    return member["metrics"].get(metric_of(column, report["metrics"]) or "")


def _notes(report: Report) -> Iterator[str]:
    counted = sum(member["totals"]["cases"] for member in report["groups"]["difficulty"].values())
    yield "The metrics in the columns of the sheets Summary and Details, by their names in this project:"
    for column in DETAILS:
        yield summary_note(column, report)
        if column.details != column.summary:
            yield details_note(column, report)
    yield time_note(report)
    yield "Number of Samples: all cases, also those that were skipped or in error; means are over those with a score."
    percent = RESULTS_MATCH.summary.text
    yield f"{ANSWERS}: those with a score and those in error that request the metric; {percent} is of these."
    if without := report["totals"]["cases"] - counted:
        yield f"{without:,} of {report['totals']['cases']:,} cases have no difficulty: they count in {TOTAL} only."
    if (levels := len(report["groups"]["difficulty"])) > MAX_LISTED:
        yield f"{levels - MAX_LISTED:,} of {levels:,} difficulties are not listed above; Statistics has more of them."
