"""Estimates of how many cases have a property, from the judged cases of a stratified draw, with limits of 95 %.

Limits of one stratum are hypergeometric, because a draw is without replacement from finitely many cases. Limits of sums
and differences follow from them by MOVER, the method of variance estimates recovery: Zou and Donner, "Construction of
confidence limits about effect measures: a general approach", Statistics in Medicine 27 (2008).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

TAIL = 0.025  # of either side, in the mean
ROUNDING = 1e-9
_CACHED_LIMITS = 4_096


class Tails(NamedTuple):
    """The probability in the tails outside the interval of one stratum."""

    weight: float
    """The share of P(X = hits) that does not count in a tail: 0.5 gives mid-p limits, 0 exact limits."""
    skew: float
    """The most by which the tail on the longer side exceeds 0.025, and the other tail falls below it."""


LONE_TAILS = Tails(weight=0.3, skew=0.0)  # of a stratum by itself
SIDE_TAILS = Tails(weight=0.4, skew=0.01)  # of a limit of a sum that moves with a single stratum
SUM_TAILS = Tails(weight=0.5, skew=0.012)


class Estimate(NamedTuple):
    """An estimated number of cases, or share, with its limits of 95 %."""

    value: float
    low: float
    high: float

    def complement(self, size: int) -> Estimate:
        """Return the estimate of how many of `size` cases do not have the property."""
        return Estimate(size - self.value, size - self.high, size - self.low)


class Count(NamedTuple):
    """The result of a random draw from one stratum: how many judged cases have a property."""

    size: int
    """The number of cases in the stratum."""
    judged: int
    hits: int
    """The number of judged cases that have the property."""
    expected: float = 0.0
    """The share that the verdict implies, which is used while no case is judged."""

    @property
    def share(self) -> float:
        """The share of the judged cases that have the property; `expected` if no case is judged."""
        return self.hits / self.judged if self.judged else self.expected


def estimate_count(count: Count, tails: Tails = LONE_TAILS) -> Estimate:
    """Return how many cases of a stratum have the property; without a judged case the limits are 0 and all cases.

    `LONE_TAILS` keep the level for a stratum by itself. `SUM_TAILS` are for an estimate that is added to those of other
    strata. A sum has so many possible values that its level is hardly ever below 0.94. `SIDE_TAILS` are for a limit
    that only one stratum moves. In the other strata no judged case has the property, or all have it.
    """
    size, judged, hits, expected = count
    if not judged:
        return Estimate(size * expected, 0, size)
    low = size - _upper_limit(size, judged, judged - hits, tails)
    return Estimate(size * count.share, low, _upper_limit(size, judged, hits, tails))


@lru_cache(maxsize=_CACHED_LIMITS)
def _upper_limit(size: int, judged: int, hits: int, tails: Tails) -> int:
    """Return the upper confidence limit for the number K of cases in a stratum that have a property.

    `size` is the number of cases in the stratum, `judged` (at least 1) those drawn, and `hits` those drawn that have
    the property. The limit is the greatest K for which the lower tail of the hits exceeds its level.

    The tail P(X < hits) + (1 - w) P(X = hits) of the hypergeometric distribution has to exceed 0.025. With w = 0 that
    is the exact limit (Wright, "Exact Confidence Bounds when Sampling from Small Finite Universes", 1991). With w = 1/2
    it is the mid-p limit (Lancaster, JASA 56, 1961). Here w is the weight of `tails` times the finite population
    correction. That is the square root of the share of the stratum that is not judged (Cochran, "Sampling Techniques",
    1977). The more cases are judged, the fewer values K can have, and the nearer the limits are to the exact limits.

    Both tails are 0.05 together. With a skew, the tail on the longer side, above few hits, exceeds 0.025, which makes
    the interval shorter. There is no skew if at most one judged case has the property, or at most one lacks it. Such
    intervals easily become too short (Brown, Cai and DasGupta, "Interval Estimation for a Binomial Proportion",
    Statistical Science 16, 2001).
    """
    from scipy.stats import hypergeom  # takes long to import

    weight = tails.weight * math.sqrt(1 - judged / size)
    tail = TAIL + (tails.skew * (1 - 2 * hits / judged) if 1 < hits < judged - 1 else 0)
    low, high = size * hits // judged, size - judged + hits  # the limit is at least `low`
    while low < high:
        middle = (low + high + 1) // 2
        draw = hypergeom(size, middle, judged)
        if draw.cdf(hits - 1) + (1 - weight) * draw.pmf(hits) > tail:
            low = middle
        else:
            high = middle - 1
    return low


def total(estimates: Iterable[Estimate]) -> Estimate:
    """Return the sum of independent estimates, with limits by MOVER: squares of the distances of limits are added."""
    terms = list(estimates)
    value = sum(term.value for term in terms)
    return Estimate(
        value,
        value - math.hypot(*(term.value - term.low for term in terms)),
        value + math.hypot(*(term.high - term.value for term in terms)),
    )


def difference(more: Count, fewer: Count, tails: Tails = LONE_TAILS) -> Estimate:
    """Return how many more cases of a stratum have the property of `more` than that of `fewer`, with limits.

    A case cannot have both properties. Both are counted in the same judged cases, so they are correlated: MOVER with r
    = -sqrt(p q / ((1 - p) (1 - q))) for shares p and q. If each case has one of the properties, r is -1, as in method
    10 of Newcombe, "Improved confidence intervals for the difference between binomial proportions based on paired
    data", Statistics in Medicine 17 (1998).
    """
    first, second = estimate_count(more, tails), estimate_count(fewer, tails)
    p, q = more.share, fewer.share
    correlation = -math.sqrt(p * q / ((1 - p) * (1 - q))) if p + q < 1 - ROUNDING else -1.0
    value = first.value - second.value
    return Estimate(
        value,
        value - _limit_distance(first.value - first.low, second.high - second.value, correlation),
        value + _limit_distance(first.high - first.value, second.value - second.low, correlation),
    )


def _limit_distance(first: float, second: float, correlation: float) -> float:
    """Return the distance of a difference's limit from its value, by the same distances of its two parts."""
    return math.sqrt(max(0.0, first**2 + second**2 - 2 * correlation * first * second))


def share(part: Estimate, remainder: Estimate) -> Estimate | None:
    """Return the share of `part` in the sum of two independent numbers of cases; None if the sum is 0.

    Its limits follow from the limits of both numbers, because MOVER gives too short an interval if a number can hardly
    be lower. If both numbers may be 0, the limits are 0 and 1.
    """
    if part.value + remainder.value <= 0:
        return None
    low = part.low / (part.low + remainder.high) if part.low + remainder.high > 0 else 0.0
    high = part.high / (part.high + remainder.low) if part.high + remainder.low > 0 else 1.0
    return Estimate(part.value / (part.value + remainder.value), low, high)


def as_share(estimate: Estimate, size: int) -> Estimate:
    """Return an estimated number of cases as a share of `size`, its limits rounded outward to whole cases."""
    return Estimate(
        estimate.value / size,
        math.floor(estimate.low + ROUNDING) / size,
        math.ceil(estimate.high - ROUNDING) / size,
    )
