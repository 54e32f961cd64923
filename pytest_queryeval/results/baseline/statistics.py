"""Paired statistics of two reports: whether the scores of the same cases changed, and what change could be seen.

The two values of a case are a pair. If nothing changed but chance, each could as well have come first, so every
difference is as likely to have the other sign. The tests compute how often random signs give the observed change. For
scores of 0 and 1 that is the exact McNemar test (McNemar, Psychometrika 12, 1947); for others the randomisation test of
Fisher (The Design of Experiments, 1935), over all signs where they are few, else over RESAMPLES random ones. Neither
assumes anything about the scores, so an unchanged system is taken for a worse one in at most alpha of all runs.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.stats import binom, binomtest, bootstrap, norm

from pytest_queryeval.core.model import ALPHA
from pytest_queryeval.core.report import MetricChange, TestName
from pytest_queryeval.results.baseline.pairs import Pairs, mean

Numbers: TypeAlias = Any  # an array of floats; numpy's own type says no more here

RESAMPLES = 9_999
POWER = 0.8
SEED = 20_240_501  # any number: the same reports give the same figures
MAX_EXACT = 13  # differences, up to which all signs are tried
MIN_RESAMPLES = 1_999
MAX_DRAWN = 20_000_000  # differences that a bootstrap draws in total
REPEATED = 100  # average occurrences of a value, from which drawing counts is faster than drawing values
BATCH_CELLS = 500_000
BISECTIONS = 24
ROUNDING = 1e-9

Alternative: TypeAlias = Literal["lower", "both"]


def paired_tests(pairs: Mapping[str, Pairs], costs: Collection[str] = ()) -> dict[str, MetricChange]:
    """Return the change of each metric or system with its p values, interval, and detectable drop.

    Names in `costs` have lower means as better ones. `p_holm` is adjusted for all changes together.
    """
    p_values = [p_value(scores) for scores in pairs.values()]
    strictest_alpha = ALPHA / (2 * len(pairs))  # of one side, by Holm's method
    return {
        name: {
            "n": len(scores.before),
            "before": mean(scores.before),
            "after": mean(scores.after),
            "change": scores.change,
            "ci95": interval(scores),
            "p": p,
            "p_holm": p_holm,
            "test": fitting_test(scores),
            "detectable": detectable_drop(scores.oriented("lower" if name in costs else "higher"), strictest_alpha),
        }
        for (name, scores), p, p_holm in zip(pairs.items(), p_values, holm(p_values), strict=True)
    }


def fitting_test(pairs: Pairs) -> TestName:
    """Return the name of the test that fits the scores: `mcnemar` for 0 and 1, otherwise `sign_flip`."""
    return "mcnemar" if pairs.are_binary else "sign_flip"


def p_value(pairs: Pairs, side: Alternative = "both") -> float:
    """Return how likely chance alone gives a change as large, in both directions, or with `lower` a fall as large.

    Return 1.0 if no pair differs.
    """
    if not pairs.are_binary:
        return _sign_flip(pairs.differences, side)
    broken = sum(difference < 0 for difference in pairs.differences)
    fixed = sum(difference > 0 for difference in pairs.differences)
    if not broken + fixed:
        return 1.0
    if side == "lower":
        return float(binomtest(broken, broken + fixed, 0.5, alternative="greater").pvalue)
    return float(binomtest(broken, broken + fixed, 0.5).pvalue)


def fall_p(pairs: Pairs) -> float:
    """Return the p value of a fall; with random signs, an upper bound of it that holds in 199 of 200 draws.

    So a verdict does not depend on which random numbers were drawn.
    """
    p = p_value(pairs, "lower")
    if pairs.are_binary or sum(map(bool, pairs.differences)) <= MAX_EXACT:
        return p
    return min(1.0, p + float(norm.isf(1 / 200)) * math.sqrt(p * (1 - p) / RESAMPLES))


def _sign_flip(differences: Sequence[float], side: Alternative) -> float:
    """Return the share of sign assignments whose sum is at least as extreme as the observed sum.

    Few differences are tested with all signs, others with RESAMPLES random ones. The real signs count as one draw, so p
    is never 0.
    """
    sizes = np.sort(np.abs([difference for difference in differences if difference]))
    observed = math.fsum(differences)
    is_exact = len(sizes) <= MAX_EXACT
    batches = (
        [(np.arange(2 ** len(sizes))[:, None] >> np.arange(len(sizes))) & 1] if is_exact else _random_signs(len(sizes))
    )
    # In a row of signs 1 is plus and 0 is minus.
    sums = np.concatenate([np.einsum("ij,j->i", signs, 2.0 * sizes) for signs in batches]) - sizes.sum()
    slack = ROUNDING * max(1.0, float(sizes.sum()))  # sums that differ by rounding only are the same
    extreme = sums <= observed + slack if side == "lower" else np.abs(sums) >= abs(observed) - slack
    return float(extreme.mean()) if is_exact else (int(extreme.sum()) + 1) / (len(sums) + 1)


def _random_signs(number: int) -> Iterable[Numbers]:
    """Yield arrays of random bits, together RESAMPLES rows of `number` columns; the same in every call."""
    random, width, remaining_rows = np.random.default_rng(SEED), -(-number // 8), RESAMPLES
    while remaining_rows:
        rows = min(remaining_rows, max(1, BATCH_CELLS // number))
        octets = np.frombuffer(random.bytes(rows * width), dtype=np.uint8).reshape(rows, width)
        yield np.unpackbits(octets, axis=1, count=number).astype(np.float64)
        remaining_rows -= rows


def interval(pairs: Pairs) -> list[float] | None:
    """Return a 95 % interval of the mean change; None for a single case, and if all differences are the same.

    For scores of 0 and 1 it is the adjusted Wald interval for paired proportions (Bonett and Price, 2012), which also
    holds where few cases flip, and if none does. For other scores it is the percentile bootstrap over cases, with a
    fixed seed, which needs about 30 cases that differ.

    Differences with few distinct values are drawn as counts of these values, which is equivalent and fast. With very
    many cases and values fewer resamples are drawn: the interval is then so narrow that the error does not matter.
    """
    if len(pairs.differences) < 2:
        return None
    if pairs.are_binary:
        n = len(pairs.differences) + 2
        fixed, broken = ((sum(difference * sign > 0 for difference in pairs.differences) + 1) / n for sign in (1, -1))
        half_width = float(norm.isf(0.025)) * math.sqrt((fixed + broken - (fixed - broken) ** 2) / n)
        return [max(-1.0, fixed - broken - half_width), min(1.0, fixed - broken + half_width)]
    differences = np.sort(pairs.differences)
    values, counts = np.unique(differences, return_counts=True)
    if len(values) == 1:
        return None
    random = np.random.default_rng(SEED)
    if len(values) * REPEATED <= len(differences):
        draws = random.multinomial(len(differences), counts / len(differences), size=RESAMPLES)
        low, high = np.percentile(draws @ values / len(differences), (2.5, 97.5))
    else:
        resampled = bootstrap(
            (differences,),
            np.mean,
            n_resamples=min(RESAMPLES, max(MIN_RESAMPLES, MAX_DRAWN // len(differences))),
            vectorized=True,
            method="percentile",
            batch=max(1, BATCH_CELLS // len(differences)),
            rng=random,
        )
        low, high = resampled.confidence_interval
    return [float(low), float(high)]


def detectable_drop(pairs: Pairs, alpha: float = ALPHA, tolerated: float = 0.0) -> float | None:
    """Return the smallest true drop that the one-sided test at `alpha` finds with a power of 80 %.

    Drops of up to `tolerated` need not be found. The result depends on how much the cases differ between the two
    reports. If few differ, it depends on what a drop itself adds: cases that change as much as those that changed. If
    none changed, they lose their whole score.

    None if that number of cases shows no drop. Costs come `negated`. A two-sided test finds a change in either
    direction at twice that `alpha`.
    """
    n = len(pairs.before)
    if not n or 0.5**n > alpha:
        return None
    squares = _root_mean_square(pairs.differences) ** 2
    if pairs.are_binary:
        size, low, drop = 1.0, 0.0, 1.0
        for _ in range(BISECTIONS):  # the power grows with the drop
            middle = (low + drop) / 2
            has_power = mcnemar_power(n, squares, middle, alpha) >= POWER
            low, drop = (low, middle) if has_power else (middle, drop)
    else:
        # The change of a case that changes; if none does, the most that a case can lose.
        size = _root_mean_square([difference for difference in pairs.differences if difference] or pairs.before)
        factor = norm.isf(alpha) + norm.ppf(POWER)
        drop = max(factor * math.sqrt(squares / n), factor**2 * size / n)
    beyond = tolerated + norm.ppf(POWER) * math.sqrt(max(squares, tolerated * size) / n) if tolerated else 0.0
    detectable = float(max(drop, beyond))
    # Scores from 0 on can fall by the largest of them, others, such as negated costs, without a limit.
    values = (*pairs.before, *pairs.after)
    max_drop = sys.float_info.max if min(values) < 0.0 else 1.0 if pairs.are_binary else max(values)
    return detectable if 0.0 < detectable <= max_drop else None


def _root_mean_square(values: Sequence[float]) -> float:
    return math.sqrt(math.fsum(value * value for value in values) / len(values))


def mcnemar_power(n: int, discordant: float, drop: float, alpha: float = ALPHA) -> float:
    """Return the power of the exact one-sided McNemar test of n pairs for a drop, if the share `discordant` differs.

    Of the discordant pairs the share (discordant + drop) / (2 discordant) is broken; there are at least as many as the
    drop needs. Numbers of discordant pairs that practically never occur are left out of the sum.
    """
    discordant = max(discordant, drop)
    numbers = np.arange(int(binom.ppf(1e-9, n, discordant)), int(binom.ppf(1 - 1e-9, n, discordant)) + 1)
    broken = (discordant + drop) / (2 * discordant)
    beyond = binom.isf(alpha, numbers, 0.5)
    return float(binom.pmf(numbers, n, discordant) @ binom.sf(beyond, numbers, broken))


def holm(values: Sequence[float]) -> list[float]:
    """Return p values in their order, adjusted for several tests (Holm, Scandinavian Journal of Statistics 6, 1979)."""
    adjusted, least = [0.0] * len(values), 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        least = max(least, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = least
    return adjusted
