"""The report of a run: totals, means with their uncertainty, groups, and what decisions on golds change in a whole run.

Also times, steps and other measures of the calls of a run. All of it is plain JSON data.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from pytest_queryeval.core.case_report import CaseReport, TrialReport
from pytest_queryeval.core.groups import GROUPS, groups_of
from pytest_queryeval.core.mappings import grouped
from pytest_queryeval.core.metric import RUN_METRICS, Better, RunMetric, reported_run_metrics
from pytest_queryeval.core.model import PASS_RATE, TRIALS_SCORES, Outcome
from pytest_queryeval.core.model import ReviewDecision as ReviewDecision
from pytest_queryeval.core.report import (
    Decision,
    DimensionStatistics,
    ErrataReport,
    FieldStatistics,
    GateReport,
    GroupReport,
    MeasureStatistics,
    MetricReport,
    MetricStatistics,
    RecordedAnswers,
    Report,
    ReportTables,
    RunFacts,
    ScoreStatistics,
    SpiderTable,
    Spread,
    TotalName,
    Totals,
    TrialsReport,
)
from pytest_queryeval.core.steps import count_steps
from pytest_queryeval.evaluation.trials import pass_at, pass_hat
from pytest_queryeval.metrics import METRICS, better_of
from pytest_queryeval.results.case_store import collect_cases, in_report_order

SCHEMA: Final = 2
FIRST_GROUPS = ("kind", "difficulty", "tag", "file", "source")  # all reports have them; other groups follow
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
    "not_run": "not_run",
}
Counted: TypeAlias = Literal[
    "scores", "run_metrics", "concerned", "measures", "missed", "errors", "causes", "precision", "recall", "fields"
]
# Metadata and JSON answers may have any number of names.
MOST_COUNTED: Mapping[Counted, int] = {"measures": 200, "fields": 2_000}
MAX_FIELDS = 200  # of a case, and of a report
MAX_SIZE = 1e15
P95 = 0.95
MIN_SOURCES = 5
Z95 = 1.959963984540054  # the 97.5 % point of the normal distribution
ROUNDING = 1e-12  # a standard error up to this share of the largest score counts as 0


def aggregate(
    cases: Iterable[CaseReport],
    *,
    gates: Sequence[GateReport],
    about: RunFacts,
    better: Mapping[str, Better] | None = None,
) -> Report:
    """Return the report of a run, with its cases ordered by path, line, row, id and node id.

    `gates` are the evaluated gates, `about` are facts of the run. `better` says whether higher or lower scores are
    better, for metrics that may be unknown in this process.
    """
    ordered_cases = in_report_order(cases)
    counts = CaseCounts(ordered_cases)
    overall_report = counts.report()
    known_better = better or {}
    tables: ReportTables = {}
    if counts.has_spider and (spider_table := _spider_table(ordered_cases)):
        tables["spider_table"] = spider_table
    if dimensions := counts.dimension_statistics():
        tables["dimensions"] = dimensions
    fields, left_out = counts.field_statistics()
    if fields:
        tables["fields"] = fields
    if left_out:
        tables["fields_left_out"] = left_out
    if counts.has_review and (errata := errata_of(ordered_cases)):
        tables["errata"] = errata
    if trials := counts.trials_report():
        tables["trials"] = trials
    if counts.decided_trials["of"]:
        tables["decided_trials"] = counts.decided_trials
    if counts.recorded["answers"]:
        tables["recorded"] = counts.recorded
    if counts.rerun_cases:
        tables["rerun_cases"] = counts.rerun_cases
    return {
        "schema": SCHEMA,
        **about,
        "totals": overall_report["totals"],
        "metrics": {
            name: {"better": known_better.get(name) or better_of(name), **score_statistics}
            for name, score_statistics in overall_report["metrics"].items()
        },
        "measures": overall_report["measures"],
        "ties": counts.ties,
        "accidental": counts.accidental,
        "causes": overall_report["causes"],
        "groups": {group: counts.group_reports(group, overall_report) for group in counts.groups},
        **tables,
        "gates": list(gates),
        "cases": ordered_cases,
    }


def with_joint_scores(cases: Sequence[CaseReport]) -> Sequence[CaseReport]:
    """Return the cases with `joint_scores`: what they add to run metrics that several cases decide together.

    Without such metrics the cases are returned unchanged.
    """
    scores: defaultdict[str, dict[str, float | None]] = defaultdict(dict)
    for name, run_metric in reported_run_metrics().items():
        for nodeid, score in run_metric.joint_scores(cases).items() if run_metric.joint_scores is not None else ():
            scores[nodeid][name] = score
    if not scores:
        return cases
    scored_cases = collect_cases(cases)[:]
    for place, case in enumerate(scored_cases):
        if case["nodeid"] in scores:
            scored_cases[place] = {**case, "joint_scores": scores[case["nodeid"]]}
    return scored_cases


def is_accidental(case: CaseReport) -> bool:
    """Return whether an answer is right on the source but wrong on a variant of the source."""
    suite_accuracy = case["scores"].get("test_suite_accuracy")
    return case["scores"].get("execution_accuracy") == 1.0 and suite_accuracy is not None and suite_accuracy < 1.0


def lower_is_better(metrics: Mapping[str, MetricReport]) -> set[str]:
    """Return the names of the metrics in a report for which lower scores are better."""
    return {name for name, metric in metrics.items() if metric["better"] == "lower"}


def totals(cases: Iterable[CaseReport]) -> Totals:
    """Return the number of cases, and of cases with each outcome."""
    return _totals(Counter(TOTAL_OF[case["outcome"]] for case in cases))


def reached_count(totals: Totals) -> int:
    """Return the number of cases that a run reached: all except those that were not run."""
    return totals["cases"] - totals["not_run"]


def _totals(counts: Counter[TotalName]) -> Totals:
    return {
        "cases": counts.total(),
        "passed": counts["passed"],
        "failed": counts["failed"],
        "missed": counts["missed"],
        "errors": counts["errors"],
        "skipped": counts["skipped"],
        "xfailed": counts["xfailed"],
        "xpassed": counts["xpassed"],
        "not_run": counts["not_run"],
    }


def metric_statistics(cases: Iterable[CaseReport]) -> dict[str, MetricStatistics]:
    """Return the statistics of each metric over the scores of the cases.

    Scores of None are left out. `missed` is the number of thresholds that were missed. `mean_with_errors` is the mean
    over `n_with_errors` cases: cases in error which request the metric count with a score of 0. Both are None unless
    scores are from 0 to 1 and higher is better.
    """
    return CaseCounts(cases).report()["metrics"]


class Column(NamedTuple):
    """The numbers that cases have under one name, such as the scores of a metric."""

    cases: array[int]
    """The places of the cases, one for each number."""
    values: array[float]

    @classmethod
    def empty(cls) -> Column:
        """Return a column without numbers."""
        return cls(array("I"), array("d"))

    def add(self, case: int, value: float) -> None:
        """Append a number of the case at this place."""
        self.cases.append(case)
        self.values.append(value)


class CaseCounts:
    """Reads the cases once, keeps only their numbers, and computes the figures of a report from them."""

    def __init__(self, cases: Iterable[CaseReport]) -> None:
        self.ties = self.accidental = self.rerun_cases = 0
        self.recorded: RecordedAnswers = {"answers": 0, "of": 0}
        self.has_spider = self.has_review = False
        self.decided_trials: Decision = {"after": 0, "of": 0}
        self._outcomes: list[TotalName] = []
        self._members: dict[str, list[Sequence[str]]] = {group: [] for group in GROUPS.available()}
        self._columns: dict[Counted, defaultdict[str, Column]] = {
            kind: defaultdict(Column.empty) for kind in get_args(Counted)
        }
        run_metrics = reported_run_metrics()
        for name in run_metrics:
            self._columns["run_metrics"][name] = Column.empty()
        self._trials: Counter[tuple[int, int]] = Counter()
        self._with_other_fields: set[int] = set()  # the places of cases
        shared_values: dict[Sequence[str], Sequence[str]] = {}  # equal values are one object
        for place, case in enumerate(cases):
            self._outcomes.append(TOTAL_OF[case["outcome"]])
            groups = groups_of(case)
            for group in groups.keys() - self._members.keys():  # of a package that is not installed here
                self._members[group] = [()] * place
            for group, members in self._members.items():
                values = tuple(groups.get(group, ()))
                members.append(shared_values.setdefault(values, values))
            self._count_numbers(place, case, run_metrics)
            verdicts, fingerprint = [trial["passed"] for trial in case["trials"]], case["fingerprint"]
            if verdicts and fingerprint is not None and isinstance(fingerprint["trials"], dict):
                # Trials stopped once decided, so the number that passed says nothing about the rest.
                self.decided_trials["after"] += len(verdicts)
                self.decided_trials["of"] += fingerprint["trials"]["max"]
            elif verdicts and None not in verdicts:
                self._trials[len(verdicts), verdicts.count(True)] += 1
            answers: Sequence[CaseReport | TrialReport] = case["trials"] or [case]
            predictions = [answer["prediction"] for answer in answers if answer["prediction"] is not None]
            self.recorded["answers"] += sum("recorded" in prediction for prediction in predictions)
            self.recorded["of"] += len(predictions)
            self.rerun_cases += "reruns" in case
            self.ties += case["depends_on_tie"]
            self.accidental += is_accidental(case)
            self.has_spider |= "spider" in case["details"]
            self.has_review |= "review" in case

    def _count_numbers(self, place: int, case: CaseReport, run_metrics: Mapping[str, RunMetric]) -> None:
        has_other_fields = "fields_left_out" in case
        for kind, name, number in _numbers(case, run_metrics):
            columns = self._columns[kind]
            if name in columns or len(columns) < MOST_COUNTED.get(kind, sys.maxsize):
                columns[name].add(place, number)
            else:
                has_other_fields |= kind == "fields"
        if has_other_fields:
            self._with_other_fields.add(place)

    def report(self) -> GroupReport:
        """Return totals, metrics, measures and causes of all cases."""
        nothing: GroupReport = {"totals": _totals(Counter()), "metrics": {}, "measures": {}, "causes": {}}
        return self._reports([("",)] * len(self._outcomes)).get("", nothing)

    @property
    def groups(self) -> Sequence[str]:
        """The names of all groups: first those that every report has, then registered groups, then others of cases."""
        return list(dict.fromkeys((*FIRST_GROUPS, *self._members)))

    def group_reports(self, group: str, overall_report: GroupReport) -> dict[str, GroupReport]:
        """Return the report of each value of a group.

        `overall_report` is that of all cases: a value that all cases have gets a copy. Levels of difficulty are in the
        order of Spider and BIRD, other values by name.
        """
        members = self._members[group]
        if members and members.count(members[0]) == len(members):  # as most suites have one kind
            return {value: overall_report.copy() for value in sorted(members[0])}
        reports = self._reports(members)
        ordered_values = sorted(
            reports, key=lambda value: (LEVELS.index(value) if value in LEVELS else len(LEVELS), value)
        )
        return {value: reports[value] for value in ordered_values}

    def _reports(self, members: Sequence[Sequence[str]]) -> dict[str, GroupReport]:
        """Return the report of each value; `members` contains the values of each case."""
        outcomes: defaultdict[str, Counter[TotalName]] = defaultdict(Counter)
        for outcome, values in zip(self._outcomes, members, strict=True):
            for value in values:
                outcomes[value][outcome] += 1
        reports: dict[str, GroupReport] = {
            value: {"totals": _totals(counts), "metrics": {}, "measures": {}, "causes": {}}
            for value, counts in outcomes.items()
        }
        errors, missed = (
            Counter({(value, name): len(column.values) for value, name, column in self._split(kind, members)})
            for kind in ("errors", "missed")
        )
        concerned_runs = (run for run in self._split("run_metrics", members) if run[1] in self._columns["concerned"])
        for value, name, column in chain(self._split("scores", members), concerned_runs):
            n = len(column.values) + errors[value, name]
            is_share = name in TRIALS_SCORES or (
                name in METRICS and METRICS[name].max_score == 1 and METRICS[name].better == "higher"
            )
            reports[value]["metrics"][name] = {
                **statistics_of(name, column.values, self._sources(column)),
                "mean_with_errors": math.fsum(column.values) / n if is_share else None,
                "n_with_errors": n if is_share else None,
                "missed": missed[value, name],
            }
        for value, name, column in self._split("measures", members):
            reports[value]["measures"][name] = measure_statistics(column.values)
        for value, name, column in self._split("causes", members):
            reports[value]["causes"][name] = len(column.values)
        for group_report in reports.values():
            by_frequency = sorted(group_report["causes"].items(), key=lambda cause: (-cause[1], cause[0]))
            group_report["causes"] = dict(by_frequency)
        return reports

    def _split(self, kind: Counted, members: Sequence[Sequence[str]]) -> Iterator[tuple[str, str, Column]]:
        """Yield value, name and numbers: the numbers of each name, split by the values of the cases that they are from.

        `members` contains the values of each case.
        """
        for name, column in self._columns[kind].items():
            by_value: defaultdict[str, Column] = defaultdict(Column.empty)
            for case, number in zip(*column, strict=True):
                for value in members[case]:
                    by_value[value].add(case, number)
            yield from ((value, name, part) for value, part in by_value.items())

    def _sources(self, column: Column) -> list[Sequence[str]]:
        return [self._members["source"][case] for case in column.cases]

    def dimension_statistics(self) -> dict[str, DimensionStatistics]:
        """Return for each SDMX dimension the statistics of its precision and its recall, over cases that have them."""
        shares: tuple[Literal["precision", "recall"], ...] = "precision", "recall"
        names = sorted({name for share in shares for name in self._columns[share]})
        by_dimension: dict[str, DimensionStatistics] = {name: {} for name in names}
        for share in shares:
            for name, column in self._columns[share].items():
                by_dimension[name][share] = statistics(column.values, self._sources(column))
        return by_dimension

    def field_statistics(self) -> tuple[dict[str, FieldStatistics], int]:
        """Return the means of at most MAX_FIELDS fields of JSON answers, and the number of cases with other fields.

        The fields that cost most come first.
        """
        columns = self._columns["fields"]
        sums = {name: (math.fsum(column.values), len(column.values)) for name, column in columns.items()}
        names = sorted(columns, key=lambda name: (sums[name][0] - sums[name][1], -sums[name][1]))
        others = self._with_other_fields.union(*(columns[name].cases for name in names[MAX_FIELDS:]))
        fields: dict[str, FieldStatistics] = {}
        for name in names[:MAX_FIELDS]:
            total, n = sums[name]
            fields[name] = {"n": n, "mean": total / n}
        return fields, len(others)

    def trials_report(self) -> TrialsReport | None:
        """Return means over cases with several trials: how likely one of k trials passes, and how likely all k pass.

        There is a mean for each k that all these cases have. Only cases in which every trial has a verdict count; None
        if there are none.
        """
        if not (cases := self._trials.total()):
            return None

        def means(estimate: Callable[[int, int, int], float]) -> list[float]:
            numbers = range(1, min(number for number, _ in self._trials) + 1)
            return [
                math.fsum(estimate(k, *trial_counts) for trial_counts in self._trials.elements()) / cases
                for k in numbers
            ]

        return {"cases": cases, "pass_at": means(pass_at), "pass_hat": means(pass_hat)}


def cause_labels(case: CaseReport) -> list[str]:
    """Return the distinct labels of the edits of a case's cause; an empty list without a cause."""
    return [] if case["cause"] is None else list(dict.fromkeys(edit["label"] for edit in case["cause"]["edits"]))


