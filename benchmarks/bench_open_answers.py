"""How many right answers of golds that leave their answer open are accepted, by sort, and what open golds cost.

`python -m benchmarks.bench_open_answers [PAIRS] [SEED]`: PAIRS (2,000) random golds on each of SQLite, DuckDB and
PostgreSQL, which starts a cluster of its own, as the tests do. Ends with status 1 where a wrong answer is accepted.

`python -m benchmarks.bench_open_answers cost [RUNS]`: CPU time of `choices: any` by that of `choices: first`, on Spider's
predictions by three systems, without and with causes, in runs that alternate. Needs QUERYEVAL_CONFORMANCE.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from pytest_queryeval import evaluate, load_cases

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from open_golds import drawn_cases, may_give
from postgres import find_programs, running

SYSTEMS = ("dail_gpt4", "c3_chatgpt", "graphix_t5")
_DRAWN = re.compile(r"\bt\d+\b|\d| (?:ASC|DESC)\b")  # what differs between golds of one sort


def main() -> None:
    if sys.argv[1:2] == ["cost"]:
        show_cost(int(sys.argv[2]) if len(sys.argv) > 2 else 3)
        return
    number, seed = (int(text) for text in (*sys.argv[1:], "2000", "1")[:2])
    script = {"script": "data.sql"}
    wrong = show_acceptance("sqlite", number, seed, {"sqlite": script})
    wrong += show_acceptance("duckdb", number, seed, {"duckdb": script})
    if programs := find_programs():
        with tempfile.TemporaryDirectory() as data, running(programs, Path(data)) as cluster:
            cluster.sql(drawn_cases("postgres", number, seed)[0], user="owner")
            wrong += show_acceptance("postgres", number, seed, {"sqlalchemy": {"url": cluster.url()}})
    sys.exit(wrong > 0)


def show_acceptance(engine: str, number: int, seed: int, source: Mapping[str, object]) -> int:
    """Print the share of right answers that are accepted, by sort of gold; return how many wrong ones are."""
    script, cases, drawn = drawn_cases(engine, number, seed)
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "data.sql").write_text(script, encoding="utf-8")
        suite = {"kind": "sql", "source": source, "metrics": ["execution_accuracy"], "cases": cases}
        (Path(name) / "s.queryeval.yaml").write_text(json.dumps(suite), encoding="utf-8")
        report = evaluate(load_cases(Path(name) / "s.queryeval.yaml"), cause="off")
    right, accepted, wrong = Counter[str](), Counter[str](), []
    for case in report["cases"]:
        gold, answer = drawn[case["id"]]
        is_accepted, sort = case["outcome"] == "passed", _DRAWN.sub("", gold.query)
        if may_give(gold, answer):
            right[sort] += 1
            accepted[sort] += is_accepted
        elif is_accepted:
            wrong.append((gold.query, answer))
    for sort in sorted(right, key=lambda sort: accepted[sort] / right[sort]):
        print(f"{accepted[sort] / right[sort]:7.1%} of {right[sort]:4}: {sort}")
    share = accepted.total() / right.total()
    print(f"{engine}: {share:.1%} of {right.total():,} right answers are accepted, {len(wrong)} wrong ones", *wrong)
    return len(wrong)


def show_cost(runs: int) -> None:
    spider = Path(os.environ["QUERYEVAL_CONFORMANCE"]).resolve() / "spider"
    with tempfile.TemporaryDirectory() as name:
        for choices in ("any", "first"):
            for system in SYSTEMS:
                write_suite(Path(name) / choices / system, spider, system, choices)
        for cause in ("off", "auto"):
            seconds: dict[str, list[float]] = {"any": [], "first": []}
            for _ in range(runs):
                for choices, measured in seconds.items():
                    measured.append(user_seconds(Path(name) / choices, cause))
            ratio = min(seconds["any"]) / min(seconds["first"])
            print(f"causes {cause}: {min(seconds['any']):.2f} s, {ratio:.3f} x without open answers")


def write_suite(folder: Path, spider: Path, system: str, choices: str) -> None:
    folder.mkdir(parents=True)
    records = [json.loads(line) for line in (spider / f"{system}.jsonl").read_text(encoding="utf-8").splitlines()]
    cases = [
        {
            "id": str(number),
            "source": str(spider / "databases" / f"{record['db_id']}.sqlite"),
            "gold": record["gold"],
            "predicted": record["predicted"],
        }
        for number, record in enumerate(records)
    ]
    suite = {"kind": "sql", "compare": {"choices": choices}, "thresholds": {}, "cases": cases}
    (folder / "s.queryeval.yaml").write_text(json.dumps(suite), encoding="utf-8")


def user_seconds(folder: Path, cause: str) -> float:
    """Return the user CPU seconds of a run of pytest on a folder, with those of its child processes."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--queryeval-cause={cause}", folder]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, capture_output=True, cwd=folder, check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


if __name__ == "__main__":
    main()
