"""The sheet Summary of the published evaluator: means by difficulty with charts, and which metric each column has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pytest_queryeval.core.report import GroupReport, MetricStatistics, Report, TotalName
from pytest_queryeval.features.excel.charts import Chart, ChartTable, axis_end, insert_charts
from pytest_queryeval.features.excel.published import (
    DETAILS,
    OVERLAP,
    RESULTS_MATCH,
    ROW_COUNT,
    SOFT_F1,
    SUBSET,
    VES,
    PublishedColumn,
    details_note,
    metric_of,
    summary_note,
    time_note,
    time_of,
)
from pytest_queryeval.features.excel.sheet import Sheet, colour_scale
from pytest_queryeval.reports.blocks import Cell

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
    "Not Run": "not_run",
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
)
SIZES = Chart(title="Number of samples", columns=(SAMPLES,), unit="cases")
HEADER_ROW = 1
TOTAL = "Total"
MAX_LISTED = 200  # difficulties


def write_summary(book: Workbook, sheet: Sheet, report: Report) -> None:
    """Write the table by difficulty, its charts, and notes on what its columns and those of Details have."""
    next_row = _by_difficulty(book, sheet, report)
    sheet.set_up_page(sheet.notes(next_row, _notes(report)), len(HEADER) - 1)


def _by_difficulty(book: Workbook, sheet: Sheet, report: Report) -> int:
    """Write the table and its charts, and return the first row below them."""
    levels = list(report["groups"]["difficulty"].items())[:MAX_LISTED]
    rows = [*(_row(report, name, member) for name, member in levels), _row(report, TOTAL, report)]
    notes = {column.summary.text: summary_note(column, report) for column in DETAILS}
    notes |= {MEAN_TIME: time_note(report), TIME_STD: time_note(report)}
    styled_rows = [[(value, _style(header)) for header, value in zip(HEADER, values, strict=True)] for values in rows]
    next_row = sheet.block(0, "By difficulty", HEADER, styled_rows)
    for place, name in enumerate(HEADER):
        if name in notes:
            sheet.heading(HEADER_ROW, place, name, notes[name], style="number header")
        if _style(name) == "share":
            sheet.worksheet.conditional_format(HEADER_ROW + 1, place, next_row - 2, place, colour_scale(100))
    filled_columns = {
        HEADER[place]: place for place in range(1, len(HEADER)) if any(row[place] is not None for row in rows)
    }
    time_statistics = [
        group["measures"].get(time_of(report) or "") for group in (*(member for _, member in levels), report)
    ]
    times = [(time["mean"], time["std"] or 0.0) if time else (0.0, 0.0) for time in time_statistics]
    bars = {MEAN_TIME: [(std, min(mean, std)) for mean, std in times]}
    table = ChartTable(sheet=sheet, header_row=HEADER_ROW, rows=len(rows), columns=filled_columns, bars=bars)
    mean_time = Chart(
        title="Mean time of a prediction",
        columns=(MEAN_TIME,),
        unit="seconds",
        max_value=axis_end(max(mean + std for mean, std in times)),
    )
    charts = (*CHARTS, mean_time, SIZES) if report["totals"]["cases"] else ()
    return insert_charts(book, [(table, chart) for chart in charts], row=next_row) + 1


def _style(header: str) -> str:
    if header == HEADER[0]:
        return "text"
    if header.startswith("Percent "):
        return "share"
    if header in (MEAN_TIME, TIME_STD):
        return "seconds"
    return "score" if header in (SOFT_F1.summary.text, VES.summary.text) else "count"


def _row(report: Report, name: str, member: GroupReport | Report) -> list[Cell]:
    times = member["measures"].get(time_of(report) or "")
    statistics = _statistics_of(RESULTS_MATCH, report, member)
    return [
        name,
        *(_mean(column, report, member) for column in (SUBSET, RESULTS_MATCH)),
        member["totals"]["cases"],
        times["mean"] if times else None,
        times["std"] if times else None,
        *(_mean(column, report, member) for column in (ROW_COUNT, SOFT_F1, VES, OVERLAP)),
        statistics["n_with_errors"] if statistics else None,
        *(member["totals"][count] for count in COUNTS.values()),
    ]


def _mean(column: PublishedColumn, report: Report, member: GroupReport | Report) -> float | None:
    """Return the mean of the metric of a column, in the unit of the column."""
    statistics = _statistics_of(column, report, member)
    if statistics is None:
        return None
    mean = statistics["mean_with_errors"] if column.counts_errors else statistics["mean"]
    return None if mean is None else column.summary.scale * mean


def _statistics_of(column: PublishedColumn, report: Report, member: GroupReport | Report) -> MetricStatistics | None:
    return member["metrics"].get(metric_of(column, report["metrics"]) or "")


def _notes(report: Report) -> Iterator[str]:
    graded_count = sum(member["totals"]["cases"] for member in report["groups"]["difficulty"].values())
    yield "The metrics in the columns of the sheets Summary and Details, by their names in this project:"
    for column in DETAILS:
        yield summary_note(column, report)
        if column.details != column.summary:
            yield details_note(column, report)
    yield time_note(report)
    yield "Number of Samples: all cases, also those skipped, not run or in error; means are over those with a score."
    percent = RESULTS_MATCH.summary.text
    yield f"{ANSWERS}: those with a score and those in error that request the metric; {percent} is of these."
    if ungraded_count := report["totals"]["cases"] - graded_count:
        case_count = report["totals"]["cases"]
        yield f"{ungraded_count:,} of {case_count:,} cases have no difficulty: they count in {TOTAL} only."
    if (levels := len(report["groups"]["difficulty"])) > MAX_LISTED:
        yield f"{levels - MAX_LISTED:,} of {levels:,} difficulties are not listed above; Statistics has more of them."
