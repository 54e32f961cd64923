"""Times and peak memory of the column alignment on shapes that a naive search does not survive: seconds, medians of 3.

Run from the project's root: python -m benchmarks.bench_alignment [part of a name]
"""

from __future__ import annotations

import random
import resource
import statistics
import sys
import time
from collections.abc import Callable

from pytest_queryeval.comparison.alignment import best_alignment

Table = list[list[int]]


def columns(values: list[int], rows: int) -> Table:
    """One random column for each number of distinct values."""
    return [[random.randrange(distinct) for _ in range(rows)] for distinct in values]


def shuffled(table: Table, *, wrong_rows: int = 0, extra: int = 0) -> Table:
    """The same table with rows and columns shuffled, some cells of `wrong_rows` rows changed, columns added."""
    rows = [list(row) for row in zip(*table, strict=True)]
    random.shuffle(rows)
    for row in rows[:wrong_rows]:
        row[random.randrange(len(row))] = -1
    made = [list(column) for column in zip(*rows, strict=True)]
    made += columns([5] * extra, len(rows))
    random.shuffle(made)
    return made


def permutations(width: int, rows: int) -> Table:
    """Columns that hold the same values in other orders."""
    return [random.sample(range(rows), rows) for _ in range(width)]


def pair(table: Table, **changes: int) -> tuple[Table, Table]:
    return table, shuffled(table, **changes)


MIXED = [10_000, 10_000, 500, 50, 50, 12, 5, 2, 2]
LOW = [2, 3, 4, 5, 2, 3, 4, 5]
SHAPES: dict[str, Callable[[], tuple[Table, Table]]] = {
    "10x3 same": lambda: (columns([10, 5, 2], 10),) * 2,
    "10x3 shuffled": lambda: pair(columns([10, 5, 2], 10)),
    "10x3 two rows wrong": lambda: pair(columns([10, 5, 2], 10), wrong_rows=2),
    "10x3 one more column": lambda: pair(columns([10, 5, 2], 10), extra=1),
    "10x3 unrelated": lambda: (columns([10, 5, 2], 10), columns([10, 5, 2], 10)),
    "10x3 disjoint": lambda: (columns([10, 5, 2], 10), [[cell + 50 for cell in c] for c in columns([10, 5, 2], 10)]),
    "9x10,000 shuffled": lambda: pair(columns(MIXED, 10_000)),
    "9x10,000 40 rows wrong": lambda: pair(columns(MIXED, 10_000), wrong_rows=40),
    "9x10,000 3,000 rows wrong": lambda: pair(columns(MIXED, 10_000), wrong_rows=3_000),
    "9x10,000 two more columns": lambda: pair(columns(MIXED, 10_000), extra=2),
    "9x100,000 shuffled": lambda: pair(columns(MIXED, 100_000)),
    "26x1,000 same multiset": lambda: pair(permutations(26, 1_000)),
    "26x1,000 same multiset, 20 rows wrong": lambda: pair(permutations(26, 1_000), wrong_rows=20),
    "26x1,000 same multiset, one more column": lambda: pair(permutations(26, 1_000), extra=1),
    "26x1,000 identical columns": lambda: ([columns([1_000], 1_000)[0]] * 26,) * 2,
    "26x1,000 identical columns, one row wrong": lambda: pair([list(range(1_000))] * 26, wrong_rows=1),
    "26x1,000 binary shuffled": lambda: pair(columns([2] * 26, 1_000)),
    "26x1,000 binary unrelated": lambda: (columns([2] * 26, 1_000), columns([2] * 26, 1_000)),
    "8x1,000 low unrelated": lambda: (columns(LOW, 1_000), columns(LOW, 1_000)),
    "8x10,000 low unrelated": lambda: (columns(LOW, 10_000), columns(LOW, 10_000)),
    "8x10,000 low shuffled": lambda: pair(columns(LOW, 10_000)),
    "10x200 no row in common": lambda: (columns([40] * 10, 200), columns([45] * 10, 200)),
    "26x200 no row in common": lambda: (columns([40] * 26, 200), columns([45] * 26, 200)),
    "300x100 shuffled": lambda: pair(columns([50] * 300, 100)),
    "2,000x10 shuffled": lambda: pair(columns([50] * 2_000, 10)),
    "2,000x10 two rows wrong": lambda: pair(columns([50] * 2_000, 10), wrong_rows=2),
    "2,000x10 unrelated": lambda: (columns([50] * 2_000, 10), columns([50] * 2_000, 10)),
}


def median_seconds(gold: Table, predicted: Table) -> float:
    """The median of three timings, each repeated until it lasts a fiftieth of a second."""
    timings = []
    for _ in range(3):
        start, repeats = time.perf_counter(), 0
        while time.perf_counter() - start < 0.02:
            best_alignment(gold, predicted)
            repeats += 1
        timings.append((time.perf_counter() - start) / repeats)
    return statistics.median(timings)


def main() -> None:
    pattern = sys.argv[1] if len(sys.argv) > 1 else ""
    for name, make in SHAPES.items():
        if pattern not in name:
            continue
        random.seed(7)
        gold, predicted = make()
        alignment = best_alignment(gold, predicted)
        assert alignment is not None
        seconds = median_seconds(gold, predicted)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(
            f"{name:42} {seconds:10.6f} s  matched {alignment.matched:6}  proven {alignment.is_proven!s:5}  peak {peak} MiB"
        )


if __name__ == "__main__":
    main()
