"""Systems whose wrong answers agree more often than by chance: together they are less than two witnesses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from math import comb
from typing import TypedDict

from pytest_queryeval.features.review.ranking import RankedCase

LEVEL = 0.01  # of the tests of all pairs together
MIN_CHANCE = 0.5  # of the same wrong answer to a case that two systems miss; unrelated systems are below


class Correlation(TypedDict):
    """Two systems, the number of cases that both miss, and of those to which they give the same answer."""

    systems: list[str]
    cases: int
    same: int


def correlations(ranking: Iterable[RankedCase]) -> list[Correlation]:
    """Return the pairs of systems whose wrong answers agree more often than by chance.

    Chance is the share of the same answers of all other pairs, at least MIN_CHANCE, in the cases that both systems of a
    pair miss. A binomial test decides, at LEVEL by Bonferroni's correction.
    """
    missed: Counter[tuple[str, str]] = Counter()
    same: Counter[tuple[str, str]] = Counter()
    for ranked in ranking:
        groups = {system: group for group in ranked.answers if not group.is_gold for system in group.systems}
        for pair in combinations(sorted(groups), 2):
            missed[pair] += 1
            same[pair] += groups[pair[0]] is groups[pair[1]]
    pairs: list[Correlation] = []
    for pair, cases in missed.items():
        other_cases, other_same = missed.total() - cases, same.total() - same[pair]
        chance = max(MIN_CHANCE, other_same / other_cases if other_cases else 0.0)
        if _probability(same[pair], cases, chance) < LEVEL / len(missed):
            pairs.append({"systems": [*pair], "cases": cases, "same": same[pair]})
    return pairs


def _probability(successes: int, trials: int, chance: float) -> float:
    """Return the probability of at least so many successes."""
    return sum(
        comb(trials, number) * chance**number * (1 - chance) ** (trials - number)
        for number in range(successes, trials + 1)
    )
