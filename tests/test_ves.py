import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import table

from pytest_queryeval.core.errors import SettingError
from pytest_queryeval.core.table import Policy
from pytest_queryeval.metrics import METRICS

MAX_ITERATIONS = 1_000
execution_accuracy, execution_accuracy_bird, ves, r_ves, r_ves_bird = (
    METRICS[name].function for name in ("execution_accuracy", "execution_accuracy_bird", "ves", "r_ves", "r_ves_bird")
)
check_iterations = METRICS["ves"].check
GOLD, SAME, OTHER = table((1,), (2,)), table((2,), (1,)), table((3,))
VES_METRICS = (ves, r_ves, r_ves_bird)
SECONDS = st.floats(1e-9, 1e3)
TIMES = st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=40)


def timer_of(times):
    return lambda iterations: times


def steady(ratio, count=20):
    """Times of which each is a little off, gold always `ratio` times as long as predicted."""
    return [(ratio * (1 + number / 1000), 1 + number / 1000) for number in range(count)]


def efficiency(times):
    return ves(GOLD, SAME, timer=timer_of(times)).details["efficiency"]


def interval(times):
    return tuple(efficiency(times)["interval"])


def mean_ratio(ratios):
    return efficiency([(ratio, 1.0) for ratio in ratios])["ratio"]


def reward(ratio):
    return 1.25 if ratio >= 2 else 1.0 if ratio >= 1 else 0.75 if ratio >= 0.5 else 0.5 if ratio >= 0.25 else 0.25


def never(iterations):
    raise AssertionError("nothing was to be timed")


@pytest.mark.parametrize("score", VES_METRICS)
def test_a_wrong_prediction_scores_0_and_is_not_timed(score):
    assert score(GOLD, OTHER, timer=never) == 0.0


@pytest.mark.parametrize("score", VES_METRICS)
def test_a_right_prediction_without_times_has_no_score(score):
    assert score(GOLD, SAME, timer=timer_of(None)) is None
    assert score(table(), table(), timer=timer_of(None)) is None


@pytest.mark.parametrize(
    ("predicted", "ours", "birds"),
    [
        (table((2,), (1,), (1,)), False, True),  # duplicates do not count there
        (table((2.0000001,), (1,)), True, False),  # nor does a tolerance hold
    ],
)
def test_right_is_what_the_execution_accuracy_of_the_same_rule_calls_right(predicted, ours, birds):
    fast = timer_of(steady(1.0))

    assert [bool(execution_accuracy(GOLD, predicted)), bool(execution_accuracy_bird(GOLD, predicted))] == [ours, birds]
    assert bool(r_ves_bird(GOLD, predicted, timer=fast)) is birds
    assert ves(table(("a", 1)), table((1, "a")), timer=never, policy=Policy(columns="positional")) == 0.0
    for score in (ves, r_ves):
        value = score(GOLD, predicted, timer=fast)
        assert bool(getattr(value, "value", value)) is ours


@pytest.mark.parametrize(
    ("ratio", "rewarded"),
    [(3.0, 1.25), (2.0, 1.25), (1.9, 1.0), (1.2, 1.0), (0.8, 0.75), (0.5, 0.75), (0.3, 0.5), (0.25, 0.5), (0.1, 0.25)],
)
def test_a_clear_difference_counts_as_much_as_it_is(ratio, rewarded):
    timer = timer_of(steady(ratio))

    assert ves(GOLD, SAME, timer=timer).value == pytest.approx(math.sqrt(ratio))
    assert r_ves(GOLD, SAME, timer=timer).value == math.sqrt(rewarded)
    assert r_ves_bird(GOLD, SAME, timer=timer) == math.sqrt(rewarded)


def test_noise_around_the_same_speed_counts_as_1_but_not_by_the_published_rule():
    noisy = [(0.9, 1.0)] * 11 + [(1.0, 0.9)] * 9

    assert ves(GOLD, SAME, timer=timer_of(noisy)).value == 1.0
    assert r_ves(GOLD, SAME, timer=timer_of(noisy)).value == 1.0
    assert r_ves_bird(GOLD, SAME, timer=timer_of(noisy)) == math.sqrt(0.75)


