"""Whether `what_is_read` names what databases record, on generated queries and on Spider's golds.

5,000 generated queries on each of SQLite and DuckDB, of `tests/generated_reads.py`: `python benchmarks/bench_reads.py
[QUERIES] [SEED]`. It prints how many read a table or a column that was not noticed, which should be none, how many would be
refused without need, which should be at most 1 %, and how many cannot be resolved. With QUERYEVAL_CONFORMANCE, the golds of
Spider follow, with the names that SQLite's authorizer records for them.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from generated_reads import RECORDS, SCHEMA, SCRIPT, VIEWS, Writer

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.languages.sql.reads import Views, view_queries, what_is_read

QUERIES, SEED = 5_000, 11


def generated(engine: str, number: int, seed: int) -> None:
    """Print what is noticed of generated queries on an engine."""
    random, record = Random(seed), RECORDS[engine]()
    views = Views(view_queries(SCRIPT.replace(";\n", ";\n\n"), engine))
    counts: Counter[str] = Counter()
    seconds = 0.0
    while counts["queries"] < number:
        query = Writer(random, engine).query()
        recorded = record.reads(query)
        if recorded is None:
            continue
        began = perf_counter()
        reads = what_is_read(query, engine, SCHEMA, views, lambda name: name[-1] not in VIEWS)
        seconds += perf_counter() - began
        found = {(read.table[-1], read.column) for read in reads.reads}
        # SQLite's authorizer does not record what USING and NATURAL compare, nor tables of which no column is read.
        joined = {(read.table[-1], read.column) for read in reads.reads if read.form == "joined"}
        told = {name for name in found - joined if name[1]}
        is_open = bool(reads.problems or reads.unknown)
        missed = bool(recorded - found)
        counts.update(
            {
                "queries": 1,
                "names": len(recorded),
                "unresolved": is_open,
                "not noticed": missed and not is_open,
                "refused without need": not missed and bool(told - recorded),
            }
        )
    figures = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    print(f"{engine}: {figures}; {1000 * seconds / number:.1f} ms a query")


def spider_golds(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the distinct golds of Spider with their databases."""
    seen = set()
    for line in (folder / "dail_gpt4.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        name = case.get("db_id") or case["source"]
        if (case["gold"], name) not in seen:
            seen.add((case["gold"], name))
            yield case["gold"], next((folder / "databases").rglob(f"{name}.sqlite"))


def spider(folder: Path) -> None:
    """Print for how many of Spider's golds the names are those that SQLite records."""
    counts: Counter[str] = Counter()
    for query, path in spider_golds(folder):
        with closing(sqlite3.connect(path)) as connection:
            tables = {
                table.lower(): tuple(row[1].lower() for row in connection.execute(f'PRAGMA table_info("{table}")'))
                for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            }
            log: set[tuple[str, str]] = set()

            def record(action: int, table: str | None, column: str | None, *_: str | None, log: set = log) -> int:
                if action == sqlite3.SQLITE_READ:
                    log.add((str(table).lower(), str(column).lower()))
                return sqlite3.SQLITE_OK

            connection.set_authorizer(record)
            connection.execute(f"EXPLAIN {query}").close()
        reads = what_is_read(query, "sqlite", Schema(tables=tables))
        found = {(read.table[-1], read.column) for read in reads.reads}
        recorded = log | {(table, "") for table, _ in log}
        counts.update(["golds", "the same" if found == recorded else "other"])
        if found != recorded:
            print(query, sorted(found ^ recorded))
    print(f"Spider: {dict(counts)}")


if __name__ == "__main__":
    arguments = [*map(int, sys.argv[1:])]
    for name in RECORDS:
        generated(name, *(arguments[:1] or [QUERIES]), *(arguments[1:] or [SEED]))
    if conformance := os.environ.get("QUERYEVAL_CONFORMANCE"):
        spider(Path(conformance) / "spider")
