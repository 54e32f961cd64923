"""No statement gets through to files, environment or network, and none stops the next query."""

import time

import duckdb
import pytest
from hostile_duckdb import HOSTILE

from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.sandbox.host import Hosts

pytestmark = pytest.mark.process

SCHEMA = """
    create table concerts (id integer primary key, city varchar, price double);
    insert into concerts values (1, 'Graz', 12.5), (2, 'Wien', null), (3, 'Linz', 8.0);
    create sequence numbers;
"""


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def marks(place, kinds):
    """What ends its child is tried on one database in each run: what it takes does not depend on the database."""
    return [pytest.mark.slow] if place == "memory" and kinds & {"timeout", "too_large"} else []


CASES = [
    pytest.param(place, query, kinds, id=f"{place}-{name}", marks=marks(place, kinds))
    for place in ("file", "memory")
    for name, query, kinds in HOSTILE
]


@pytest.fixture(scope="module", params=["file", "memory"])
def battery(request, tmp_path_factory):
    """An engine on a database with all that statements may attack; nothing may be changed after all of them."""
    folder = tmp_path_factory.mktemp("battery")
    with duckdb.connect(str(folder / "concerts.duckdb")) as connection:
        connection.execute(SCHEMA)
    (folder / "beside.csv").write_text("secret\n1\n", encoding="utf-8")
    before = contents(folder)
    with Hosts() as hosts:
        source = Source(name="music", engine="duckdb", settings={"path": "concerts.duckdb"}, folder=folder)
        duckdb_engine = ENGINES["duckdb"]
        engine = (
            duckdb_engine.open(source, hosts) if request.param == "file" else duckdb_engine.build(SCHEMA, {}, hosts)
        )
        yield engine, folder
        engine.close()
    assert contents(folder) == before


@pytest.mark.parametrize(("battery", "query", "kinds"), CASES, indirect=["battery"])
def test_hostile_statements_fail_in_time_and_the_next_query_answers(battery, query, kinds):
    engine, folder = battery
    written = query.replace("{folder}", str(folder)).replace("{database}", str(folder / "concerts.duckdb"))
    began = time.monotonic()

    limit = 0.3 if "timeout" in kinds else 10  # the machine may be busy
    execution = engine.execute(written, timeout=limit, max_rows=100_000)
    elapsed = time.monotonic() - began
    following = engine.execute("select count(*), min(upper(city)) from concerts", timeout=10, max_rows=10)

    assert execution.answer is None
    assert execution.error.kind in kinds, execution.error
    assert elapsed < 10 * max(limit, 0.5)
    assert following.answer.rows == [(3, "GRAZ")]


def test_secrets_are_none(battery):
    engine, _ = battery

    execution = engine.execute("from duckdb_secrets()", timeout=10, max_rows=10)

    assert execution.answer is None or execution.answer.rows == []


def test_queries_that_need_too_much_memory_leave_enough_for_the_next(battery):
    engine, _ = battery
    hungry = "select string_agg(repeat('x', 100000), '') from range(1000000)"

    kinds = [engine.execute(hungry, timeout=20, max_rows=10).error.kind for _ in range(4)]
    following = engine.execute("select count(distinct i) from range(3000000) t(i)", timeout=20, max_rows=10)

    assert kinds == ["too_large"] * 4
    assert following.answer.rows == [(3_000_000,)]
