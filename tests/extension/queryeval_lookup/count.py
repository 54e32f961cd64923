"""Count the cases of a report."""

import argparse
from pathlib import Path

from pytest_queryeval.cli.command import Command
from pytest_queryeval.cli.output import Result
from pytest_queryeval.results.report_file import read_report

EXAMPLE = "queryeval count report.json"
COUNT = Command(module=__name__, summary="count the cases of a report")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("report", type=Path, metavar="REPORT.json", help="a report")


def run(arguments: argparse.Namespace) -> Result:
    cases = len(read_report(arguments.report)["cases"])
    return Result(status=0, lines=[f"{cases} cases"], data={"cases": cases})
