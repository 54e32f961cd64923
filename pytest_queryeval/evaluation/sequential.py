"""Whether a mean meets its limits, told from some of its scores: a test that may be looked at after every score."""

from __future__ import annotations

import math

from pytest_queryeval.core.model import Threshold

ALTERNATIVES = 12  # means on each side of a limit that are bet on
ROUNDING = 1e-9  # what `Threshold.admits` forgives


class MeanTest:
    """Whether the mean of `n` scores from 0 to 1 meets a threshold, told from those that were drawn so far.

    The scores have to come in random order. `result` is None until it is decided, and then stays: that the mean meets
    the threshold, or misses it, is certain, or wrong with a probability of at most `alpha` for each of its limits,
    however often one looks and whenever one stops.

    Each limit is tested by betting against it, as in Waudby-Smith and Ramdas (2024), "Estimating means of bounded
    random variables by betting", for draws without replacement. If the mean of all is the limit m, then the next score
    is (n m - S) / (n - t) in the mean, after t draws with the sum S. One capital bets that scores are higher than that,
    and another that they are lower; neither can be expected to grow where it is wrong. By Ville's inequality, a wrong
    one ever reaches 1 / alpha with a probability of at most alpha. The two share no error, so alpha is not halved:
    the first errs only where the mean is below the limit and the second only where it is not, and one of these is true.

    Each capital is shared among means on its side, close together near the limit and far apart away from it, and bets
    by the likelihood ratio of scores of 0 and 1, which is valid for all scores from 0 to 1.
    """

    def __init__(self, threshold: Threshold, n: int, alpha: float) -> None:
        # At most m is the same as at least 1 - m of what scores lack to 1.
        self._least = None if threshold.minimum is None else _LeastMean(threshold.minimum, n, alpha)
        self._most = None if threshold.maximum is None else _LeastMean(1.0 - threshold.maximum, n, alpha)

    @property
    def result(self) -> bool | None:
        """Whether the threshold is met; None as long as that is open."""
        results = {side.result for side in (self._least, self._most) if side is not None}
        return False if False in results else None if None in results else True

    def add(self, score: float | None) -> None:
        """Draw a score; None is one that the mean is not about, which neither raises nor lowers it."""
        if self._least is not None:
            self._least.add(score)
        if self._most is not None:
            self._most.add(None if score is None else 1.0 - score)


class _LeastMean:
    """Whether a mean is at least a limit."""

    def __init__(self, limit: float, n: int, alpha: float) -> None:
        self.result: bool | None = None
        self._limit = limit - ROUNDING
        self._n = n
        self._goal = 1.0 / alpha
        self._drawn = 0
        self._sum = 0.0
        share = 1.0 / ALTERNATIVES
        self._higher = {self._limit + distance: share for distance in distances(1.0 - self._limit, n)}
        self._lower = {self._limit - distance: share for distance in distances(self._limit, n)}
        self._look()

    def add(self, score: float | None) -> None:
        if self.result is not None:
            return
        left = self._n - self._drawn
        null = min((self._n * self._limit - self._sum) / left, 1.0 - ROUNDING)
        value = self._limit if score is None else score
        for capital in (self._higher, self._lower):
            for mean, stake in capital.items():
                expected = min(max((self._n * mean - self._sum) / left, 0.0), 1.0)
                capital[mean] = stake * (value * expected / null + (1.0 - value) * (1.0 - expected) / (1.0 - null))
        self._drawn += 1
        self._sum += value
        self._look()

    def _look(self) -> None:
        needed = self._n * self._limit
        if self._sum >= needed:
            self.result = True
        elif self._sum + self._n - self._drawn < needed:
            self.result = False
        elif sum(self._higher.values()) >= self._goal:
            self.result = True
        elif sum(self._lower.values()) >= self._goal:
            self.result = False


def distances(room: float, n: int) -> list[float]:
    """Return distances from a limit up to `room`, in equal ratios; fewer than `n` scores cannot show smaller ones."""
    least = min(0.5 / math.sqrt(n), room / 2.0)
    return [least * (room / least) ** (step / (ALTERNATIVES - 1)) for step in range(ALTERNATIVES)]
