"""The sheets Details, Overview and Summary of published evaluators: columns, and means by difficulty with charts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.report import GroupReport, MetricStatistics, Report, TotalName
from pytest_queryeval.features.excel.sheet import (
    Chart,
    ChartTable,
    Column,
    Sheet,
    axis_end,
    colour_scale,
    insert_charts,
    value_at,
)
from pytest_queryeval.reports.blocks import TIMES, Cell, abstention_columns

if TYPE_CHECKING:
    from xlsxwriter.workbook import Workbook


@dataclass(frozen=True, slots=True)
class Heading:
    """The header of a column, and the factor of its values."""

    text: str
    scale: int = 1
    """100 if the evaluator writes percentages; metrics are shares from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedColumn:
    """A column of the sheets Details and Summary, which shows the first of `metrics` that the run has."""

    details: Heading
    summary: Heading
    metrics: tuple[str, ...]
    remark: str = ""
    counts_errors: bool = False
    """Whether cases in error count as 0 in the sheet Summary."""
    depends_on: Mapping[str, str] = field(default_factory=dict)
    """For a metric that is 0 unless an equality metric is 1, the equality metric."""


RESULTS_MATCH = PublishedColumn(
    details=Heading("Results Match"),
    summary=Heading("Percent Correct Queries", 100),
    metrics=("execution_accuracy", "execution_accuracy_bird", "json_equal"),
    remark="Published code compares the lists of two sets, whose order is chance, and asks for a time besides.",
    counts_errors=True,
)
SUBSET = PublishedColumn(
    details=Heading("Subsetting Percentage", 100),
    summary=Heading("Percent Subset", 100),
    metrics=("subset_score_denodo", "subset_score"),
    remark="subset_score_denodo is the published code, subset_score the definition without its defects.",
)
OVERLAP = PublishedColumn(
    details=Heading("Percent Overlap", 100),
    summary=Heading("Percent Overlap", 100),
    metrics=("value_overlap",),
    remark="Values of gold that predicted has, in any order, as the published code counts them.",
)
ROW_COUNT = PublishedColumn(
    details=Heading("Have Same Row Count"),
    summary=Heading("Percent Row Count Match", 100),
    metrics=("same_row_count",),
)
SOFT_F1 = PublishedColumn(
    details=Heading("Bird Standard F1"),
    summary=Heading("Bird Standard F1"),
    metrics=("soft_f1_denodo", "soft_f1_bird", "soft_f1"),
    remark="soft_f1_denodo is the published code; soft_f1 pairs rows by content and not by position.",
)
VES = PublishedColumn(
    details=Heading("VES Score"),
    summary=Heading("VES Score"),
    metrics=("r_ves", "ves", "r_ves_bird"),
    remark="r_ves is the square root of the published reward (at most 1.25), ves that of the ratio of times.",
    depends_on={
        "r_ves": "execution_accuracy",
        "ves": "execution_accuracy",
        "r_ves_bird": "execution_accuracy_bird",
    },
)
DETAILS = (RESULTS_MATCH, SUBSET, OVERLAP, ROW_COUNT, SOFT_F1, VES)
OF_EVALUATORS = {name for column in DETAILS for name in column.metrics} - {
    *("execution_accuracy", "json_equal", "soft_f1", "subset_score")  # our own definitions
}


def column_metric(column: PublishedColumn, names: Collection[str]) -> str | None:
    """Return the metric that a column shows, among the metrics of a run; None if the column stays empty.

    A metric that depends on an equality metric is shown only if the run shows the same equality metric.
    """
    return next((name for name in _candidates(column, names) if name in names), None)


def _candidates(column: PublishedColumn, names: Collection[str]) -> list[str]:
    match = next((name for name in RESULTS_MATCH.metrics if name in names), None)
    equalities = column.depends_on.values()
    return [name for name in column.metrics if match not in equalities or column.depends_on[name] == match]


def time_of(report: Report) -> str | None:
    """Return the measure for the time of predictions: reported by the systems, else measured; None if there is none."""
    names = ("metadata[total_execution_time]", "prediction_seconds")
    return next((name for name in names if name in report["measures"]), None)


def details_note(column: PublishedColumn, report: Report) -> str:
    """Return the note on what a column of the sheet Details shows in this run."""
    return _note(column, column.details, "", report)


def summary_note(column: PublishedColumn, report: Report) -> str:
    """Return the note on what a column of the sheet Summary shows in this run."""
    errors = "with cases in error as 0 " if column.counts_errors else ""
    return _note(column, column.summary, f"the mean {errors}of ", report)


def _note(column: PublishedColumn, heading: Heading, prefix: str, report: Report) -> str:
    metric = column_metric(column, report["metrics"])
    if metric is None:
        return (
            f"{heading.text}: empty, because the run has no {' and no '.join(_candidates(column, report['metrics']))}."
        )
    factor = f"{heading.scale} x " if heading.scale != 1 else ""
    return f"{heading.text}: {factor}{prefix}{metric}. {column.remark}".rstrip(" .") + "."


