"""Ranks the systems of reports on the same suite, and says which of the others may be as good as the best.

To save memory, comparisons only keep from predictions whether they abstain: `strip_prediction` and `strip_trials`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, MutableSequence, Sequence
from typing import Literal, NamedTuple, NotRequired, TypeAlias, TypedDict

from pytest_queryeval.core.case_report import CaseReport, PredictionReport, TrialReport
from pytest_queryeval.core.errors import ReportError, did_you_mean
from pytest_queryeval.core.groups import group_values, groups_shown
from pytest_queryeval.core.metric import Better
from pytest_queryeval.core.model import PASS_RATE, Outcome
from pytest_queryeval.core.report import BaselineReport, PairedTest, Report, ScoreStatistics, SuiteChange, Totals
from pytest_queryeval.results.aggregation import (
    lower_is_better,
    metric_statistics,
    shown_interval,
    statistics_of,
)
from pytest_queryeval.results.baseline import NO_COMMON_CASE, RunDifference, run_difference
from pytest_queryeval.results.baseline.comparison import (
    CASE_CHANGES,
    LEFT_OUT,
    METRICS,
    REMOVED,
    SKIPPED,
    XFAIL,
    IsChanged,
    changes,
)
from pytest_queryeval.results.baseline.pairs import Pairs, score_of
from pytest_queryeval.results.case_store import select

# Changes that count only where the suite of the best system requires less.
EASED: Mapping[str, IsChanged] = {
    SKIPPED: lambda old, new: new["outcome"] == "skipped" != old["outcome"],
    XFAIL: CASE_CHANGES[XFAIL],
    METRICS: CASE_CHANGES[METRICS],
}
MIN_GROUP = 10  # cases, below which the means of a group say little
Reason: TypeAlias = Literal[
    "not in the report", "not run", "skipped", "in error", "expected to fail", "without a score"
]
_ANSWERED: PredictionReport = {"source": "", "seconds": 0.0, "metadata": {}}
_ABSTAINED: PredictionReport = {**_ANSWERED, "abstained": True}
_MISSING: PredictionReport = {**_ANSWERED, "missing": True}


class Mean(TypedDict):
    """The mean of a metric, its number of cases and its interval."""

    mean: float
    n: int
    """The number of cases."""
    ci95: list[float] | None
    """The ends of the mean's 95 % confidence interval, by clusters if possible."""


class System(TypedDict):
    """A system of a leaderboard: its rank, means and differences from the best system."""

    name: str
    rank: int | None
    """From 1, shared by systems with equal means; None without any score."""
    totals: Totals
    score: Mean | None
    """The mean of the leaderboard's metric over the common cases; None without any score."""
    difference: PairedTest | None
    """The mean less that of the best system, with p adjusted for all systems; None for the best system itself."""
    metrics: dict[str, Mean]
    """The means of the other metrics over the common cases."""
    left_out: dict[Reason, list[str]]
    """The cases with a score in other reports that are not common because of this system, by the reason."""
    changes: list[SuiteChange]
    """The cases that the suite of this system evaluates differently from that of the best system."""
    eased: list[SuiteChange]
    """The checks that the suite of the best system leaves out and the suite of this system requires."""


class GroupMeans(TypedDict):
    """The means of the cases of a group by system."""

    n: int
    """The number of common cases in the group."""
    means: dict[str, float]
    best: list[str]
    """The systems with the best mean; empty if all means are equal."""


class Differing(TypedDict):
    """The node ids of cases that all reports have and that differ from the first report to the last."""

    first: str
    """The name of the first report."""
    last: str
    """The name of the last report."""
    regressed: list[str]
    """The `regressions` in the `RunDifference` of these two reports."""
    errors: list[str]
    """The `errors` in the `RunDifference`."""
    fixed: list[str]
    """The `fixes` in the `RunDifference`."""
    worse: list[str]
    """Other cases whose score, which all ranked systems have, is worse in the last report."""
    better: list[str]
    """Other cases whose score is better in the last report."""
    others: list[str]
    """Other cases whose score differs in reports between the two only."""


class Leaderboard(TypedDict):
    """Systems ranked by the mean of a metric, the best first."""

    metric: str
    better: Better
    cases: int
    """The number of all cases."""
    scored: int
    """The number of cases that have a score of the metric in any report."""
    common: int
    """The number of cases that have a score in every report with any score; statistics are over these."""
    systems: list[System]
    groups: dict[str, dict[str, GroupMeans]]
    """The means by value of each group that has several values with at least MIN_GROUP common cases."""
    differing: Differing
    baseline: NotRequired[BaselineReport]
    """The comparison of the second of two reports with the first."""


