"""Renders a report again, in any format, from its report.json alone; several runs of the same cases as one report."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from pytest_queryeval.cli.output import Result
from pytest_queryeval.core.errors import MissingFeatureError
from pytest_queryeval.features.report_files.joining import join
from pytest_queryeval.reports import LAYOUTS, PUBLISHED, report_files, write_files, write_report
from pytest_queryeval.reports.added_sections import SECTIONS
from pytest_queryeval.results.report_file import read_report

EXAMPLE = "queryeval render report.json -o report.html"
OK, FAILED = 0, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the reports and where their other formats go."""
    reports_help = "a report.json; of several runs of the same cases, all metrics come into one report"
    parser.add_argument("reports", nargs="+", type=Path, metavar="REPORT.json", help=reports_help)
    output_help = "write the report: PATH.html and the like, or a folder for all formats; may be given again"
    layout = "plain: a workbook without the sheets of published evaluators; published: with them, which is the default"
    parser.add_argument("--excel-layout", choices=LAYOUTS, default=PUBLISHED, help=layout)
    for name in SECTIONS.names():
        try:
            section_file = SECTIONS[name].file
        except MissingFeatureError:  # `run` reports it if the option is used
            parser.add_argument(f"--{name}", type=Path, help=argparse.SUPPRESS)
        else:
            if section_file is not None:
                parser.add_argument(f"--{name}", type=Path, metavar=section_file.metavar, help=section_file.help)
    parser.add_argument("-o", "--output", action="append", type=Path, required=True, metavar="PATH", help=output_help)


def run(arguments: argparse.Namespace) -> Result:
    """Render, and name the files; 0 if all are written, 1 if one could not be.

    Raise `ReportError` for a report that cannot be used, reports that cannot be joined, and a target that cannot be
    written.
    """
    files = report_files(arguments.output)
    runs = {str(path): read_report(path) for path in arguments.reports}
    report = join(runs) if len(runs) > 1 else runs.popitem()[1]
    for name in SECTIONS.names():
        path = getattr(arguments, name, None)
        if path is not None and (section_file := SECTIONS[name].file) is not None:
            report = section_file.read(path, report)
    written_files = write_files(files, partial(write_report, report, layout=arguments.excel_layout))
    return Result(
        status=FAILED if written_files.problems else OK, lines=written_files.lines(), data=written_files.data()
    )
