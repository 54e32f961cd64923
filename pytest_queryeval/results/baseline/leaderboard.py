"""Many reports of the same suite as a table: the best first, and which of the others may be as good."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypedDict

from pytest_queryeval.core.errors import ReportError, did_you_mean
from pytest_queryeval.core.metric import Better
from pytest_queryeval.core.report import Report, SuiteChange, Totals
from pytest_queryeval.results.aggregation import costs, metric_statistics, totals
from pytest_queryeval.results.baseline.changes import METRICS, SKIPPED, XFAIL, changes
from pytest_queryeval.results.baseline.flips import Matched, matched, paired_scores

NOT_COMMON = "node ids begin at the root folder (`rootdir:`), which has to be the same"
EASED = (SKIPPED, XFAIL, METRICS)  # changes that show one way only: the other way the same case is asked more


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

    Each has `rank` (None without a score), its `totals`, its `metrics` with mean, n and 95 % interval, `p`: the
    two-sided paired test against the best system over the cases that both have scores of, adjusted by Holm, `changes`:
    what its suite asked otherwise than that of the best, and `eased`: where that of the best asked less than its own;
    `p` is None for the best itself and where there is no such case. `better` tells which means of the metric come
    first. Counted are all `cases`, those `scored` by the metric in any report, and those `common` to all that it ranks.
    Raises `ReportError` where no report has the metric, and where none of its cases is in all reports.
    """
    scored = {name: _scored(report) for name, report in reports.items()}
    lower = {name for report in reports.values() for name in costs(report["metrics"])}
    known = list(dict.fromkeys(name for found in scored.values() for name in found))
    by = _ranked_by(metric, known, lower)
    coverage = _coverage(reports.values(), by)
    if coverage["scored"] and not coverage["common"]:
        raise ReportError(f"nothing to rank: no case has a score of '{by}' in all reports; {NOT_COMMON}")
    points = {name: _points(found.get(by), is_lower=by in lower) for name, found in scored.items()}
    best, *others = sorted(scored, key=lambda name: -points[name])
    beside_best = {name: matched(reports[best], reports[name]) for name in others}
    tested = _tested(beside_best, by)
    return {
        "metric": by or None,
        "better": "lower" if by in lower else "higher",
        **coverage,
        "systems": [
            {
                "name": name,
                "rank": _rank(points, name) if by in scored[name] else None,
                "totals": totals(reports[name]["cases"]),
                "metrics": scored[name],
                "p": tested.get(name),
                "changes": _changes(reports[best], reports[name], beside_best[name]) if name != best else [],
                "eased": _eased(reports[best], reports[name]) if name != best else [],
            }
            for name in (best, *others)
        ],
    }


def _ranked_by(metric: str | None, known: Sequence[str], lower: Collection[str]) -> str:
    """The metric that was asked for, else the first that is no cost; empty where there is none."""
    if metric is not None and metric not in known:
        raise ReportError(f"no report has a score of '{metric}'{did_you_mean(metric, known)}")
    return metric or next((name for name in known if name not in lower), "")


def _rank(points: Mapping[str, float], name: str) -> int:
    """The place of a system; those with the same mean share one."""
    return 1 + sum(other > points[name] for other in points.values())


def _scored(report: Report) -> dict[str, Mean]:
    return {
        name: {"mean": found["mean"], "n": found["n"], "ci95": found["ci95"]}
        for name, found in metric_statistics(report["cases"]).items()
    }


def _points(found: Mean | None, *, is_lower: bool) -> float:
    """What systems are ranked by: more is better."""
    if found is None:
        return -math.inf
    return -found["mean"] if is_lower else found["mean"]


def _coverage(reports: Iterable[Report], metric: str) -> Coverage:
    cases = [{case["nodeid"]: case["scores"].get(metric) for case in report["cases"]} for report in reports]
    scored = [{nodeid for nodeid, score in own.items() if score is not None} for own in cases]
    ranked = [own for own in scored if own]
    return {
        "cases": len(set[str]().union(*cases)),
        "scored": len(set[str]().union(*scored)),
        "common": len(set.intersection(*ranked)) if ranked else 0,
    }


def _changes(best: Report, other: Report, found: Matched) -> list[SuiteChange]:
    """What was asked otherwise of cases that both have; that some have other cases is told for all systems at once."""
    in_both = {new["nodeid"] for _, new in found.common}
    told = changes(best, other, found)
    return [change for change in told if change["cases"] and in_both.issuperset(change["cases"])]


def _eased(best: Report, other: Report) -> list[SuiteChange]:
    """What the suite of the best system left out that the other one's asked."""
    return [change for change in changes(other, best, matched(other, best)) if change["what"] in EASED]


def _tested(beside_best: Mapping[str, Matched], metric: str) -> dict[str, float]:
    """The p of each system that shares scored cases with the best one."""
    from pytest_queryeval.results.baseline.statistics import Pairs, holm, p_value

    shared = {name: pairs for name, found in beside_best.items() if (pairs := paired_scores(metric, found.common))}
    values = [p_value(Pairs(before=[one for one, _ in p], after=[other for _, other in p])) for p in shared.values()]
    return dict(zip(shared, holm(values), strict=True))
