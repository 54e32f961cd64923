"""Ranks cases by how likely their golds are wrong, each with the evidence, such as systems that agree against it.

Each report is a system. Its queries are run again, and answers are compared as the cases compare them.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from pytest_queryeval.cli.conftests import read_suites
from pytest_queryeval.cli.output import Result, first_lines, teller, with_progress
from pytest_queryeval.core.model import Case
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.review.page import serve_review
from pytest_queryeval.features.review.page.golds import GoldReview
from pytest_queryeval.features.review.ranking import examine_case, rank_cases, ranking_data
from pytest_queryeval.features.review.reviews_key import reviews_of
from pytest_queryeval.features.review.systems import read_systems
from pytest_queryeval.runs.root import root_of
from pytest_queryeval.suites.suites import Suite
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
    serve_help = "open a page on this machine to decide on the golds, at the end of all arguments"
    parser.add_argument("--serve", type=int, nargs="?", const=0, metavar="PORT", help=serve_help)


def run(arguments: argparse.Namespace) -> Result:
    """Return the cases, the most doubtful first; always 0.

    Raise `SuiteError` for suites that cannot be read, and `ReportError` for a report that cannot be used.
    """
    suites, left_out = read_suites(arguments.path)
    for why in left_out:
        _tell(f"not examined: {why}")
    if arguments.serve is not None:
        for suite in suites:
            reviews_of(suite)  # raises now what would be raised after a long ranking
    root = root_of([arguments.path])
    suites_of_cases: dict[str, Suite] = {}
    cases: dict[str, Case] = {}
    for suite in suites:
        path = Path(os.path.relpath(suite.path, root)).as_posix()
        cases |= {f"{path}::{case.id}": case for case in suite.cases}
        suites_of_cases |= {f"{path}::{case.id}": suite for case in suite.cases}
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
    if arguments.serve is not None:
        review = GoldReview(ranking, suites_of_cases)
        serve_review(review, title="Review of golds", port=arguments.serve or None, tell=_tell)
        return Result(status=OK, lines=review.appended_lines(), data={})
    data = ranking_data(ranking)
    lines = [
        f"{case['rank']}. {one_line(case['nodeid'], NODEID_CHARACTERS)}: {evidence['text']}"
        for case in data
        for evidence in case["evidence"]
    ]
    return Result(status=OK, lines=first_lines(lines), data={"cases": data})
