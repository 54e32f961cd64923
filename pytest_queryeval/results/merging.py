"""One report of the reports of shards: as one run would have made it, but for times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import PurePosixPath

from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.core.metric import Better
from pytest_queryeval.core.report import CaseReport, Environment, PendingGate, Report, RequestedPaths, RunFacts
from pytest_queryeval.results.aggregation import costs
from pytest_queryeval.results.case_store import CasesByNodeid
from pytest_queryeval.results.gated_report import gated_report
from pytest_queryeval.results.gates import EarlyDecision, are_left_out, merge_gates
from pytest_queryeval.results.run_name import CHARACTERS
from pytest_queryeval.text.truncation import one_line


def merge(parts: Mapping[str, Report], baseline: tuple[str, Report] | None = None) -> Report:
    """Return one report of all parts, by their names, compared with a `baseline`, which comes with its name.

    Cases are merged by node id; where several parts have one, the last of them that ran it counts. Counts and means are
    computed again, and gates are evaluated on all cases, but for those that a part decided on its own. The time is the
    latest one, the environment that of the first part; different ones are under `parts` in it.

    Raise `ReportError` where parts were made by different versions of this package, whose scores may differ, where one
    node id means different cases in them, and where scores are too large to be averaged.
    """
    check_versions(parts)
    _check_cases(parts)
    cases = CasesByNodeid()
    for case in chain.from_iterable(report["cases"] for report in parts.values()):
        if case["outcome"] != "not_run" or case["nodeid"] not in cases:
            cases[case["nodeid"]] = case
    return report_of_all(list(parts.values()), cases.cases, baseline)


def report_of_all(
    reports: Sequence[Report], cases: Sequence[CaseReport], baseline: tuple[str, Report] | None = None
) -> Report:
    """Return the report on the cases of several reports, with their gates; see `merge`."""
    about = _facts(reports, cases)
    # A metric may be known only where a part was made.
    better: dict[str, Better] = {cost: "lower" for report in reports for cost in costs(report["metrics"])}
    try:
        return gated_report(
            cases,
            merge_gates(report["gates"] for report in reports),
            about,
            baseline=baseline,
            better=better,
            decide=lambda gate: _decision(gate, reports),
        )
    except OverflowError as error:
        raise ReportError("scores are too large to be averaged") from error


def _decision(gate: PendingGate, reports: Iterable[Report]) -> EarlyDecision | None:
    """Return the decision of the report that had all cases of a gate and stopped before it ran them."""
    for report in reports:
        for found in report["gates"]:
            if "decided" in found and not report["selected"] and {**found, **gate} == found:
                return EarlyDecision(found["ok"] is True, **found["decided"])
    return None


def repeated(parts: Mapping[str, Report]) -> list[str]:
    """Return the node ids of cases that several parts have."""
    times = Counter(nodeid for report in parts.values() for nodeid in {case["nodeid"] for case in report["cases"]})
    return sorted(nodeid for nodeid, number in times.items() if number > 1)


def _check_cases(parts: Mapping[str, Report]) -> None:
    seen: dict[str, tuple[str, int]] = {}
    for name, report in parts.items():
        for case in report["cases"]:
            facts = hash((case["line"], case.get("row"), case["question"]))
            first, known = seen.setdefault(case["nodeid"], (name, facts))
            if facts != known:
                what = f"{one_line(case['nodeid'])} is another case than in {first}"
                raise ReportError(
                    f"{name}: {what}: parts have one root folder (`--rootdir`) and one state of the suites"
                )


def check_versions(parts: Mapping[str, Report]) -> None:
    """Raise `ReportError` unless all reports were made by one version of this package."""
    versions = {name: report["environment"].get("pytest_queryeval") for name, report in parts.items()}
    (first, wanted), *others = versions.items()
    for name, version in others:
        if version != wanted:
            found, expected = (one_line(each or "of an unknown version") for each in (version, wanted))
            raise ReportError(
                f"{one_line(name)}: made by pytest-queryeval {found}, but {one_line(first)} by {expected}: run all "
                "parts with one version"
            )


def _facts(reports: Sequence[Report], cases: Sequence[CaseReport]) -> RunFacts:
    """Return the head of the report, with what the parts collected, and whether they left cases out, together.

    Where a part left out cases and does not know which, as under --lf, nothing is known of any part.
    """

    def moment(report: Report) -> datetime:
        created = datetime.fromisoformat(report["created"])
        return created if created.tzinfo else created.replace(tzinfo=UTC)

    selective = [report for report in reports if report["selected"]]
    collected: dict[str, int] = {}
    if all(report["collected"] for report in selective):
        for path, number in sorted(item for report in reports for item in report["collected"].items()):
            collected[path] = number  # the largest of a path comes last
    about: RunFacts = {
        "name": one_line(", ".join(dict.fromkeys(report["name"] for report in reports if report["name"])), CHARACTERS),
        "created": max(reports, key=moment)["created"],
        "environment": _environment(reports),
        "predictor": {"sources": sorted({name for report in reports for name in report["predictor"]["sources"]})},
        "requested_paths": _requested_paths(reports),
        "collected": collected,
        "unreadable_files": sorted({path for report in reports for path in report["unreadable_files"]}),
        "selected": bool(selective) and are_left_out(cases, collected),
        "stopped": any(report["stopped"] for report in reports),
        "interrupted": any(report["interrupted"] for report in reports),
    }
    if len(reports) == 1 and "stop" in reports[0]:
        about["stop"] = reports[0]["stop"]
    return about


def _environment(reports: Iterable[Report]) -> Environment:
    """Return the environment of the first report, and those that differ in more than which engines they opened."""
    every: list[Environment] = []
    for report in reports:
        own = report["environment"].copy()
        for environment in (own, *own.pop("parts", [])):
            _merge_environment(every, environment)
    first, *others = every
    if others:
        first["parts"] = others
    return first


def _merge_environment(every: list[Environment], other: Environment) -> None:
    """Add an environment to the others: its engines to one that differs in nothing but in which engines it names."""
    if other in every:
        return
    for known in every:
        engines, others = known.get("engines"), other.get("engines")
        if engines is None or others is None or engines | others != others | engines:
            continue
        if {**known, "engines": None} == {**other, "engines": None}:
            known["engines"] = dict(sorted((engines | others).items()))
            return
    every.append(other.copy())


def _requested_paths(reports: Sequence[Report]) -> RequestedPaths:
    """Return the requested paths of the parts; where they differ, the folder that holds all of them."""
    first, *others = (report["requested_paths"] for report in reports)
    paths = first["paths"]
    if any(other["paths"] != paths for other in others):
        every = [PurePosixPath(path) for report in reports for path in report["requested_paths"]["paths"]]
        shared = (folder for folder in (every[0], *every[0].parents) if all(p.is_relative_to(folder) for p in every))
        paths = [str(next(shared, PurePosixPath()))]
    return {"paths": paths, "ignored": [each for each in first["ignored"] if all(each in o["ignored"] for o in others)]}
