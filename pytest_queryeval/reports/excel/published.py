"""The columns of the published evaluator, and which metric of a run stands in each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_queryeval.aggregation import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A column of the sheets Details and Summary, for the first of the `metrics` that the run has.

    `scale` and `summary_scale` are 100 where the evaluator writes percentages; the metrics are shares.
    """

    header: str
    metrics: tuple[str, ...]
    scale: int
    summary: str
    summary_scale: int
    remark: str = ""


RESULTS_MATCH = Published(
    header="Results Match",
    metrics=("execution_accuracy", "execution_accuracy_bird", "json_equal"),
    scale=1,
    summary="Percent Correct Queries",
    summary_scale=100,
    remark="Published code compares the lists of two sets, whose order is chance, and asks for a time besides.",
)
SUBSET = Published(
    header="Subsetting Percentage",
    metrics=("subset_score_denodo", "subset_score"),
    scale=100,
    summary="Percent Subset",
    summary_scale=100,
    remark="subset_score_denodo is the published code, subset_score the definition without its defects.",
)
OVERLAP = Published(
    header="Percent Overlap",
    metrics=("value_overlap",),
    scale=100,
    summary="Percent Overlap",
    summary_scale=100,
    remark="Values of gold that predicted has, in any order, as the published code counts them.",
)
ROW_COUNT = Published(
    header="Have Same Row Count",
    metrics=("same_row_count",),
    scale=1,
    summary="Percent Row Count Match",
    summary_scale=100,
)
SOFT_F1 = Published(
    header="Bird Standard F1",
    metrics=("soft_f1_denodo", "soft_f1_bird", "soft_f1"),
    scale=1,
    summary="Bird Standard F1",
    summary_scale=1,
    remark="soft_f1_denodo is the published code; soft_f1 pairs rows by content and not by position.",
)
VES = Published(
    header="VES Score",
    metrics=("r_ves", "ves"),
    scale=1,
    summary="VES Score",
    summary_scale=1,
    remark="r_ves is the square root of the published reward (at most 1.25), ves that of the ratio of times.",
)
DETAILS = (RESULTS_MATCH, SUBSET, OVERLAP, ROW_COUNT, SOFT_F1, VES)


def metric_of(column: Published, names: Collection[str]) -> str | None:
    """The metric that stands in a column of a run with metrics of these names; None where it is to stay empty."""
    return next((name for name in column.metrics if name in names), None)


def time_of(report: Report) -> str | None:
    """Which of the times of a run its mean time is of: what systems told, else what was measured, else None."""
    names = ("metadata[total_execution_time]", "prediction_seconds")
    return next((name for name in names if name in report.get("measures", {})), None)


def details_note(column: Published, report: Report) -> str:
    """What a column of the sheet Details has in this run."""
    return _note(column, column.header, column.scale, report["metrics"])


def summary_note(column: Published, report: Report) -> str:
    """What a column of the sheet Summary has in this run."""
    return _note(column, column.summary, column.summary_scale, report["metrics"], "the mean of ")


def _note(column: Published, header: str, scale: int, names: Mapping[str, Any], what: str = "") -> str:
    metric = metric_of(column, names)
    if metric is None:
        return f"{header}: empty, since the run has no {' and no '.join(column.metrics)}."
    factor = f"{scale} x " if scale != 1 else ""
    return f"{header}: {factor}{what}{metric}. {column.remark}".rstrip(" .") + "."


def time_note(report: Report) -> str:
    """What the columns of the sheet Summary for times have in this run."""
    name = time_of(report)
    if name is None:
        return "Mean Time (s), Time Std Dev: empty, since no prediction was timed."
    told = "total_execution_time in the predictions' metadata"
    said = "the time of predictions" if name == "prediction_seconds" else told
    return f"Mean Time (s), Time Std Dev: {said}, over all calls that have it; the sample standard deviation."
