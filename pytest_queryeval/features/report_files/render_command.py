"""Renders a report again, in any format, from its report.json alone; several runs of the same cases as one report."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from pytest_queryeval.cli.output import Result
from pytest_queryeval.features.report_files.joining import join
from pytest_queryeval.reports import LAYOUTS, PUBLISHED, report_files, write_files, write_report
from pytest_queryeval.results.report_file import read_report, read_weak_cases

EXAMPLE = "queryeval render report.json -o report.html"
OK, FAILED = 0, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the reports and where their other formats go."""
    reports_help = "a report.json; of several runs of the same cases, all metrics come into one report"
    parser.add_argument("reports", nargs="+", type=Path, metavar="REPORT.json", help=reports_help)
    output_help = "write the report: PATH.html and the like, or a folder for all formats; may be given again"
    layout = "plain: a workbook without the sheets of published evaluators; published: with them, which is the default"
    parser.add_argument("--excel-layout", choices=LAYOUTS, default=PUBLISHED, help=layout)
    strength = "what `queryeval strength --json` printed: the page lists the weak cases of the report"
    parser.add_argument("--strength", type=Path, metavar="STRENGTH.json", help=strength)
    parser.add_argument("-o", "--output", action="append", type=Path, required=True, metavar="PATH", help=output_help)


def run(arguments: argparse.Namespace) -> Result:
    """Render, and name the files; 0 where all are written, 1 where one could not be.

    Raise `ReportError` for a report that cannot be used, reports that cannot be joined, and a target that cannot be
    written.
    """
    files = report_files(arguments.output)
    runs = {str(path): read_report(path) for path in arguments.reports}
    report = join(runs) if len(runs) > 1 else runs.popitem()[1]
    if arguments.strength is not None:
        report_cases = {(case["path"], case["id"]) for case in report["cases"]}
        weak = [case for case in read_weak_cases(arguments.strength) if (case["path"], case["id"]) in report_cases]
        report = {**report, "weak_cases": weak}
    written_files = write_files(files, partial(write_report, report, layout=arguments.excel_layout))
    return Result(
        status=FAILED if written_files.problems else OK, lines=written_files.lines(), data=written_files.data()
    )
