"""Renders a report again, in any format, from its report.json alone; several runs of the same cases as one report."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, cast

from pytest_queryeval.cli.output import Result
from pytest_queryeval.core.case_report import CaseReport, TrialReport, UnreviewedReport, ViolationReport
from pytest_queryeval.core.errors import MissingFeatureError, ReportError
from pytest_queryeval.core.model import Outcome
from pytest_queryeval.core.report import JoinedRun, Report
from pytest_queryeval.features.report_files.merge_command import check_versions, report_of_all
from pytest_queryeval.reports import LAYOUTS, REQUESTED, report_files, write_files, write_report
from pytest_queryeval.reports.added_sections import SECTIONS
from pytest_queryeval.results.case_store import Cases, CasesByNodeid, append_case
from pytest_queryeval.results.report_file import read_report
from pytest_queryeval.text.formatting import one_line

EXAMPLE = "queryeval render report.json -o report.html"
OK, FAILED = 0, 1
WORST_FIRST: tuple[Outcome, ...] = ("error", "failed", "missed", "xfailed", "xpassed", "passed", "skipped", "not_run")

SAME_SUITES = "join runs of one state of the suites"
REMEDIES = {
    "question": SAME_SUITES,
    "gold": SAME_SUITES,
    "prediction": "score the same predictions in both, with `--queryeval-predictor` and the workbook of one of them",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments: the reports, options of the formats, files of added sections, and the targets."""
    reports_help = "a report.json; of several runs of the same cases, all metrics come into one report"
    parser.add_argument("reports", nargs="+", type=Path, metavar="REPORT.json", help=reports_help)
    output_help = "write the report: PATH.html and the like, or a folder for all formats; may be given again"
    layout = "sheets of published evaluators in the workbook: requested (the default) if the run has their metrics"
    parser.add_argument("--excel-layout", choices=LAYOUTS, default=REQUESTED, help=layout)
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
    """Render the report, and return the names of the files; the status is 1 if a file could not be written, else 0.

    Several reports are joined first. Raise `ReportError` for a report that cannot be used, reports that cannot be
    joined, and a target that cannot be written.
    """
    files = report_files(arguments.output)
    if arguments.excel_layout != REQUESTED and all(file.suffix != ".xlsx" for file in files):
        raise ReportError("--excel-layout is about workbooks: add -o PATH.xlsx, or leave it out")
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


def join(runs: Mapping[str, Report]) -> Report:
    """Return one report of several `runs`, given by their names, with the metrics of all runs.

    Cases are matched by node id. A case gets its worst outcome. Other fields are from the run with that outcome, or
    from another run if they are missing there. Counts, means and gates are computed again. `joined` lists the metrics
    of each run; a metric belongs to the first run that has a score.

    Raise `ReportError` if runs were made by different versions of this package. Raise it too if a case differs in its
    question, gold or prediction, or in the score of a metric that several runs have.
    """
    check_versions(runs)
    by_nodeid = {name: CasesByNodeid(run["cases"]) for name, run in runs.items()}
    joined_cases: Cases = []
    first_of: dict[str, str] = {}
    for nodeid in dict.fromkeys(chain.from_iterable(by_nodeid.values())):
        cases = {name: run_cases[nodeid] for name, run_cases in by_nodeid.items() if nodeid in run_cases}
        _check_agreement(cases)
        for name, case in cases.items():
            for metric, score in case["scores"].items():
                if score is not None:
                    first_of.setdefault(metric, name)
        joined_cases = append_case(joined_cases, _joined_case(list(cases.values())))
    report = report_of_all(list(runs.values()), joined_cases)
    joined: list[JoinedRun] = [
        {
            "name": name,
            "created": run["created"],
            "sources": run["predictor"]["sources"],
            "cases": len(run["cases"]),
            "metrics": [metric for metric, first in first_of.items() if first == name],
        }
        for name, run in runs.items()
    ]
    report["joined"] = joined
    return report


