"""Verdicts on pairs of answers made of what databases answer, against an oracle that tries everything.

`benchmarks/oracle_execution_accuracy.py` does the same on many more pairs.
"""

import sqlite3
from decimal import Decimal
from functools import partial

import pytest
from equality_oracle import DUCKDB, GENERATED, POSTGRES, SQLITE, Pool, asymmetric_verdicts, cells_equal, wrong_verdicts

from pytest_queryeval.core.model import Source
from pytest_queryeval.core.table import Policy, Table
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy

pytest_plugins = ["postgres"]
PAIRS = 1_500


def answers(session, source, queries):
    for query in queries:
        execution = session.engine(source).execute(query, timeout=30, max_rows=1_000)
        assert execution.error is None, query
        yield execution.answer


def source_of(engine, folder, request):
    if engine == "sqlite":
        sqlite3.connect(folder / "empty.db").executescript(GENERATED).close()
        return Source(name="a", engine="sqlite", settings={"path": "empty.db"}, folder=folder)
    if engine == "duckdb":
        (folder / "empty.sql").write_text(GENERATED)
        return Source(name="a", engine="duckdb", settings={"script": "empty.sql"}, folder=folder)
    cluster = request.getfixturevalue("cluster")
    return Source(name="a", engine="sqlalchemy", settings={"url": cluster.url()}, folder=folder)


@pytest.mark.long
@pytest.mark.parametrize(
    ("engine", "queries"),
    [
        ("sqlite", SQLITE),
        pytest.param("duckdb", DUCKDB, marks=pytest.mark.feature("duckdb")),
        pytest.param("postgres", POSTGRES, marks=pytest.mark.feature("database_servers")),
    ],
    ids=["sqlite", "duckdb", "postgres"],
)
def test_no_verdict_on_values_of_a_database_is_wrong(engine, queries, tmp_path, request):
    with Session() as session:
        pool = Pool(list(answers(session, source_of(engine, tmp_path, request), queries)))

    accepted, rejected, tally = wrong_verdicts(
        pool, PAIRS, 7, lambda gold, predicted: execution_accuracy(gold, predicted) == 1.0
    )

    assert (accepted, rejected) == ([], [])
    sorts = {"ordered: equal", "ordered: different", "unordered: equal", "unordered: different", "no rows: equal"}
    assert sorts <= tally.keys()
    assert tally["rejected where it depends on which rows are paired first"] <= PAIRS // 500


@pytest.mark.parametrize(
    ("x", "y", "equal"),
    [
        (1000000.0, 1000001, False),
        (1000000.5, 1000001, True),
        (Decimal("0.333333"), Decimal("0.3333333"), True),
        (Decimal("1.1"), Decimal("1.10"), True),
        (Decimal("1.1"), Decimal("1.11"), False),
        (None, "", False),
        ("1", 1, False),
    ],
)
def test_the_oracle_knows_the_rules(x, y, equal):
    assert cells_equal(x, y) is equal


NUMBERS = (
    *(0, 3, 100, 101, 10**6, 10**6 + 1, 2**53, 2**53 + 1, 2**60, 2**60 + 2),
    *(
        3.0,
        2.9999999,
        100.0,
        101.0,
        1e6,
        1e6 + 0.5,
        1e6 + 1,
        1e6 + 1.5,
        float(2**53),
        float(2**60),
        1e305,
        1.0000001e305,
    ),
    *map(
        Decimal, ("100", "101.0", "100.50", "0.333333", "0.3333333333333", "2.9999999999999999", "9007199254740993.5")
    ),
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("rel", "span"), [(None, None), (None, 1), (0, 0), (0.5, None), (0, 0.6)], ids=lambda value: str(value)
)
def test_no_verdict_under_a_tolerance_is_wrong_or_depends_on_the_side(rel, span):
    pool = Pool([Table(columns=("n",), rows=[(number,) for number in NUMBERS])])
    pool.equal = [[y for y in pool.values if cells_equal(x, y, rel, span)] for x in pool.values]
    policy = Policy(rel=rel, abs=span)

    def verdict(gold, predicted):
        return execution_accuracy(gold, predicted, policy=policy) == 1.0

    equal = partial(cells_equal, rel=rel, span=span)
    accepted, rejected, tally = wrong_verdicts(pool, PAIRS, 11, verdict, equal)

    assert (accepted, rejected) == ([], [])
    assert tally["unordered: equal"] > PAIRS // 10
    assert asymmetric_verdicts(pool, PAIRS, 12, verdict) == []
