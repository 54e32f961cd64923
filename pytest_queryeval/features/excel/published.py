"""The sheets Details and Overview of published evaluators, and the columns that Summary has as well."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.report import Report
from pytest_queryeval.features.excel.sheet import Column, Sheet, value_at
from pytest_queryeval.reports.blocks import TIMES, abstention_columns


@dataclass(frozen=True, slots=True)
class Heading:
    """The header of a column."""

    text: str
    scale: int = 1
    """100 where the evaluator writes percentages, since metrics are shares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedColumn:
    """A column of the sheets Details and Summary, for the first of the `metrics` that the run has."""

    details: Heading
    summary: Heading
    metrics: tuple[str, ...]
    remark: str = ""
    counts_errors: bool = False
    """Whether cases in error count as 0 in the sheet Summary."""
    depends_on: Mapping[str, str] = field(default_factory=dict)
    """By metrics that are 0 unless another one is 1, that other metric."""


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


def metric_of(column: PublishedColumn, names: Collection[str]) -> str | None:
    """Return the metric of a run that a column shows; None if it stays empty.

    A metric that depends on an equality is shown only in a run that shows the same equality.
    """
    return next((name for name in _candidates(column, names) if name in names), None)


def _candidates(column: PublishedColumn, names: Collection[str]) -> list[str]:
    match = next((name for name in RESULTS_MATCH.metrics if name in names), None)
    equalities = column.depends_on.values()
    return [name for name in column.metrics if match not in equalities or column.depends_on[name] == match]


def time_of(report: Report) -> str | None:
    """Return the measure that is the time of a run: reported by the systems, else measured; None without one."""
    names = ("metadata[total_execution_time]", "prediction_seconds")
    return next((name for name in names if name in report["measures"]), None)


def details_note(column: PublishedColumn, report: Report) -> str:
    """Return what a column of the sheet Details has in this run."""
    return _note(column, column.details, "", report)


def summary_note(column: PublishedColumn, report: Report) -> str:
    """Return what a column of the sheet Summary has in this run."""
    errors = "with cases in error as 0 " if column.counts_errors else ""
    return _note(column, column.summary, f"the mean {errors}of ", report)


def _note(column: PublishedColumn, heading: Heading, prefix: str, report: Report) -> str:
    metric = metric_of(column, report["metrics"])
    if metric is None:
        return f"{heading.text}: empty, since the run has no {' and no '.join(_candidates(column, report['metrics']))}."
    factor = f"{heading.scale} x " if heading.scale != 1 else ""
    return f"{heading.text}: {factor}{prefix}{metric}. {column.remark}".rstrip(" .") + "."


def time_note(report: Report) -> str:
    """Return what the columns of the sheet Summary for times have in this run."""
    name = time_of(report)
    if name is None:
        return "Mean Time (s), Time Std Dev: empty, since no prediction was timed."
    metadata = "total_execution_time in the predictions' metadata"
    source = "the time of predictions" if name == "prediction_seconds" else metadata
    return f"Mean Time (s), Time Std Dev: {source}, over all calls that have it; the sample standard deviation."


SDMX = "sdmx"
COLUMNS = (
    Column(header="id", read=value_at("id"), width=28),
    Column(header="question", read=value_at("question"), width=44),
    Column(
        header="macro recall",
        read=value_at("scores", "macro_recall"),
        style="score",
        note="macro recall: macro_recall.",
    ),
    Column(
        header="macro precision",
        read=value_at("scores", "macro_precision"),
        style="score",
        note="macro precision: macro_precision.",
    ),
    Column(
        header="indicator selection details",
        read=value_at("details", "indicator_selection"),
        width=64,
        style="query",
        lines=20,
        note="indicator selection details: per dimension its recall and precision, and the terms that were found, "
        "not found, and selected though they are not targets.",
    ),
    Column(header="dataset recall", read=value_at("scores", "dataset_recall"), style="score"),
    Column(header="dataset precision", read=value_at("scores", "dataset_precision"), style="score"),
    Column(header="Outcome", read=value_at("outcome"), style="outcome"),
    Column(header="Message", read=value_at("message"), width=50),
)


def write_overview(sheet: Sheet, report: Report) -> int:
    """Write the sheet, and return how many SDMX cases do not fit into it."""
    cases = [case for case in report["cases"] if case["kind"] == SDMX]
    return sheet.table(COLUMNS, cases, printed=len(COLUMNS))


def write_details(sheet: Sheet, report: Report) -> int:
    """Write the sheet, and return how many cases do not fit into it."""
    columns = list(_columns(report))
    abstention = [Column(header=name, read=read) for name, read in abstention_columns(report["cases"]).items()]
    return sheet.table([*columns, *ADDED_COLUMNS, *abstention], report["cases"], printed=len(columns))


def _columns(report: Report) -> Iterator[Column]:
    yield Column(header="Question ID", read=value_at("id"), width=28)
    yield Column(header="Difficulty", read=value_at("difficulty"))
    yield Column(header="VQL Generated", read=value_at("predicted", "query"), width=46, style="query", note=GENERATED)
    yield Column(header="Ground Truth VQL", read=value_at("gold", "query"), width=46, style="query", note=GROUND_TRUTH)
    for column in DETAILS:
        metric, heading = metric_of(column, report["metrics"]), column.details
        read = _score(metric, heading.scale) if metric else lambda _: None
        style = "score" if heading.scale == 1 else "share"
        yield Column(header=heading.text, read=read, style=style, note=details_note(column, report))
    for name in TIMES:
        note = f"{name}: the value of this name in the metadata of the prediction, in seconds."
        yield Column(header=name, read=value_at("prediction", "metadata", name), style="seconds", note=note)


def _score(metric: str, scale: int) -> Callable[[CaseReport], Any]:
    def read(case: CaseReport) -> Any:
        value = case["scores"].get(metric)
        return None if value is None else scale * value

    return read


GENERATED = "VQL Generated: the predicted query or answer, in any language."
GROUND_TRUTH = "Ground Truth VQL: the gold query or answer; of several golds the one that predicted came nearest to."
ADDED_COLUMNS = (
    Column(header="Outcome", read=value_at("outcome"), style="outcome"),
    Column(header="Predictor", read=value_at("prediction", "source"), width=20),
    Column(header="Prediction (s)", read=value_at("prediction", "seconds"), style="seconds"),
)