def strip_prediction(prediction: PredictionReport | None) -> PredictionReport | None:
    """Return a prediction that only says whether it is an answer, an abstention or missing; None for None."""
    return None if prediction is None else _stripped(prediction)


def _stripped(prediction: PredictionReport) -> PredictionReport:
    if prediction.get("missing"):
        return _MISSING
    return _ABSTAINED if prediction.get("abstained") else _ANSWERED


def strip_trials(case: CaseReport) -> list[TrialReport]:
    """Return the trials of a case with their verdict and scores, but without queries, answers and violations."""
    return [
        {
            "passed": trial["passed"],
            "scores": trial["scores"],
            "violations": [],
            "predicted": {"query": None, "error": None, "seconds": 0.0},
            "prediction": _stripped(trial["prediction"]),
        }
        for trial in case["trials"]
    ]


class _Scored(NamedTuple):
    """The facts about a case of a report that the ranking needs."""

    place: int
    """The index of the case in the report."""
    outcome: Outcome
    source: str | None
    score: float | None


def leaderboard(reports: Mapping[str, Report], metric: str = PASS_RATE) -> Leaderboard:
    """Return the systems of named reports, ranked by the mean of `metric` over the common cases.

    Common are the cases with a score in all reports that have any score. Raise `ReportError` if no report has the
    metric, and if there are scores but no common case.
    """
    by_nodeid = _scored_cases(reports, metric)
    scores = {
        name: {nodeid: case.score for nodeid, case in cases.items() if case.score is not None}
        for name, cases in by_nodeid.items()
    }
    ranked = {name: case_scores for name, case_scores in scores.items() if case_scores}
    scored = dict.fromkeys(nodeid for case_scores in ranked.values() for nodeid in case_scores)
    common = [nodeid for nodeid in scored if all(nodeid in case_scores for case_scores in ranked.values())]
    if scored and not common:
        raise ReportError(f"nothing to rank: no case has a score of '{metric}' in all reports: {NO_COMMON_CASE}")
    is_lower = any(metric in lower_is_better(report["metrics"]) for report in reports.values())
    sign = -1.0 if is_lower else 1.0
    values = {name: [case_scores[nodeid] for nodeid in common] for name, case_scores in ranked.items()}
    means = {
        name: statistics_of(metric, system_scores, [by_nodeid[name][nodeid].source for nodeid in common])
        for name, system_scores in values.items()
    }
    points = {name: sign * means[name]["mean"] if name in means else -math.inf for name in reports}
    best, *other_names = sorted(reports, key=lambda name: -points[name])
    differences = _differences(values, best)
    systems: list[System] = []
    for name in (best, *other_names):
        ranking_statistics, cases = means.get(name), by_nodeid[name]
        places = [cases[nodeid].place for nodeid in common if nodeid in cases]
        other_means = metric_statistics(select(reports[name]["cases"], places))
        to_best = run_difference(reports[best], reports[name]) if name != best else None
        systems.append(
            {
                "name": name,
                "rank": 1 + sum(point > points[name] for point in points.values()) if ranking_statistics else None,
                "totals": reports[name]["totals"],
                "score": mean_of(ranking_statistics) if ranking_statistics else None,
                "difference": differences.get(name),
                "metrics": {
                    other_metric: mean_of(statistics)
                    for other_metric, statistics in other_means.items()
                    if other_metric != metric
                },
                "left_out": _left_out([nodeid for nodeid in scored if nodeid not in scores[name]], cases),
                # Added and removed cases are counted for all systems together.
                "changes": [
                    change
                    for change in (changes(to_best) if to_best is not None else ())
                    if change["cases"] and change["what"] not in (REMOVED, LEFT_OUT)
                ],
                "eased": _eased(to_best) if to_best is not None else [],
            }
        )
    return {
        "metric": metric,
        "better": "lower" if is_lower else "higher",
        "cases": len(set[str]().union(*by_nodeid.values())),
        "scored": len(scored),
        "common": len(common),
        "systems": systems,
        "groups": _groups(
            reports[best],
            select(reports[best]["cases"], (by_nodeid[best][nodeid].place for nodeid in common)),
            values,
            sign,
        ),
        "differing": _differing(reports, common, values, sign),
    }


def _scored_cases(reports: Mapping[str, Report], metric: str) -> dict[str, dict[str, _Scored]]:
    """Return the cases of each report by node id; raise `ReportError` if no report has the metric."""
    metric_names = dict.fromkeys([PASS_RATE, *(name for report in reports.values() for name in report["metrics"])])
    if metric not in metric_names:
        raise ReportError(f"no report has a score of '{metric}'{did_you_mean(metric, metric_names)}")
    return {
        name: {
            case["nodeid"]: _Scored(place, case["outcome"], case["source"], score_of(metric, case))
            for place, case in enumerate(report["cases"])
        }
        for name, report in reports.items()
    }


