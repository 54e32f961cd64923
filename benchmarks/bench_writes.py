"""The copy for write queries, of a database of 1 GB: `python benchmarks/bench_writes.py [MB] [RUNS]`.

Prints for SQLite and DuckDB the medians of the seconds that `cp` takes, those that a source takes until the first
statement has run, with the start of its process, and those of a source without rows, which only starts it; the ratio
to `cp` with the start and without; then the seconds of an UPDATE of one row and of one row in a thousand, each with what
it changed. The runs of all of them alternate, and each reads the file from memory.
"""

from __future__ import annotations

import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from time import perf_counter

import duckdb

from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES, Engine
from pytest_queryeval.sandbox.host import Hosts

MEBIBYTE = 2**20
BYTES_OF_ROW = 1_000
ONE_ROW, MANY_ROWS = (f"UPDATE items SET price = price + 1 WHERE {text}" for text in ("id = 7", "id % 1000 = 0"))


def main() -> None:
    megabytes, runs = (int(text) for text in (*sys.argv[1:], *("1000", "5")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as name:
        for engine, make in (("sqlite", make_sqlite), ("duckdb", make_duckdb)):
            path, empty = (Path(name) / f"{table}.{engine}" for table in ("items", "empty"))
            make(path, megabytes * 1_000_000 // BYTES_OF_ROW)
            make(empty, 0)
            measure(engine, path, empty, runs)
            path.unlink()


def make_sqlite(path: Path, rows: int) -> None:
    """Make a table whose rows have about BYTES_OF_ROW bytes."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, price REAL, content BLOB)")
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
            f"INSERT INTO items SELECT i, i % 97, randomblob({BYTES_OF_ROW - 20}) FROM n",
            [rows],
        )
        connection.commit()


def make_duckdb(path: Path, rows: int) -> None:
    """Make the same table; its content is made of hashes, which do not compress."""
    hashes = " || ".join(f"md5(range::TEXT || '{number}')" for number in range(BYTES_OF_ROW // 16))
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE items AS "
            f"SELECT range + 1 AS id, (range % 97)::DOUBLE AS price, unhex({hashes}) AS content FROM range({rows})"
        )


def measure(engine: str, path: Path, empty: Path, runs: int) -> None:
    """Print the medians for one database."""
    copies, starts = [], []
    measured = {"SELECT 1": list[float](), ONE_ROW: list[float](), MANY_ROWS: list[float]()}
    for _ in range(runs):
        copies.append(seconds(partial(subprocess.run, ["cp", path, f"{path}.copy"], check=True)))
        Path(f"{path}.copy").unlink()
        with Hosts() as hosts:
            starts.append(seconds(partial(run, transactions(engine, empty, hosts), "SELECT 1")))
        with Hosts() as hosts:
            source = transactions(engine, path, hosts)
            for query, times in measured.items():
                times.append(seconds(partial(run, source, query)))
    copy, start, first, *updates = map(statistics.median, (copies, starts, *measured.values()))
    print(f"{engine}, {path.stat().st_size / MEBIBYTE:,.0f} MiB: {spread('cp', copies)}", end=", ")
    print(f"{spread('first statement', measured['SELECT 1'])}, {spread('of which the start', starts)}")
    print(f"  {first / copy:.2f} x, {(first - start) / copy:.2f} x without the start", end="; ")
    print(f"one row {updates[0] * 1000:,.0f} ms, one in a thousand {updates[1] * 1000:,.0f} ms")


def transactions(engine: str, path: Path, hosts: Hosts) -> Engine:
    """Open a database for write queries."""
    source = Source(name="items", engine=engine, settings={"path": path.name}, folder=path.parent, writes=True)
    return ENGINES[engine].open(source, hosts)


def spread(name: str, times: list[float]) -> str:
    """Return the median, and the shortest and the longest of times."""
    return f"{name} {statistics.median(times):.2f} s ({min(times):.2f} to {max(times):.2f})"


def run(source: Engine, query: str) -> None:
    """Run a statement."""
    execution = source.execute(query, timeout=600, max_rows=100_000)
    assert execution.error is None, execution.error


def seconds(call: Callable[[], object]) -> float:
    """Return how long a call takes."""
    began = perf_counter()
    call()
    return perf_counter() - began


if __name__ == "__main__":
    main()
