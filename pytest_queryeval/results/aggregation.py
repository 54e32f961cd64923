"""From case results to a report: totals, means with their uncertainty, groups. Everything here is plain JSON data."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.metric import Better
from pytest_queryeval.core.model import OF_TRIALS
from pytest_queryeval.evaluation.trials import pass_at, pass_hat
from pytest_queryeval.metrics import METRICS, better_of
from pytest_queryeval.results.measures import measure_statistics, spread
from pytest_queryeval.text.plain import score_text

if TYPE_CHECKING:
    from pytest_queryeval.languages.sql.published.table import SpiderTable

CaseJson: TypeAlias = Mapping[str, Any]
Report: TypeAlias = dict[str, Any]

SCHEMA = 2
GROUPS = ("kind", "difficulty", "tag", "file", "source")
SPIDER_METRIC = "exact_set_match_spider"
LEVELS = ("easy", "simple", "medium", "moderate", "hard", "challenging", "extra")
TOTAL_OF = {
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
    cases: Iterable[CaseJson],
    *,
    gates: Sequence[Mapping[str, Any]],
    about: Mapping[str, Any],
    better: Mapping[str, Better] | None = None,
) -> Report:
    """The report of a run, cases ordered by path, then line; `about` holds created, environment, predictor.

    `better` says of metrics whether their higher or lower scores are better, for those that may not be known here.
    """
    ordered = sorted(cases, key=lambda case: (case["path"], case["line"], case["id"]))
    table = _spider_table(ordered)
    whole, dimensions, trials = _member(ordered), _dimensions(ordered), _trials(ordered)
    return {
        "schema": SCHEMA,
        **about,
        **whole,
        "metrics": {
            name: {"better": (better or {}).get(name) or better_of(name)} | found
            for name, found in whole["metrics"].items()
        },
        "ties": sum(case.get("depends_on_tie", False) for case in ordered),
        "groups": {group: _grouped(ordered, group, whole) for group in GROUPS},
        **({"spider_table": table} if table else {}),
        **({"dimensions": dimensions} if dimensions else {}),
        **({"trials": trials} if trials else {}),
        "gates": list(gates),
        "cases": ordered,
    }


def costs(metrics: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Those of the metrics of a report of which lower scores are better."""
    return {name for name, found in metrics.items() if found.get("better") == "lower"}


def totals(cases: Sequence[CaseJson]) -> dict[str, int]:
    """How many cases ended how."""
    outcomes = Counter(TOTAL_OF[case["outcome"]] for case in cases)
    return {"cases": len(cases)} | {name: outcomes[name] for name in TOTAL_OF.values()}


def metric_statistics(cases: Iterable[CaseJson]) -> dict[str, dict[str, Any]]:
    """Per metric the `statistics` of its scores, the mean with errors, and how many thresholds were `missed`.

    Scores of None are left out. `mean_with_errors` is over `n_with_errors` cases: those with a score, and those in
    error which request the metric, as if they had 0; both are None for metrics that are not from 0 to 1, higher being
    better.
    """
    values: defaultdict[str, list[float]] = defaultdict(list)
    missed: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    for case in cases:
        if case["outcome"] == "error":
            errors.update((case.get("fingerprint") or {}).get("metrics", ()))
        missed.update(entry["metric"] for entry in case["violations"])
        for name, value in case["scores"].items():
            if value is not None:
                values[name].append(value)
    return {
        name: statistics(scores, most=_most(name)) | _with_errors(name, scores, errors[name]) | {"missed": missed[name]}
        for name, scores in values.items()
    }


def _with_errors(name: str, scores: Sequence[float], errors: int) -> dict[str, float | int | None]:
    is_share = name in OF_TRIALS or (
        name in METRICS and METRICS[name].max_score == 1 and METRICS[name].better == "higher"
    )
    if not is_share:
        return {"mean_with_errors": None, "n_with_errors": None}
    n = len(scores) + errors
    return {"mean_with_errors": math.fsum(scores) / n, "n_with_errors": n}


def _most(name: str) -> float:
    """The greatest score of a metric; 1 where nobody has said so, as for a metric that is not known here."""
    try:
        most = METRICS[name].max_score
    except QueryEvalError:
        return 1.0
    return 1.0 if most is None else most


def statistics(values: Sequence[float], *, most: float = 1.0) -> dict[str, Any]:
    """Mean, n, sample standard deviation, min, median, max, and a 95 % confidence interval of the mean.

    The interval is Wilson's score interval (Wilson, 1927) for scores that are all 0 or 1, else mean ± 1.96 std / √n,
    cut at 0 and `most` where all scores lie between them; it is None where n = 1 says nothing of the spread.

    >>> statistics([1.0, 1.0, 0.0, 1.0])["mean"]
    0.75
    """
    ordered = sorted(values)
    found = spread(ordered)
    return found | {"ci95": _interval(ordered, found["mean"], found["std"], most)}


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


def _grouped(cases: Sequence[CaseJson], group: str, whole: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What is counted of each value of a group; `whole` is that of all cases."""
    members: defaultdict[str, list[CaseJson]] = defaultdict(list)
    for case in cases:
        for value in group_values(case, group):
            members[value].append(case)
    ordered = {value: members[value] for value in sorted(members, key=_place)}
    return {value: dict(whole) if len(own) == len(cases) else _member(own) for value, own in ordered.items()}


def _member(cases: Sequence[CaseJson]) -> dict[str, Any]:
    return {"totals": totals(cases), "metrics": metric_statistics(cases), "measures": measure_statistics(cases)}


def _dimensions(cases: Sequence[CaseJson]) -> dict[str, dict[str, Any]]:
    """Per SDMX dimension the `statistics` of its precision and its recall over the cases that have them."""
    values: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for case in cases:
        told = case["details"].get("dimensions") if case["kind"] == "sdmx" else None
        for name, found in told.items() if isinstance(told, dict) else ():
            for metric in ("precision", "recall"):
                if isinstance(found, dict) and isinstance(found.get(metric), float):
                    values[name][metric].append(found[metric])
    return {name: {metric: statistics(values[name][metric]) for metric in values[name]} for name in sorted(values)}


DIMENSION_COLUMNS = ("precision", "n", "recall", "n")


def dimension_cells(found: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Precision and recall of a dimension with their numbers of cases, for a table of `DIMENSION_COLUMNS`."""
    cells = []
    for metric in ("precision", "recall"):
        known = found.get(metric)
        cells += [score_text(known["mean"]), f"{known['n']:,}"] if known else ["n/a", "0"]
    return tuple(cells)


def _trials(cases: Sequence[CaseJson]) -> dict[str, Any] | None:
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


def _has_verdicts(case: CaseJson) -> bool:
    return bool(case["trials"]) and all(trial["passed"] is not None for trial in case["trials"])


def _spider_table(cases: Sequence[CaseJson]) -> SpiderTable | None:
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


def group_values(case: CaseJson, group: str) -> Sequence[str]:
    """The values that a case has in a group: none, one, or several tags."""
    if group == "tag":
        return tuple(dict.fromkeys(case["tags"]))
    value = case["path"] if group == "file" else case[group]
    return () if value is None else (value,)
