"""Many reports of the same suite as a table: the best first, and which of the others may be as good."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_queryeval.aggregation import CaseJson, Report, metric_statistics, totals
from pytest_queryeval.measures import is_measure


def leaderboard(reports: Mapping[str, Report]) -> dict[str, Any]:
    """The systems by name, ranked by the mean of `metric`: the first score, no time and no cost, of the first reports.

    Each has `rank` (None without a score), its `totals`, its `metrics` with mean, n and 95 % interval, and `p`: the
    two-sided paired test against the best system over the cases that both have scores of, adjusted by Holm; None for
    the best itself and where there is no such case. `common` is how many cases all reports have.
    """
    scored = {name: _scored(report["cases"]) for name, report in reports.items()}
    metric = next((name for found in scored.values() for name in found if not is_measure(name)), "")
    ranked = sorted(scored, key=lambda name: -_mean(scored[name], metric))
    compared = _against_best(reports, [name for name in ranked if metric in scored[name]], metric)
    names = [{case["nodeid"] for case in report["cases"]} for report in reports.values()]
    systems = [
        {
            "name": name,
            "rank": _rank(name, metric, scored),
            "totals": totals(reports[name]["cases"]),
            "metrics": scored[name],
            "p": compared.get(name),
        }
        for name in ranked
    ]
    return {
        "metric": metric or None,
        "common": len(set.intersection(*names)),
        "cases": len(set.union(*names)),
        "systems": systems,
    }


def _scored(cases: Sequence[CaseJson]) -> dict[str, dict[str, Any]]:
    return {
        name: {key: found[key] for key in ("mean", "n", "ci95")} for name, found in metric_statistics(cases).items()
    }


def _mean(found: Mapping[str, Mapping[str, Any]], metric: str) -> float:
    return float(found[metric]["mean"]) if metric in found else -math.inf


def _rank(name: str, metric: str, scored: Mapping[str, Mapping[str, Any]]) -> int | None:
    """The place of a system; those with the same mean share one."""
    if metric not in scored[name]:
        return None
    return 1 + sum(_mean(found, metric) > _mean(scored[name], metric) for found in scored.values())


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
