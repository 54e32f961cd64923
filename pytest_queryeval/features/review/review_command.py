"""Ranks cases by how likely their golds are wrong, each with the evidence, such as systems that agree against it.

Each report is a system. Its queries are run again, and answers are compared as the cases compare them.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from pytest_queryeval.cli.conftests import read_suites
from pytest_queryeval.cli.output import Result, first_lines, teller, with_progress
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.review.ranking import examine_case, rank_cases, ranking_data
from pytest_queryeval.features.review.systems import read_systems
from pytest_queryeval.runs.root import root_of
from pytest_queryeval.text.truncation import one_line

EXAMPLE = "queryeval review suites model_a.json model_b.json"
OK = 0
NODEID_CHARACTERS = 300
_tell = teller("review")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the suites and the reports of systems."""
    parser.add_argument("path", type=Path, metavar="PATH", help="a suite file, or a folder with suites")
    report_help = "a report.json on these suites, one for each system"
    parser.add_argument("reports", type=Path, nargs="*", metavar="REPORT.json", help=report_help)


def run(arguments: argparse.Namespace) -> Result:
    """Return the cases, the most doubtful first; always 0.

    Raise `SuiteError` for suites that cannot be read, and `ReportError` for a report that cannot be used.
    """
    suites, left_out = read_suites(arguments.path)
    for why in left_out:
        _tell(f"not examined: {why}")
    root = root_of([arguments.path])
    cases = {
        f"{Path(os.path.relpath(suite.path, root)).as_posix()}::{case.id}": case
        for suite in suites
        for case in suite.cases
    }
    systems = read_systems(arguments.reports, cases)
    with Session(_tell) as session:
        ranking = rank_cases(
            examine_case(
                case,
                nodeid,
                {system.name: system.answers[nodeid] for system in systems if nodeid in system.answers},
                session,
            )
            for nodeid, case in with_progress(cases.items(), _tell, total=len(cases))
        )
    data = ranking_data(ranking)
    lines = [
        f"{case['rank']}. {one_line(case['nodeid'], NODEID_CHARACTERS)}: {evidence['text']}"
        for case in data
        for evidence in case["evidence"]
    ]
    return Result(status=OK, lines=first_lines(lines), data={"cases": data})
