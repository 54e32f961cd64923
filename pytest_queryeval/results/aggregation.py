"""From case results to a report: totals, means with their uncertainty, groups. Everything here is plain JSON data."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pytest_queryeval.core.errors import QueryEvalError
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
from pytest_queryeval.text.plain import score_text

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
Z95 = 1.959963984540054  # the normal distribution's 97.5 % point


def aggregate(
    cases: Iterable[CaseReport],
    *,
    gates: Sequence[GateReport],
    about: RunFacts,
    better: Mapping[str, Better] | None = None,
) -> Report:
    """Return the report of a run, cases ordered by path, then line; `about` is its head.

    `better` says of metrics whether their higher or lower scores are better, for those that may not be known here.
    """
    ordered = sorted(cases, key=lambda case: (case["path"], case["line"], case["id"]))
    whole = _member(ordered)
    return {
        "schema": SCHEMA,
        **about,
        "totals": whole["totals"],
        "metrics": {name: _metric_report(name, found, better or {}) for name, found in whole["metrics"].items()},
        "measures": whole["measures"],
        "ties": sum(case["depends_on_tie"] for case in ordered),
        "groups": {group: _grouped(ordered, group, whole) for group in GROUPS},
        **_tables(ordered),
        "gates": list(gates),
        "cases": ordered,
    }


def _tables(cases: Sequence[CaseReport]) -> ReportTables:
    tables: ReportTables = {}
    if spider_table := _spider_table(cases):
        tables["spider_table"] = spider_table
    if dimensions := _dimensions(cases):
        tables["dimensions"] = dimensions
    if trials := _trials(cases):
        tables["trials"] = trials
    return tables


def _metric_report(name: str, found: MetricStatistics, better: Mapping[str, Better]) -> MetricReport:
    return {"better": better.get(name) or better_of(name), **found}


def costs(metrics: Mapping[str, MetricReport]) -> set[str]:
    """Return those metrics of a report of which lower scores are better."""
    return {name for name, found in metrics.items() if found["better"] == "lower"}


def totals(cases: Sequence[CaseReport]) -> Totals:
    """How many cases ended how."""
    outcomes = Counter(TOTAL_OF[case["outcome"]] for case in cases)
    return {
        "cases": len(cases),
        "passed": outcomes["passed"],
        "failed": outcomes["failed"],
        "missed": outcomes["missed"],
        "errors": outcomes["errors"],
        "skipped": outcomes["skipped"],
        "xfailed": outcomes["xfailed"],
        "xpassed": outcomes["xpassed"],
    }


def metric_statistics(cases: Iterable[CaseReport]) -> dict[str, MetricStatistics]:
    """Per metric the `statistics` of its scores, the mean with errors, and how many thresholds were `missed`.

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
        missed.update(entry["metric"] for entry in case["violations"])
        for name, value in case["scores"].items():
            if value is not None:
                values[name].append(value)
    return {
        name: _metric_statistics(name, scores, errors=errors[name], missed=missed[name])
        for name, scores in values.items()
    }


def _metric_statistics(name: str, scores: Sequence[float], *, errors: int, missed: int) -> MetricStatistics:
    is_share = name in OF_TRIALS or (
        name in METRICS and METRICS[name].max_score == 1 and METRICS[name].better == "higher"
    )
    n = len(scores) + errors
    return {
        **statistics(scores, most=_most(name)),
        "mean_with_errors": math.fsum(scores) / n if is_share else None,
        "n_with_errors": n if is_share else None,
        "missed": missed,
    }


def _most(name: str) -> float:
    """The greatest score of a metric; 1 where nobody has said so, as for a metric that is not known here."""
    try:
        most = METRICS[name].max_score
    except QueryEvalError:
        return 1.0
    return 1.0 if most is None else most


def statistics(values: Sequence[float], *, most: float = 1.0) -> ScoreStatistics:
    """Mean, n, sample standard deviation, min, median, max, and a 95 % confidence interval of the mean.

    The interval is Wilson's score interval (Wilson, 1927) for scores that are all 0 or 1, else mean ± 1.96 std / √n,
    cut at 0 and `most` where all scores lie between them; it is None where n = 1 says nothing of the spread.

    >>> statistics([1.0, 1.0, 0.0, 1.0])["mean"]
    0.75
    """
    ordered = sorted(values)
    found = describe(ordered)
    return {**found, "ci95": _interval(ordered, found["mean"], found["std"], most)}


