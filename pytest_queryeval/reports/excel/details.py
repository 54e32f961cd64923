"""The sheet Details: one row a case, first the columns of the published evaluator, then what else a case has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

from pytest_queryeval.core.report import CaseReport, Report
from pytest_queryeval.reports.cells import TIMES, metric_names, part
from pytest_queryeval.reports.excel.published import DETAILS, details_note, metric_of
from pytest_queryeval.reports.excel.sheet import Column, Sheet
from pytest_queryeval.results.aggregation import costs

OUTCOME = "Outcome"
OUTCOME_STYLES = {
    "passed": "good",
    "failed": "bad",
    "error": "bad",
    "missed": "warning",
    "skipped": "dull",
    "xfailed": "dull",
    "xpassed": "dull",
}
LOW, MIDDLE, HIGH = "#F8B4AB", "#FCE8A6", "#B2DDB4"  # legible below black text


def write_details(sheet: Sheet, report: Report) -> int:
    """Write the sheet, and return how many cases have no row, since a sheet has no more of them."""
    columns = list(_columns(report))
    written = sheet.table(columns, report["cases"])
    colour(sheet, columns, written)
    return len(report["cases"]) - written


def colour(sheet: Sheet, columns: list[Column], rows: int) -> None:
    """Colour outcomes, scores from 0 to 1 and shares from 0 to 100, with one rule for columns side by side."""
    shown = enumerate(columns[: len(columns) - sheet.left_out] if rows else ())
    for look, group in groupby(shown, key=lambda column: OUTCOME if column[1].header == OUTCOME else column[1].style):
        places = [place for place, _ in group]
        rules: list[dict[str, Any]] = []
        if look == OUTCOME:
            rules = [
                {"type": "cell", "criteria": "==", "value": f'"{outcome}"', "format": sheet.styles[style]}
                for outcome, style in OUTCOME_STYLES.items()
            ]
        elif look in ("score", "share"):
            rules = [scale(1 if look == "score" else 100)]
        for rule in rules:
            sheet.worksheet.conditional_format(1, places[0], rows, places[-1], rule)


def scale(best: float) -> dict[str, Any]:
    """Return a scale of three colours from 0 to the best value."""
    numbers = {"min_type": "num", "mid_type": "num", "max_type": "num"}
    values = {"min_value": 0, "mid_value": best / 2, "max_value": best}
    colours = {"min_color": LOW, "mid_color": MIDDLE, "max_color": HIGH}
    return {"type": "3_color_scale", **numbers, **values, **colours}


def _columns(report: Report) -> Iterator[Column]:
    yield Column(header="Question ID", read=at("id"), width=24)
    yield Column(header="Difficulty", read=at("difficulty"))
    yield Column(header="VQL Generated", read=at("predicted", "query"), width=60, style="query", note=GENERATED)
    yield Column(header="Ground Truth VQL", read=at("gold", "query"), width=60, style="query", note=GROUND_TRUTH)
    for column in DETAILS:
        metric, heading = metric_of(column, report["metrics"]), column.details
        read = _score(metric, heading.scale) if metric else lambda _: None
        style = "score" if heading.scale == 1 else "share"
        yield Column(header=heading.text, read=read, style=style, note=details_note(column, report))
    for name in TIMES:
        note = f"{name}: the value of this name in the metadata of the prediction, in seconds."
        yield Column(header=name, read=at("prediction", "metadata", name), style="seconds", note=note)
    yield from OWN
    beside = costs(report["metrics"])
    for name in metric_names(report["cases"]):
        yield Column(header=name, read=_score(name), style="seconds" if name in beside else "score")


def at(*path: str) -> Callable[[CaseReport], Any]:
    """Return a function that reads the value at a path of names in a case."""
    return lambda case: part(case, *path)


def _score(metric: str, scale: int = 1) -> Callable[[CaseReport], Any]:
    def read(case: CaseReport) -> Any:
        value = case["scores"].get(metric)
        return None if value is None else scale * value

    return read


GENERATED = "VQL Generated: the predicted query or answer, in any language."
GROUND_TRUTH = "Ground Truth VQL: the gold query or answer; of several golds the one that predicted came nearest to."
OWN = (
    Column(header="Question", read=at("question"), width=40, style="wrapped"),
    Column(header=OUTCOME, read=at("outcome")),
    Column(header="Message", read=at("message"), width=50, style="wrapped"),
    Column(header="Kind", read=at("kind")),
    Column(header="Path", read=at("path"), width=30),
    Column(header="Line", read=at("line"), style="count"),
    Column(header="Row", read=at("row"), style="count"),
    Column(header="Node ID", read=at("nodeid"), width=40),
    Column(header="Tags", read=lambda case: " ".join(case["tags"]), width=16),
    Column(header="Source", read=at("source"), width=16),
    Column(header="Predictor", read=at("prediction", "source"), width=20),
    Column(header="Prediction (s)", read=at("prediction", "seconds"), style="seconds"),
    Column(header="Generated Runs (s)", read=at("predicted", "seconds"), style="seconds"),
    Column(header="Ground Truth Runs (s)", read=at("gold", "seconds"), style="seconds"),
    Column(header="Generated Rows", read=at("predicted", "row_count"), style="count"),
    Column(header="Ground Truth Rows", read=at("gold", "row_count"), style="count"),
)
