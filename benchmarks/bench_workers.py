"""Many cases in one process, under `pytest -n 2`, and on two workers: own processes, and Dask on this machine.

SQL on SQLite with its five default metrics, 30 % of the cases missed, golds and predictions stated in a JSON lines suite.
Then pairs of stored answers through `score_pairs`. Prints wall-clock seconds, cases a second, and times against
`pytest -n 2`; of a larger cluster what a case costs the calling process and a worker, and what a chunk and the start of
a worker take: `python benchmarks/bench_workers.py [CASES] [PAIRS]`, by default 3,000 cases and 20,000 pairs. Each way is
measured in a process of its own.
"""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path

from pytest_queryeval import load_cases, score_pairs
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.runs.evaluate import NamedCase, evaluate_cases
from pytest_queryeval.runs.workers import Dispatcher, Job

IDLE_SECONDS = 2.0
WAYS = ("one process", "pytest", "pytest -n 2", "--workers 2", "Dask, 2 workers")


def write_suite(folder: Path, cases: int) -> None:
    with sqlite3.connect(folder / "shop.db") as connection:
        connection.execute("CREATE TABLE sale (id INTEGER PRIMARY KEY, branch INTEGER, product TEXT, price REAL)")
        rows = ((n % 50, f"product {n % 17}", n * 7 % 1000 / 10) for n in range(2_000))
        connection.executemany("INSERT INTO sale (branch, product, price) VALUES (?, ?, ?)", rows)
    connection.close()
    (folder / "queryeval.yaml").write_text("kind: sql\nsource: shop.db\non_miss: xfail\n")
    with (folder / "shop.queryeval.jsonl").open("w", encoding="utf-8") as file:
        for n in range(cases):
            # Each query is another one, and none has an empty answer.
            where = f"branch = {n % 50} AND id > {n % 1_000} AND price <> -{n}"
            gold = f"SELECT product, count(*), sum(price) FROM sale WHERE {where} GROUP BY product"
            predicted = gold.replace("count(*)", "count(*) + 1") if n % 10 < 3 else gold.replace("sale", "sale AS s")
            file.write(json.dumps({"id": f"case-{n}", "question": f"Sales {n}?", "gold": gold, "predicted": predicted}))
            file.write("\n")


def evaluated(folder: Path, executor: Executor | None) -> tuple[int, float]:
    """Evaluate the suite; return how many cases passed, and the CPU seconds for each, that of children included.

    What an executor takes without work, as the scheduler of a Dask cluster in this process does, is left out.
    """
    cases = [NamedCase(case, f"shop::{case.id}", "shop") for case in load_cases(folder)]
    before = time.process_time()
    time.sleep(IDLE_SECONDS)
    idle = (time.process_time() - before) / IDLE_SECONDS
    began, before = time.perf_counter(), sum(os.times()[:4])
    with Session() as session:
        passed = sum(report["outcome"] == "passed" for report in evaluate_cases(cases, session, executor=executor))
    return passed, (sum(os.times()[:4]) - before - idle * (time.perf_counter() - began)) / len(cases)


def run(way: str, folder: Path) -> None:
    """Evaluate the suite in one of the ways, and print what that took as JSON."""
    times = {}
    began = time.perf_counter()
    if way.startswith("pytest"):
        options = ["-n", "2"] if "-n" in way else ["-p", "no:xdist"]
        quiet = ["-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "--tb=no", "--no-summary"]
        command = [sys.executable, "-m", "pytest", str(folder), "--queryeval-report", str(folder / "report.json")]
        subprocess.run([*command, *quiet, *options], check=True, stdout=subprocess.DEVNULL)
        times["passed"] = json.loads((folder / "report.json").read_text())["totals"]["passed"]
    elif way == "one process":
        times["passed"], times["cpu"] = evaluated(folder, None)
    else:
        with opened(way) as executor:
            if way.startswith("Dask"):  # a cluster is there already
                began = time.perf_counter()
            times["start"] = empty_chunks(executor, 1)
            times["passed"], times["cpu"] = evaluated(folder, executor)
            times["seconds"] = time.perf_counter() - began - IDLE_SECONDS
            times["chunk"] = empty_chunks(executor, 50)
    print(json.dumps({"seconds": time.perf_counter() - began - IDLE_SECONDS * (way == "one process"), **times}))


@contextmanager
def opened(way: str):
    if way.startswith("--workers"):
        from pytest_queryeval.features.evaluate.processes import WorkerProcesses

        with WorkerProcesses(2) as executor:
            yield executor
    else:
        from distributed import LocalCluster

        from pytest_queryeval.features.scale.dask import dask_executor

        settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "host": "127.0.0.1"}
        with (
            LocalCluster(**settings, silence_logs=50) as cluster,
            dask_executor(cluster.scheduler_address.replace("tcp", "dask")) as executor,
        ):
            yield executor


def nothing(items, session):
    return [None] * len(items)


def empty_chunks(executor: Executor, number: int) -> float:
    """Return the seconds from the sending of a chunk that takes no time to its result, of the mean of several."""
    job = Job(work=nothing, registered=())
    began = time.perf_counter()
    for _ in range(number):
        list(Dispatcher(executor, job, failed=lambda *_: None, redacted=lambda item: item).run([1]))
    return (time.perf_counter() - began) / number


def run_pairs(pairs: int) -> None:
    """Score pairs of stored answers of three rows, and print what that took."""

    def stored():
        for n in range(pairs):
            gold = {"columns": ["name", "n"], "rows": [["a", n], ["b", n + 1], ["c", 2]]}
            yield gold, gold if n % 10 > 2 else {**gold, "rows": [["a", n], ["b", n + 2], ["c", 2]]}

    for metrics in (["execution_accuracy"], None):
        began = time.perf_counter()
        right = sum(score.scores["execution_accuracy"] == 1.0 for score in score_pairs(stored(), metrics=metrics))
        seconds = time.perf_counter() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        name = "execution_accuracy" if metrics else "five metrics"
        print(f"{pairs:,} pairs, {name}: {pairs / seconds:,.0f} a second, {right:,} right, peak memory {peak} MiB")


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1] == "run":
        run(sys.argv[2], Path(sys.argv[3]))
        return
    cases, pairs = (int(number) for number in (*sys.argv[1:], *("3000", "20000")[len(sys.argv) - 1 :]))
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, {cases:,} cases")
    with tempfile.TemporaryDirectory() as name:
        write_suite(Path(name), cases)
        times = {}
        for way in WAYS:
            command = [sys.executable, __file__, "run", way, name]
            times[way] = times_of_way = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            assert times_of_way["passed"] == times[WAYS[0]]["passed"]
            print(f"{way:16} {times_of_way['seconds']:7.1f} s  {cases / times_of_way['seconds']:7.0f} cases a second")
    for way in WAYS:
        print(f"{way:16} {times[way]['seconds'] / times['pytest -n 2']['seconds']:5.2f} times pytest -n 2")
    case = times["one process"]["cpu"]
    print(f"A case takes a worker {case * 1e3:.2f} ms of CPU")
    for way in WAYS[3:]:
        times_of_way = times[way]
        print(
            f"{way}: first chunk after {times_of_way['start']:.2f} s, a chunk costs {times_of_way['chunk'] * 1e3:.1f} ms, a case costs the "
            f"caller {times_of_way['cpu'] * 1e3:.2f} ms of CPU: it is the limit from {case / times_of_way['cpu']:.0f} workers on"
        )
    run_pairs(pairs)


if __name__ == "__main__":
    main()
