"""1034 real predictions with four execution metrics in one pytest run, against running their queries and nothing else.

Needs QUERYEVAL_CONFORMANCE. Prints a ratio of medians, and milliseconds a case within pytest, golds cached or not; then
the CPU time of `queryeval evaluate` on the four metrics, and on its start, against that of pytest, in runs that alternate:
`python benchmarks/bench_spider.py [RUNS]`.
"""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

METRICS = ["execution_accuracy", "execution_accuracy_spider", "execution_accuracy_bird", "row_matching_f1"]
WITHOUT = ["-p", "no:hypothesispytest", "-p", "no:anyio"]  # plugins of the environment of tests
THREE = ["execution_accuracy", "row_matching_f1", "valid_query"]


def main() -> None:
    spider = Path(os.environ["QUERYEVAL_CONFORMANCE"]).resolve() / "spider"
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with (spider / "dail_gpt4.jsonl").open(encoding="utf-8") as file:
        pairs = [json.loads(line) for line in file]
    with tempfile.TemporaryDirectory() as folder:
        suites = {"four": (METRICS, 1), "three": (THREE, 1), "twice": (THREE, 2), "none": (THREE, 0)}
        for name, (metrics, times) in suites.items():
            write_suite(Path(folder) / name, spider, pairs, metrics, times)
        runs_by_suite = {name: [run(Path(folder) / name) for _ in range(runs)] for name in suites}
    middle = {name: statistics.median(seconds) for name, seconds in runs_by_suite.items()}
    direct = statistics.median(queries_alone(spider, pairs) for _ in range(runs))
    bare = 1000 * middle["none"] / len(pairs)
    first = 1000 * (middle["three"] - middle["none"]) / len(pairs)
    again = 1000 * (middle["twice"] - middle["three"]) / len(pairs)
    print(
        f"{len(pairs)} pairs, four metrics: {middle['four']:.2f} s; {middle['four'] / direct:.1f} x the queries alone"
    )
    print(
        f"a case that states both answers, pytest and its start included: {bare:.2f} ms; its two queries add {first:.2f} ms"
    )
    print(f"the same case once more in one run, its gold cached, pytest's own time included: {again:.2f} ms")
    compare_commands(spider, pairs, runs)


def compare_commands(spider: Path, pairs: list[dict[str, str]], runs: int) -> None:
    """Print the CPU time of `queryeval evaluate` against that of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        for name, some in {"start": pairs[:1], "all": pairs}.items():
            suite = Path(folder) / name
            write_suite(suite, spider, some, METRICS, 1)
            evaluate = [Path(sys.executable).with_name("queryeval"), "evaluate", suite]
            by_pytest, by_command = zip(
                *((cpu([*pytest_command(suite), *WITHOUT]), cpu(evaluate)) for _ in range(runs)), strict=True
            )
            took = f"{min(by_command):.2f} s, pytest {min(by_pytest):.2f} s"
            print(f"queryeval evaluate, CPU of {len(some)} pairs: {took}: {min(by_command) / min(by_pytest):.2f} x")


def cpu(command: Sequence[str | Path]) -> float:
    """Return the CPU seconds of a command and of the processes that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write_suite(folder: Path, spider: Path, pairs: list[dict[str, str]], metrics: list[str], times: int) -> None:
    folder.mkdir()
    for again in range(max(times, 1)):
        cases = [case(pair, spider, again, states=not times) for pair in pairs]
        suite = {"kind": "sql", "metrics": metrics, "thresholds": {}, "cases": cases}
        (folder / f"spider{again}.queryeval.yaml").write_text(json.dumps(suite), encoding="utf-8")


def case(pair: dict[str, str], spider: Path, again: int, *, states: bool) -> dict[str, object]:
    table = {"columns": ["n"], "rows": [[1]]}
    answers = (
        {"gold_table": table, "predicted_table": table}
        if states
        else {"gold": pair["gold"], "predicted": pair["predicted"]}
    )
    return {
        "id": f"{pair['id'].replace(':', '-')}-{again}",
        "source": str(spider / "databases" / f"{pair['db_id']}.sqlite"),
        **answers,
    }


def pytest_command(folder: Path) -> list[str | Path]:
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", folder]


def run(folder: Path) -> float:
    start = time.perf_counter()
    done = subprocess.run(pytest_command(folder), capture_output=True, cwd=folder)
    if done.returncode != 0:
        raise SystemExit(done.stdout.decode()[-2000:])
    return time.perf_counter() - start


def queries_alone(spider: Path, pairs: list[dict[str, str]]) -> float:
    start = time.perf_counter()
    for pair in pairs:
        with sqlite3.connect(spider / "databases" / f"{pair['db_id']}.sqlite") as connection:
            connection.text_factory = lambda text: text.decode(errors="replace")
            for query in (pair["gold"], pair["predicted"]):
                try:
                    connection.execute(query).fetchall()
                except sqlite3.Error:
                    continue
        connection.close()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
