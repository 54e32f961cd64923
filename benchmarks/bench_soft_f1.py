"""Soft F1 on large tables, each line against row_matching_f1 on the same tables, in turn in one run.

Run from the project's root: python -m benchmarks.bench_soft_f1 [part of a name]
Every shape has a process of its own, so that its peak memory is its own; `tables` is the memory before scoring.
"""

from __future__ import annotations

import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from pytest_queryeval.core.metric import Score
from pytest_queryeval.core.table import Table
from pytest_queryeval.metrics.building_qa import row_matching_f1
from pytest_queryeval.metrics.soft_f1 import soft_f1

Rows = list[tuple[object, ...]]
MIXED = [10**9, 10_000, 500, 50, 50, 12, 5, 2, 2, 10**6]
FEW = [5] * 10


def rows(distinct: list[int], number: int) -> Rows:
    """Rows of random numbers, one column for each number of distinct values."""
    return [tuple(random.randrange(values) for values in distinct) for _ in range(number)]


def same(made: Rows) -> tuple[Rows, Rows]:
    return made, [tuple(row) for row in made]


def shuffled(made: Rows, change: Callable[[tuple[object, ...]], tuple[object, ...]]) -> tuple[Rows, Rows]:
    """The rows, and the same ones changed and in another order."""
    return made, [change(row) for row in random.sample(made, len(made))]


def one_wrong(row: tuple[object, ...]) -> tuple[object, ...]:
    return (*row[:3], -1, *row[4:])


SHAPES: dict[str, Callable[[], tuple[Rows, Rows]]] = {
    "10,000 x 10 equal": lambda: same(rows(MIXED, 10_000)),
    "10,000 x 10 shuffled": lambda: shuffled(rows(MIXED, 10_000), tuple),
    "10,000 x 10 shuffled, columns reversed": lambda: shuffled(rows(MIXED, 10_000), lambda row: row[::-1]),
    "10,000 x 10 shuffled, a column wrong": lambda: shuffled(rows(MIXED, 10_000), one_wrong),
    "10,000 x 10 shuffled, a column less": lambda: shuffled(rows(MIXED, 10_000), lambda row: row[:9]),
    "1,000 x 10 shuffled, a column wrong": lambda: shuffled(rows(MIXED, 1_000), one_wrong),
    "1,000 x 10 of 5 values, unrelated": lambda: (rows(FEW, 1_000), rows(FEW, 1_000)),
    "100,000 x 10 nothing in common": lambda: (rows(MIXED, 100_000), [(-1,) * 9 + (-n,) for n in range(1, 100_001)]),
    "100,000 x 10 unrelated": lambda: (rows(MIXED, 100_000), rows(MIXED, 100_000)),
    "100,000 x 10 of 5 values, unrelated": lambda: (rows(FEW, 100_000), rows(FEW, 100_000)),
    "100,000 x 10 shuffled, a column wrong": lambda: shuffled(rows(MIXED, 100_000), one_wrong),
}


def seconds(metric: Callable[..., object], gold: Rows, predicted: Rows) -> float:
    """One timing on new tables, as pairs of tables are kept."""
    columns = tuple(f"c{n}" for n in range(len(gold[0]))), tuple(f"c{n}" for n in range(len(predicted[0])))
    tables = Table(columns=columns[0], rows=gold), Table(columns=columns[1], rows=predicted)
    start = time.perf_counter()
    metric(*tables)
    return time.perf_counter() - start


def measure(name: str) -> None:
    random.seed(7)
    gold, predicted = SHAPES[name]()
    before = peak()
    columns = tuple(map(str, range(10)))
    score = soft_f1(
        Table(columns=columns[: len(gold[0])], rows=gold), Table(columns=columns[: len(predicted[0])], rows=predicted)
    )
    after = peak()
    timings = [(seconds(soft_f1, gold, predicted), seconds(row_matching_f1, gold, predicted)) for _ in range(3)]
    soft, row = (statistics.median(column) for column in zip(*timings, strict=True))
    text = f"{score.value:.3f} not proven" if isinstance(score, Score) else f"{score:.3f}"
    print(
        f"{name:42} {soft:7.3f} s  row_matching_f1 {row:7.3f} s  {soft / row:6.1f} x  {text:18} {after} MiB (tables {before})"
    )


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    pattern = sys.argv[1] if len(sys.argv) > 1 else ""
    if pattern in SHAPES:
        measure(pattern)
        return
    for name in SHAPES:
        if pattern in name:
            subprocess.run([sys.executable, "-m", "benchmarks.bench_soft_f1", name], check=True)


if __name__ == "__main__":
    main()