def time_note(report: Report) -> str:
    """Return the note on what the time columns of the sheet Summary show in this run."""
    name = time_of(report)
    if name is None:
        return "Mean Time (s), Time Std Dev: empty, because no prediction was timed."
    metadata = "total_execution_time in the predictions' metadata"
    source = "the time of predictions" if name == "prediction_seconds" else metadata
    return f"Mean Time (s), Time Std Dev: {source}, over all calls that have it; the sample standard deviation."


SDMX = "sdmx"
COLUMNS = (
    Column("id", "id", width=28),
    Column("question", "question", width=44),
    Column("macro recall", "scores macro_recall", style="score", note="macro recall: macro_recall."),
    Column("macro precision", "scores macro_precision", style="score", note="macro precision: macro_precision."),
    Column(
        "indicator selection details",
        "details indicator_selection",
        width=64,
        style="query",
        lines=20,
        note="indicator selection details: per dimension its recall and precision, and the terms that were found, "
        "not found, and selected though they are not targets.",
    ),
    Column("dataset recall", "scores dataset_recall", style="score"),
    Column("dataset precision", "scores dataset_precision", style="score"),
    Column("Outcome", "outcome", style="outcome"),
    Column("Message", "message", width=50),
)


def write_overview(sheet: Sheet, report: Report) -> int:
    """Write the sheet Overview of SDMX cases, and return how many of them do not fit."""
    cases = [case for case in report["cases"] if case["kind"] == SDMX]
    return sheet.table(COLUMNS, cases, printed=len(COLUMNS))


def write_details(sheet: Sheet, report: Report) -> int:
    """Write the sheet Details, and return how many cases do not fit."""
    columns = [
        Column("Question ID", "id", width=28),
        Column("Difficulty", "difficulty"),
        Column("VQL Generated", "predicted query", width=46, style="query", note=GENERATED),
        Column("Ground Truth VQL", "gold query", width=46, style="query", note=GROUND_TRUTH),
    ]
    for column in DETAILS:
        metric, heading = column_metric(column, report["metrics"]), column.details
        read = _score_reader(metric, heading.scale) if metric else lambda _: None
        style = "score" if heading.scale == 1 else "share"
        columns.append(Column(heading.text, read, style=style, note=details_note(column, report)))
    for name in TIMES:
        note = f"{name}: the value of this name in the metadata of the prediction, in seconds."
        columns.append(Column(name, value_at("prediction", "metadata", name), style="seconds", note=note))
    abstention = [Column(name, read) for name, read in abstention_columns(report["cases"]).items()]
    return sheet.table([*columns, *ADDED_COLUMNS, *abstention], report["cases"], printed=len(columns))


def _score_reader(metric: str, scale: int) -> Callable[[CaseReport], Any]:
    def read(case: CaseReport) -> Any:
        value = case["scores"].get(metric)
        return None if value is None else scale * value

    return read


GENERATED = "VQL Generated: the predicted query or answer, in any language."
GROUND_TRUTH = "Ground Truth VQL: the gold query or answer; of several golds the one that predicted came nearest to."
ADDED_COLUMNS = (
    Column("Outcome", "outcome", style="outcome"),
    Column("Predictor", "prediction source", width=20),
    Column("Prediction (s)", "prediction seconds", style="seconds"),
)


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
    """Write the sheet Summary: the table by difficulty, its charts, and notes on the columns of Summary and Details."""
    levels = list(report["groups"]["difficulty"].items())[:MAX_LISTED]
    rows = [*(_summary_row(report, name, member) for name, member in levels), _summary_row(report, TOTAL, report)]
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
    notes_row = insert_charts(book, [(table, chart) for chart in charts], row=next_row) + 1
    sheet.set_up_page(sheet.notes(notes_row, _summary_notes(report)), len(HEADER) - 1)


def _style(header: str) -> str:
    if header == HEADER[0]:
        return "text"
    if header.startswith("Percent "):
        return "share"
    if header in (MEAN_TIME, TIME_STD):
        return "seconds"
    return "score" if header in (SOFT_F1.summary.text, VES.summary.text) else "count"


def _summary_row(report: Report, name: str, member: GroupReport | Report) -> list[Cell]:
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
    """Return the mean of the metric that a column shows, in the unit of the column.

    None if there is no such metric, or no case has a score of it.
    """
    statistics = _statistics_of(column, report, member)
    if statistics is None:
        return None
    mean = statistics["mean_with_errors"] if column.counts_errors else statistics["mean"]
    return None if mean is None else column.summary.scale * mean


def _statistics_of(column: PublishedColumn, report: Report, member: GroupReport | Report) -> MetricStatistics | None:
    return member["metrics"].get(column_metric(column, report["metrics"]) or "")


def _summary_notes(report: Report) -> Iterator[str]:
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