def test_a_few_wild_times_do_not_make_a_slower_query_the_faster_one():
    wild = [(1.0, 2.0)] * 18 + [(500.0, 2.0), (400.0, 2.0)]

    score = ves(GOLD, SAME, timer=timer_of(wild))

    assert score.details["efficiency"]["ratio"] > 1.0
    assert score.value == math.sqrt(0.5)
    assert r_ves(GOLD, SAME, timer=timer_of(wild)).value == math.sqrt(0.75)


def test_a_slower_query_is_seen_where_every_second_run_is_disturbed():
    random = Random(1)
    disturbed = [tuple(fast + 9.0 * random.getrandbits(1) for fast in (1.0, 1.3)) for _ in range(20)]

    assert ves(GOLD, SAME, timer=timer_of(disturbed)).value == pytest.approx(math.sqrt(1 / 1.3))


@pytest.mark.parametrize("score", [ves, r_ves])
def test_details_tell_the_ratio_its_interval_and_the_median_seconds(score):
    details = score(GOLD, SAME, timer=timer_of([(4.0, 2.0)] * 20)).details

    assert details == {
        "efficiency": {
            "ratio": 2.0,
            "interval": [2.0, 2.0],
            "counted_as": 2.0,
            "gold_seconds": 4.0,
            "predicted_seconds": 2.0,
            "iterations": 20,
        }
    }


def test_times_below_the_clock_are_no_infinite_merit_and_a_single_iteration_counts():
    assert ves(GOLD, SAME, timer=timer_of([(1.0, 4.0)])).value == 0.5
    assert r_ves_bird(GOLD, SAME, timer=timer_of([(1.0, 2.0)])) == math.sqrt(0.75)
    assert ves(GOLD, SAME, timer=timer_of([(0.0, 0.0)] * 20)).value == 1.0
    assert math.isfinite(ves(GOLD, SAME, timer=timer_of([(1.0, 0.0)] * 20)).value)


def test_ratios_far_from_the_mean_are_dropped_as_published():
    assert mean_ratio([1.0] * 30 + [100.0]) == 1.0
    assert mean_ratio([1.0, 100.0]) == 50.5


@pytest.mark.parametrize(("count", "rank"), [(1, 1), (6, 6), (7, 7), (10, 8), (20, 9), (100, 10), (1000, 10)])
def test_the_interval_lies_between_the_fastest_runs_and_those_of_a_rank(count, rank):
    times = [(float(number), 2.0 * number) for number in range(1, count + 1)]

    assert interval(times) == (1 / (2 * rank), rank / 2)


@pytest.mark.long
@pytest.mark.parametrize("count", [7, 20])
def test_the_interval_misses_the_ratio_less_often_than_once_in_500(count):
    random = Random(count)

    def disturbed():
        return 1.0 + random.expovariate(1.0) ** 3

    drawn = [interval([(disturbed(), disturbed()) for _ in range(count)]) for _ in range(1_500)]

    assert sum(not low <= 1.0 <= high for low, high in drawn) <= 7  # 3 of them are to be expected at most


@given(TIMES)
def test_scores_stay_between_what_is_possible(times):
    assert ves(GOLD, SAME, timer=timer_of(times)).value > 0.0
    for score in (r_ves(GOLD, SAME, timer=timer_of(times)).value, r_ves_bird(GOLD, SAME, timer=timer_of(times))):
        assert 0.5 <= score <= math.sqrt(1.25)


@given(TIMES)
def test_what_counts_lies_in_the_interval_and_both_scores_agree_on_it(times):
    score = ves(GOLD, SAME, timer=timer_of(times))
    low, high = score.details["efficiency"]["interval"]

    counted = score.details["efficiency"]["counted_as"]

    assert low <= counted <= high
    assert r_ves(GOLD, SAME, timer=timer_of(times)).value == math.sqrt(reward(counted))


@pytest.mark.parametrize("wrong", [0, -1, 10**9, MAX_ITERATIONS + 1, 2.5, "many", "20", True, None, [20]])
def test_iterations_that_cannot_be_are_refused(wrong):
    with pytest.raises(SettingError, match=r"^`iterations` must be a whole number from 1 to 1,000$") as caught:
        check_iterations({"iterations": wrong})

    assert caught.value.setting == "iterations"
    for options in ({}, {"iterations": 1}, {"iterations": MAX_ITERATIONS}):
        check_iterations(options)
