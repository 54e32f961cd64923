"""One report of the reports of shards: as one run would have made it, but for times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePosixPath

from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.core.metric import Better
from pytest_queryeval.core.report import CaseReport, Environment, Report, RequestedPaths, RunFacts
from pytest_queryeval.results.aggregation import aggregate, costs
from pytest_queryeval.results.baseline import compared
from pytest_queryeval.results.gates import are_left_out, evaluate_gate, merge_gates
from pytest_queryeval.text.plain import one_line


def merge(parts: Mapping[str, Report], baseline: tuple[str, Report] | None = None) -> Report:
    """The report of all parts, which are given by their names, as `read_report` returns them.

    It is compared with a `baseline`, which comes with what it is called.

    Cases are united by node id; where several parts have one, the last of them counts. What is counted or averaged is
    so anew, and gates are evaluated on all cases. The time is the latest one, the environment that of the first part;
    other ones stand under `parts` in it.

    Raises `ReportError` where parts were made by different versions of this package, whose scores may differ, where one
    node id means different cases in them, and where scores are too large to be averaged.
    """
    _check_versions(parts)
    _check_cases(parts)
    reports = list(parts.values())
    cases = list({case["nodeid"]: case for report in reports for case in report["cases"]}.values())
    about = _facts(reports, cases)
    unreadable_files, earlier = about["unreadable_files"], None if baseline is None else baseline[1]
    try:
        gates = [
            evaluate_gate(gate, cases, unreadable_files=unreadable_files, baseline=earlier)
            for gate in merge_gates(report["gates"] for report in reports)
        ]
        if baseline is not None:
            about["baseline"] = compared(baseline[1], {**about, "cases": cases, "gates": gates}, path=baseline[0])
        return aggregate(cases, gates=gates, about=about, better=_better(reports))
    except OverflowError as error:
        raise ReportError("scores are too large to be averaged") from error


def repeated(parts: Mapping[str, Report]) -> list[str]:
    """The node ids of cases that several parts have."""
    times = Counter(nodeid for report in parts.values() for nodeid in {case["nodeid"] for case in report["cases"]})
    return sorted(nodeid for nodeid, number in times.items() if number > 1)


def _check_cases(parts: Mapping[str, Report]) -> None:
    seen: dict[str, tuple[str, CaseReport]] = {}
    for name, report in parts.items():
        for case in report["cases"]:
            first, other = seen.setdefault(case["nodeid"], (name, case))
            if (case["line"], case["question"]) != (other["line"], other["question"]):
                what = f"{one_line(case['nodeid'])} is another case than in {first}"
                raise ReportError(
                    f"{name}: {what}: parts have one root folder (`--rootdir`) and one state of the suites"
                )


def _check_versions(parts: Mapping[str, Report]) -> None:
    versions = {name: report["environment"].get("pytest_queryeval") for name, report in parts.items()}
    (first, wanted), *others = versions.items()
    for name, version in others:
        if version != wanted:
            raise ReportError(
                f"{one_line(name)}: made by pytest-queryeval {_named(version)}, but {one_line(first)} by "
                f"{_named(wanted)}: run all parts with one version"
            )


def _named(version: str | None) -> str:
    return "of an unknown version" if version is None else one_line(version)


def _moment(created: str) -> datetime:
    moment = datetime.fromisoformat(created)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _facts(reports: Sequence[Report], cases: Sequence[CaseReport]) -> RunFacts:
    """Return the head of the report, with what the parts collected, and whether they left cases out, together.

    Where a part was told to leave out cases and does not know which, as under --lf, nothing is known of all of them.
    """
    selective = [report for report in reports if report["selected"]]
    collected: dict[str, int] = {}
    if all(report["collected"] for report in selective):
        for path, number in sorted(item for report in reports for item in report["collected"].items()):
            collected[path] = number  # the largest of a path comes last
    return {
        "created": max((report["created"] for report in reports), key=_moment),
        "environment": _environment(reports),
        "predictor": {"sources": sorted({name for report in reports for name in report["predictor"]["sources"]})},
        "requested_paths": _requested_paths(reports),
        "collected": collected,
        "unreadable_files": sorted({path for report in reports for path in report["unreadable_files"]}),
        "selected": bool(selective) and are_left_out(cases, collected),
        "stopped": any(report["stopped"] for report in reports),
        "interrupted": any(report["interrupted"] for report in reports),
    }


def _environment(reports: Iterable[Report]) -> Environment:
    """Return the environment of the first report, and those that differ in more than which engines they opened."""
    every: list[Environment] = []
    for report in reports:
        own = report["environment"].copy()
        for environment in (own, *own.pop("parts", [])):
            _add_environment(every, environment)
    first, *others = every
    if others:
        first["parts"] = others
    return first


def _add_environment(every: list[Environment], other: Environment) -> None:
    """Put it among those that are known: into one that agrees with it where there is such, else behind them."""
    if other in every:
        return
    for known in every:
        if _agree(known, other):
            known["engines"] = dict(sorted({**known["engines"], **other["engines"]}.items()))
            return
    every.append(other.copy())


def _agree(one: Environment, other: Environment) -> bool:
    """Return whether two environments differ in nothing but in which engines they name."""
    if "engines" not in one or "engines" not in other:
        return False
    engines, others = one["engines"], other["engines"]
    return {**one, "engines": 0} == {**other, "engines": 0} and engines | others == others | engines


def _requested_paths(reports: Sequence[Report]) -> RequestedPaths:
    """Return what the parts were asked for; where that differs, all below the folder that holds it, as for gates."""
    first, *others = (report["requested_paths"] for report in reports)
    paths = first["paths"]
    if any(other["paths"] != paths for other in others):
        every = [PurePosixPath(path) for report in reports for path in report["requested_paths"]["paths"]]
        shared = (folder for folder in (every[0], *every[0].parents) if all(p.is_relative_to(folder) for p in every))
        paths = [str(next(shared, PurePosixPath()))]
    return {"paths": paths, "ignored": [each for each in first["ignored"] if all(each in o["ignored"] for o in others)]}


def _better(reports: Iterable[Report]) -> dict[str, Better]:
    """The metrics of which a part says that lower is better: it may be known only where that part was made."""
    return {name: "lower" for report in reports for name in costs(report["metrics"])}