def mean_of(statistics: ScoreStatistics) -> Mean:
    """Return the mean of scores with the interval that reports show."""
    return {"mean": statistics["mean"], "n": statistics["n"], "ci95": shown_interval(statistics)}


def _differences(values: Mapping[str, MutableSequence[float]], best: str) -> dict[str, PairedTest]:
    """Return the differences of the other systems from the best, with p values adjusted by Holm's method.

    The result is empty with fewer than two systems.
    """
    if len(values) < 2:
        return {}
    # scipy.stats takes long to import.
    from pytest_queryeval.results.baseline.statistics import paired_tests

    tests = paired_tests({name: Pairs(values[best], scores) for name, scores in values.items() if name != best})
    return {
        name: {"change": test["change"], "ci95": test["ci95"], "p": test["p_holm"], "test": test["test"]}
        for name, test in tests.items()
    }


def _left_out(nodeids: Sequence[str], cases: Mapping[str, _Scored]) -> dict[Reason, list[str]]:
    """Return, by the reason, the cases in `nodeids`, which have a score in other reports but not in this one."""
    left_out: defaultdict[Reason, list[str]] = defaultdict(list)
    for nodeid in nodeids:
        outcome = cases[nodeid].outcome if nodeid in cases else None
        match outcome:
            case None:
                left_out["not in the report"].append(nodeid)
            case "not_run":
                left_out["not run"].append(nodeid)
            case "skipped":
                left_out["skipped"].append(nodeid)
            case "error":
                left_out["in error"].append(nodeid)
            case "xfailed" | "xpassed":
                left_out["expected to fail"].append(nodeid)
            case _:
                left_out["without a score"].append(nodeid)
    return dict(left_out)


def _eased(to_best: RunDifference) -> list[SuiteChange]:
    """Return the checks of common cases that the suite of the best system, whose run comes first, leaves out."""
    eased: dict[str, list[str]] = {change_name: [] for change_name in EASED}
    for best, worse in to_best.common:
        for change_name, is_changed in EASED.items():
            if is_changed(worse, best):
                eased[change_name].append(best["nodeid"])
    return [{"what": change_name, "cases": nodeids} for change_name, nodeids in eased.items() if nodeids]


def _groups(
    best: Report, common: Iterable[CaseReport], values: Mapping[str, Sequence[float]], sign: float
) -> dict[str, dict[str, GroupMeans]]:
    """Return the means by system for each value of each group of cases, in the order of the best system's report.

    Groups without two values of at least MIN_GROUP common cases are left out. `sign` is -1 if lower means are better.
    """
    groups: dict[str, dict[str, GroupMeans]] = {}
    places_by_group: dict[str, defaultdict[str, list[int]]] = {
        group: defaultdict(list) for group in groups_shown("comparison")
    }
    for place, case in enumerate(common):
        for group, places in places_by_group.items():
            for value in group_values(case, group):
                places[value].append(place)
    for group, places in places_by_group.items():
        large = [value for value in best["groups"].get(group, {}) if len(places[value]) >= MIN_GROUP]
        if len(large) < 2:
            continue
        groups[group] = {}
        for value in large:
            group_places = places[value]
            means = {
                name: math.fsum(scores[at] for at in group_places) / len(group_places)
                for name, scores in values.items()
            }
            top = max(sign * mean for mean in means.values())
            winners = [name for name, mean in means.items() if sign * mean == top]
            groups[group][value] = {
                "n": len(group_places),
                "means": means,
                "best": winners if len(winners) < len(means) else [],
            }
    return groups


def _differing(
    reports: Mapping[str, Report], common: Sequence[str], values: Mapping[str, Sequence[float]], sign: float
) -> Differing:
    names = list(reports)
    first, last = names[0], names[-1]
    difference = run_difference(reports[first], reports[last])
    between = [{case["nodeid"] for case in reports[name]["cases"]} for name in names[1:-1]]
    regressed, errors, fixed = (
        [nodeid for nodeid in nodeids if all(nodeid in existing for existing in between)]
        for nodeids in (difference.regressions, difference.errors, difference.fixes)
    )
    differing: Differing = {
        "first": first,
        "last": last,
        "regressed": regressed,
        "errors": errors,
        "fixed": fixed,
        "worse": [],
        "better": [],
        "others": [],
    }
    with_other_verdict = {*regressed, *errors, *fixed}
    for nodeid, *scores in zip(common, *values.values(), strict=True):
        if nodeid not in with_other_verdict and len(set(scores)) > 1:
            change = sign * (scores[-1] - scores[0])
            differing["worse" if change < 0 else "better" if change > 0 else "others"].append(nodeid)
    return differing
