"""Counterexamples on Spider: pairs of gold and a mutant that passes, and predictions that are right with another text.

Needs QUERYEVAL_CONFORMANCE. The first argument is the number of pairs of each sort, chosen at random, the second one is
`duckdb` for copies of the databases in DuckDB. Golds that are held out (see bench_strengthen.py) are left out. Times are of
the processor, with the start of the child process.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import median

from bench_strength import load, spider_suite
from bench_strengthen import spider_in_duckdb

from pytest_queryeval.core.errors import GoldError
from pytest_queryeval.core.model import Case, QueryOrAnswer
from pytest_queryeval.evaluation import evaluate_case
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength.case_strength import measure_strength
from pytest_queryeval.features.strength.counterexample import find_counterexample

HELD_OUT = "frozen-2026-11-22"
SYSTEMS = ("graphix_t5", "c3_chatgpt", "dail_gpt4")


def main() -> None:
    count, engine = (*sys.argv[1:], "sqlite")[:2]
    spider = Path(os.environ["QUERYEVAL_CONFORMANCE"]).resolve() / "spider"
    numbers = list(range(1034))
    Random(HELD_OUT).shuffle(numbers)
    developed = sorted(numbers[345:])
    with tempfile.TemporaryDirectory() as folder, Session() as session:
        cases = load(
            Path(folder), spider_suite(spider) if engine == "sqlite" else spider_in_duckdb(spider, Path(folder))
        )
        mutants = []
        for number in developed:
            with suppress(GoldError):  # in DuckDB
                if (strength := measure_strength(cases[number], session)) is not None:
                    mutants += [(cases[number], mutant.query) for mutant in strength.survivors]
        predictions = [
            (cases[number], predicted)
            for system in SYSTEMS
            for number, predicted in right_predictions(cases, pairs_of(spider, system), session)
        ]
        for name, pairs in (("mutants that pass", mutants), ("predictions that are right", predictions)):
            report(name, Random(HELD_OUT).sample(pairs, min(len(pairs), int(count))))


def pairs_of(spider: Path, system: str) -> list[dict[str, str]]:
    with (spider / f"{system}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def right_predictions(cases: list[Case], pairs: list[dict[str, str]], session: Session) -> Iterator[tuple[int, str]]:
    for number, (case, pair) in enumerate(zip(cases, pairs, strict=True)):
        if pair["predicted"].lower().split() != pair["gold"].lower().split():
            settings = replace(case.settings, metrics=("execution_accuracy",), thresholds={})
            predicted = replace(case, predicted=QueryOrAnswer(query=pair["predicted"]), settings=settings)
            with suppress(GoldError):
                if evaluate_case(predicted, session).scores["execution_accuracy"] == 1.0:
                    yield number, pair["predicted"]


def report(name: str, pairs: list[tuple[Case, str]]) -> None:
    rows, seconds, in_vain = [], [], []
    for case, predicted in pairs:
        began = used()
        with Session() as session:  # the time of its processes counts when they have ended
            example = find_counterexample(case, case.golds[0].query or "", predicted, session).counterexample
        (in_vain if example is None else seconds).append(used() - began)
        if example is not None:
            rows.append(sum(len(table.rows) for table in example.tables.values()))
            if os.environ.get("VERBOSE"):
                tables = {name: table.rows for name, table in example.tables.items()}
                print(json.dumps([case.id, case.golds[0].query, predicted, str(tables)], ensure_ascii=False))
    print(f"{name}: {len(rows):,} of {len(pairs):,} pairs have a counterexample")
    print(f"  median rows {median(rows)}, of {sum(count <= 5 for count in rows) / len(rows):.0%} at most 5")
    print(f"  median seconds {median(seconds):.2f}; where none is found {median(in_vain or [0]):.2f}")


def used() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    main()
