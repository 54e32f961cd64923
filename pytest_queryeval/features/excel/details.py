"""The sheet Details: one row a case, the columns of the published evaluator and what they leave out of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pytest_queryeval.core.report import CaseReport, Report
from pytest_queryeval.features.excel.published import DETAILS, details_note, metric_of
from pytest_queryeval.features.excel.sheet import Column, Sheet, at
from pytest_queryeval.reports.cells import TIMES


def write_details(sheet: Sheet, report: Report) -> int:
    """Write the sheet, and return how many cases have no row, since a sheet has no more of them."""
    columns = list(_columns(report))
    return sheet.table([*columns, *OWN], report["cases"], printed=len(columns))


def _columns(report: Report) -> Iterator[Column]:
    yield Column(header="Question ID", read=at("id"), width=28)
    yield Column(header="Difficulty", read=at("difficulty"))
    yield Column(header="VQL Generated", read=at("predicted", "query"), width=46, style="query", note=GENERATED)
    yield Column(header="Ground Truth VQL", read=at("gold", "query"), width=46, style="query", note=GROUND_TRUTH)
    for column in DETAILS:
        metric, heading = metric_of(column, report["metrics"]), column.details
        read = _score(metric, heading.scale) if metric else lambda _: None
        style = "score" if heading.scale == 1 else "share"
        yield Column(header=heading.text, read=read, style=style, note=details_note(column, report))
    for name in TIMES:
        note = f"{name}: the value of this name in the metadata of the prediction, in seconds."
        yield Column(header=name, read=at("prediction", "metadata", name), style="seconds", note=note)


def _score(metric: str, scale: int) -> Callable[[CaseReport], Any]:
    def read(case: CaseReport) -> Any:
        value = case["scores"].get(metric)
        return None if value is None else scale * value

    return read


GENERATED = "VQL Generated: the predicted query or answer, in any language."
GROUND_TRUTH = "Ground Truth VQL: the gold query or answer; of several golds the one that predicted came nearest to."
OWN = (
    Column(header="Outcome", read=at("outcome"), style="outcome"),
    Column(header="Predictor", read=at("prediction", "source"), width=20),
    Column(header="Prediction (s)", read=at("prediction", "seconds"), style="seconds"),
)
