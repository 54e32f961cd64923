"""Mutants of golds on their sources: how many are killed, equivalent or survive, and their time.

The golds are the 1034 of Spider, then the 50 SPARQL queries of ck25. Needs QUERYEVAL_CONFORMANCE. With a JSON file
{"held_out": [indices]} as the argument, these golds of Spider are counted apart.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from pytest_queryeval.core.model import Case
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength.case_strength import CaseStrength, measure_strength
from pytest_queryeval.suites import load_suites

OUTCOMES = ("killed", "equivalent", "survivors")


def main() -> None:
    conformance = Path(os.environ["QUERYEVAL_CONFORMANCE"]).resolve()
    held_out = set(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["held_out"]) if sys.argv[1:] else set()
    measure(spider_suite(conformance / "spider"), held_out)
    measure(ck25_suite(conformance / "ck25"), set())


def measure(suite: dict[str, Any], held_out: set[int]) -> None:
    parts: dict[str, list[CaseStrength]] = {"developed on": [], "held out": []}
    seconds = 0.0
    with tempfile.TemporaryDirectory() as folder, Session() as session:
        for case in load(Path(folder), suite):
            began = time.perf_counter()
            strength = measure_strength(case, session)
            seconds += time.perf_counter() - began
            assert strength is not None
            parts["held out" if int(case.id) in held_out else "developed on"].append(strength)
    for name, cases in parts.items():
        if cases:
            report(name, cases)
    mutants = sum(len(getattr(case, outcome)) for cases in parts.values() for case in cases for outcome in OUTCOMES)
    print(f"\n{mutants:,} mutants in {seconds:.1f} s: {1000 * seconds / mutants:.2f} ms each")


def spider_suite(folder: Path) -> dict[str, Any]:
    with (folder / "graphix_t5.jsonl").open(encoding="utf-8") as file:
        pairs = [json.loads(line) for line in file]
    cases = [
        {"id": str(pair["idx"]), "gold": pair["gold"], "source": str(folder / "databases" / f"{pair['db_id']}.sqlite")}
        for pair in pairs
    ]
    return {"kind": "sql", "cases": cases}


def ck25_suite(folder: Path) -> dict[str, Any]:
    with (folder / "pairs.jsonl").open(encoding="utf-8") as file:
        golds = dict.fromkeys(json.loads(line)["gold"] for line in file)
    files = [str(folder / name) for name in ("prod-inst.ttl", "prod-vocab.ttl")]
    source = {"rdf": {"files": files, "engine": ["oxigraph", "rdflib"]}}
    cases = [{"id": str(number), "gold": gold} for number, gold in enumerate(golds)]
    return {"kind": "sparql", "source": source, "cases": cases}


def load(folder: Path, suite: dict[str, Any]) -> tuple[Case, ...]:
    cases = [{**case, "question": "?"} for case in suite["cases"]]
    (folder / "golds.queryeval.yaml").write_text(json.dumps({**suite, "cases": cases}), encoding="utf-8")
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
