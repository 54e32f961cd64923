"""Verdicts of execution_accuracy against an independent oracle, on values as databases answer them.

`python -m benchmarks.oracle_execution_accuracy [PAIRS] [SEED]`: PAIRS (40,000) for each of SQLite, DuckDB and PostgreSQL,
which starts a cluster of its own, as the tests do. Ends with status 1 where a verdict is wrong.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pytest_queryeval.core.model import Source
from pytest_queryeval.core.table import Table
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from equality_oracle import DUCKDB, GENERATED, POSTGRES, SQLITE, Pool, wrong_verdicts
from postgres import find_programs, running


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 40_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory() as name, Session() as session:
        folder = Path(name)
        sqlite3.connect(folder / "empty.sqlite").executescript(GENERATED).close()
        sqlite = Source(name="sqlite", engine="sqlite", settings={"path": "empty.sqlite"}, folder=folder)
        duckdb = Source(name="duckdb", engine="duckdb", settings={"script": "empty.sql"}, folder=folder)
        (folder / "empty.sql").write_text(GENERATED)
        pools = {"SQLite": pool(session, sqlite, SQLITE), "DuckDB": pool(session, duckdb, DUCKDB)}
        if programs := find_programs():
            with tempfile.TemporaryDirectory() as data, running(programs, Path(data)) as cluster:
                settings = {"url": cluster.url()}
                source = Source(name="postgres", engine="sqlalchemy", settings=settings, folder=folder)
                pools["PostgreSQL"] = pool(session, source, POSTGRES)
        pools["all three"] = Pool([Table(columns=("c",), rows=[(v,) for p in pools.values() for v in p.values])])
    wrong = 0
    for database, values in pools.items():
        accepted, rejected, tally = wrong_verdicts(
            values, pairs, seed, lambda gold, predicted: execution_accuracy(gold, predicted) == 1.0
        )
        wrong += len(accepted) + len(rejected)
        equal = sum(number for sort, number in tally.items() if sort.endswith(": equal"))
        print(
            f"{database}: {pairs:,} pairs of {len(values.values)} values, {equal:,} equal;"
            f" {len(accepted)} wrongly accepted, {len(rejected)} wrongly rejected"
        )
        for sort, number in sorted(tally.items()):
            print(f"    {sort} {number:,}")
        for title, found in (("accepted", accepted), ("rejected", rejected)):
            for pair in sorted(found, key=lambda pair: len(str(pair)))[:5]:
                print(f"    {title}: {pair}")
    raise SystemExit(wrong > 0)


def pool(session: Session, source: Source, queries: Sequence[str]) -> Pool:
    answers = []
    for query in queries:
        execution = session.engine(source).execute(query, timeout=30, max_rows=1_000)
        if not isinstance(execution.answer, Table):
            raise SystemExit(f"{source.name}: {execution.error}: {query}")
        answers.append(execution.answer)
    return Pool(answers)


if __name__ == "__main__":
    main()
