"""Writes the predictions of a report as a published tool reads them."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from pytest_queryeval.cli.output import Result, first_lines
from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.core.report import Report
from pytest_queryeval.features.transfer.exporters import EXPORTERS, Exported
from pytest_queryeval.reports import write_whole
from pytest_queryeval.results.gates import are_left_out
from pytest_queryeval.results.report_file import read_report
from pytest_queryeval.text.formatting import pluralize

EXAMPLE = "queryeval export report.json -f spider -o predictions.txt"
OK, FINDINGS = 0, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the report, the format, and where the predictions go."""
    parser.add_argument("report", type=Path, metavar="REPORT.json", help="a report.json of a whole data set")
    names = EXPORTERS.names()
    parser.add_argument("-f", "--format", choices=names, required=True, metavar="FORMAT", help=", ".join(names))
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the file (FORMAT.json or .txt here)")
    parser.add_argument("--force", action="store_true", help="replace the file if it is there")


def run(arguments: argparse.Namespace) -> Result:
    """Write the predictions; status 1 where cases have none.

    Raise `ReportError` for a report of a part of its cases, and for a file that would be overwritten.
    """
    report = read_report(arguments.report)
    _check_complete(report, arguments.report)
    cases = [
        Exported(
            id=case["id"],
            question=case["question"],
            kind=case["kind"] or "",
            source=case["source"] or "",
            query=None if case["predicted"] is None else case["predicted"]["query"],
        )
        for case in report["cases"]
    ]
    try:
        file = EXPORTERS[arguments.format](cases)
    except ReportError as error:
        raise ReportError(f"{arguments.report}: {error}") from error
    target = arguments.output or Path(
        f"{arguments.format}.{'json' if file.content.startswith((b'{', b'[')) else 'txt'}"
    )
    if os.path.lexists(target) and not arguments.force:
        raise ReportError(f"{target}: is there already: write elsewhere, or replace it with --force")
    write_whole(target, file.content)
    missing_ids = [*(case.id for case in cases if case.query is None), *file.fillers]
    lines = [
        f"{arguments.format}: {target}",
        f"{pluralize(len(cases), 'case')}, {len(missing_ids):,} without a prediction",
    ]
    lines += first_lines([f"no prediction: {name}" for name in missing_ids])
    data = {"file": str(target), "cases": len(cases), "missing": missing_ids}
    return Result(status=FINDINGS if missing_ids else OK, lines=lines, data=data)


def _check_complete(report: Report, path: Path) -> None:
    """Raise `ReportError` where cases were left out, since published tools find the gold by position."""
    collected = report["collected"]  # empty where the run was none of pytest's
    is_cut = report["selected"] or report["stopped"] or report["totals"]["not_run"]
    if is_cut or (collected and are_left_out(report["cases"], collected)):
        raise ReportError(f"{path}: is of a part of its cases, whose positions are not known: run all of them")
    if not report["cases"]:
        raise ReportError(f"{path}: has no case")
