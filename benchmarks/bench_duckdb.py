"""What the child process costs: tiny and large DuckDB queries against the driver called directly, and openings.

Prints medians and ratios of one run; only ratios within a run compare across machines.
"""

import statistics
import tempfile
import time
from pathlib import Path

import duckdb

from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.sandbox.host import Hosts

ROWS = 100_000
TINY = "select name, price from sales where id = 77"
LARGE = "select id, name, price, city from sales"
DEAF = "select levenshtein(repeat('a', 200000), repeat('b', 200000))"  # no interrupt reaches it in time


def make(path):
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            f"""create table sales as
            select i as id, 'name ' || i as name, i * 1.5::double as price, 'city ' || i % 50 as city
            from range({ROWS}) as t(i)"""
        )
        connection.execute(f"copy sales to '{path.with_suffix('.parquet')}'")


def seconds(action, times):
    """The median time of one call, after one that does not count."""
    action()
    return statistics.median(once(action) for _ in range(times))


def in_turn(first, second, times):
    """The median times of two actions that take turns, after a pair that does not count."""
    first(), second()
    pairs = [(once(first), once(second)) for _ in range(times)]
    return (statistics.median(column) for column in zip(*pairs, strict=True))


def once(action):
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def main():
    with tempfile.TemporaryDirectory() as name, Hosts() as hosts:
        folder = Path(name)
        make(folder / "sales.duckdb")

        def opened(**settings):
            return ENGINES["duckdb"].open(Source(name="s", engine="duckdb", settings=settings, folder=folder), hosts)

        def run(engine, query, timeout=30.0):
            return engine.execute(query, timeout=timeout, max_rows=ROWS)

        def build():
            engine = opened(tables={"sales": "sales.parquet"})
            run(engine, TINY)
            engine.close()

        engine = opened(path="sales.duckdb")
        start = once(lambda: run(engine, "select 1"))
        direct = duckdb.connect(str(folder / "sales.duckdb"), read_only=True, config={"threads": 1})
        tiny_direct, tiny_host = in_turn(lambda: direct.execute(TINY).fetchall(), lambda: run(engine, TINY), 3_000)
        large_direct, large_host = in_turn(lambda: direct.execute(LARGE).fetchall(), lambda: run(engine, LARGE), 15)
        built = seconds(build, 5)
        kill = once(lambda: run(engine, DEAF, timeout=1.0))
        replace = once(lambda: run(engine, TINY))
        direct.close()

    print(f"host start and first query     {start * 1e3:8.1f} ms")
    print(f"tiny query          direct     {tiny_direct * 1e3:8.3f} ms")
    print(f"                    host       {tiny_host * 1e3:8.3f} ms   x {tiny_host / tiny_direct:.2f}")
    print(f"{ROWS:,} rows        direct     {large_direct * 1e3:8.1f} ms")
    print(f"                    host       {large_host * 1e3:8.1f} ms   x {large_host / large_direct:.2f}")
    print(f"table of a Parquet file, made and asked  {built * 1e3:8.1f} ms")
    print(f"query that no interrupt reaches{kill * 1e3:8.1f} ms   at a limit of 1,000 ms")
    print(f"next query, in a new process   {replace * 1e3:8.1f} ms")


if __name__ == "__main__":
    main()
