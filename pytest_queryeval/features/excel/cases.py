"""The sheet Cases: a row for each case under plain headers, those that did not pass first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

from pytest_queryeval.core.case_report import CaseReport, StepReport
from pytest_queryeval.core.groups import group_values, groups_shown
from pytest_queryeval.core.metric import reported_run_metrics
from pytest_queryeval.core.report import Report
from pytest_queryeval.features.excel.sheet import MAX_COLUMNS, Column, Sheet, value_at
from pytest_queryeval.reports.blocks import abstention_columns, part
from pytest_queryeval.reports.sections import by_weight
from pytest_queryeval.reports.story import causing_edits, edit_text, step_line, steps_text
from pytest_queryeval.results.aggregation import lower_is_better
from pytest_queryeval.results.verdict import first_line

ORDER = ("failed", "error", "missed", "xpassed", "xfailed", "passed", "skipped", "not_run")
STEP_CHARACTERS = 200  # of an input or an output of a step
PRINTED_METRICS = 4  # more of them would make a printed page too small to read


def write_cases(sheet: Sheet, report: Report) -> int:
    """Write the sheet, and return how many cases do not fit into it."""
    cases = sorted(report["cases"], key=lambda case: ORDER.index(case["outcome"]))
    empty_columns = [column for column in (CAUSE, STEPS, ROW) if all(column.read(case) is None for case in cases)]
    abstention = [Column(header=name, read=read) for name, read in abstention_columns(cases).items()]
    columns = (*ABOUT, *abstention, *_groups(cases)), TIMES_AND_PLACE
    about, times_and_place = ([column for column in group if column not in empty_columns] for group in columns)
    run_metrics = reported_run_metrics()  # which no case has a score of
    lower_is_better_metrics, headers = lower_is_better(report["metrics"]), {column.header for column in chain(*columns)}
    metrics = [
        Column(
            header=f"score {name}" if name in headers else name,
            read=value_at("scores", name),
            style="seconds" if name in lower_is_better_metrics else "score",
        )
        for name in by_weight(report)
        if name not in run_metrics
    ]
    room = MAX_COLUMNS - len(about) - len(times_and_place)
    sheet.metrics_left_out = max(0, len(metrics) - room)
    metrics = metrics[:room]
    printed_columns = len(about) + min(len(metrics), PRINTED_METRICS)
    return sheet.table([*about, *metrics, *times_and_place], cases, printed=printed_columns)


def _groups(cases: Sequence[CaseReport]) -> Iterator[Column]:
    """Yield a column for each group in which some case has a value."""

    def values(name: str) -> Callable[[CaseReport], Any]:
        return lambda case: ", ".join(group_values(case, name)) or None

    for name, group in groups_shown("workbook").items():
        if not any(group_values(case, name) for case in cases):
            continue
        yield Column(header=group.heading, read=values(name), width=20)


def _seconds(name: str) -> Callable[[CaseReport], Any]:
    """Return a function that reads a time; 0, the time of what was not run, becomes None."""
    return lambda case: part(case, name, "seconds") or None


def _steps(case: CaseReport) -> str | None:
    steps: Sequence[StepReport] | None = part(case, "prediction", "steps")
    if steps is None:
        return None
    return "\n".join((steps_text(steps), *(step_line(step, STEP_CHARACTERS) for step in steps)))


CAUSE = Column(header="cause", read=lambda case: "\n".join(map(edit_text, causing_edits(case))) or None, width=30)
STEPS = Column(header="what it did", read=_steps, width=44, note="The steps of the system until it answered.")
ROW = Column(header="row", read=value_at("row"), style="count", note="The row of the table that the case is in.")
ABOUT = (
    Column(header="id", read=value_at("id"), width=24),
    Column(header="question", read=value_at("question"), width=44),
    Column(header="gold", read=value_at("gold", "query"), width=42, style="query"),
    Column(header="predicted", read=value_at("predicted", "query"), width=42, style="query"),
    Column(header="outcome", read=value_at("outcome"), style="outcome"),
    Column(
        header="what is wrong",
        read=lambda case: None if case["outcome"] == "passed" else first_line(case) or None,
        width=44,
    ),
    CAUSE,
    STEPS,
)
TIMES_AND_PLACE = (
    Column(header="prediction (s)", read=_seconds("prediction"), style="seconds", note="How long the prediction took."),
    Column(header="gold (s)", read=_seconds("gold"), style="seconds", note="How long the gold query ran."),
    Column(header="predicted (s)", read=_seconds("predicted"), style="seconds", note="How long the predicted one ran."),
    Column(header="file", read=value_at("path"), width=36),
    Column(header="line", read=lambda case: case["line"] or None, style="count"),
    ROW,
)
