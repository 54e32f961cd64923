"""Whether the intervals of `queryeval audit` keep their level, and how wide they are.

One system: for every number of right answers among the judged ones of either stratum the interval is computed as the
command does, and weighed by its probability, so coverage and mean width are exact. Two systems: 10,000 draws a cell. Widths
are relative to those of as many cases judged without strata: Wilson's interval, and for two systems Bonett and Price's
(2012). `python benchmarks/bench_audit.py [full]`; the full grid takes three minutes of processor time.
"""

from __future__ import annotations

import sys
from functools import cache
from itertools import product

import numpy as np
from scipy.stats import hypergeom

from pytest_queryeval.features.audit.estimates import Tally
from pytest_queryeval.features.audit.intervals import SUM_TAILS, Count, as_share, difference, estimate_count, share
from pytest_queryeval.features.audit.strata import allocate

Z = 1.959964
LEVEL = 0.935  # that no cell should be below
RUNS = 10_000
SEED = 11
SIZES = 300, 1_034
FULL_SIZES = 100, 300, 1_034, 3_000
PASS_RATES = 0.3, 0.5, 0.7, 0.8, 0.9, 0.97
ERRORS = 0, 0.03, 0.05, 0.1, 0.3
FULL_ERRORS = 0, 0.01, 0.03, 0.05, 0.1, 0.2, 0.3
JUDGED = 30, 100, 300
FULL_JUDGED = 30, 50, 100, 200, 300
USUAL_ERRORS = 0.03, 0.05  # for which widths are compared, with
USUAL_SIZE, USUAL_JUDGED = 1_034, 100
PAIRS = (0.3, 0.3), (0.5, 0.5), (0.7, 0.7), (0.9, 0.9)
FULL_PAIRS = *PAIRS, (0.9, 0.3), (0.97, 0.97)
PAIR_ERRORS = 0.03, 0.05, 0.1, 0.3
PAIR_JUDGED = 30, 100
CORRELATIONS = 0.0, 0.5  # of the verdicts on both systems
VERDICTS = (True, True), (True, False), (False, True), (False, False)


def main() -> None:
    is_full = "full" in sys.argv[1:]
    print_one_system(*((FULL_SIZES, FULL_ERRORS, FULL_JUDGED) if is_full else (SIZES, ERRORS, JUDGED)))
    print_two_systems(FULL_PAIRS if is_full else PAIRS)


def print_one_system(sizes, errors, judged_numbers):
    coverages = {"right answers": [], "wrongly passed": [], "wrongly missed": []}
    widths = {}
    for size, pass_rate, judged in product(sizes, PASS_RATES, judged_numbers):
        passed = round(size * pass_rate)
        if judged >= size:
            continue
        strata = passed, size - passed
        for wrong, missed in product(errors, errors):
            cell = size, pass_rate, wrong, missed, judged
            right = passed - round(passed * wrong), round((size - passed) * missed)
            chances = probabilities(strata, right, judged)
            low, high, shares = limits(strata, judged)
            coverages["right answers"].append((covered(chances, low, high, sum(right) / size), cell))
            truths = [(passed - right[0], strata[1] - right[1]), (right[1], right[0])]
            for name, (part, remainder), (lows, highs) in zip(list(coverages)[1:], truths, shares, strict=True):
                if part + remainder:
                    coverages[name].append((covered(chances, lows, highs, part / (part + remainder)), cell))
            if (size, judged) == (USUAL_SIZE, USUAL_JUDGED) and {wrong, missed} <= {*USUAL_ERRORS}:
                width = float((chances * (high - low)).sum()) / wilson_width(size, sum(right), judged)
                widths.setdefault(pass_rate, []).append(width)
    print("one system")
    for name, values in coverages.items():
        print_coverage(name, values)
    print_widths(widths)


def probabilities(strata, right, judged):
    """The probability of each pair of numbers of right answers among those that are judged."""
    first, second = (
        hypergeom.pmf(np.arange(count + 1), size, matching, count)
        for size, matching, count in zip(strata, right, allocate(strata, judged), strict=True)
    )
    return first[:, None] * second


def covered(chances, low, high, truth):
    return float((chances * ((low - 1e-9 <= truth) & (truth <= high + 1e-9))).sum())


@cache
def limits(strata, judged):
    """The intervals for each pair of numbers of right answers: of the share, and of both mistakes of the verdict."""
    counts = allocate(strata, judged)
    shape = counts[0] + 1, counts[1] + 1
    low, high = np.zeros(shape), np.zeros(shape)
    shares = [(np.zeros(shape), np.ones(shape)) for _ in range(2)]
    for hits in np.ndindex(shape):
        of_stratum = [Count(*numbers) for numbers in zip(strata, counts, hits, strict=True)]
        tally = Tally({str(place): (count,) for place, count in enumerate(of_stratum)}, 0)
        _, low[hits], high[hits] = as_share(tally.estimate(), sum(strata))
        passed, missed = map(estimate_count, of_stratum)
        parts = (passed.complement(strata[0]), missed.complement(strata[1])), (missed, passed)
        for (lows, highs), (part, remainder) in zip(shares, parts, strict=True):
            if (estimate := share(part, remainder)) is not None:
                _, lows[hits], highs[hits] = estimate
    return low, high, shares


