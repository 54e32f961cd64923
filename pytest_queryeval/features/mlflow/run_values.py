"""What a run of MLflow says of a report: metrics, parameters and tags by their names there."""

from __future__ import annotations

import re
from typing import cast

from pytest_queryeval.core.report import Report, ScoreStatistics
from pytest_queryeval.reports.sections import pass_rate
from pytest_queryeval.results.verdict import verdict
from pytest_queryeval.text.formatting import one_line

VALUE_CHARACTERS = 500  # of a parameter and of a tag
_INVALID = re.compile(r"[^\w. -]|(?<!\w)\.")  # a point at the beginning of a part would be a folder


def run_metrics(report: Report) -> dict[str, float]:
    """Return the numbers of a report by name: means with their intervals, counts of cases and causes, and measures."""
    values: dict[str, float] = {}
    for name, statistics in report["metrics"].items():
        values |= _scores(metric_name(name), statistics)
    if (rate := pass_rate(report["totals"], report["groups"]["source"])) is not None:
        values |= _scores("pass_rate", rate)
    for name, measure in report["measures"].items():
        measure_name = metric_name(name)
        values |= {f"{measure_name}.mean": measure["mean"], f"{measure_name}.p95": measure["p95"]}
        values[f"{measure_name}.sum"] = measure["sum"]
    totals = cast("dict[str, int]", report["totals"])
    values |= {f"cases.{name}": float(number) for name, number in totals.items()}
    values |= {f"causes.{metric_name(label)}": float(number) for label, number in report["causes"].items()}
    return values


def _scores(name: str, statistics: ScoreStatistics) -> dict[str, float]:
    values = {name: statistics["mean"], f"{name}.n": float(statistics["n"])}
    if statistics["ci95"] is not None:
        values[f"{name}.ci95_low"], values[f"{name}.ci95_high"] = statistics["ci95"]
    return values


def metric_name(name: str) -> str:
    """Return a name of the characters that MLflow allows; those of other characters have their code points.

    >>> metric_name("recall[COUNTRY]")
    'recall/COUNTRY'
    >>> metric_name("metadata[cost/call]")
    'metadata/cost_2f_call'
    """
    family, bracket, parameter = name.partition("[")
    parts = (family, parameter.removesuffix("]")) if bracket else (family,)
    return "/".join(_INVALID.sub(lambda match: f"_{ord(match[0]):x}_", part) for part in parts)


def parameters(report: Report) -> dict[str, str]:
    """Return what the run was made with, which another export of the same report does not change."""
    environment = report["environment"]
    values = {
        "predictor": ", ".join(report["predictor"]["sources"]),
        "paths": ", ".join(report["requested_paths"]["paths"]),
        "python": environment.get("python", ""),
        "pytest_queryeval": environment.get("pytest_queryeval", ""),
        **{f"engine.{metric_name(name)}": version for name, version in environment.get("engines", {}).items()},
    }
    return {name: one_line(value, VALUE_CHARACTERS) for name, value in values.items() if value}


def tags(report: Report) -> dict[str, str]:
    """Return what the run came to."""
    run_verdict = verdict(report)
    return {
        "queryeval.verdict": run_verdict.state,
        "queryeval.summary": one_line(run_verdict.line.removeprefix("queryeval: "), VALUE_CHARACTERS),
        "queryeval.created": report["created"],
    }
