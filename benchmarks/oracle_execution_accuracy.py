"""Verdicts of execution_accuracy against an independent oracle, on values as databases answer them.

`python -m benchmarks.oracle_execution_accuracy [PAIRS] [SEED]`: PAIRS (40,000) for each of SQLite, DuckDB and PostgreSQL,
which starts a cluster of its own, as the tests do. Ends with status 1 where a verdict is wrong.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from collections import Counter
from pathlib import Path

from pytest_queryeval.core.model import Source
from pytest_queryeval.core.table import Policy, Table
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.metrics import METRICS

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from postgres import find_programs, running
from table_oracle import Oracle, cells_equal, remembered
from table_pairs import DATABASE_VALUES, Pair, Pool, pairs

SORTS = {"SQLite": ("sqlite",), "DuckDB": ("typed", "nested", "duckdb"), "PostgreSQL": ("typed", "postgres")}


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 40_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory() as name, Session() as session:
        folder = Path(name)
        sqlite3.connect(folder / "empty.sqlite").executescript(DATABASE_VALUES["generated"]).close()
        sqlite = Source(name="SQLite", engine="sqlite", settings={"path": "empty.sqlite"}, folder=folder)
        duckdb = Source(name="DuckDB", engine="duckdb", settings={"script": "empty.sql"}, folder=folder)
        (folder / "empty.sql").write_text(DATABASE_VALUES["generated"])
        pools = {source.name: pool(session, source) for source in (sqlite, duckdb)}
        if programs := find_programs():
            with tempfile.TemporaryDirectory() as data, running(programs, Path(data)) as cluster:
                settings = {"url": cluster.url()}
                source = Source(name="PostgreSQL", engine="sqlalchemy", settings=settings, folder=folder)
                pools[source.name] = pool(session, source)
        pools["all three"] = Pool([value for values in pools.values() for value in values.values])
    wrong = 0
    for database, values in pools.items():
        equal = remembered(cells_equal)
        tally, found = Counter[str](), list[Pair]()
        for pair in pairs(values, number, seed):
            verdict = METRICS["execution_accuracy"].function(pair.gold, pair.predicted) == 1.0
            oracle = Oracle(pair.gold, pair.predicted, Policy(), equal)
            accepts = oracle.are_equal()
            tally[f"{pair.made}: {'equal' if verdict else 'different'}"] += 1
            if oracle.is_open and not verdict:
                accepts = verdict
            elif oracle.is_open:
                accepts = Oracle(pair.gold, pair.predicted, Policy(), equal, exact_first=False).are_equal()
            if verdict != accepts:
                found.append(pair)
        wrong += len(found)
        print(f"{database}: {number:,} pairs of {len(values.values)} values, {len(found)} wrong verdicts")
        for sort, times in sorted(tally.items()):
            print(f"    {sort} {times:,}")
        for pair in sorted(found, key=lambda pair: len(str(pair)))[:5]:
            print(f"    wrong: {pair}")
    raise SystemExit(wrong > 0)


def pool(session: Session, source: Source) -> Pool:
    cells = []
    for query in (query for sort in SORTS[source.name] for query in DATABASE_VALUES[sort]):
        execution = session.engine(source).execute(query, timeout=30, max_rows=1_000)
        if not isinstance(execution.answer, Table):
            raise SystemExit(f"{source.name}: {execution.error}: {query}")
        cells += [cell for row in execution.answer.rows for cell in row]
    return Pool(cells)


if __name__ == "__main__":
    main()
