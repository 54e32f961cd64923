"""Comparison of large and of wide tables; each line names what it is measured against.

`python benchmarks/bench_tables.py [ROWS]`: ROWS (1,000,000) is the height of the great table.
"""

from __future__ import annotations

import random
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pytest_queryeval.comparison.pairing import table_pair
from pytest_queryeval.core.model import Source
from pytest_queryeval.core.table import Policy, Table
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.metrics.building_qa import entity_set_f1, row_matching_f1
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy

T = TypeVar("T")
POLICY = Policy()


def main() -> None:
    shapes()
    great_table(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)


def shapes() -> None:
    random.seed(7)
    nine = [[random.randrange(50 * (column + 1)) for _ in range(10_000)] for column in range(9)]
    score("9 columns x 10,000 rows, rows and columns shuffled", nine, shuffled(nine))
    values = list(range(1_000))
    alike = [random.sample(values, 1_000) for _ in range(26)]
    score("26 columns of the same values x 1,000 rows, hidden order", alike, shuffled(alike))
    score("26 columns that are the same x 1,000 rows", [values] * 26, [values[::-1]] * 26)
    low = [[random.randrange(2 + column % 4) for _ in range(10_000)] for column in range(8)]
    columns = [[random.randrange(2 + column % 4) for _ in range(10_000)] for column in range(8)]
    score("8 columns of 2 to 5 values x 10,000 rows, unrelated", low, columns)
    prices = [[round(random.random() * 1000, 3) for _ in range(10_000)] for _ in range(4)]
    noisy = [[value * (1 + 1e-9) for value in column] for column in shuffled(prices)]
    score("4 columns of floats x 10,000 rows, last digits noisy", prices, noisy)


def shuffled(columns: list[list[T]]) -> list[list[T]]:
    rows = list(zip(*columns, strict=True))
    random.shuffle(rows)
    mixed = [list(column) for column in zip(*rows, strict=True)]
    random.shuffle(mixed)
    return mixed


def score(what: str, gold: list[list[T]], predicted: list[list[T]]) -> None:
    left, right = (
        Table(columns=tuple(f"c{n}" for n in range(len(t))), rows=list(zip(*t, strict=True))) for t in (gold, predicted)
    )
    seconds, scores = timed(
        lambda: (row_matching_f1(left, right), entity_set_f1(left, right), execution_accuracy(left, right))
    )
    alignment = table_pair(left, right, POLICY).alignment
    text = ", ".join(f"{value:.3f}" for value in scores)
    print(
        f"{what}: {seconds:.2f} s, peak {peak()} MiB, row {text} (entity, execution), proven {alignment and alignment.is_proven}"
    )


def great_table(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "great.sqlite"
        database = sqlite3.connect(path)
        database.execute(f"CREATE TABLE t ({', '.join(f'c{n}' for n in range(10))})")
        data = (
            (n, f"name {n % 9973}", n % 7, n / 7, n % 101, f"k{n % 13}", n * 3, n % 2, None, "x") for n in range(rows)
        )
        database.executemany(f"INSERT INTO t VALUES ({', '.join('?' * 10)})", data)
        database.commit()
        database.close()
        source = Source(name="great", engine="sqlite", settings={"path": path.name}, folder=path.parent)
        with Session() as session:
            run = session.engine(source).execute
            engine, gold = timed(lambda: run("SELECT * FROM t", timeout=100, max_rows=rows).answer)
            predicted = run("SELECT * FROM t ORDER BY c4, c0 DESC", timeout=100, max_rows=rows).answer
        if gold is None or predicted is None:
            raise SystemExit("the great table did not come back")
        seconds, verdict = timed(lambda: execution_accuracy(gold, predicted))
        print(
            f"{rows:,} x 10 against itself shuffled: {seconds / engine:.2f} x the engine ({seconds:.2f} s, {engine:.2f} s), {verdict}"
        )
        changed = Table(columns=gold.columns, rows=[*gold.rows[:-1], (0,) * 10])
        seconds, verdict = timed(lambda: execution_accuracy(changed, predicted))
        print(
            f"the same with one row changed: {seconds / engine:.2f} x the engine ({seconds:.2f} s), {verdict}, peak {peak()} MiB"
        )


def timed(work: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
