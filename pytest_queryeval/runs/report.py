"""The report of a run of suites, and where it goes: files, folders, services such as the summary of a step.

It has a name, which says what answered and at which commit, time and environment, collected suites, results and gates.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import QueryEvalError, ReportError
from pytest_queryeval.core.features import feature
from pytest_queryeval.core.metric import Better
from pytest_queryeval.core.model import Case
from pytest_queryeval.core.report import Environment, PendingGate, PredictorReport, Report, RequestedPaths, RunFacts
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.reports import (
    GITHUB,
    PUBLISHED,
    WrittenFiles,
    check_target,
    files_of,
    write_files,
    write_report,
)
from pytest_queryeval.results.aggregation import aggregate, with_joint_scores
from pytest_queryeval.results.gates import EarlyDecision, GateMode, are_left_out, evaluate_gates
from pytest_queryeval.text.formatting import one_line

if TYPE_CHECKING:
    from pytest_queryeval.evaluation.prediction_call import SpendLimit
    from pytest_queryeval.runs.options import RunOptions
    from pytest_queryeval.runs.stopping import EarlyStop


COMMIT_VARIABLES = (
    "GITHUB_SHA",
    "CI_COMMIT_SHA",  # GitLab
    "BUILD_SOURCEVERSION",  # Azure
    "BITBUCKET_COMMIT",
    "CIRCLE_SHA1",
    "GIT_COMMIT",  # Jenkins
)
GIT_SECONDS = 2.0
CHARACTERS = 100


def gated_report(
    cases: Sequence[CaseReport],
    gates: Iterable[PendingGate],
    about: RunFacts,
    *,
    mode: GateMode = "complete",
    baseline: tuple[str, Report] | None = None,
    better: Mapping[str, Better] | None = None,
    decide: Callable[[PendingGate], EarlyDecision | None] | None = None,
) -> Report:
    """Return the report on cases, with their gates evaluated and joint scores added.

    `baseline` is the name and the report to compare with; the comparison is added to `about`. `about` and `better` are
    those of `aggregate`. `decide` returns the decision on a gate that was made before all cases ran, or None.
    """
    name, earlier = baseline or ("", None)
    cases = with_joint_scores(cases)
    results = evaluate_gates(
        gates, cases, unreadable_files=about["unreadable_files"], mode=mode, baseline=baseline, decide=decide
    )
    if earlier is not None:
        from pytest_queryeval.results.baseline.comparison import compare_reports

        about["baseline"] = compare_reports(earlier, {**about, "cases": cases, "gates": results}, path=name)
    return aggregate(cases, gates=results, about=about, better=better)


def report_of_run(
    cases: Sequence[CaseReport],
    gates: Iterable[PendingGate],
    options: RunOptions,
    *,
    environment: Environment,
    requested_paths: RequestedPaths,
    collected: dict[str, int],
    unreadable_files: Iterable[str],
    selected: bool,
    stopped: bool,
    interrupted: bool,
    stop: EarlyStop | None = None,
    spend: SpendLimit | None = None,
) -> Report:
    """Return the report on the cases of a run, with its name, time, environment, gates and comparison to the baseline.

    `environment` adds facts to the versions of Python and this package. The other arguments are those of `RunFacts`.
    Settings of predictors are left out, because they may be secret.
    """
    predictor = predictor_of(cases)
    about: RunFacts = {
        "name": run_name(options.name or "", predictor, options.root),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": {
            "python": platform.python_version(),
            "pytest_queryeval": version("pytest-queryeval"),
            "platform": _platform(),
            **environment,
        },
        "predictor": predictor,
        "requested_paths": requested_paths,
        "collected": dict(sorted(collected.items())),
        "unreadable_files": sorted(set(unreadable_files)),
        "selected": selected and are_left_out(cases, collected),
        "stopped": stopped,
        "interrupted": interrupted,
    }
    if options.replay:
        about["environment"]["replay"] = True
    if options.challenge:
        about["environment"]["challenge"] = True
    if stop is not None:
        about["stop"] = stop.report()
    if spend is not None:
        about["spend"] = spend.report()
    baseline = options.baseline_report
    compared = (options.baseline or "", baseline) if baseline is not None else None
    decide = stop.decision if stop is not None else None
    return gated_report(cases, gates, about, mode=options.gates, baseline=compared, decide=decide)


def _platform() -> str:
    """Return `platform.platform(terse=True)`, on Linux without the process that it would start."""
    system = os.uname()
    if system.sysname != "Linux":
        return platform.platform(terse=True)
    return f"Linux-{system.release}-{system.machine}-with-{''.join(platform.libc_ver())}"


def engine_versions(cases: Iterable[Case]) -> dict[str, str]:
    """Return the versions of the engines that run in this process, by name.

    Services have no known version. Engines that are missing or whose source has an error are left out.
    """
    versions: set[str] = set()
    for source in {source.key: source for case in cases for source in case.settings.sources}.values():
        with suppress(QueryEvalError, PackageNotFoundError):  # their cases report what is missing
            versions.update(ENGINES[source.engine].fingerprint.version(source.settings).split(", "))
    return {name: version for name, _, version in (text.partition(" ") for text in sorted(versions)) if version}


def predictor_of(cases: Iterable[CaseReport]) -> PredictorReport:
    """Return the sorted names of the predictors that answered the cases."""
    return {"sources": sorted({case["prediction"]["source"] for case in cases if case["prediction"]})}


def run_name(chosen_name: str, predictor: PredictorReport, folder: Path) -> str:
    """Return the chosen name in one line; if it is blank, the predictors and the commit of the folder."""
    if chosen_name.strip():
        return one_line(chosen_name, CHARACTERS)
    commit = _commit(folder)
    sources = one_line(", ".join(predictor["sources"]), CHARACTERS - len(commit) - 1)
    return " ".join(filter(None, (sources, commit)))


def _commit(folder: Path) -> str:
    """Return the first seven digits of the commit that CI names, otherwise the short id that git finds in a folder.

    git's id has `+dirty` if files have changed. Return an empty text without git, repository or answer in GIT_SECONDS.
    """
    commits = (os.environ.get(variable, "") for variable in COMMIT_VARIABLES)
    if commit := next(filter(re.compile("[0-9a-f]{7,64}").fullmatch, commits), ""):
        return commit[:7]
    options = ("--always", "--abbrev=7", "--dirty=+dirty", "--exclude=*")
    try:
        description = subprocess.run(  # noqa: S603 - nothing of it comes from outside
            ["git", "-c", "core.fsmonitor=false", "describe", *options],  # noqa: S607 - as a user calls it
            cwd=folder,
            env=os.environ | {"GIT_OPTIONAL_LOCKS": "0"},  # a run does not lock the index
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=True,
        ).stdout.decode("ascii")
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):  # no git, no repository, no time
        return ""
    return description.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTargets:
    """The files, folders and summary that a report is written to."""

    paths: Sequence[Path] = ()
    """Files, and folders for all formats."""
    summary: Path | None = None
    """The summary of a step of GitHub Actions."""
    layout: str = PUBLISHED
    """The layout of workbooks."""

    def write(self, report: Report) -> WrittenFiles:
        """Write the report to all targets, JSON first, and return the written files and the problems."""
        files = [file for path in self.paths for file in files_of(path)]
        files.sort(key=lambda file: file.suffix != ".json")
        written = write_files(files, partial(write_report, report, layout=self.layout))
        if self.summary is not None:
            summary = write_files([self.summary], partial(feature("ci").append_step_summary, report))
            written.paths += summary.paths
            written.problems += summary.problems
        return written

    def commands(self, report: Report, root: Path) -> Iterator[str]:
        """Yield the annotation lines for the log of GitHub Actions; none unless a step summary is a target.

        Paths in the report are relative to `root`.
        """
        if self.summary is not None:
            yield from feature("ci").annotation_lines(report, root)


def report_targets(
    names: Iterable[str], *, option: str, folder: Path, layout: str, baseline: Path | None = None
) -> ReportTargets:
    """Return the targets that the values of an option name; paths are relative to `folder`.

    GITHUB stands for the step summary. Raises `ReportError`, which names the option, for a target that cannot be
    written, or that is the baseline.
    """
    names = list(names)
    paths = [folder / name for name in names if name != GITHUB]
    try:
        for path in paths:
            check_target(path, baseline)
        summary = feature("ci").step_summary_file() if GITHUB in names else None
    except ReportError as error:
        raise ReportError(f"{option}: {error}") from error
    return ReportTargets(paths=paths, summary=summary, layout=layout)
