"""Valid efficiency scores (BIRD): how fast a right prediction is compared with gold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, pstdev

from pytest_queryeval.comparison.equality import equal_tables
from pytest_queryeval.core.errors import SettingError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.metric import Score, Timer, metric
from pytest_queryeval.core.table import Policy, Table

ITERATIONS = 20
MAX_ITERATIONS = 1_000  # the published code has 100
CONFIDENCE = 0.998  # seven iterations are the fewest that can reach it
MIN_SECONDS = 1e-9  # no clock is finer
# The least ratio for each reward, as published.
STEPS = ((2.0, 1.25), (1.0, 1.0), (0.5, 0.75), (0.25, 0.5))
MIN_REWARD = 0.25
MAX_REWARD = math.sqrt(STEPS[0][1])


def check_iterations(options: Mapping[str, JsonValue]) -> None:
    """Raise `SettingError` unless `iterations` is a whole number from 1 to MAX_ITERATIONS."""
    iterations = options.get("iterations", ITERATIONS)
    if type(iterations) is not int or not 1 <= iterations <= MAX_ITERATIONS:
        raise SettingError("iterations", f"`iterations` must be a whole number from 1 to {MAX_ITERATIONS:,}")


@metric(check=check_iterations, max_score=math.inf)
def ves(
    gold: Table,
    predicted: Table,
    *,
    timer: Timer,
    policy: Policy = Policy(),  # noqa: B008 (immutable)
    iterations: int = ITERATIONS,
) -> Score | float | None:
    """Return the square root of how many times faster than gold a right prediction is; may exceed 1.

    The score is 0 without any timing if `execution_accuracy` is not 1, and None if gold or predicted is not a query.
    Both are run in turn `iterations` times, and the ratios of their times, gold's by predicted's, are averaged as in
    `mean_ratio`. The mean counts as 1 if its `interval` contains 1, so that noise neither gains nor costs, and it is
    clipped to the interval, so that a few outliers do not decide it. `details.efficiency` has the ratio, its interval,
    what it counts as, and the medians of seconds. Source: BIRD's VES (Li et al., 2023), with all rows fetched.
    """
    return _score(math.sqrt, timer, iterations) if equal_tables(gold, predicted, policy) else 0.0


@metric(check=check_iterations, max_score=MAX_REWARD)
def r_ves(
    gold: Table,
    predicted: Table,
    *,
    timer: Timer,
    policy: Policy = Policy(),  # noqa: B008 (immutable)
    iterations: int = ITERATIONS,
) -> Score | float | None:
    """Return the square root of a reward for how many times faster than gold a right prediction is.

    The ratio is that of `ves`. Its reward is 1.25 from 2, 1 from 1, 0.75 from 0.5, 0.5 from 0.25, else 0.25. The score
    is at most sqrt(1.25). It is 0 if `execution_accuracy` is not 1, and None if gold or predicted is not a query.
    Source: BIRD mini-dev's R-VES.
    """
    if not equal_tables(gold, predicted, policy):
        return 0.0
    return _score(lambda ratio: math.sqrt(reward(ratio)), timer, iterations)


@metric(check=check_iterations, max_score=MAX_REWARD, published=True)
def r_ves_bird(gold: Table, predicted: Table, *, timer: Timer, iterations: int = ITERATIONS) -> float | None:
    """Return R-VES by the published rule: `r_ves` without regard to noise, so that gold against itself may be below 1.

    The score is 0 unless `execution_accuracy_bird` is 1: the sets of rows are equal, by position and by Python
    equality. It is None if gold or predicted is not a query. The published code gives 0 if all ratios are equal, as
    with one iteration; here they count. Kept to be compared with papers. Source: bird-bench/mini_dev,
    evaluation_ves.py.
    """
    if set(gold.rows) != set(predicted.rows):
        return 0.0
    times = timer(iterations)
    return None if times is None else math.sqrt(reward(mean_ratio(ratios_of(times))))


def reward(ratio: float) -> float:
    """Return the published reward for a ratio of gold's time by predicted's time.

    >>> [reward(ratio) for ratio in (3.0, 1.0, 0.9, 0.3, 0.1)]
    [1.25, 1.0, 0.75, 0.5, 0.25]
    """
    return next((value for least, value in STEPS if ratio >= least), MIN_REWARD)


def ratios_of(times: Sequence[tuple[float, float]]) -> list[float]:
    """Return the ratio of gold's seconds by predicted's seconds for each iteration."""
    return [max(gold, MIN_SECONDS) / max(predicted, MIN_SECONDS) for gold, predicted in times]


def mean_ratio(ratios: Sequence[float]) -> float:
    """Return the mean of the ratios within three standard deviations of their mean; of all ratios if none is within.

    >>> mean_ratio([2.0, 2.0])
    2.0
    """
    mean, deviation = fmean(ratios), pstdev(ratios)
    return fmean([ratio for ratio in ratios if abs(ratio - mean) < 3 * deviation] or ratios)


def interval(times: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return a confidence interval of the ratio between gold's and predicted's seconds, from undisturbed runs.

    Noise only adds time, so the fastest runs count: with k the least number for which 2 * C(n, k) / C(2n, k) <= 1 -
    0.998, the fastest gold by the k-th fastest predicted, to the k-th fastest gold by the fastest predicted. If both
    were equally fast, the k fastest runs of all would hardly ever be runs of one query. It holds for any distribution
    of the noise, and however slow the slower half is. With fewer than seven iterations there is no such k; then all of
    them count, which is less certain. Source: L. S. Nelson, Tables for a precedence life test, Technometrics 5 (1963).

    >>> interval([(1.0, 2.0), (1.0, 2.5), (9.0, 2.0)])
    (0.4, 4.5)
    """
    golds, predicteds = (sorted(max(seconds, MIN_SECONDS) for seconds in column) for column in zip(*times, strict=True))
    n = len(times)
    k = next((k for k in range(1, n) if 2 * math.comb(n, k) <= (1 - CONFIDENCE) * math.comb(2 * n, k)), n)
    return golds[0] / predicteds[k - 1], golds[k - 1] / predicteds[0]


def _score(value_of: Callable[[float], float], timer: Timer, iterations: int) -> Score | None:
    times = timer(iterations)
    if times is None:
        return None
    ratios = ratios_of(times)
    low, high = interval(times)
    ratio = 1.0 if low <= 1.0 <= high else min(max(mean_ratio(ratios), low), high)
    seconds = [sorted(column)[len(times) // 2] for column in zip(*times, strict=True)]
    efficiency = {
        "ratio": mean_ratio(ratios),
        "interval": [low, high],
        "counted_as": ratio,
        "gold_seconds": seconds[0],
        "predicted_seconds": seconds[1],
        "iterations": len(times),
    }
    return Score(value=value_of(ratio), details={"efficiency": efficiency})
