"""How many cases a run with `--queryeval-stop=decided` asks before its gate is decided, and how often it is wrong.

A gate of at least 0.80 on 1,034 cases, of which a known share is right; each run draws them in another order. It says of
each share how many of the runs ended with the wrong result of the gate, after how many cases they stopped in the mean,
and which share of the calls that saves. Below are a mean that meets the gate exactly, and scores between 0 and 1 of
which some are 0 for an error. Runs are made side by side in numpy; of each row the first ones are made again with the
test that the plugin uses, and have to end the same. `python benchmarks/bench_stop.py [RUNS]` takes 1 minute or 2.
"""

from __future__ import annotations

import sys

import numpy as np

from pytest_queryeval.core.model import SCORE_TOLERANCE, Threshold
from pytest_queryeval.evaluation.trials import ALTERNATIVES, MeanTest, distances

LIMIT = 0.80
CASES = 1_034
SHARES = (0.70, 0.75, 0.78, 0.79, 0.80, 0.81, 0.82, 0.85, 0.90)
ALPHA = 0.05
SEED = 7
AGAIN = 5  # runs of a row that are made again
BLOCK = 2_000  # runs in memory at once


def main() -> None:
    runs = int(next(iter(sys.argv[1:]), 10_000))
    print("| mean of all cases | wrong decisions | cases asked | calls saved |")
    print("|---|---|---|---|")
    for share in SHARES:
        print_row(f"{share:.2f}", right_or_wrong(CASES, round(share * CASES)), runs)
    print_row("0.80 exactly, of 1,000", right_or_wrong(1_000, 800), runs)
    for share in (0.78, LIMIT, 0.82):
        print_row(f"{share:.2f}, scores from 0 to 1, 2 % errors", from_0_to_1(share), runs)


def right_or_wrong(cases, right):
    return np.repeat([1.0, 0.0], [right, cases - right])


def from_0_to_1(mean):
    """Return scores of which half are 1 and 2 % are 0, with others between, moved until they have this mean."""
    random = np.random.default_rng(SEED)
    scores = np.concatenate([np.ones(CASES // 2), np.zeros(CASES // 50)])
    between = random.beta(2.0, 1.0, CASES - len(scores))
    wanted = (mean * CASES - scores.sum()) / len(between)
    return np.concatenate([scores, 1.0 - (1.0 - between) * (1.0 - wanted) / (1.0 - between.mean())])


def print_row(name, scores, runs):
    random = np.random.default_rng((SEED, round(1e6 * scores.mean())))
    wrong, cases_run = 0, 0
    for first in range(0, runs, BLOCK):
        orders = random.permuted(np.tile(scores, (min(BLOCK, runs - first), 1)), axis=1)
        results, times = decided(orders)
        for order, result, number in zip(orders[: AGAIN * (not first)], results, times, strict=False):
            assert decided_alone(order) == (result, number)
        wrong += (results != Threshold(minimum=LIMIT).admits(scores.mean())).sum()
        cases_run += times.sum()
    mean = cases_run / runs
    print(
        f"| {name} | {wrong / runs:.2%} | {mean:,.0f} of {len(scores):,} | {1 - mean / len(scores):.0%} |", flush=True
    )


def decided_alone(scores):
    """Return the result of a run and after how many cases it came."""
    test = MeanTest(Threshold(minimum=LIMIT), len(scores), ALPHA)
    for number, score in enumerate(scores, start=1):
        test.add(score)
        if test.result is not None:
            return test.result, number
    raise AssertionError("all scores decide")


def decided(orders):
    """Return what `decided_alone` does, for all rows of an array at once."""
    runs, n = orders.shape
    limit = LIMIT - SCORE_TOLERANCE
    means = limit + np.concatenate([distances(1.0 - limit, n), -np.array(distances(limit, n))])
    capital = np.full((runs, 2 * ALTERNATIVES), 1.0 / ALTERNATIVES)
    sums, results, times, open_runs = np.zeros(runs), np.zeros(runs, bool), np.zeros(runs, int), np.arange(runs)
    for drawn in range(n):
        left = n - drawn
        null = ((n * limit - sums) / left)[:, None]
        expected = np.clip((n * means - sums[:, None]) / left, 0.0, 1.0)
        score = orders[open_runs, drawn][:, None]
        capital *= score * expected / null + (1.0 - score) * (1.0 - expected) / (1.0 - null)
        sums = sums + score[:, 0]
        is_sure, is_lost = sums >= n * limit, sums + left - 1 < n * limit
        is_met = is_sure | (~is_lost & (capital[:, :ALTERNATIVES].sum(axis=1) >= 1.0 / ALPHA))
        ends = is_met | is_lost | (capital[:, ALTERNATIVES:].sum(axis=1) >= 1.0 / ALPHA)
        results[open_runs[ends]], times[open_runs[ends]] = is_met[ends], drawn + 1
        sums, capital, open_runs = sums[~ends], capital[~ends], open_runs[~ends]
    return results, times


if __name__ == "__main__":
    main()
