"""The report of a run of suites: time and environment, collected suites, results and gates."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.model import Case
from pytest_queryeval.core.report import Environment, PendingGate, Report, RequestedPaths, RunFacts
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.results.gated_report import gated_report
from pytest_queryeval.results.gates import are_left_out
from pytest_queryeval.results.run_name import predictor_of, run_name
from pytest_queryeval.runs.options import RunOptions

if TYPE_CHECKING:
    from pytest_queryeval.runs.stopping import EarlyStop


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
) -> Report:
    """Return the report on cases; `environment` holds facts besides versions, and the other arguments are `RunFacts`.

    Settings of predictors are left out, since they may be secret.
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
    if stop is not None:
        about["stop"] = stop.report()
    baseline = options.baseline_report
    compared = (options.baseline or "", baseline) if baseline is not None else None
    decide = stop.decision if stop is not None else None
    return gated_report(cases, gates, about, mode=options.gates, baseline=compared, decide=decide)


def _platform() -> str:
    """Return `platform.platform(terse=True)`, on Linux without the process that it starts to ask for a processor."""
    system = os.uname()
    if system.sysname != "Linux":
        return platform.platform(terse=True)
    return f"Linux-{system.release}-{system.machine}-with-{''.join(platform.libc_ver())}"


def engine_versions(cases: Iterable[Case]) -> dict[str, str]:
    """Return the versions of the engines that run here, by name; those of services are unknown."""
    versions: set[str] = set()
    for source in {source.key: source for case in cases for source in case.settings.sources}.values():
        with suppress(QueryEvalError, PackageNotFoundError):  # their cases report what is missing
            versions.update(ENGINES[source.engine].fingerprint.version(source.settings).split(", "))
    return {name: version for name, _, version in (text.partition(" ") for text in sorted(versions)) if version}
