"""Paired statistics: against scipy, against counting by hand, and by what has to hold of any scores."""

import math
import random
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_queryeval.results.baseline.pairs import Pairs
from pytest_queryeval.results.baseline.statistics import (
    MAX_EXACT,
    POWER,
    detectable_drop,
    fall_p,
    fitting_test,
    holm,
    interval,
    mcnemar_power,
    p_value,
)
from pytest_queryeval.results.gates.rules import is_regression

SCORES = st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 0.8, 1.0])
PAIRS = st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=10)
BINARY = st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0])), min_size=1, max_size=10)


def pairs(scores):
    return Pairs(before=[before for before, _ in scores], after=[after for _, after in scores])


def of_flips(broken, fixed, same=0):
    return pairs([(1.0, 0.0)] * broken + [(0.0, 1.0)] * fixed + [(1.0, 1.0)] * same)


def of_differences(differences):
    return Pairs(before=[0.0] * len(differences), after=list(differences))


def noise(n, seed=1):
    return of_differences(np.random.default_rng(seed).normal(size=n).tolist())


def share_of_signs(differences, is_extreme):
    """The share of all ways to give the differences signs whose sum is extreme, counted one by one."""
    sums = [
        math.fsum(sign * value for sign, value in zip(signs, differences, strict=True))
        for signs in product((-1, 1), repeat=len(differences))
    ]
    return sum(map(is_extreme, sums)) / len(sums)


def test_the_exact_mcnemar_test_has_the_published_value():
    # 9 of 10 discordant pairs on one side: 2 * (C(10, 9) + C(10, 10)) / 2^10
    assert p_value(of_flips(9, 1, same=40)) == pytest.approx(22 / 1024)
    assert p_value(of_flips(9, 1, same=40), "lower") == pytest.approx(11 / 1024)
    assert p_value(of_flips(1, 9, same=40), "lower") == pytest.approx(1023 / 1024)


@given(PAIRS | BINARY)
def test_few_differences_are_given_all_signs(scores):
    actual = pairs(scores)
    observed = math.fsum(actual.differences)

    lower = share_of_signs(actual.differences, lambda total: total <= observed + 1e-9)
    both = share_of_signs(actual.differences, lambda total: abs(total) >= abs(observed) - 1e-9)

    assert p_value(actual, "lower") == pytest.approx(lower)
    assert p_value(actual) == pytest.approx(both)


@pytest.mark.parametrize("seed", range(5))
def test_many_differences_are_given_random_signs_as_scipy_does(seed):
    actual = noise(40, seed)

    reference = stats.permutation_test(
        (actual.before, actual.after),
        lambda before, after, axis: np.mean(after, axis=axis) - np.mean(before, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=20_000,
        alternative="less",
        rng=np.random.default_rng(3),
    )

    assert p_value(actual, "lower") == pytest.approx(reference.pvalue, abs=0.02)


def test_random_signs_never_give_a_p_of_0():
    assert p_value(of_differences([-0.5] * (MAX_EXACT + 30)), "lower") == 1 / 10_000


@pytest.mark.parametrize("run", [noise(MAX_EXACT + 1), noise(40), noise(200), of_differences([-0.5] * 40)])
def test_the_p_of_a_fall_by_random_signs_is_larger_by_an_error_that_is_made_once_in_200_times(run):
    p = p_value(run, "lower")

    assert fall_p(run) - p == pytest.approx(2.5758 * math.sqrt(p * (1 - p) / 9_999), rel=1e-4)
    assert fall_p(run) > p


@pytest.mark.parametrize("run", [noise(MAX_EXACT), noise(3), of_flips(30, 20), of_flips(3, 1), of_flips(0, 0, same=9)])
def test_the_p_of_a_fall_that_is_exact_is_left_as_it_is(run):
    assert fall_p(run) == p_value(run, "lower")
    assert fall_p(run.negated) == p_value(run.negated, "lower")


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40))
def test_the_sign_of_all_differences_does_not_change_the_two_sided_p(differences):
    mirrored = of_differences([-value for value in differences])

    assert p_value(of_differences(differences)) == p_value(mirrored)
    assert of_differences(differences).change == -mirrored.change


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30), st.randoms())
def test_the_order_of_cases_does_not_matter(differences, random):
    shuffled = random.sample(differences, len(differences))

    for figure in (p_value, interval, detectable_drop):
        assert figure(of_differences(shuffled)) == figure(of_differences(differences))