def _check_agreement(cases: Mapping[str, CaseReport]) -> None:
    """Raise `ReportError` if runs differ in question, gold, prediction or a score of a case; missing facts agree."""
    first_facts: dict[str, tuple[str, object]] = {}
    for name, case in cases.items():
        fingerprint, predicted = case["fingerprint"], case["predicted"]
        trials = [trial["predicted"]["query"] for trial in case["trials"]]
        facts = {
            "question": case["question"],
            # Metrics may choose different golds of several, so the digest of all of them is compared where it is known.
            "gold": (fingerprint["golds"], fingerprint.get("review"))
            if fingerprint
            else case["gold"] and case["gold"]["query"],
            "prediction": trials or (predicted and [predicted["query"]]),
        }
        scores = ((f"metric {metric}", score) for metric, score in case["scores"].items())
        for fact, content in (*facts.items(), *scores):
            first_run, first_content = (
                first_facts.setdefault(fact, (name, content)) if content is not None else (name, None)
            )
            if content == first_content:
                continue
            place = f"{one_line(name)}: {one_line(case['nodeid'])}"
            if fact in facts:
                raise ReportError(f"{place} has another {fact} than in {one_line(first_run)}: {REMEDIES[fact]}")
            raise ReportError(
                f"{place} has {content:g} for {one_line(fact)}, but {first_content:g} in {one_line(first_run)}: "
                "request the metric in one of the runs only"
            )


def _joined_case(cases: Sequence[CaseReport]) -> CaseReport:
    ranked_cases = sorted(cases, key=lambda case: WORST_FIRST.index(case["outcome"]))
    joined_case: dict[str, Any] = {}
    for case in ranked_cases:
        joined_case |= {key: value for key, value in case.items() if joined_case.get(key) is None}
    decisive_cases = [case for case in ranked_cases if case["outcome"] == joined_case["outcome"]]
    notes = dict.fromkeys(note for case in cases for note in case["details"].get("notes", ()))
    details: dict[str, Any] = {}
    for case in reversed(cases):
        details |= case["details"]
    joined_case |= {
        "message": "\n".join(dict.fromkeys(case["message"] for case in decisive_cases if case["message"])),
        "scores": _joined_scores(cases),
        "violations": _joined_violations(cases),
        "depends_on_tie": any(case["depends_on_tie"] for case in cases),
        "details": details | ({"notes": list(notes)} if notes else {}),
        "trials": [
            _joined_trial(trials) for trials in zip(*(case["trials"] for case in cases if case["trials"]), strict=True)
        ],
    }
    if unreviewed := [case["unreviewed"] for case in ranked_cases if "unreviewed" in case]:
        joined_case["unreviewed"] = {**unreviewed[0], "scores": _joined_scores(unreviewed)}
    fingerprints = [case["fingerprint"] for case in cases if case["fingerprint"] is not None]
    if fingerprints:
        metrics = dict.fromkeys(name for fingerprint in fingerprints for name in fingerprint["metrics"])
        thresholds = {
            name: limits for fingerprint in fingerprints for name, limits in fingerprint["thresholds"].items()
        }
        joined_case["fingerprint"] = {**fingerprints[0], "metrics": list(metrics), "thresholds": thresholds}
    return cast(CaseReport, joined_case)


def _joined_trial(trials: Sequence[TrialReport]) -> TrialReport:
    verdicts = {trial["passed"] for trial in trials} - {None}
    return {
        **trials[0],
        "passed": False not in verdicts if verdicts else None,
        "scores": _joined_scores(trials),
        "violations": _joined_violations(trials),
    }


def _joined_scores(parts: Iterable[CaseReport | TrialReport | UnreviewedReport]) -> dict[str, float | None]:
    """Return the scores by metric, from the first part that has a score; None if no part has one."""
    scores: dict[str, float | None] = {}
    for part in parts:
        scores |= {name: score for name, score in part["scores"].items() if scores.get(name) is None}
    return scores


def _joined_violations(parts: Iterable[CaseReport | TrialReport]) -> list[ViolationReport]:
    """Return the missed thresholds of all parts without repetitions."""
    violations: list[ViolationReport] = []
    for part in parts:
        violations += [violation for violation in part["violations"] if violation not in violations]
    return violations
