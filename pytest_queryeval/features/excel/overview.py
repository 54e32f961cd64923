"""The sheet Overview: macro recall, macro precision and the terms of each SDMX case."""

from __future__ import annotations

from pytest_queryeval.core.report import Report
from pytest_queryeval.features.excel.sheet import Column, Sheet, at

SDMX = "sdmx"
COLUMNS = (
    Column(header="id", read=at("id"), width=28),
    Column(header="question", read=at("question"), width=44),
    Column(header="macro recall", read=at("scores", "macro_recall"), style="score", note="macro recall: macro_recall."),
    Column(
        header="macro precision",
        read=at("scores", "macro_precision"),
        style="score",
        note="macro precision: macro_precision.",
    ),
    Column(
        header="indicator selection details",
        read=at("details", "indicator_selection"),
        width=64,
        style="query",
        lines=20,
        note="indicator selection details: per dimension its recall and precision, and the terms that were found, "
        "not found, and selected though they are no target.",
    ),
    Column(header="dataset recall", read=at("scores", "dataset_recall"), style="score"),
    Column(header="dataset precision", read=at("scores", "dataset_precision"), style="score"),
    Column(header="Outcome", read=at("outcome"), style="outcome"),
    Column(header="Message", read=at("message"), width=50),
)


def write_overview(sheet: Sheet, report: Report) -> int:
    """Write the sheet, and return how many SDMX cases have no row, since a sheet has no more of them."""
    cases = [case for case in report["cases"] if case["kind"] == SDMX]
    return sheet.table(COLUMNS, cases, printed=len(COLUMNS))