@pytest.mark.parametrize("scores", [[(1.0, 1.0)] * 9, [(0.3, 0.3)] * 40, [(0.0, 0.0)]])
def test_scores_that_are_the_same_show_nothing(scores):
    assert p_value(pairs(scores)) == p_value(pairs(scores), "lower") == 1.0
    actual = interval(pairs(scores))
    assert actual is None or actual[0] < 0.0 < actual[1]


@pytest.mark.parametrize(
    ("n", "broken", "fixed"), [(100, 0.02, 0.01), (30, 0.05, 0.03), (12, 0.1, 0.05), (200, 0.05, 0.03)]
)
def test_intervals_hold_where_few_cases_flip(n, broken, fixed):
    chance = random.Random(7)
    flips = [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
    samples = [chance.choices(flips, (broken, fixed, 1 - broken - fixed), k=n) for _ in range(400)]
    held = [low <= fixed - broken <= high for low, high in (interval(pairs(sample)) for sample in samples)]

    assert sum(held) / len(held) >= 0.93


def test_the_test_fits_the_scores():
    assert fitting_test(pairs([(1.0, 0.0), (0.0, 0.0)])) == "mcnemar"
    assert fitting_test(pairs([(1.0, 0.0), (0.5, 0.0)])) == "sign_flip"


def test_the_interval_of_few_values_is_that_of_scipys_bootstrap():
    actual = of_flips(36, 15, same=249)

    reference = stats.bootstrap((actual.differences,), np.mean, method="percentile", rng=np.random.default_rng(1))

    assert interval(actual) == pytest.approx(list(reference.confidence_interval), abs=0.004)


def test_the_interval_of_many_values_is_near_that_of_the_normal_distribution():
    actual = noise(2_000)

    low, high = interval(actual)

    half = 1.96 * np.std(actual.differences) / math.sqrt(2_000)
    assert (low, high) == pytest.approx((actual.change - half, actual.change + half), abs=0.004)


@pytest.mark.long
def test_intervals_cover_the_true_change_about_as_often_as_they_say():
    random = np.random.default_rng(5)

    covered = 0
    for _ in range(100):
        before, after = random.random((2, 80))
        low, high = interval(Pairs(before=before.tolist(), after=(after - 0.1).tolist()))
        covered += low <= -0.1 <= high

    assert 90 <= covered <= 99


STEADY = of_differences([0.01, -0.01] * 50)
FEW = of_differences([0.25, -0.25] * 8 + [0.0] * 84)


@pytest.mark.long
@pytest.mark.parametrize("pairs_of_run", [of_flips(9, 8, same=83), of_flips(0, 0, same=100), noise(100), STEADY, FEW])
def test_the_detectable_drop_is_found_in_about_four_of_five_runs(pairs_of_run):
    least = detectable_drop(pairs_of_run)
    random = np.random.default_rng(11)

    actual = 0
    for _ in range(200):
        if pairs_of_run.are_binary:
            discordant = max(np.mean(np.abs(pairs_of_run.differences)), least)
            sides = random.random(100)
            broken, fixed = (discordant + least) / 2, (discordant - least) / 2
            run = of_flips(int((sides < broken).sum()), int((sides > 1 - fixed).sum()))
        else:
            run = of_differences((random.choice(pairs_of_run.differences, 100) - pairs_of_run.change - least).tolist())
        actual += p_value(run, "lower") <= 0.05

    assert actual / 200 == pytest.approx(POWER, abs=0.09)


def scaled(run, by):
    return Pairs(before=[by * value for value in run.before], after=[by * value for value in run.after])


def test_the_detectable_drop_has_the_scale_of_the_scores():
    for run in (noise(100), STEADY, FEW, Pairs(before=[0.5] * 100, after=[0.5] * 100)):
        assert detectable_drop(scaled(run, 30.0)) == pytest.approx(30 * detectable_drop(run))


def test_steady_scores_show_smaller_drops_than_noisy_ones():
    assert detectable_drop(STEADY) == pytest.approx(2.4865 * 0.01 / 10, rel=1e-3)
    assert detectable_drop(STEADY) < detectable_drop(FEW) < detectable_drop(noise(100))


def test_scores_that_never_change_show_what_cases_that_lose_all_bring():
    run = Pairs(before=[0.5] * 100, after=[0.5] * 100)

    drop = detectable_drop(run)

    lost = round(100 * drop / 0.5)
    assert p_value(Pairs(before=run.before, after=[0.0] * lost + [0.5] * (100 - lost)), "lower") <= 0.05
    assert detectable_drop(Pairs(before=[0.0, 0.0, 0.5] * 9, after=[0.0, 0.0, 0.5] * 9)) < 0.5


def test_a_stricter_test_finds_larger_drops_only():
    assert detectable_drop(STEADY, 0.05) < detectable_drop(STEADY, 0.005)


def test_an_unchanged_system_trips_a_gate_in_about_one_of_twenty_runs():
    random = np.random.default_rng(3)

    tripped = 0
    for _ in range(300):
        before, after = np.round(random.beta(3.0, 1.0, size=(2, 40)), 2)
        run = Pairs(before=before.tolist(), after=after.tolist())
        tripped += is_regression(run, fall_p(run), alpha=0.05, max_drop=0.0)

    assert 5 <= tripped <= 24  # 15 on average; 24 or more in one of 70 such tests


def test_power_is_summed_over_all_numbers_of_discordant_pairs():
    n, discordant, drop = 12, 0.4, 0.3
    broken = (discordant + drop) / 2

    by_hand = 0.0
    for down in range(n + 1):
        for up in range(n + 1 - down):
            chance = math.comb(n, down) * math.comb(n - down, up)
            chance *= broken**down * (discordant - broken) ** up * (1 - discordant) ** (n - down - up)
            by_hand += chance * (p_value(of_flips(down, up), "lower") <= 0.05)

    assert mcnemar_power(n, discordant, drop) == pytest.approx(by_hand, abs=1e-6)


@pytest.mark.parametrize("run", [of_flips(1, 0, same=3), noise(4), of_flips(0, 0)])
def test_so_few_cases_show_no_drop_at_all(run):
    assert detectable_drop(run) is None


def test_a_drop_is_no_larger_than_the_scores_and_the_rise_of_a_cost_is_what_it_has_to_be():
    run = Pairs(before=[0.1, 5.0] * 3, after=[5.0, 0.1] * 3)

    risen = Pairs(before=run.before, after=[value + detectable_drop(run.negated) for value in run.before]).negated

    assert detectable_drop(run) is None
    assert detectable_drop(run.negated) > 5.0
    assert is_regression(risen, fall_p(risen), alpha=0.05, max_drop=0.0)


def test_no_rise_that_is_no_number_is_told():
    assert detectable_drop(noise(20).negated, alpha=1.0) is None


@pytest.mark.parametrize("run", [of_flips(9, 8, same=83), of_flips(0, 0, same=100)])
def test_costs_of_0_and_1_are_tested_as_scores_of_0_and_1(run):
    assert (fitting_test(run.negated), detectable_drop(run.negated)) == ("mcnemar", detectable_drop(run))
    assert p_value(run.negated, "lower") == p_value(Pairs(before=run.after, after=run.before), "lower")


def test_more_cases_show_smaller_drops_and_a_tolerated_drop_is_not_looked_for():
    small, large = of_flips(9, 8, same=83), of_flips(90, 80, same=830)

    assert detectable_drop(large) < detectable_drop(small)
    assert detectable_drop(large, tolerated=0.1) > 0.1


def test_holm_adjusts_the_published_example():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_keeps_the_order_and_never_lowers_a_p(values):
    adjusted = holm(values)

    assert all(1 >= new >= old for new, old in zip(adjusted, values, strict=True))
    assert sorted(range(len(values)), key=values.__getitem__) == sorted(
        range(len(values)), key=lambda place: (adjusted[place], values[place], place)
    )
