"""How often noise moves efficiency scores, and which slowness they see: python benchmarks/bench_efficiency.py.

Two processes keep the machine busy meanwhile. The published rule, `r_ves_bird`, judges the same times as ours.
"""

import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing, contextmanager
from pathlib import Path

from pytest_queryeval.core.errors import Location
from pytest_queryeval.core.model import Case, QueryOrAnswer, Settings, Source
from pytest_queryeval.core.table import Policy
from pytest_queryeval.evaluation import evaluate_case
from pytest_queryeval.evaluation.session import Session

RUNS = 200
BUSY_PROCESSES = 2
ROWS = 40_000
METRICS = ("ves", "r_ves", "r_ves_bird")
# From some microseconds to some ten milliseconds.
QUERIES = (
    "select 1",
    "select name, price from sales where id = 77",
    "select name from sales where id between 100 and 300 order by price desc",
    "select count(*) from sales where id <= 2000",
    "select city, count(*) from sales where id <= 4000 group by city",
    "select city, avg(price) from sales group by city having avg(price) > 10 order by 2",
    "select count(*) from sales where name like '%99%'",
    "select a.city, count(*) from sales a join cities c on c.name = a.city where a.id <= 5000 group by a.city",
    "select id, name, price, city from sales where id <= 5000",
    "select max(price) from sales where city in (select name from cities where size > 25)",
)
# Queries that read this many rows, next to one that reads more of them for the same answer.
READ = (500, 10_000)
SLOWER = (1.1, 1.3, 2.0, 3.0)


def make(path):
    chance = random.Random(7)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table sales (id integer primary key, name text, price real, city text)")
        connection.execute("create table cities (name text primary key, size integer)")
        rows = ((number, f"name {number}", chance.random() * 40, f"city {number % 50}") for number in range(ROWS))
        connection.executemany("insert into sales values (?, ?, ?, ?)", rows)
        connection.executemany("insert into cities values (?, ?)", ((f"city {size}", size) for size in range(50)))
        connection.commit()


def slower(read, factor):
    """A gold that reads `read` rows, and a prediction that reads `factor` times as many and finds the same."""
    gold = f"select count(*) from sales where id < {read} and price >= 0 and id < {read}"
    return gold, gold.replace(f"id < {read} and price", f"id < {round(read * factor)} and price", 1)


def case_of(gold, predicted, folder):
    settings = Settings(
        kind="sql",
        source=Source(name="sales", engine="sqlite", settings={"path": "sales.db"}, folder=folder),
        predictor=None,
        metrics=METRICS,
        options={},
        thresholds={},
        policy=Policy(),
        dialect="sqlite",
        timeout=30.0,
        max_rows=100_000,
        report_rows=0,
    )
    return Case(
        id="a",
        location=Location(Path("bench")),
        settings=settings,
        question="",
        evidence="",
        golds=(QueryOrAnswer(query=gold),),
        predicted=QueryOrAnswer(query=predicted),
        tags=(),
        difficulty=None,
        metadata={},
        skip=None,
        xfail=None,
        allow_empty=True,
    )


@contextmanager
def busy(processes):
    """Keep as many processors busy meanwhile."""
    children = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


def scores(gold, predicted, folder, session):
    return evaluate_case(case_of(gold, predicted, folder), session).scores


def share(truths):
    names = list(truths)
    return f"{sum(names):4d} of {len(names)}, {sum(names) / len(names):6.1%}"


def main():
    with tempfile.TemporaryDirectory() as name, Session() as session, busy(BUSY_PROCESSES):
        folder = Path(name)
        make(folder / "sales.db")
        began = time.monotonic()
        itself = [scores(query, query, folder, session) for query in QUERIES * (RUNS // len(QUERIES))]
        seconds = time.monotonic() - began
        print(f"gold as its own prediction, {BUSY_PROCESSES} busy processes next to it, {seconds:.0f} s")
        print(f"  r_ves is exactly 1              {share(run['r_ves'] == 1.0 for run in itself)}")
        print(f"  ves is exactly 1                {share(run['ves'] == 1.0 for run in itself)}")
        print(f"  the published rule is exactly 1 {share(run['r_ves_bird'] == 1.0 for run in itself)}")
        print(f"  the published rule is below 1   {share(run['r_ves_bird'] < 1.0 for run in itself)}")
        for read in READ:
            for factor in SLOWER:
                gold, predicted = slower(read, factor)
                values = [scores(gold, predicted, folder, session)["ves"] for _ in range(RUNS // 4)]
                print(f"{factor} x {read:,} rows: seen as slower {share(value < 1.0 for value in values)}")


if __name__ == "__main__":
    main()
