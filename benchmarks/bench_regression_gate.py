"""How often gates trip over a system that did not change but is noisy, and how often over one that got worse.

Each case has a chance of its own to be answered rightly, 0.85 in the mean (Beta(1.7, 0.3)), and two runs of the system
draw from it: so they agree on most cases, as runs of one model do. Scores between 0 and 1 are drawn around that chance.
A drop takes the same share of its chance from every case. `python benchmarks/bench_regression_gate.py [RUNS]`.
"""

from __future__ import annotations

import sys

import numpy as np

from pytest_queryeval.results.baseline.pairs import Pairs
from pytest_queryeval.results.baseline.statistics import detectable_drop, fall_p
from pytest_queryeval.results.gates.rules import is_regression

SIZES = (100, 200, 500)
DROPS = (0.02, 0.06, 0.10)
MEAN = 0.85
CHANCES = 1.7, 0.3
STEADINESS = 4.0  # of scores: the larger, the less they differ from run to run
SEED = 7
DETECTABLE = 100  # runs that say which drop they could have shown
UNCHANGED = 5  # times as many runs without a drop: how often these trip has to be known well
GATES = "any test newly failing", "mean fell by more than 2 points", "no_regression", "no_regression, max_drop 0.02"
HEADER = "cases", "drop", "  runs", *GATES, "detectable drop, in the mean"


def main() -> None:
    runs = int(next(iter(sys.argv[1:]), 2_000))
    for title, draw in (
        ("scores of 0 and 1 (exact McNemar)", right_or_wrong),
        ("scores from 0 to 1 (flipped signs)", score),
    ):
        print(f"\n{title}: in how many runs a gate trips")
        print("  ".join(HEADER))
        for cases in SIZES:
            for drop in (0.0, *DROPS):
                print_row(cases, drop, runs if drop else UNCHANGED * runs, draw)


def print_row(cases, drop, runs, draw):
    random = np.random.default_rng((SEED, cases, round(100 * drop)))
    tripped, least = np.zeros(len(GATES)), []
    for run in range(runs):
        pairs = two_runs(cases, drop, draw, random)
        tripped += trips(pairs)
        least += [detectable_drop(pairs) or 1.0] if run < DETECTABLE else []
    cells = (
        f"{cases}",
        f"{drop:.2f}",
        f"{runs:,}",
        *(f"{share:.1%}" for share in tripped / runs),
        f"{np.mean(least):.3f}",
    )
    print("  ".join(cell.rjust(len(name)) for cell, name in zip(cells, HEADER, strict=True)), flush=True)


def trips(pairs):
    """Which of the gates the second run misses."""
    p = fall_p(pairs) if pairs.change < 0 else 1.0
    return (
        any(value < 0 for value in pairs.differences),
        pairs.change < -0.02,
        is_regression(pairs.change, p, alpha=0.05, max_drop=0.0),
        is_regression(pairs.change, p, alpha=0.05, max_drop=0.02),
    )


def two_runs(cases, drop, draw, random):
    """The scores of two runs of the same cases, the second of a system whose mean is lower by `drop`."""
    chances = random.beta(*CHANCES, size=cases)
    return Pairs(before=draw(chances, random), after=draw(chances * (1 - drop / MEAN), random))


def right_or_wrong(chances, random):
    return (random.random(len(chances)) < chances).astype(float).tolist()


def score(chances, random):
    clipped = np.clip(chances, 1e-3, 1 - 1e-3)
    return np.round(random.beta(STEADINESS * clipped, STEADINESS * (1 - clipped)), 3).tolist()


if __name__ == "__main__":
    main()
