"""The test of a mean that may be looked at after every score, and how often it is wrong."""

import math
import random
from itertools import permutations, product

import pytest

from pytest_queryeval.core.model import Threshold
from pytest_queryeval.evaluation.trials import MeanTest  # white box: how often a decision is wrong, over all orders

ALPHA = 0.05
RUNS = 60


def decide(scores, *, minimum=None, maximum=None, alpha=ALPHA):
    """Return the result and after how many scores it came, None for both if it never did."""
    test = MeanTest(Threshold(minimum=minimum, maximum=maximum), len(scores), alpha)
    for number, score in enumerate(scores, start=1):
        test.add(score)
        if test.result is not None:
            return test.result, number
    return None, None


def simulate(scores, seed, **limits):
    """Return the results of runs in random orders, and the mean number of scores that they took."""
    order, results, times = random.Random(seed), [], []
    for _ in range(RUNS):
        result, number = decide(order.sample(scores, len(scores)), **limits)
        results.append(result)
        times.append(number)
    return results, sum(times) / RUNS


@pytest.mark.long
@pytest.mark.parametrize(
    ("right", "limits", "is_met"),
    [
        (79, {"minimum": 0.8}, False),
        (80, {"minimum": 0.8}, True),
        (21, {"maximum": 0.2}, False),
        (50, {"minimum": 0.4, "maximum": 0.6}, True),
    ],
)
def test_decisions_are_rarely_wrong(right, limits, is_met):
    results, _ = simulate([1.0] * right + [0.0] * (100 - right), right, **limits)
    # At most 5 % for each limit; this many of 60 are wrong by chance in 1 of 1,000 tests at most.
    assert results.count(not is_met) <= 10 * len(limits)
    assert None not in results


@pytest.mark.long
@pytest.mark.parametrize("side", ["minimum", "maximum"])
@pytest.mark.parametrize("distance", [-0.03, 0.0, 0.03])
@pytest.mark.parametrize(
    "scores", [(1.0, 1.0, 1.0, 1.0, 0.0, 0.0), (1.0, 1.0, 1.0, 0.5, 0.5, 0.0), (0.97, 0.9, 0.62, 0.4, 0.33, 0.02)]
)
def test_of_all_orders_of_few_scores_no_more_than_alpha_are_decided_wrongly(scores, distance, side):
    mean, alpha = math.fsum(scores) / len(scores), 0.4  # a smaller one decides nothing about six scores
    limits = {side: mean + distance}
    is_met = Threshold(**limits).admits(mean)

    results = [decide(order, **limits, alpha=alpha)[0] for order in {*permutations(scores)}]

    assert 0 < results.count(not is_met) / len(results) <= alpha
    assert None not in results


@pytest.mark.parametrize("right", range(7))
@pytest.mark.parametrize("limit", [0.0, 1 / 6, 0.5, 0.7, 5 / 6, 1.0])
def test_no_order_of_few_scores_is_left_open(right, limit):
    for order in {tuple(scores) for scores in product([0.0, 1.0], repeat=6) if sum(scores) == right}:
        result, _ = decide(order, minimum=limit)
        assert result is (right / 6 >= limit - 1e-9)  # six scores decide nothing before it is certain


def test_certainty_does_not_wait_for_all_scores():
    assert decide([0.0, *[1.0] * 9], minimum=1.0) == (False, 1)
    assert decide([*[1.0] * 5, *[0.0] * 5], minimum=0.5)[1] <= 5
    assert decide([*[0.5] * 4, 1.0, 1.0], maximum=0.3)[0] is False


def test_a_mean_at_its_limit_meets_it_in_spite_of_rounding():
    assert decide([0.1, 0.2, 0.6], minimum=0.3) == (True, 3)
    assert decide([0.1, 0.2, 0.6], maximum=0.3) == (True, 3)
    assert decide([0.7] * 3, minimum=0.7) == (True, 3)


def test_a_score_that_does_not_count_changes_nothing():
    scores = [None, 1.0, None, 0.0, 1.0, None, 1.0, 1.0]  # 4 of 5
    assert decide(scores, minimum=0.8)[0] is True
    assert decide(scores, minimum=0.81)[0] is False
    assert decide(scores, maximum=0.8)[0] is True
    assert decide(scores, maximum=0.79)[0] is False


def test_a_decision_stays():
    test = MeanTest(Threshold(minimum=0.5), 1_000, ALPHA)
    for _ in range(20):
        test.add(1.0)
    assert test.result is True
    for _ in range(980):
        test.add(0.0)
    assert test.result is True
