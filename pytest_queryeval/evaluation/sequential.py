"""Sequential tests, which decide from some of the scores whether the mean of all meets its limits."""

from __future__ import annotations

import math

from pytest_queryeval.core.model import SCORE_TOLERANCE, Threshold

ALTERNATIVES = 12  # means on each side of a limit that are bet on


class MeanTest:
    """Decides from the scores drawn so far whether the mean of `n` scores from 0 to 1 meets a threshold.

    The scores have to come in random order. `result` is None until it is decided, and then stays: that the mean meets
    the threshold, or misses it, is certain, or wrong with a probability of at most `alpha` for each of its limits,
    however often one looks and whenever one stops.

    Each limit is tested by betting against it, as in Waudby-Smith and Ramdas (2024), "Estimating means of bounded
    random variables by betting", for draws without replacement. If the mean of all scores is the limit m,
    then after t draws with the sum S the expected next score is (n m - S) / (n - t). One capital bets that scores are
    higher than that, another that they are lower; the expected growth of a capital that bets wrongly is at most 0. By
    Ville's inequality, it ever reaches 1 / alpha with a probability of at most alpha. At most one of the two can bet
    wrongly, the first if the mean is below the limit, the second if it is not, so alpha is not divided between them.

    Each capital is shared among means on its side, close together near the limit and far apart away from it, and bets
    by the likelihood ratio of scores of 0 and 1, which is valid for all scores from 0 to 1.
    """

    def __init__(self, threshold: Threshold, n: int, alpha: float) -> None:
        # A mean of at most m is a mean of 1 - score of at least 1 - m.
        self._min_test = None if threshold.minimum is None else _LeastMean(threshold.minimum, n, alpha)
        self._max_test = None if threshold.maximum is None else _LeastMean(1.0 - threshold.maximum, n, alpha)

    @property
    def result(self) -> bool | None:
        """Whether the threshold is met; None as long as that is open."""
        outcomes = {side.result for side in (self._min_test, self._max_test) if side is not None}
        return False if False in outcomes else None if None in outcomes else True

    def add(self, score: float | None) -> None:
        """Draw a score; None stands for a case without a score, which neither raises nor lowers the mean."""
        if self._min_test is not None:
            self._min_test.add(score)
        if self._max_test is not None:
            self._max_test.add(None if score is None else 1.0 - score)


class _LeastMean:
    """Whether a mean is at least a limit."""

    def __init__(self, limit: float, n: int, alpha: float) -> None:
        self.result: bool | None = None
        self._limit = limit - SCORE_TOLERANCE
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
        draws_left = self._n - self._drawn
        null = min((self._n * self._limit - self._sum) / draws_left, 1.0 - SCORE_TOLERANCE)
        drawn_score = self._limit if score is None else score
        for capital in (self._higher, self._lower):
            for mean, stake in capital.items():
                expected = min(max((self._n * mean - self._sum) / draws_left, 0.0), 1.0)
                capital[mean] = stake * (
                    drawn_score * expected / null + (1.0 - drawn_score) * (1.0 - expected) / (1.0 - null)
                )
        self._drawn += 1
        self._sum += drawn_score
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
    smallest_distance = min(0.5 / math.sqrt(n), room / 2.0)
    return [
        smallest_distance * (room / smallest_distance) ** (step / (ALTERNATIVES - 1)) for step in range(ALTERNATIVES)
    ]