def _interval(ordered: Sequence[float], mean: float, std: float | None, most: float) -> list[float] | None:
    n = len(ordered)
    if all(value in (0.0, 1.0) for value in ordered):
        centre = (mean + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
        half = Z95 * math.sqrt(mean * (1 - mean) / n + Z95**2 / (4 * n * n)) / (1 + Z95**2 / n)
    elif std is None:
        return None
    else:
        centre, half = mean, Z95 * std / math.sqrt(n)
    if ordered[0] < 0.0 or ordered[-1] > most:
        return [centre - half, centre + half]
    return [max(0.0, centre - half), min(most, centre + half)]


def _grouped(cases: Sequence[CaseReport], group: GroupName, whole: GroupReport) -> dict[str, GroupReport]:
    """What is counted of each value of a group; `whole` is that of all cases."""
    members: defaultdict[str, list[CaseReport]] = defaultdict(list)
    for case in cases:
        for value in group_values(case, group):
            members[value].append(case)
    ordered = {value: members[value] for value in sorted(members, key=_place)}
    return {value: whole.copy() if len(own) == len(cases) else _member(own) for value, own in ordered.items()}


def _member(cases: Sequence[CaseReport]) -> GroupReport:
    return {"totals": totals(cases), "metrics": metric_statistics(cases), "measures": measure_statistics(cases)}


def _dimensions(cases: Sequence[CaseReport]) -> dict[str, DimensionStatistics]:
    """Per SDMX dimension the `statistics` of its precision and its recall over the cases that have them."""
    values: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for case in cases:
        dimensions = case["details"].get("dimensions") if case["kind"] == "sdmx" else None
        for name, found in dimensions.items() if isinstance(dimensions, dict) else ():
            for metric in ("precision", "recall"):
                if isinstance(found, dict) and isinstance(score := found.get(metric), float):
                    values[name][metric].append(score)
    return {name: _dimension(values[name]) for name in sorted(values)}


def _dimension(scores: Mapping[str, Sequence[float]]) -> DimensionStatistics:
    found: DimensionStatistics = {}
    if "precision" in scores:
        found["precision"] = statistics(scores["precision"])
    if "recall" in scores:
        found["recall"] = statistics(scores["recall"])
    return found


def mean_of(group: GroupReport, metric: str) -> float | None:
    """Return the mean of a metric in a group; None where no case of it has a score."""
    found = group["metrics"].get(metric)
    return None if found is None else found["mean"]


DIMENSION_COLUMNS = ("precision", "n", "recall", "n")


def dimension_cells(found: DimensionStatistics) -> tuple[str, ...]:
    """Precision and recall of a dimension with their numbers of cases, for a table of `DIMENSION_COLUMNS`."""
    cells: list[str] = []
    for known in (found.get("precision"), found.get("recall")):
        cells += [score_text(known["mean"]), f"{known['n']:,}"] if known else ["n/a", "0"]
    return tuple(cells)


def _trials(cases: Sequence[CaseReport]) -> TrialsReport | None:
    """How likely one of k trials passes, and all of them: for k from 1 on, means over the cases with several trials."""
    passed = [[bool(trial["passed"]) for trial in case["trials"]] for case in cases if _has_verdicts(case)]
    if not passed:
        return None
    numbers = range(1, min(map(len, passed)) + 1)
    return {
        "cases": len(passed),
        "pass_at": [math.fsum(pass_at(k, len(own), sum(own)) for own in passed) / len(passed) for k in numbers],
        "pass_hat": [math.fsum(pass_hat(k, len(own), sum(own)) for own in passed) / len(passed) for k in numbers],
    }


def _has_verdicts(case: CaseReport) -> bool:
    return bool(case["trials"]) and all(trial["passed"] is not None for trial in case["trials"])


def _spider_table(cases: Sequence[CaseReport]) -> dict[str, SpiderLevel] | None:
    """The table of Spider's published tool over the cases that its metric scored; None where there are none.

    The row of execution has the published score where it was asked for, else `execution_accuracy`.
    """
    scored = [case for case in cases if "spider" in case["details"] and SPIDER_METRIC in case["scores"]]
    if not scored:
        return None
    from pytest_queryeval.languages.sql.published.match import scored_pair
    from pytest_queryeval.languages.sql.published.table import spider_table

    return spider_table(scored_pair(case["details"]["spider"], _execution_score(case["scores"])) for case in scored)


def _execution_score(scores: Mapping[str, float | None]) -> float | None:
    return scores.get("execution_accuracy_spider", scores.get("execution_accuracy"))


def _place(value: str) -> tuple[int, str]:
    """Levels of difficulty in the order of Spider and BIRD, whatever else by name."""
    return (LEVELS.index(value) if value in LEVELS else len(LEVELS)), value


def group_values(case: CaseReport, group: GroupName) -> Sequence[str]:
    """The values that a case has in a group: none, one, or several tags."""
    if group == "tag":
        return tuple(dict.fromkeys(case["tags"]))
    value = case["path"] if group == "file" else case[group]
    return () if value is None else (value,)
