"""Writes the predictions of a report as a published tool reads them, or sends a whole report to another service."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from pytest_queryeval.cli.output import Result, first_lines
from pytest_queryeval.core.errors import QueryEvalError, ReportError
from pytest_queryeval.core.report import Report
from pytest_queryeval.features.transfer import EXPORT_TARGETS
from pytest_queryeval.features.transfer.exporters import EXPORTERS, Exported
from pytest_queryeval.reports import write_whole
from pytest_queryeval.results.gates import are_left_out
from pytest_queryeval.results.report_file import read_report
from pytest_queryeval.text.formatting import one_line, pluralize
from pytest_queryeval.text.redaction import mask_credentials, register_secrets

EXAMPLE = "queryeval export report.json -f spider -o predictions.txt"
OK, FINDINGS = 0, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the report, the format, and where the predictions or the report go."""
    parser.add_argument("report", type=Path, metavar="REPORT.json", help="a report.json; with -f of a whole data set")
    names = EXPORTERS.names()
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("-f", "--format", choices=names, metavar="FORMAT", help=f"the format: {', '.join(names)}")
    target.add_argument("--to", metavar="TARGET", help=f"the service that gets the report: {_target_forms()}")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the file (FORMAT.json or .txt here)")
    parser.add_argument("--force", action="store_true", help="replace the file if it is there")


def _target_forms() -> str:
    return " or ".join(f"{name}:ADDRESS" for name in EXPORT_TARGETS)


def run(arguments: argparse.Namespace) -> Result:
    """Send the report, or write its predictions; status 1 if the service refuses a part, or cases have none.

    Raise `ReportError` for a report of a part of its cases whose predictions are to be written, and for a file that
    would be overwritten; `QueryEvalError` for a service that cannot be used.
    """
    report = read_report(arguments.report)
    if arguments.to is not None:
        if arguments.output is not None or arguments.force:
            raise QueryEvalError("--to sends the report and writes no file: leave out --output and --force")
        return _send(report, arguments.to)
    return _write_predictions(report, arguments)


def _send(report: Report, target: str) -> Result:
    scheme, _, address = target.partition(":")
    register_secrets(address)
    if scheme not in EXPORT_TARGETS or not address:
        shown_target = one_line(f"{scheme}:{mask_credentials(address)}")
        raise QueryEvalError(f"--to: expected {_target_forms()}, found '{shown_target}'")
    return EXPORT_TARGETS[scheme](report, address)


def _write_predictions(report: Report, arguments: argparse.Namespace) -> Result:
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
        raise ReportError(f"{target}: already exists: write elsewhere, or replace it with --force")
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
    """Raise `ReportError` if cases were left out, since published tools find the gold by position."""
    collected = report["collected"]  # empty if pytest did not collect the run
    is_cut = report["selected"] or report["stopped"] or report["totals"]["not_run"]
    if is_cut or (collected and are_left_out(report["cases"], collected)):
        raise ReportError(f"{path}: is of a part of its cases, whose positions are not known: run all of them")
    if not report["cases"]:
        raise ReportError(f"{path}: has no case")
