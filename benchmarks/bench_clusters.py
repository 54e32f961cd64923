"""How often the 95 % intervals of a mean hold the true one, where cases share databases.

20 databases have as many cases as those of Spider's development set. Each has a chance of its own to be answered
rightly, 0.8 in the mean, drawn so that cases on one database are correlated (a beta distribution); scores between 0 and
1 are drawn around that chance. `python benchmarks/bench_clusters.py [RUNS]`.
"""

from __future__ import annotations

import sys

import numpy as np

from pytest_queryeval.results.aggregation import statistics

SIZES = (120, 92, 84, 82, 80, 78, 62, 62, 56, 45, 42, 40, 40, 38, 30, 30, 18, 16, 15, 4)
MEAN = 0.8
CORRELATIONS = (0.0, 0.02, 0.05, 0.07, 0.1, 0.2)
STEADINESS = 2.0  # of scores: the larger, the less those of one database differ
SEED = 7
HEADER = "correlation", "scores", "plain holds it", "mean width", "clustered holds it", "mean width"


def main() -> None:
    runs = int(next(iter(sys.argv[1:]), 10_000))
    print("  ".join(HEADER))
    for correlation in CORRELATIONS:
        for title in ("0 or 1", "0 to 1"):
            print_row(correlation, title, runs)


def print_row(correlation: float, title: str, runs: int) -> None:
    """Print how many intervals of each kind hold the mean, and how wide they are."""
    chance = np.random.default_rng(SEED)
    found: dict[str, list[tuple[bool, float]]] = {"plain": [], "clustered": []}
    for _ in range(runs):
        levels = np.full(len(SIZES), MEAN)
        if correlation:
            strength = 1 / correlation - 1
            levels = chance.beta(MEAN * strength, (1 - MEAN) * strength, len(SIZES)).clip(1e-9, 1 - 1e-9)
        if title == "0 or 1":
            scores = [(chance.random(size) < level).astype(float) for size, level in zip(SIZES, levels, strict=True)]
        else:
            scores = [
                chance.beta(level * STEADINESS, (1 - level) * STEADINESS, size)
                for size, level in zip(SIZES, levels, strict=True)
            ]
        sources = [f"db{number}" for number, size in enumerate(SIZES) for _ in range(size)]
        intervals = statistics(np.concatenate(scores).tolist(), sources)
        for name, interval in (("plain", intervals["ci95"]), ("clustered", intervals["ci95_clustered"])):
            if interval is not None:
                low, high = interval
                found[name].append((low <= MEAN <= high, high - low))
    cells = [f"{correlation:11g}", f"{title:6}"]
    for results in found.values():
        holds, widths = zip(*results, strict=True)
        cells += [f"{sum(holds) / runs:14.1%}", f"{sum(widths) / len(results):10.3f}"]
    print("  ".join(cells))


if __name__ == "__main__":
    main()
