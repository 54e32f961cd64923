"""Challenges of the query pairs that VeriEQL was measured with: which are refuted, proved, or stand.

`python benchmarks/bench_verieql.py PAIRS [RECORD]` takes a file of pairs of https://github.com/VeriEQL/VeriEQL, such as
benchmarks/literature/literature.jsonlines, and VeriEQL's own results on them, such as
experiments/2023_03_27/literature.out, to compare with. Pairs run in SQLite, and in DuckDB, which has syntax that SQLite
lacks, such as set operations in parentheses. Keys and constraints are the declared ones; a primary key is NOT NULL.
With VERBOSE, each refuted pair is printed with its counterexample.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench_strength import load

from pytest_queryeval.core.db_schema import (
    ColumnDefinition,
    ForeignKey,
    TableDefinition,
    create_table,
    script_of,
)
from pytest_queryeval.core.model import Case, Challenge, Execution
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.challenge.challenger import challenge_answer
from pytest_queryeval.features.strength.sql.rows import insertion_order

ENGINES = "sqlite", "duckdb"
TYPES = {"INT": "INTEGER", "VARCHAR": "VARCHAR", "DATE": "DATE", "BOOLEAN": "BOOLEAN"}
STRONGEST_FIRST = ("refuted", "proved", "same", "stands", "unchallenged")


def main() -> None:
    pairs = read_lines(Path(sys.argv[1]))
    record = {line["index"]: line for line in read_lines(Path(sys.argv[2]))} if len(sys.argv) > 2 else {}
    verdicts: dict[int, dict[str, Challenge]] = {pair["index"]: {} for pair in pairs}
    began = os.times()
    for engine in ENGINES:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_CACHE_HOME"] = folder  # challenges of earlier calls do not count
            for index, challenge in challenge_pairs(pairs, engine, Path(folder)):
                verdicts[index][engine] = challenge
        print(f"{engine}: {dict(Counter(of_pair[engine].verdict for of_pair in verdicts.values()))}")
    ended = os.times()
    print(f"CPU {sum(ended[:4]) - sum(began[:4]):.1f} s for {len(pairs)} pairs in two engines")
    by_verdict = {index: best(challenges) for index, challenges in verdicts.items()}
    print(f"either engine: {dict(Counter(by_verdict.values()))}")
    for pair in pairs:
        index = pair["index"]
        states = record.get(index, {}).get("states") or []
        by_record = "refuted" if "NEQ" in states else "equal up to its bound" if "EQU" in states else "unknown"
        if record and ((by_verdict[index] == "refuted") != (by_record == "refuted")) and by_record != "unknown":
            print(f"{index}: {by_verdict[index]}, by VeriEQL {by_record} ({len(states)} bounds)")
            print(f"  {pair['pair'][0]}\n  {pair['pair'][1]}")
        if os.environ.get("VERBOSE"):
            show(pair, verdicts[index], by_record)


def read_lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def challenge_pairs(pairs: Sequence[Mapping[str, Any]], engine: str, folder: Path) -> list[tuple[int, Challenge]]:
    cases = []
    for pair in pairs:
        script = f"pair-{pair['index']}.sql"
        (folder / script).write_text(ddl(pair), encoding="utf-8")
        cases.append({"id": str(pair["index"]), "gold": pair["pair"][0], "source": {engine: {"script": script}}})
    with Session() as session:
        return [
            (pair["index"], challenge(case, pair["pair"], session))
            for case, pair in zip(load(folder, {"kind": "sql", "cases": cases}), pairs, strict=True)
        ]


def challenge(case: Case, pair: Sequence[str], session: Session) -> Challenge:
    gold, predicted = (Execution(query=query) for query in pair)
    return challenge_answer(case, gold, predicted, session)


def ddl(pair: Mapping[str, Any]) -> str:
    """Return the statements that make the tables of a pair, with its constraints."""
    not_null: set[tuple[str, str]] = set()
    primary: dict[str, tuple[str, ...]] = {}
    references: list[tuple[tuple[str, str], tuple[str, str]]] = []
    for constraint in pair["constraint"] or ():
        ((kind, stated),) = constraint.items()
        names = [tuple(item["value"].split("__")) for item in (stated if isinstance(stated, list) else [stated])]
        if kind == "primary":
            primary[names[0][0]] = tuple(column for _, column in names)
            not_null.update(names)
        elif kind == "not_null":
            not_null.update(names)
        elif kind == "foreign":
            references.append((names[0], names[1]))
        else:
            raise ValueError(f"{pair['index']}: a constraint that is not known: {kind}")
    tables = {
        name: TableDefinition(
            name,
            [
                ColumnDefinition(column, TYPES[(type_ or "INT").upper()], not_null=(name, column) in not_null)
                for column, type_ in columns.items()
            ],
            primary.get(name, ()),
            [ForeignKey((of[1],), to[0], (to[1],)) for of, to in references if of[0] == name],
        )
        for name, columns in pair["schema"].items()
    }
    return script_of(create_table(tables[name], '"{}"'.format) for name in insertion_order(tables))


def best(challenges: Mapping[str, Challenge]) -> str:
    verdicts = {challenge.verdict for challenge in challenges.values()}
    return next(verdict for verdict in STRONGEST_FIRST if verdict in verdicts)


def show(pair: Mapping[str, Any], challenges: Mapping[str, Challenge], by_record: str) -> None:
    print(json.dumps([pair["index"], by_record, *pair["pair"]]))
    for engine, result in challenges.items():
        print(f"  {engine}: {result.verdict} {result.reason} {' '.join(result.rules)}")
        if result.refutation is not None:
            inserted = [
                line for line in result.refutation.script.splitlines() if not line.startswith(("CREATE", " ", ")"))
            ]
            print(f"    {' '.join(inserted)}: {result.refutation.gold.rows} {result.refutation.predicted.rows}")


if __name__ == "__main__":
    main()
