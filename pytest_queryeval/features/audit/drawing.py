"""Draws the cases of an audit: at random within each stratum of the verdicts, so that each has a known probability."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence

from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.features.audit.answers import AnsweredCase
from pytest_queryeval.results.audit_file import DrawnCase

MINIMUM = 5  # cases of a stratum
POWER = 0.75


def strata_of(cases: Mapping[str, AnsweredCase]) -> dict[str, list[str]]:
    """Return the node ids of the cases that have an answer to be judged, by stratum; both are sorted by name."""
    strata: defaultdict[str, list[str]] = defaultdict(list)
    for nodeid in sorted(cases):
        if cases[nodeid].predictions:
            strata[cases[nodeid].stratum].append(nodeid)
    return {stratum: strata[stratum] for stratum in sorted(strata)}


def draw(cases: Mapping[str, AnsweredCase], number: int, seed: int) -> list[DrawnCase]:
    """Return a number of cases, or all if there are fewer, in random order; raise `ReportError` for too few.

    The same cases, number and seed give the same draw.
    """
    strata = strata_of(cases)
    if not strata:
        raise ReportError("there is nothing to judge: no case has an answer with a verdict")
    sizes = [len(nodeids) for nodeids in strata.values()]
    least_number = sum(min(MINIMUM, size) for size in sizes)
    if number < least_number:
        parts = (f"{min(MINIMUM, len(nodeids))} of {len(nodeids):,} {stratum}" for stratum, nodeids in strata.items())
        raise ReportError(f"--draw {number}: draw at least {least_number}: {', '.join(parts)}")
    generator = random.Random(seed)  # noqa: S311 - a draw that can be repeated
    drawn_cases = []
    for (stratum, nodeids), count in zip(strata.items(), allocate(sizes, number), strict=True):
        drawn_cases += [
            DrawnCase(
                id=cases[nodeid].id,
                nodeid=nodeid,
                stratum=stratum,
                probability=count / len(nodeids),
                predictions=cases[nodeid].predictions,
            )
            for nodeid in generator.sample(nodeids, count)
        ]
    generator.shuffle(drawn_cases)  # so that those that are judged first are a random part of each stratum
    return drawn_cases


def allocate(sizes: Sequence[int], number: int) -> list[int]:
    """Return how many of `number` cases to draw from strata of these sizes: at least `MINIMUM`, if it has as many.

    The others are shared in proportion to size ** 0.75. In proportion to the sizes, too few cases would be judged in
    small strata, which widens the interval, and with equal shares too few in large ones. In simulations of two strata,
    as in `benchmarks/bench_audit.py`, 0.75 gave the shortest intervals if the larger one has 70 to 90 % of the cases.
    """
    counts = [min(MINIMUM, size) for size in sizes]
    weights = [size**POWER for size in sizes]
    for _ in range(min(number, sum(sizes)) - sum(counts)):
        places = [place for place, size in enumerate(sizes) if counts[place] < size]
        counts[max(places, key=lambda place: weights[place] / (counts[place] + 0.5))] += 1
    return counts