@cache
def wilson_width(size, right, judged):
    """The mean width of Wilson's interval of so many judged cases that are drawn without strata."""
    hits = np.arange(judged + 1)
    p = hits / judged
    width = 2 * Z / (1 + Z**2 / judged) * np.sqrt(p * (1 - p) / judged + Z**2 / (4 * judged**2))
    return float((hypergeom.pmf(hits, size, right, judged) * width).sum())


def print_two_systems(pairs):
    random = np.random.default_rng(SEED)
    coverages, widths = [], {}
    for rates, correlation, are_shared in product(pairs, CORRELATIONS, (False, True)):
        strata = joint_strata(USUAL_SIZE, *rates, correlation)
        for wrong, missed, judged in product(PAIR_ERRORS, PAIR_ERRORS, PAIR_JUDGED):
            cell = *rates, correlation, are_shared, wrong, missed, judged
            is_usual = judged == USUAL_JUDGED and {wrong, missed} <= {*USUAL_ERRORS}
            coverage, width = two_systems(strata, wrong, missed, judged, random, are_shared=are_shared)
            coverages.append((coverage, cell))
            if is_usual:
                widths.setdefault((*rates, correlation, "shared" if are_shared else "own"), []).append(width)
    print("two systems: pass rates, correlation of verdicts, errors of the verdict on each that are its own or shared")
    print_coverage("difference", coverages)
    print_widths(widths)


def joint_strata(size, first, second, correlation):
    """How many cases both systems pass, the first only, the second only, and neither."""
    both = first * second + correlation * np.sqrt(first * (1 - first) * second * (1 - second))
    both = min(both, first, second)
    counts = [round(size * part) for part in (both, first - both, second - both)]
    return *counts, max(0, size - sum(counts))


def right_cells(size, verdicts, wrong, missed, *, are_shared):
    """How many cases of a stratum have right answers of both systems, of the first only, of the second, of neither.

    Where errors are shared, both verdicts on a case are wrong or none: its gold is at fault.
    """
    first, second = (1 - wrong if passed else missed for passed in verdicts)
    same = verdicts[0] == verdicts[1]
    both = first * second if not are_shared else min(first, second) if same else max(0.0, first + second - 1)
    counts = [round(size * part) for part in (both, first - both, second - both)]
    while sum(counts) > size:
        counts[int(np.argmax(counts))] -= 1
    return *counts, size - sum(counts)


def two_systems(strata, wrong, missed, judged, random, *, are_shared):
    """The coverage of the audited difference, and its mean width in relation to that without strata."""
    sizes = [size for size in strata if size]
    cells = [
        right_cells(size, verdicts, wrong, missed, are_shared=are_shared)
        for size, verdicts in zip(strata, VERDICTS, strict=True)
        if size
    ]
    values, lows, highs = (np.zeros(RUNS) for _ in range(3))
    for size, counts, of_stratum in zip(sizes, allocate(sizes, judged), cells, strict=True):
        drawn = random.multivariate_hypergeometric(of_stratum, counts, size=RUNS, method="marginals")
        outcomes, places = np.unique(drawn[:, [2, 1]], axis=0, return_inverse=True)
        estimates = np.array([stratum_difference(size, counts, *map(int, outcome)) for outcome in outcomes])
        value, low, high = estimates[places.reshape(-1)].T
        values, lows, highs = values + value, lows + (value - low) ** 2, highs + (high - value) ** 2
    low, high = np.floor(values - np.sqrt(lows) + 1e-9), np.ceil(values + np.sqrt(highs) - 1e-9)
    totals = np.sum(cells, axis=0)
    truth = totals[2] - totals[1]
    simple = random.multivariate_hypergeometric(totals, judged, size=RUNS, method="marginals")
    second, first = ((simple[:, place] + 1) / (judged + 2) for place in (2, 1))
    simple_width = 2 * Z * np.sqrt((first + second - (second - first) ** 2) / (judged + 2))
    width = float((high - low).mean()) / sum(sizes) / float(simple_width.mean())
    return float(((low <= truth) & (truth <= high)).mean()), width


@cache
def stratum_difference(size, judged, more, fewer):
    return difference(Count(size, judged, more), Count(size, judged, fewer), SUM_TAILS)


def print_coverage(name, coverages):
    below = sum(coverage < LEVEL for coverage, _ in coverages)
    mean = np.mean([coverage for coverage, _ in coverages])
    print(
        f"  {name}: coverage in {len(coverages):,} cells {mean:.4f} in the mean, in {below} below {LEVEL}; the lowest:"
    )
    for coverage, cell in sorted(coverages)[:5]:
        print(f"    {coverage:.4f} {cell}")


def print_widths(widths):
    for setting, values in widths.items():
        print(f"  {setting}: width x {np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})", flush=True)


if __name__ == "__main__":
    main()