def _numbers(case: CaseReport, run_metrics: Mapping[str, RunMetric]) -> Iterator[tuple[Counted, str, float]]:
    """Yield all numbers of a case that reports aggregate: their sort, their name, and the number."""
    for name, run_metric in run_metrics.items():
        if (run_score := run_metric.score(case)) is not None:
            yield "run_metrics", name, run_score
        if run_metric.concerns is not None and run_metric.concerns(case):
            yield "concerned", name, 1
    yield from (("scores", name, score) for name, score in case["scores"].items() if score is not None)
    yield from (("fields", name, score) for name, score in case.get("field_scores", {}).items())
    yield from (("measures", name, number) for name, number in measures_of(case))
    yield from (("missed", violation["metric"], 1) for violation in case["violations"])
    if case["outcome"] == "error" and case["fingerprint"] is not None:
        yield from (("errors", name, 1) for name in case["fingerprint"]["metrics"])
    yield from (("causes", label, 1) for label in cause_labels(case))
    dimensions = case["details"].get("dimensions") if case["kind"] == "sdmx" else None
    for name, dimension in dimensions.items() if isinstance(dimensions, dict) else ():
        kinds: tuple[Counted, ...] = "precision", "recall"
        shares = dimension if isinstance(dimension, dict) else {}
        yield from ((kind, name, share) for kind in kinds if isinstance(share := shares.get(kind), float))


