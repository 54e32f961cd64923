"""Mutants of the 1034 Spider golds on Spider's databases: how many are killed, equivalent or survive, and their time.

Needs QUERYEVAL_CONFORMANCE. With a JSON file {"held_out": [indices]} as the argument, these golds are counted apart.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.strength.case_strength import CaseStrength, measure_strength
from pytest_queryeval.suites.suites import load_suites

OUTCOMES = ("killed", "equivalent", "survivors")


def main() -> None:
    spider = Path(os.environ["QUERYEVAL_CONFORMANCE"]).resolve() / "spider"
    held_out = set(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["held_out"]) if sys.argv[1:] else set()
    with (spider / "graphix_t5.jsonl").open(encoding="utf-8") as file:
        pairs = [json.loads(line) for line in file]
    parts: dict[str, list[CaseStrength]] = {"developed on": [], "held out": []}
    seconds = 0.0
    with tempfile.TemporaryDirectory() as folder, Session() as session:
        for case in load(Path(folder), spider, pairs):
            began = time.perf_counter()
            found = measure_strength(case, session)
            seconds += time.perf_counter() - began
            assert found is not None
            parts["held out" if int(case.id) in held_out else "developed on"].append(found)
    for name, cases in parts.items():
        if cases:
            report(name, cases)
    mutants = sum(len(getattr(case, outcome)) for cases in parts.values() for case in cases for outcome in OUTCOMES)
    print(f"\n{mutants:,} mutants in {seconds:.1f} s: {1000 * seconds / mutants:.2f} ms each")


def load(folder: Path, spider: Path, pairs: list[dict[str, str]]):
    cases = [
        {"id": str(pair["idx"]), "gold": pair["gold"], "source": str(spider / "databases" / f"{pair['db_id']}.sqlite")}
        for pair in pairs
    ]
    suite = {"kind": "sql", "cases": [{**case, "question": "?"} for case in cases]}
    (folder / "spider.queryeval.yaml").write_text(json.dumps(suite), encoding="utf-8")
    (loaded,) = load_suites(folder, require_prediction=False)
    return loaded.cases


def report(name: str, cases: list[CaseStrength]) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for case in cases:
        for outcome in OUTCOMES:
            for mutant in getattr(case, outcome):
                counts[mutant.operator, outcome] += 1
                counts["", outcome] += 1
    weak = sum(bool(case.survivors) for case in cases)
    print(f"\n{len(cases):,} golds {name}, {weak:,} of them with survivors")
    print(f"{'':20}  mutants   killed  equivalent  survivors  of those that differ")
    for operator in sorted({operator for operator, _ in counts}):
        killed, equivalent, survivors = (counts[operator, outcome] for outcome in OUTCOMES)
        share = f"{survivors / (killed + survivors):.0%}" if killed + survivors else "-"
        total = killed + equivalent + survivors
        print(f"{operator or 'all':20}  {total:7,}  {killed:7,}  {equivalent:10,}  {survivors:9,}  {share:>20}")


if __name__ == "__main__":
    main()
