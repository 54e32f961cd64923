"""What the answers of a run cost, as statistics of measures, and the uncertainty of a mean over cases.

Measures are times, and every number that systems report about their calls. Cases that share a source are alike, so they
say less.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence

from pytest_queryeval.core.case_report import CaseReport, TrialReport
from pytest_queryeval.core.report import MeasureStatistics, Spread
from pytest_queryeval.core.steps import count_steps

MAX_MEASURES = 200  # metadata may hold any number of names
MAX_SIZE = 1e15
P95 = 0.95
MIN_SOURCES = 5
Z95 = 1.959963984540054  # the 97.5 % point of the normal distribution
ROUNDING = 1e-12  # a standard error up to this share of the largest score counts as 0


def measure_statistics(values: Sequence[float]) -> MeasureStatistics:
    """Return what `describe` returns, the sum, and the 95th percentile `p95` by linear interpolation."""
    ordered_values = sorted(values)
    place = P95 * (len(ordered_values) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered_values) - 1)
    p95 = ordered_values[below] + (ordered_values[above] - ordered_values[below]) * (place - below)
    return {**describe(ordered_values), "sum": math.fsum(ordered_values), "p95": p95}


def describe(values: Sequence[float]) -> Spread:
    """Return mean, n, sample standard deviation (None for n = 1), min, median and max of at least one value."""
    ordered_values, n = sorted(values), len(values)
    mean = math.fsum(ordered_values) / n
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in ordered_values) / (n - 1)) if n > 1 else None
    median = (ordered_values[(n - 1) // 2] + ordered_values[n // 2]) / 2
    return {"mean": mean, "n": n, "std": std, "min": ordered_values[0], "median": median, "max": ordered_values[-1]}


def measures_of(case: CaseReport) -> Iterator[tuple[str, float]]:
    """Yield the name and the value of each measure of each call of a case.

    Measures are `prediction_seconds`, `execution_seconds`, the numbers of STEP_MEASURES where the system states its
    steps, and `metadata[NAME]` for each name that has numbers. Each trial counts, since each is a call. Times of 0
    seconds are left out: those predictions stood in a suite or a file, and those queries were not run. Numbers whose
    size is MAX_SIZE or more are left out as well.
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
    """Return the 95 % confidence interval of the mean of scores with their sources as clusters.

    A score whose source is None or empty is a cluster of its own. The standard error is the clustered one of Miller
    (2024, "Adding Error Bars to Evals", appendix A) times √(C / (C - 1)) for C clusters, as in Cameron and Miller
    (2015) and inspect_ai; the interval is mean ± t with the degrees of freedom of `t_freedom`. None below `MIN_SOURCES`
    sources, where no two scores share one, and where clusters do not differ, which says nothing about their spread.

    >>> low, high = clustered_interval([1, 1, 0, 0, 1, 0, 1, 1, 0, 1], "aabbccddee")
    >>> round(low, 3), round(high, 3)
    (0.081, 1.119)
    """
    if len({source for source in sources if source}) < MIN_SOURCES:
        return None
    n = len(scores)
    mean = math.fsum(scores) / n
    clusters: defaultdict[Hashable, list[float]] = defaultdict(list)
    for place, (score, source) in enumerate(zip(scores, sources, strict=True)):
        clusters[source or (place,)].append(score - mean)
    number = len(clusters)
    error = (
        math.sqrt(math.fsum(math.fsum(deviations) ** 2 for deviations in clusters.values()) * number / (number - 1)) / n
    )
    if number == n or error <= ROUNDING * max(map(abs, scores)):
        return None
    half = t_quantile(t_freedom([len(deviations) for deviations in clusters.values()])) * error
    return [mean - half, mean + half]


def t_freedom(sizes: Sequence[int]) -> float:
    """Return the degrees of freedom of a clustered standard error: C - 1 for C clusters of one size, else fewer.

    Those of the chi-square distribution with the mean and the variance of the squared error (Satterthwaite, 1946) if
    all scores of a cluster are the same: large clusters decide then, as in Carter, Schnepel and Steigerwald (2017).

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
    """Return the 97.5 % point of Student's t, within 1 % from 2 degrees of freedom on.

    By the expansion of Cornish and Fisher (Abramowitz and Stegun, 26.7.5), since scipy.special takes long to import.

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
