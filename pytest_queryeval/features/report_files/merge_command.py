"""Unites the reports of shards: writes the report that one run would have made, and evaluates the gates."""

from __future__ import annotations

import argparse
import math
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath

from pytest_queryeval.cli.output import Result
from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.core.groups import folder_text
from pytest_queryeval.core.mappings import grouped
from pytest_queryeval.core.metric import Better
from pytest_queryeval.core.report import Environment, PendingGate, Report, RequestedPaths, RunFacts, SpendReport
from pytest_queryeval.reports import report_files, write_files, write_report
from pytest_queryeval.reports.blocks import text_sentence
from pytest_queryeval.reports.sections import leading_names
from pytest_queryeval.reports.summary import summary_lines, verdict_line
from pytest_queryeval.results.aggregation import lower_is_better
from pytest_queryeval.results.case_store import CasesByNodeid
from pytest_queryeval.results.gates import EarlyDecision, are_left_out, gate_key, merge_gates
from pytest_queryeval.results.report_file import moment_of, read_report
from pytest_queryeval.results.verdict import verdict
from pytest_queryeval.runs.report import CHARACTERS, gated_report
from pytest_queryeval.text.formatting import one_line, pluralize

EXAMPLE = "queryeval merge shard-1.json shard-2.json -o report.json"
MAX_LISTED = 5
# The exit statuses of pytest.
OK, FAILED, NO_CASES = 0, 1, 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments: the reports to merge, a baseline, and where the merged report is written."""
    parser.add_argument("parts", nargs="+", type=Path, metavar="PART.json", help="a report.json of a shard")
    output_help = "write the report: PATH.json, or a folder for all formats; may be given again"
    earlier = "compare with an earlier report, and evaluate gates by it"
    parser.add_argument("--baseline", type=Path, metavar="REPORT.json", help=earlier)
    parser.add_argument("-o", "--output", action="append", type=Path, default=[], metavar="PATH", help=output_help)


def run(arguments: argparse.Namespace) -> Result:
    """Merge the reports, write the result, and return the summary.

    The status is 0 if no case failed and no gate is missed, 5 if there is no case, else 1. Raise `ReportError` for a
    report that cannot be used and a target that cannot be written.
    """
    base: Path | None = arguments.baseline
    files = report_files(arguments.output, base)
    paths = list(reversed(dict.fromkeys(reversed(arguments.parts))))  # of a part given twice the last place counts
    parts = {str(path): read_report(path) for path in paths}
    report = merge(parts, None if base is None else (str(base), read_report(base)))
    written_files = write_files(files, partial(write_report, report))
    line, _ = verdict_line(report, written_files.problems, command="merge")
    repeated_paths = (path for path in paths if arguments.parts.count(path) > 1)
    notes = [f"{path} is given more than once: it counts once" for path in repeated_paths]
    lines = [
        *(text for text, _ in summary_lines(report, width=shutil.get_terminal_size().columns)),
        *(f"could not be read: {path}" for path in report["unreadable_files"]),
        *(f"stopped before its end: {name}" for name, part in parts.items() if part["stopped"]),
    ]
    if twice := repeated_nodeids(parts):
        case_names = text_sentence(leading_names(twice, MAX_LISTED))
        lines.append(f"{pluralize(len(twice), 'case')} in several parts, of which the last one counts: {case_names}")
    if "parts" in report["environment"]:
        lines.append("the parts were made in different environments: the report names them")
    lines += [*notes, *written_files.lines(), line]
    merged_verdict = verdict(report)
    if merged_verdict.is_faulty:
        status = FAILED
    elif not report["totals"]["cases"]:
        status = NO_CASES
    else:
        status = FAILED if written_files.problems else OK
    data = {
        "verdict": merged_verdict.state,
        "totals": report["totals"],
        "gates": report["gates"],
        **written_files.data(),
    }
    return Result(status=status, lines=lines, data=data)


def merge(parts: Mapping[str, Report], baseline: tuple[str, Report] | None = None) -> Report:
    """Return one report of several `parts`, given by their names, compared with a `baseline` if there is one.

    The baseline is a name and a report. Cases are merged by node id. If several parts have a case, the last part that
    ran it counts. Counts and means are computed again. Gates are evaluated on all cases, except gates that a part
    decided early. The creation time is the latest. The environment is that of the first part, with different
    environments under its `parts`.

    Raise `ReportError` in these cases:

    - parts were made by different versions of this package, whose scores may differ
    - one node id means different cases
    - parts state different gates for a folder
    - scores are too large to be averaged
    """
    check_versions(parts)
    _check_gates(parts)
    origins: dict[str, tuple[str, int]] = {}
    for name, report in parts.items():
        for case in report["cases"]:
            facts_hash = hash((case["line"], case.get("row"), case["question"]))
            first_part, first_hash = origins.setdefault(case["nodeid"], (name, facts_hash))
            if facts_hash != first_hash:
                problem = f"{one_line(case['nodeid'])} is another case than in {first_part}"
                raise ReportError(
                    f"{name}: {problem}: parts have one root folder (`--rootdir`) and one state of the suites"
                )
    cases = CasesByNodeid()
    for case in chain.from_iterable(report["cases"] for report in parts.values()):
        if case["outcome"] != "not_run" or case["nodeid"] not in cases:
            cases[case["nodeid"]] = case
    return report_of_all(list(parts.values()), cases.cases, baseline)


def report_of_all(
    reports: Sequence[Report], cases: Sequence[CaseReport], baseline: tuple[str, Report] | None = None
) -> Report:
    """Return the report on `cases`, with the gates and the facts of all `reports` merged as `merge` describes.

    Raise `ReportError` if scores are too large to be averaged.
    """
    about = _merged_facts(reports, cases)
    # A metric may be known only where a part was made.
    better: dict[str, Better] = {cost: "lower" for report in reports for cost in lower_is_better(report["metrics"])}
    try:
        return gated_report(
            cases,
            merge_gates(report["gates"] for report in reports),
            about,
            baseline=baseline,
            better=better,
            decide=lambda gate: _early_decision(gate, reports),
        )
    except OverflowError as error:
        raise ReportError("scores are too large to be averaged") from error


def _early_decision(gate: PendingGate, reports: Iterable[Report]) -> EarlyDecision | None:
    """Return the early decision on a gate, from a report that collected all cases; None if there is none."""
    for report in reports:
        for gate_report in report["gates"]:
            if "decided" in gate_report and not report["selected"] and {**gate_report, **gate} == gate_report:
                return EarlyDecision(gate_report["ok"] is True, **gate_report["decided"])
    return None


def repeated_nodeids(parts: Mapping[str, Report]) -> list[str]:
    """Return the node ids of cases that are in more than one part, sorted."""
    times = Counter(nodeid for report in parts.values() for nodeid in {case["nodeid"] for case in report["cases"]})
    return sorted(nodeid for nodeid, number in times.items() if number > 1)


def check_versions(parts: Mapping[str, Report]) -> None:
    """Raise `ReportError` unless all reports were made by the same version of this package."""
    versions = {name: report["environment"].get("pytest_queryeval") for name, report in parts.items()}
    (first_part, first_version), *further_versions = versions.items()
    for name, version in further_versions:
        if version != first_version:
            version_text, first_text = (one_line(text or "of an unknown version") for text in (version, first_version))
            raise ReportError(
                f"{one_line(name)}: made by pytest-queryeval {version_text}, "
                f"but {one_line(first_part)} by {first_text}: run all parts with one version"
            )


def _check_gates(parts: Mapping[str, Report]) -> None:
    """Raise `ReportError` if two parts state different gates for the same folder."""
    stated: dict[str, tuple[str, list[str]]] = {}
    for name, report in parts.items():
        gates = merge_gates([report["gates"]])
        for folder, keys in grouped((gate["folder"], gate_key(gate)) for gate in gates).items():
            first_part, first_keys = stated.setdefault(folder, (name, keys))
            if keys != first_keys:
                problem = f"states other gates{folder_text(folder)} than {one_line(first_part)}"
                raise ReportError(f"{one_line(name)}: {problem}: run all parts with one state of the suites")


def _merged_facts(reports: Sequence[Report], cases: Sequence[CaseReport]) -> RunFacts:
    """Return the facts of the merged run: name, time, environment, predictors, paths, collected cases and how it ended.

    `collected` is empty if a part left out cases without knowing which cases, as under --lf.
    """
    selected_reports = [report for report in reports if report["selected"]]
    collected: dict[str, int] = {}
    if all(report["collected"] for report in selected_reports):
        for path, number in sorted(entry for report in reports for entry in report["collected"].items()):
            collected[path] = number  # the largest of a path comes last
    environments: list[Environment] = []  # the first report's, and those that differ in more than opened engines
    for report in reports:
        environment = report["environment"].copy()
        for part in (environment, *environment.pop("parts", [])):
            _merge_environment(environments, part)
    first_environment, *further_environments = environments
    if further_environments:
        first_environment["parts"] = further_environments
    sources = sorted({name for report in reports for name in report["predictor"]["sources"]})
    about: RunFacts = {
        "name": one_line(_merged_name(reports, sources), CHARACTERS),
        "created": max((report["created"] for report in reports), key=moment_of),
        "environment": first_environment,
        "predictor": {"sources": sources},
        "requested_paths": _requested_paths(reports),
        "collected": collected,
        "unreadable_files": sorted({path for report in reports for path in report["unreadable_files"]}),
        "selected": bool(selected_reports) and are_left_out(cases, collected),
        "stopped": any(report["stopped"] for report in reports),
        "interrupted": any(report["interrupted"] for report in reports),
    }
    if len(reports) == 1 and "stop" in reports[0]:
        about["stop"] = reports[0]["stop"]
    if spends := [report["spend"] for report in reports if "spend" in report]:
        about["spend"] = _total_spend(spends)
    return about


def _merged_name(reports: Sequence[Report], sources: Sequence[str]) -> str:
    """Return the name of the merged run: the different names of the parts, joined by commas.

    If every name is that of the part's predictors with the same ending, such as a commit, name all predictors with it.
    """
    firsts = [", ".join(report["predictor"]["sources"]) for report in reports]
    ends = {report["name"][len(first) :] for report, first in zip(reports, firsts, strict=True)}
    if len(ends) == 1 and all(
        first and report["name"].startswith(first) for report, first in zip(reports, firsts, strict=True)
    ):
        return f"{', '.join(sources)}{ends.pop()}"
    return ", ".join(dict.fromkeys(report["name"] for report in reports if report["name"]))


def _total_spend(spends: Sequence[SpendReport]) -> SpendReport:
    """Return the spend of the parts together: limits, sums and calls are added up.

    Parts that limit another number than the first part are left out.
    """
    name = spends[0]["name"]
    spends = [spend for spend in spends if spend["name"] == name]
    report: SpendReport = {
        "name": name,
        "limit": math.fsum(spend["limit"] for spend in spends),
        "sum": math.fsum(spend["sum"] for spend in spends),
        "calls": sum(spend["calls"] for spend in spends),
        "unstated": sum(spend["unstated"] for spend in spends),
        "reached": any(spend["reached"] for spend in spends),
    }
    in_a_row = [spend["unstated_in_a_row"] for spend in spends if "unstated_in_a_row" in spend]
    return {**report, "unstated_in_a_row": max(in_a_row)} if in_a_row else report


def _merge_environment(environments: list[Environment], environment: Environment) -> None:
    """Add an environment to the list in place, unless it is there.

    If it differs from a listed environment only in engines, and no engine has two versions, its engines are added to
    that environment.
    """
    if environment in environments:
        return
    for existing in environments:
        existing_engines, engines = existing.get("engines"), environment.get("engines")
        if existing_engines is None or engines is None or existing_engines | engines != engines | existing_engines:
            continue
        if {**existing, "engines": None} == {**environment, "engines": None}:
            existing["engines"] = dict(sorted((existing_engines | engines).items()))
            return
    environments.append(environment.copy())


def _requested_paths(reports: Sequence[Report]) -> RequestedPaths:
    """Return the requested paths of the merged run: those of all parts if they are equal, else their common folder.

    Paths in another order are not equal. The folder is "." if the paths share no other one. Only patterns that all
    parts ignored are ignored.
    """
    first, *further_requests = (report["requested_paths"] for report in reports)
    paths = first["paths"]
    if any(request["paths"] != paths for request in further_requests):
        all_paths = [PurePosixPath(path) for report in reports for path in report["requested_paths"]["paths"]]
        shared_folders = (
            folder
            for folder in (all_paths[0], *all_paths[0].parents)
            if all(p.is_relative_to(folder) for p in all_paths)
        )
        paths = [str(next(shared_folders, PurePosixPath()))]
    return {
        "paths": paths,
        "ignored": [
            pattern
            for pattern in first["ignored"]
            if all(pattern in request["ignored"] for request in further_requests)
        ],
    }
