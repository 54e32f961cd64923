"""Many reports of the same suite as a table: the best first, and which of the others may be as good."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypedDict

from pytest_queryeval.core.errors import ReportError, did_you_mean
from pytest_queryeval.core.metric import Better
from pytest_queryeval.core.report import Report, SuiteChange, Totals
from pytest_queryeval.results.aggregation import costs, metric_statistics, totals
from pytest_queryeval.results.baseline.changes import METRICS, SKIPPED, XFAIL, changes
from pytest_queryeval.results.baseline.flips import match_cases, paired_scores

NOT_COMMON = "node ids begin at the root folder (`rootdir:`), which has to be the same"
EASED = (SKIPPED, XFAIL, METRICS)  # changes that are found in one direction only


class Mean(TypedDict):
    """The mean of a metric over `n` cases, and the ends of its 95 % confidence interval."""

    mean: float
    n: int
    ci95: list[float] | None


class System(TypedDict):
    """A system of a leaderboard; `leaderboard` says what its members are."""

    name: str
    rank: int | None
    totals: Totals
    metrics: dict[str, Mean]
    p: float | None
    changes: list[SuiteChange]
    eased: list[SuiteChange]


class Coverage(TypedDict):
    """How many cases there are, have a score of the metric in some report, and in every one that has any at all."""

    cases: int
    scored: int
    common: int


class Leaderboard(Coverage):
    """Systems, the best first, ranked by `metric`, None where there is no score."""

    metric: str | None
    better: Better
    systems: list[System]


def leaderboard(reports: Mapping[str, Report], metric: str | None = None) -> Leaderboard:
    """Return the systems by name, ranked by the mean of `metric`: where None is given, the first one that is no cost.

    Each has `rank` (None without a score, shared by equal means), its `totals`, its `metrics` with mean, n and 95 %
    interval, and `p` of the two-sided paired test against the best system over the cases that both have scores of,
    adjusted by Holm; `p` is None for the best itself and where there is no such case. `changes` are those of cases that
    its suite evaluates otherwise than that of the best system, `eased` what the suite of the best system left out that
    its own required. `better` tells which means of the metric come first. Counted are all `cases`, those `scored` by
    the metric in any report, and those `common` to all reports that have scores of it.

    Raise `ReportError` where no report has the metric, and where none of its cases is in all reports.
    """
    means: dict[str, dict[str, Mean]] = {
        name: {
            each: {"mean": found["mean"], "n": found["n"], "ci95": found["ci95"]}
            for each, found in metric_statistics(report["cases"]).items()
        }
        for name, report in reports.items()
    }
    lower = {name for report in reports.values() for name in costs(report["metrics"])}
    known = list(dict.fromkeys(name for found in means.values() for name in found))
    if metric is not None and metric not in known:
        raise ReportError(f"no report has a score of '{metric}'{did_you_mean(metric, known)}")
    ranked_by = metric or next((name for name in known if name not in lower), "")
    coverage = _coverage(reports.values(), ranked_by)
    if coverage["scored"] and not coverage["common"]:
        raise ReportError(f"nothing to rank: no case has a score of '{ranked_by}' in all reports; {NOT_COMMON}")
    sign = -1.0 if ranked_by in lower else 1.0
    points = {
        name: sign * found[ranked_by]["mean"] if ranked_by in found else -math.inf for name, found in means.items()
    }
    ranks = {name: 1 + sum(other > own for other in points.values()) for name, own in points.items()}
    best, *others = sorted(reports, key=lambda name: -points[name])
    p_values = _p_values({name: reports[name] for name in others}, reports[best], ranked_by)
    return {
        "metric": ranked_by or None,
        "better": "lower" if ranked_by in lower else "higher",
        **coverage,
        "systems": [
            {
                "name": name,
                "rank": ranks[name] if ranked_by in means[name] else None,
                "totals": totals(reports[name]["cases"]),
                "metrics": means[name],
                "p": p_values.get(name),
                "changes": _changes(reports[best], reports[name]) if name != best else [],
                "eased": _eased(reports[best], reports[name]) if name != best else [],
            }
            for name in (best, *others)
        ],
    }


def _coverage(reports: Iterable[Report], metric: str) -> Coverage:
    cases = [{case["nodeid"]: case["scores"].get(metric) for case in report["cases"]} for report in reports]
    scored = [{nodeid for nodeid, score in own.items() if score is not None} for own in cases]
    ranked = [own for own in scored if own]
    return {
        "cases": len(set[str]().union(*cases)),
        "scored": len(set[str]().union(*scored)),
        "common": len(set.intersection(*ranked)) if ranked else 0,
    }


def _changes(best: Report, other: Report) -> list[SuiteChange]:
    """Return the changes of cases that both have; added and removed cases are counted for all systems together."""
    found = match_cases(best, other)
    in_both = {new["nodeid"] for _, new in found.common}
    return [change for change in changes(best, other, found) if change["cases"] and in_both.issuperset(change["cases"])]


def _eased(best: Report, other: Report) -> list[SuiteChange]:
    """Return what the suite of the best system left out that the other one's required."""
    return [change for change in changes(other, best, match_cases(other, best)) if change["what"] in EASED]


def _p_values(others: Mapping[str, Report], best: Report, metric: str) -> dict[str, float]:
    """Return the adjusted p of each system that shares scored cases with the best one."""
    from pytest_queryeval.results.baseline.statistics import Pairs, holm, p_value

    scores = {name: paired_scores(metric, match_cases(best, other).common) for name, other in others.items()}
    shared = {name: Pairs(*zip(*pairs, strict=True)) for name, pairs in scores.items() if pairs}
    return dict(zip(shared, holm([p_value(pairs) for pairs in shared.values()]), strict=True))
