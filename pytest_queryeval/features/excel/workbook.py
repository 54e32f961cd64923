"""The workbook as a file: its formats, and its sheets in their order; the same report gives the same bytes.

The sheet Cases has a row for each case under plain headers, starting with the cases that did not pass.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

from xlsxwriter import Workbook

from pytest_queryeval.comparison.difference_texts import column_lines
from pytest_queryeval.core.case_report import CaseReport, StepReport
from pytest_queryeval.core.metric import reported_run_metrics
from pytest_queryeval.core.report import Report
from pytest_queryeval.features.excel.published import OF_EVALUATORS, SDMX, write_details, write_overview, write_summary
from pytest_queryeval.features.excel.run import write_run, write_statistics
from pytest_queryeval.features.excel.sheet import MAX_CHARACTERS, MAX_COLUMNS, Column, Sheet, utc_time, value_at
from pytest_queryeval.reports import PLAIN, PUBLISHED, REQUESTED
from pytest_queryeval.reports.blocks import abstention_columns, group_columns, nested_value
from pytest_queryeval.reports.sections import change_reader, metrics_by_weight
from pytest_queryeval.reports.story import (
    CAUSE_DIRECTION,
    DIFFERENCE_DIRECTION,
    causing_edits,
    edit_text,
    step_line,
    steps_text,
)
from pytest_queryeval.results.aggregation import lower_is_better
from pytest_queryeval.results.verdict import first_line, listed_text, unmet_expectations, with_worst_cases

# Made in memory: temporary files would bring in their times, and modes that depend on the user's umask.
OPTIONS = {
    "in_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
    "nan_inf_to_errors": False,
}
CASES_LISTED = 20_000  # where not all fit in memory
Style: TypeAlias = Mapping[str, str | int | bool]
TOP: Style = {"valign": "top"}
WRAPPED: Style = {**TOP, "text_wrap": True}
HEADER: Style = {**WRAPPED, "bold": True, "bottom": 1, "bg_color": "#EEF1F3", "bottom_color": "#586069"}
STYLES: Mapping[str, Style] = {
    "text": TOP,
    "wrapped": WRAPPED,
    "query": {**WRAPPED, "font_name": "Consolas", "font_size": 9},
    "outcome": TOP,
    "score": {**TOP, "num_format": "0.000"},
    "share": {**TOP, "num_format": '0.0"%"'},
    "percent": {**TOP, "num_format": "0.0%"},
    "seconds": {**TOP, "num_format": "0.000"},
    "count": {**TOP, "num_format": "#,##0"},
    "time": {"num_format": "yyyy-mm-dd hh:mm", "align": "left"},
    "header": HEADER,
    "number header": {**HEADER, "align": "right"},
    "title": {"bold": True, "font_size": 14, "valign": "vcenter"},
    "name": {**TOP, "bold": True},
    "left": {"align": "left"},
    "change": {**TOP, "num_format": "+0.000;-0.000;0.000"},
    "good": {**TOP, "font_color": "#1A6E38", "bg_color": "#E3F3E8"},
    "bad": {**TOP, "font_color": "#A8281E", "bg_color": "#FBE6E4"},
    "warning": {**TOP, "font_color": "#7A5200", "bg_color": "#FAF0D9"},
    "dull": {**TOP, "font_color": "#586069", "bg_color": "#F6F7F8"},
}
ORDER = ("failed", "error", "missed", "xpassed", "xfailed", "passed", "skipped", "not_run")
STEP_CHARACTERS = 200  # of an input or an output of a step
PRINTED_METRICS = 4  # more of them would make a printed page too small to read


def workbook(report: Report, layout: str) -> bytes:
    """Return the report as an xlsx file, with the sheets of published evaluators that the layout includes.

    Texts, cases and metrics that do not fit are counted in notes.
    """
    file = io.BytesIO()
    book = Workbook(file, OPTIONS)
    book.set_properties({"title": "pytest-queryeval", "created": utc_time(report["created"])})
    styles = {name: book.add_format(style) for name, style in STYLES.items()}
    names = ["Cases", "Run", "Statistics"]
    if layout == PUBLISHED or (layout == REQUESTED and OF_EVALUATORS & report["metrics"].keys()):
        names += ["Summary", "Details"]
    if layout != PLAIN and SDMX in report["groups"]["kind"]:
        names.append("Overview")
    sheets = {name: Sheet(name=name, worksheet=book.add_worksheet(name), styles=styles) for name in names}
    sheets["Run"].worksheet.activate()  # so that a spreadsheet program opens on the verdict
    writers = {"Cases": write_cases, "Details": write_details, "Overview": write_overview}
    listed_report = with_worst_cases(report, CASES_LISTED)
    missing_rows = {name: write(sheets[name], listed_report) for name, write in writers.items() if name in sheets}
    write_statistics(sheets["Statistics"], report)
    if "Summary" in sheets:
        write_summary(book, sheets["Summary"], report)
    notes = [listed] if (listed := listed_text(listed_report, report)) else []
    if cut_texts := sum(sheet.cut_texts for sheet in sheets.values()):
        notes.append(
            f"{cut_texts:,} texts are longer than the {MAX_CHARACTERS:,} characters of a cell: they end with a mark."
        )
    notes += [
        f"{number:,} cases have no row in {name}, because a sheet has no more rows; they count in all numbers."
        for name, number in missing_rows.items()
        if number
    ]
    if metrics_left_out := sheets["Cases"].metrics_left_out:
        notes.append(f"{metrics_left_out:,} metrics have no column in Cases, because a sheet has no more of them.")
    write_run(book, sheets["Run"], report, notes)
    book.close()
    return file.getvalue()


def write_cases(sheet: Sheet, report: Report) -> int:
    """Write the sheet Cases, and return how many cases do not fit.

    Columns that are empty for all cases are left out. The number of metrics without a column is stored in the sheet.
    """
    cases = sorted(report["cases"], key=lambda case: ORDER.index(case["outcome"]))
    change_text = change_reader(report)
    change = [Column("change", change_text, width=30, note=CHANGE)] if change_text else []
    empty_columns = [
        column
        for column in (CAUSE, BY_COLUMN, EXPECTED, HINTS, STEPS, ROW)
        if all(column.read(case) is None for case in cases)
    ]
    abstention = [Column(name, read) for name, read in abstention_columns(cases).items()]

    groups = [
        Column(heading, read, width=20)
        for heading, read in group_columns("workbook", ", ").items()
        if any(map(read, cases))
    ]
    columns = (*ABOUT, *change, *DIAGNOSIS, *abstention, *groups), TIMES_AND_PLACE
    about, times_and_place = ([column for column in group if column not in empty_columns] for group in columns)
    run_metrics = reported_run_metrics()  # which no case has a score of
    lower_is_better_metrics, headers = lower_is_better(report["metrics"]), {column.header for column in chain(*columns)}
    metrics = [
        Column(
            f"score {name}" if name in headers else name,
            value_at("scores", name),
            style="seconds" if name in lower_is_better_metrics else "score",
        )
        for name in metrics_by_weight(report)
        if name not in run_metrics
    ]
    room = MAX_COLUMNS - len(about) - len(times_and_place)
    sheet.metrics_left_out = max(0, len(metrics) - room)
    metrics = metrics[:room]
    printed_columns = len(about) + min(len(metrics), PRINTED_METRICS)
    return sheet.table([*about, *metrics, *times_and_place], cases, printed=printed_columns)


def _seconds_reader(name: str) -> Callable[[CaseReport], Any]:
    """Return a function that reads a time of a case; 0, which means that nothing was run, becomes None."""
    return lambda case: nested_value(case, name, "seconds") or None


def _steps(case: CaseReport) -> str | None:
    steps: Sequence[StepReport] | None = nested_value(case, "prediction", "steps")
    if steps is None:
        return None
    return "\n".join((steps_text(steps), *(step_line(step, STEP_CHARACTERS) for step in steps)))


def _by_column(case: CaseReport) -> str | None:
    difference = case["difference"]
    return "\n".join(column_lines(difference.get("by_column", ()))) or None if difference is not None else None


def _hints(case: CaseReport) -> str | None:
    return "\n".join(hint["text"] for hint in case.get("hints", ())) or None


CAUSE = Column(
    f"cause, {CAUSE_DIRECTION}", lambda case: "\n".join(map(edit_text, causing_edits(case))) or None, width=30
)
BY_COLUMN = Column(
    f"by column, {DIFFERENCE_DIRECTION}", _by_column, width=44, note="Where rows that are in both answers differ."
)
EXPECTED = Column(
    "expected",
    lambda case: "\n".join(unmet_expectations(case["details"])) or None,
    width=44,
    note="Which expectations of the suite are not met.",
)
HINTS = Column("hint", _hints, width=30, note="What would accept the answer, of which only the form differs.")
STEPS = Column("what it did", _steps, width=44, note="The steps of the system until it answered.")
ROW = Column("row", "row", style="count", note="The row of the table that the case is in.")
ABOUT = (
    Column("id", "id", width=24),
    Column("question", "question", width=44),
    Column("gold", "gold query", width=42, style="query"),
    Column("predicted", "predicted query", width=42, style="query"),
    Column("outcome", "outcome", style="outcome"),
)
CHANGE = "How the case differs from the baseline, whose scores come first."
DIAGNOSIS = (
    Column("what is wrong", lambda case: None if case["outcome"] == "passed" else first_line(case) or None, width=44),
    CAUSE,
    BY_COLUMN,
    EXPECTED,
    HINTS,
    STEPS,
)
TIMES_AND_PLACE = (
    Column("prediction (s)", _seconds_reader("prediction"), style="seconds", note="How long the prediction took."),
    Column("gold (s)", _seconds_reader("gold"), style="seconds", note="How long the gold query ran."),
    Column("predicted (s)", _seconds_reader("predicted"), style="seconds", note="How long the predicted one ran."),
    Column("file", "path", width=36),
    Column("line", lambda case: case["line"] or None, style="count"),
    ROW,
)