def statistics_of(metric: str, scores: Sequence[float], sources: Sequence[Hashable]) -> ScoreStatistics:
    """Return the statistics of a metric's scores, bounded by the largest score that the metric can have."""
    max_score = METRICS[metric].max_score if metric in METRICS else None
    return statistics(scores, sources, max_score=1.0 if max_score is None else max_score)


def statistics(values: Sequence[float], sources: Sequence[Hashable] = (), *, max_score: float = 1.0) -> ScoreStatistics:
    """Return mean, n, sample standard deviation, min, median, max, and 95 % confidence intervals of the mean.

    `ci95` is Wilson's score interval (Wilson, 1927) for scores that are all 0 or 1, else mean ± 1.96 std / √n; it is
    None for a single score other than 0 and 1, which says nothing about the spread. `ci95_clustered` is the
    `clustered_interval` by the source of each value. Both are limited to 0 and `max_score` where all values lie between
    them.

    >>> statistics([1.0, 1.0, 0.0, 1.0])["mean"]
    0.75
    """
    spread = describe(values)
    n, mean, std = spread["n"], spread["mean"], spread["std"]
    ci95: list[float] | None = None
    if all(value in (0.0, 1.0) for value in values):
        centre = (mean + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
        half = Z95 * math.sqrt(mean * (1 - mean) / n + Z95**2 / (4 * n * n)) / (1 + Z95**2 / n)
        ci95 = [centre - half, centre + half]
    elif std is not None:
        half = Z95 * std / math.sqrt(n)
        ci95 = [mean - half, mean + half]
    clustered = clustered_interval(values, sources) if sources else None
    if spread["min"] >= 0.0 and spread["max"] <= max_score:
        ci95, clustered = (
            [max(0.0, interval[0]), min(max_score, interval[1])] if interval else None for interval in (ci95, clustered)
        )
    return {**spread, "ci95": ci95, "ci95_clustered": clustered}


def shown_interval(score_statistics: ScoreStatistics) -> list[float] | None:
    """Return the interval that reports show: the clustered one, otherwise the plain one; None without both.

    The plain interval is too narrow if cases share sources.
    """
    return score_statistics.get("ci95_clustered") or score_statistics["ci95"]


def _spider_table(cases: Iterable[CaseReport]) -> SpiderTable | None:
    """Return the table of Spider's published tool over the cases that its metric scored; None if there are none.

    The row of execution contains the score of `execution_accuracy_spider` if that was requested, otherwise of
    `execution_accuracy`.
    """
    from pytest_queryeval.languages.sql.match import spider_table

    table = spider_table(
        (
            case["details"]["spider"],
            case["scores"].get("execution_accuracy_spider", case["scores"].get("execution_accuracy")),
        )
        for case in cases
        if "spider" in case["details"] and SPIDER_METRIC in case["scores"]
    )
    return table if table["all"]["count"] else None


def errata_of(cases: Iterable[CaseReport]) -> ErrataReport | None:
    """Return how many cases have a decision on their golds, and the means of metrics before and after the decisions.

    Undecided reviews do not count. None if no decision applies.
    """
    decisions: Counter[ReviewDecision] = Counter()
    unreviewed_scores, reviewed_scores = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for case in cases:
        if "review" in case and case["review"]["decision"] != "unsure":
            decisions[case["review"]["decision"]] += 1
        unreviewed: CaseReport = {**case, **case["unreviewed"]} if "unreviewed" in case else case
        for side, scores in ((unreviewed, unreviewed_scores), (case, reviewed_scores)):
            for name, score in (*side["scores"].items(), (PASS_RATE, RUN_METRICS[PASS_RATE].score(side))):
                if score is not None:
                    scores[name].append(score)
    if not decisions:
        return None
    return {
        "cases": decisions.total(),
        "by_decision": {decision: decisions[decision] for decision in get_args(ReviewDecision) if decisions[decision]},
        "unreviewed": _means(unreviewed_scores),
        "reviewed": _means(reviewed_scores),
    }


def _means(scores: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: math.fsum(values) / len(values) for name, values in scores.items()}


def measure_statistics(values: Sequence[float]) -> MeasureStatistics:
    """Return the spread of the values, their sum, and their 95th percentile `p95` by linear interpolation."""
    ordered_values = sorted(values)
    rest, below = math.modf(P95 * (len(ordered_values) - 1))
    low, high = (ordered_values[int(below)], ordered_values[math.ceil(below + rest)])
    return {**describe(ordered_values), "sum": math.fsum(ordered_values), "p95": low + (high - low) * rest}


def describe(values: Sequence[float]) -> Spread:
    """Return mean, n, sample standard deviation (None for n = 1), min, median and max of at least one value."""
    ordered_values, n = sorted(values), len(values)
    mean = math.fsum(ordered_values) / n
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in ordered_values) / (n - 1)) if n > 1 else None
    median = (ordered_values[(n - 1) // 2] + ordered_values[n // 2]) / 2
    return {"mean": mean, "n": n, "std": std, "min": ordered_values[0], "median": median, "max": ordered_values[-1]}


def measures_of(case: CaseReport) -> Iterator[tuple[str, float]]:
    """Yield name and value of each measure of each call that a case made; each trial is a call.

    Measures are `prediction_seconds`, `execution_seconds`, the numbers of STEP_MEASURES where the system states its
    steps, and `metadata[NAME]` for each name with a number. Times of 0 seconds are left out, because nothing was called
    or run. Numbers of MAX_SIZE or more are left out as well.
    """
    answers: Sequence[CaseReport | TrialReport] = case["trials"] or [case]
    for answer in answers:
        prediction, predicted = answer["prediction"], answer["predicted"]
        if prediction is not None and prediction["seconds"]:
            yield "prediction_seconds", prediction["seconds"]
        if predicted is not None and predicted["seconds"]:
            yield "execution_seconds", predicted["seconds"]
        if prediction is not None and "steps" in prediction:
            yield from ((name, float(count)) for name, count in count_steps(prediction["steps"]).items())
        for name, value in prediction["metadata"].items() if prediction is not None else ():
            if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MAX_SIZE:
                yield f"metadata[{name}]", float(value)


def clustered_interval(scores: Sequence[float], sources: Sequence[Hashable]) -> list[float] | None:
    """Return the 95 % confidence interval of the mean of scores, with their sources as clusters.

    A score whose source is None or empty is a cluster of its own. The standard error is the clustered one of Miller
    (2024, "Adding Error Bars to Evals", appendix A). It is multiplied by √(C / (C - 1)) for C clusters, as in Cameron
    and Miller (2015) and inspect_ai. The interval is mean ± t with the degrees of freedom of `t_freedom`.

    None for fewer than `MIN_SOURCES` sources, if no two scores share a source, and if clusters do not differ, which
    says nothing about their spread.

    >>> low, high = clustered_interval([1, 1, 0, 0, 1, 0, 1, 1, 0, 1], "aabbccddee")
    >>> round(low, 3), round(high, 3)
    (0.081, 1.119)
    """
    if len({source for source in sources if source}) < MIN_SOURCES:
        return None
    n = len(scores)
    mean = math.fsum(scores) / n
    clusters = grouped(
        (source or (place,), score - mean) for place, (score, source) in enumerate(zip(scores, sources, strict=True))
    )
    cluster_count = len(clusters)
    squares = math.fsum(math.fsum(deviations) ** 2 for deviations in clusters.values())
    error = math.sqrt(squares * cluster_count / (cluster_count - 1)) / n
    if cluster_count == n or error <= ROUNDING * max(map(abs, scores)):
        return None
    half = t_quantile(t_freedom([len(deviations) for deviations in clusters.values()])) * error
    return [mean - half, mean + half]


def t_freedom(sizes: Sequence[int]) -> float:
    """Return the degrees of freedom of a clustered standard error, from the sizes of the C clusters.

    They are C - 1 for clusters of one size, else fewer: those of the chi-square distribution with the mean and the
    variance of the squared error (Satterthwaite, 1946) if all scores of a cluster are the same. Large clusters decide
    then, as in Carter, Schnepel and Steigerwald (2017).

    >>> round(t_freedom([5] * 20), 9), round(t_freedom([50, *[5] * 19]), 2)
    (19.0, 1.89)
    """
    n = sum(sizes)
    shares = [size / n for size in sizes]
    # Sums of deviations have the covariances n_g n_h ((1 if g is h, else 0) - s_g - s_h + s), with s the sum of s_g².
    s = math.fsum(share * share for share in shares)
    zero, first, second = (
        math.fsum(size**2 * share**power for size, share in zip(sizes, shares, strict=True)) for power in range(3)
    )
    variances = [size**2 * (1 - 2 * share + s) for size, share in zip(sizes, shares, strict=True)]
    same = math.fsum(size**4 * (1 + 2 * (s - 2 * share)) for size, share in zip(sizes, shares, strict=True))
    squares = (s * zero) ** 2 + 2 * zero * second - 4 * s * zero * first + 2 * first**2 + same
    return math.fsum(variances) ** 2 / squares


def t_quantile(freedom: float) -> float:
    """Return the 97.5 % point of Student's t distribution, within 1 % from 2 degrees of freedom on.

    It follows the expansion of Cornish and Fisher (Abramowitz and Stegun, 26.7.5), because scipy.special takes long to
    import.

    >>> round(t_quantile(19), 4)
    2.093
    """
    z = Z95
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return sum(term / freedom**power for power, term in enumerate(terms))
