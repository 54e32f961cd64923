"""The report of a run: totals, means with their uncertainty, groups. All of it is plain JSON data."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pytest_queryeval.core.metric import Better
from pytest_queryeval.core.model import GROUPS, OF_TRIALS, GroupName, Outcome
from pytest_queryeval.core.report import (
    CaseReport,
    DimensionStatistics,
    GateReport,
    GroupReport,
    MetricReport,
    MetricStatistics,
    Report,
    ReportTables,
    RunFacts,
    ScoreStatistics,
    SpiderLevel,
    TotalName,
    Totals,
    TrialsReport,
)
from pytest_queryeval.evaluation.trials import pass_at, pass_hat
from pytest_queryeval.metrics import METRICS, better_of
from pytest_queryeval.results.measures import describe, measure_statistics

SCHEMA = 2
SPIDER_METRIC = "exact_set_match_spider"
LEVELS = ("easy", "simple", "medium", "moderate", "hard", "challenging", "extra")
TOTAL_OF: Mapping[Outcome, TotalName] = {
    "passed": "passed",
    "failed": "failed",
    "missed": "missed",
    "error": "errors",
    "skipped": "skipped",
    "xfailed": "xfailed",
    "xpassed": "xpassed",
}
Z95 = 1.959963984540054  # the 97.5 % point of the normal distribution


def aggregate(
    cases: Iterable[CaseReport],
    *,
    gates: Sequence[GateReport],
    about: RunFacts,
    better: Mapping[str, Better] | None = None,
) -> Report:
    """Return the report of a run, its cases ordered by path, line, row and id; `about` is its head.

    `better` says whether higher or lower scores of a metric are better, for metrics that may be unknown here.
    """
    ordered = sorted(cases, key=lambda case: (case["path"], case["line"], case.get("row", 0), case["id"]))
    everything = _group_report(ordered)
    known_better = better or {}
    tables: ReportTables = {}
    if spider_table := _spider_table(ordered):
        tables["spider_table"] = spider_table
    if dimensions := _dimensions(ordered):
        tables["dimensions"] = dimensions
    if trials := _trials(ordered):
        tables["trials"] = trials
    return {
        "schema": SCHEMA,
        **about,
        "totals": everything["totals"],
        "metrics": {
            name: {"better": known_better.get(name) or better_of(name), **found}
            for name, found in everything["metrics"].items()
        },
        "measures": everything["measures"],
        "ties": sum(case["depends_on_tie"] for case in ordered),
        "accidental": sum(map(is_accidental, ordered)),
        "causes": everything["causes"],
        "groups": {group: _grouped(ordered, group, everything) for group in GROUPS},
        **tables,
        "gates": list(gates),
        "cases": ordered,
    }


def is_accidental(case: CaseReport) -> bool:
    """Return whether an answer is right on the source and wrong on one of its variants."""
    fails = case["scores"].get("test_suite_accuracy")
    return case["scores"].get("execution_accuracy") == 1.0 and fails is not None and fails < 1.0


def costs(metrics: Mapping[str, MetricReport]) -> set[str]:
    """Return those metrics of a report of which lower scores are better."""
    return {name for name, found in metrics.items() if found["better"] == "lower"}


def totals(cases: Sequence[CaseReport]) -> Totals:
    """Return how many cases had each outcome."""
    outcomes = Counter(case["outcome"] for case in cases)
    return {
        "cases": len(cases),
        "passed": outcomes["passed"],
        "failed": outcomes["failed"],
        "missed": outcomes["missed"],
        "errors": outcomes["error"],
        "skipped": outcomes["skipped"],
        "xfailed": outcomes["xfailed"],
        "xpassed": outcomes["xpassed"],
    }


def causes(cases: Iterable[CaseReport]) -> dict[str, int]:
    """Return how many cases have a cause that begins with each label, the most frequent first, equal ones by name."""
    found = Counter(case["cause"]["edits"][0]["label"] for case in cases if case["cause"] is not None)
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def metric_statistics(cases: Iterable[CaseReport]) -> dict[str, MetricStatistics]:
    """Return per metric the `statistics` of its scores, the mean with errors, and how many thresholds were `missed`.

    Scores of None are left out. `mean_with_errors` is over `n_with_errors` cases: those with a score, and those in
    error which request the metric, as if they had 0; both are None for metrics that are not from 0 to 1, higher being
    better.
    """
    values: defaultdict[str, list[float]] = defaultdict(list)
    missed: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    for case in cases:
        if case["outcome"] == "error" and case["fingerprint"] is not None:
            errors.update(case["fingerprint"]["metrics"])
        missed.update(violation["metric"] for violation in case["violations"])
        for name, value in case["scores"].items():
            if value is not None:
                values[name].append(value)
    found: dict[str, MetricStatistics] = {}
    for name, scores in values.items():
        metric = METRICS[name] if name in METRICS else None  # noqa: SIM401 - a registry has no get()
        is_share = name in OF_TRIALS or (metric is not None and metric.max_score == 1 and metric.better == "higher")
        n = len(scores) + errors[name]
        found[name] = {
            **statistics_of(name, scores),
            "mean_with_errors": math.fsum(scores) / n if is_share else None,
            "n_with_errors": n if is_share else None,
            "missed": missed[name],
        }
    return found


def statistics_of(metric: str, scores: Sequence[float]) -> ScoreStatistics:
    """Return the `statistics` of scores of a metric, which may have an upper bound other than 1."""
    max_score = METRICS[metric].max_score if metric in METRICS else None
    return statistics(scores, max_score=1.0 if max_score is None else max_score)


def statistics(values: Sequence[float], *, max_score: float = 1.0) -> ScoreStatistics:
    """Return mean, n, sample standard deviation, min, median, max, and a 95 % confidence interval of the mean.

    The interval is Wilson's score interval (Wilson, 1927) for scores that are all 0 or 1, else mean ± 1.96 std / √n,
    limited to 0 and `max_score` where all scores lie between them; it is None for a single score other
    than 0 and 1, which says nothing about the spread.

    >>> statistics([1.0, 1.0, 0.0, 1.0])["mean"]
    0.75
    """
    found = describe(values)
    n, mean, std = found["n"], found["mean"], found["std"]
    ci95: list[float] | None = None
    if all(value in (0.0, 1.0) for value in values):
        centre = (mean + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
        half = Z95 * math.sqrt(mean * (1 - mean) / n + Z95**2 / (4 * n * n)) / (1 + Z95**2 / n)
        ci95 = [centre - half, centre + half]
    elif std is not None:
        half = Z95 * std / math.sqrt(n)
        ci95 = [mean - half, mean + half]
    if ci95 is not None and found["min"] >= 0.0 and found["max"] <= max_score:
        ci95 = [max(0.0, ci95[0]), min(max_score, ci95[1])]
    return {**found, "ci95": ci95}


def group_values(case: CaseReport, group: GroupName) -> Sequence[str]:
    """Return the values that a case has in a group: none, one, or several tags."""
    if group == "tag":
        return tuple(dict.fromkeys(case["tags"]))
    value = case["path"] if group == "file" else case[group]
    return () if value is None else (value,)


def _grouped(cases: Sequence[CaseReport], group: GroupName, everything: GroupReport) -> dict[str, GroupReport]:
    """Return the report of each value of a group; a value that all cases have gets a copy of `everything`.

    Levels of difficulty are in the order of Spider and BIRD, other values by name.
    """
    members: defaultdict[str, list[CaseReport]] = defaultdict(list)
    for case in cases:
        for value in group_values(case, group):
            members[value].append(case)
    ordered = sorted(members, key=lambda value: (LEVELS.index(value) if value in LEVELS else len(LEVELS), value))
    return {
        value: everything.copy() if len(members[value]) == len(cases) else _group_report(members[value])
        for value in ordered
    }


def _group_report(cases: Sequence[CaseReport]) -> GroupReport:
    return {
        "totals": totals(cases),
        "metrics": metric_statistics(cases),
        "measures": measure_statistics(cases),
        "causes": causes(cases),
    }


def _dimensions(cases: Sequence[CaseReport]) -> dict[str, DimensionStatistics]:
    """Return per SDMX dimension the `statistics` of its precision and its recall over the cases that have them."""
    precision: defaultdict[str, list[float]] = defaultdict(list)
    recall: defaultdict[str, list[float]] = defaultdict(list)
    for case in cases:
        dimensions = case["details"].get("dimensions") if case["kind"] == "sdmx" else None
        for name, found in dimensions.items() if isinstance(dimensions, dict) else ():
            for metric, values in (("precision", precision), ("recall", recall)):
                if isinstance(found, dict) and isinstance(score := found.get(metric), float):
                    values[name].append(score)
    by_dimension: dict[str, DimensionStatistics] = {name: {} for name in sorted(precision | recall)}
    for name, found_statistics in by_dimension.items():
        if name in precision:
            found_statistics["precision"] = statistics(precision[name])
        if name in recall:
            found_statistics["recall"] = statistics(recall[name])
    return by_dimension


def _trials(cases: Sequence[CaseReport]) -> TrialsReport | None:
    """Return how likely one of k trials passes, and all of them: means over the cases with several trials, for each k.

    Only cases of which every trial has a verdict count; None where there are none.
    """
    verdicts = ([trial["passed"] for trial in case["trials"]] for case in cases)
    passed = [own for own in verdicts if own and None not in own]
    if not passed:
        return None
    numbers = range(1, min(map(len, passed)) + 1)
    return {
        "cases": len(passed),
        "pass_at": [math.fsum(pass_at(k, len(own), own.count(True)) for own in passed) / len(passed) for k in numbers],
        "pass_hat": [
            math.fsum(pass_hat(k, len(own), own.count(True)) for own in passed) / len(passed) for k in numbers
        ],
    }


def _spider_table(cases: Sequence[CaseReport]) -> dict[str, SpiderLevel] | None:
    """Return the table of Spider's published tool over the cases that its metric scored; None where there are none.

    The row of execution has the score of `execution_accuracy_spider` where it was requested, else that of
    `execution_accuracy`.
    """
    scored = [case for case in cases if "spider" in case["details"] and SPIDER_METRIC in case["scores"]]
    if not scored:
        return None
    from pytest_queryeval.languages.sql.published.match import scored_pair
    from pytest_queryeval.languages.sql.published.table import spider_table

    executions = (
        case["scores"].get("execution_accuracy_spider", case["scores"].get("execution_accuracy")) for case in scored
    )
    return spider_table(
        scored_pair(case["details"]["spider"], execution) for case, execution in zip(scored, executions, strict=True)
    )
