"""Many reports of the same suite as a table: the best first, and which of the others may be as good."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_queryeval.aggregation import Report, costs, metric_statistics, totals
from pytest_queryeval.baseline.changes import changes
from pytest_queryeval.baseline.flips import matched
from pytest_queryeval.errors import ReportError, did_you_mean

NUMBERS = ("mean", "n", "ci95")


def leaderboard(reports: Mapping[str, Report], metric: str | None = None) -> dict[str, Any]:
    """The systems by name, ranked by the mean of `metric`: where None is given, the first one that is no cost.

    Each has `rank` (None without a score), its `totals`, its `metrics` with mean, n and 95 % interval, `p`: the
    two-sided paired test against the best system over the cases that both have scores of, adjusted by Holm, and
    `changes`: what its suite asked otherwise than that of the best; `p` is None for the best itself and where there is
    no such case. `better` tells which means of the metric come first, and `common` how many cases all reports have.
    Raises `ReportError` where no report has the metric.
    """
    scored = {name: _scored(report) for name, report in reports.items()}
    lower = {name for report in reports.values() for name in costs(report["metrics"])}
    known = list(dict.fromkeys(name for found in scored.values() for name in found))
    if metric is not None and metric not in known:
        raise ReportError(f"no report has a score of '{metric}'{did_you_mean(metric, known)}")
    by = metric or next((name for name in known if name not in lower), "")
    points = {name: _points(found.get(by), is_lower=by in lower) for name, found in scored.items()}
    ranked = sorted(scored, key=lambda name: -points[name])
    tested = _against_best(reports, [name for name in ranked if by in scored[name]], by)
    cases = [{case["nodeid"] for case in report["cases"]} for report in reports.values()]
    return {
        "metric": by or None,
        "better": "lower" if by in lower else "higher",
        "common": len(set.intersection(*cases)),
        "cases": len(set.union(*cases)),
        "systems": [
            {
                "name": name,
                # Those with the same mean share a place.
                "rank": 1 + sum(other > points[name] for other in points.values()) if by in scored[name] else None,
                "totals": totals(reports[name]["cases"]),
                "metrics": scored[name],
                "p": tested.get(name),
                "changes": _changes(reports[ranked[0]], reports[name]),
            }
            for name in ranked
        ],
    }


def _scored(report: Report) -> dict[str, dict[str, Any]]:
    return {name: {key: found[key] for key in NUMBERS} for name, found in metric_statistics(report["cases"]).items()}


def _points(found: Mapping[str, Any] | None, *, is_lower: bool) -> float:
    """What systems are ranked by: more is better."""
    if found is None:
        return -math.inf
    return -found["mean"] if is_lower else float(found["mean"])


def _changes(best: Report, other: Report) -> list[dict[str, Any]]:
    """What was asked otherwise of cases that both have; that some have other cases is told for all systems at once."""
    if best is other:
        return []
    found = matched(best, other)
    in_both = {new["nodeid"] for _, new in found.common}
    asked = [
        change | {"cases": [case for case in change["cases"] if case in in_both]}
        for change in changes(best, other, found)
    ]
    return [change for change in asked if change["cases"]]


def _against_best(reports: Mapping[str, Report], ranked: Sequence[str], metric: str) -> dict[str, float]:
    from pytest_queryeval.baseline.statistics import Pairs, holm, p_value

    if len(ranked) < 2:
        return {}
    best, *others = ({case["nodeid"]: case["scores"].get(metric) for case in reports[n]["cases"]} for n in ranked)
    found: dict[str, float] = {}
    for name, scores in zip(ranked[1:], others, strict=True):
        pairs = [(best[nodeid], score) for nodeid, score in scores.items() if nodeid in best]
        known = [(one, other) for one, other in pairs if one is not None and other is not None]
        if known:
            found[name] = p_value(Pairs(before=[one for one, _ in known], after=[other for _, other in known]))
    return dict(zip(found, holm(list(found.values())), strict=True))
