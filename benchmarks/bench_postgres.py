"""What the child process and the guards cost on PostgreSQL: python benchmarks/bench_postgres.py

Starts a cluster of its own, as the tests do. Medians of calls taken in turn; ratios of one run compare across machines.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import psycopg

from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.sandbox.host import Hosts

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from postgres import find_programs, running

ROWS = 100_000
TINY = "select name, price from sales where id = 77"
LARGE = "select id, name, price, city from sales"
SLEEP = "select pg_sleep(60)"
MAKE = f"""
    create table sales (id int primary key, name text, price float8, city text);
    insert into sales select i, 'name ' || i, i * 1.5, 'city ' || i % 50 from generate_series(1, {ROWS}) i;
    analyze sales;
"""


def in_turn(first, second, times):
    """The median times of both, after one call of each that does not count."""
    first(), second()
    pairs = [(once(first), once(second)) for _ in range(times)]
    return tuple(map(statistics.median, zip(*pairs, strict=True)))


def once(action):
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def main():
    with tempfile.TemporaryDirectory() as name, running(find_programs(), Path(name)) as cluster, Hosts() as hosts:
        Path(name).chmod(0o755)
        for statement in MAKE.split(";")[:-1]:
            cluster.sql(statement, user="owner")
        settings = {"url": cluster.url()}
        source = Source(name="sales", engine="sqlalchemy", settings=settings, folder=Path(name))
        engine = ENGINES["sqlalchemy"].open(source, hosts)
        plain = cluster.connect("owner")
        guarded = cluster.connect("owner")

        def direct(query):
            return plain.execute(query).fetchall()

        def by_hand(query):
            """The same commands without a child process: what the server and the line take for the guards."""
            guarded.execute("begin read only; set local statement_timeout = 30000")
            with psycopg.ServerCursor(guarded, "by_hand") as cursor:
                rows = cursor.execute(query).fetchmany(ROWS + 1)
            guarded.execute("rollback")
            return rows

        def through_child(query, timeout=30.0):
            return engine.execute(query, timeout=timeout, max_rows=ROWS)

        start = once(lambda: through_child("select 1"))
        tiny = in_turn(lambda: direct(TINY), lambda: through_child(TINY), 2_000)
        hand = in_turn(lambda: by_hand(TINY), lambda: through_child(TINY), 2_000)
        large = in_turn(lambda: direct(LARGE), lambda: through_child(LARGE), 9)
        sleep = once(lambda: through_child(SLEEP, timeout=1.0))
        plain.close()
        guarded.close()

    print(f"child start, connection and first query {start * 1e3:8.1f} ms")
    print(f"tiny query           direct              {tiny[0] * 1e3:8.3f} ms")
    print(f"                     by hand, guarded    {hand[0] * 1e3:8.3f} ms")
    print(f"                     engine              {tiny[1] * 1e3:8.3f} ms   x {tiny[1] / tiny[0]:.2f}")
    print(f"                     against by hand     {hand[1] * 1e3:8.3f} ms   x {hand[1] / hand[0]:.2f}")
    print(f"{ROWS:,} rows         direct              {large[0] * 1e3:8.1f} ms")
    print(f"                     engine              {large[1] * 1e3:8.1f} ms   x {large[1] / large[0]:.2f}")
    print(f"pg_sleep(60)                             {sleep * 1e3:8.1f} ms   at a limit of 1,000 ms")


if __name__ == "__main__":
    main()
