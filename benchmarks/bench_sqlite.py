"""What the child process costs: python benchmarks/bench_sqlite.py. Ratios of one run compare across machines."""

import sqlite3
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.sandbox.host import Hosts

ROWS = 100_000
TINY = "select name, price from sales where id = 77"
LARGE = "select id, name, price, city from sales"
DEAF = "select printf('%.*c', 1e9, 'x')"  # no interrupt reaches it


def make(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table sales (id integer primary key, name text, price real, city text)")
        rows = ((number, f"name {number}", number * 1.5, f"city {number % 50}") for number in range(ROWS))
        connection.executemany("insert into sales values (?, ?, ?, ?)", rows)
        connection.commit()


def seconds(action, times):
    """The median time of one call, after one that does not count."""
    action()
    return statistics.median(once(action) for _ in range(times))


def once(action):
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def main():
    with tempfile.TemporaryDirectory() as name, Hosts() as hosts:
        folder = Path(name)
        make(folder / "sales.db")
        direct = sqlite3.connect(folder / "sales.db")
        source = Source(name="sales", engine="sqlite", settings={"path": "sales.db"}, folder=folder)
        engine = ENGINES["sqlite"].open(source, hosts)

        def through_host(query, timeout=30.0):
            return engine.execute(query, timeout=timeout, max_rows=ROWS)

        start = once(lambda: through_host("select 1"))
        tiny_direct = seconds(lambda: direct.execute(TINY).fetchall(), 5_000)
        tiny_host = seconds(lambda: through_host(TINY), 5_000)
        large_direct = seconds(lambda: direct.execute(LARGE).fetchall(), 15)
        large_host = seconds(lambda: through_host(LARGE), 15)
        kill = once(lambda: through_host(DEAF, timeout=1.0))
        replace = once(lambda: through_host(TINY))
        direct.close()

    print(f"host start and first query     {start * 1e3:8.1f} ms")
    print(f"tiny query          direct     {tiny_direct * 1e3:8.3f} ms")
    print(f"                    host       {tiny_host * 1e3:8.3f} ms   + {(tiny_host - tiny_direct) * 1e3:.3f} ms")
    print(f"{ROWS:,} rows        direct     {large_direct * 1e3:8.1f} ms")
    print(f"                    host       {large_host * 1e3:8.1f} ms   x {large_host / large_direct:.2f}")
    print(f"query that hears no interrupt  {kill * 1e3:8.1f} ms   at a limit of 1,000 ms")
    print(f"next query, in a new process   {replace * 1e3:8.1f} ms")


if __name__ == "__main__":
    main()
