"""Scores of answers made of what databases answer, against an oracle that tries everything.

`benchmarks/oracle_execution_accuracy.py` does the same on many more pairs.
"""

import sqlite3

import pytest
from table_oracle import Oracle, cells_equal, remembered
from table_pairs import DATABASE_VALUES, Pool, pairs

from pytest_queryeval.core.model import Source
from pytest_queryeval.core.table import Policy
from pytest_queryeval.evaluation import Session
from pytest_queryeval.metrics import METRICS

pytest_plugins = ["postgres"]
PAIRS = 800


def source_of(engine, folder, request):
    if engine == "sqlite":
        sqlite3.connect(folder / "a.db").executescript(DATABASE_VALUES["generated"]).close()
        return Source(name="a", engine="sqlite", settings={"path": "a.db"}, folder=folder)
    if engine == "duckdb":
        (folder / "a.sql").write_text(DATABASE_VALUES["generated"])
        return Source(name="a", engine="duckdb", settings={"script": "a.sql"}, folder=folder)
    cluster = request.getfixturevalue("cluster")
    return Source(name="a", engine="sqlalchemy", settings={"url": cluster.url()}, folder=folder)


@pytest.mark.parametrize(
    ("engine", "sorts"),
    [
        ("sqlite", ["sqlite"]),
        pytest.param("duckdb", ["typed", "nested", "duckdb"], marks=pytest.mark.feature("duckdb")),
        pytest.param("postgres", ["typed", "postgres"], marks=pytest.mark.feature("database_servers")),
    ],
)
def test_no_verdict_on_values_of_a_database_is_wrong(engine, sorts, tmp_path, request):
    with Session() as session:
        opened = session.engine(source_of(engine, tmp_path, request))
        queries = [query for sort in sorts for query in DATABASE_VALUES[sort]]
        answers = [opened.execute(query, timeout=30, max_rows=1_000).answer for query in queries]

    equal, verdicts = remembered(cells_equal), {True: 0, False: 0}
    for pair in pairs(Pool([cell for answer in answers for row in answer.rows for cell in row]), PAIRS, 7):
        oracle = Oracle(pair.gold, pair.predicted, Policy(), equal)
        verdict = METRICS["execution_accuracy"].function(pair.gold, pair.predicted) == 1.0
        verdicts[verdict] += 1
        if oracle.is_open:
            assert verdict <= Oracle(pair.gold, pair.predicted, Policy(), equal, exact_first=False).are_equal(), pair
        else:
            assert verdict == oracle.are_equal(), pair
    assert min(verdicts.values()) > PAIRS / 4
