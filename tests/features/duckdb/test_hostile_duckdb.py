"""No statement gets through to files, environment or network, and none stops the next query."""

import time

import duckdb
import pytest
from hostile_duckdb import BEFORE_READING, HOSTILE

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


def statements(*, that_end_their_process):
    """The parameters of a test: the statements that run into a limit, or those that are refused or fail."""
    return pytest.mark.parametrize(
        ("query", "kinds"),
        [
            pytest.param(query, kinds, id=name)
            for name, query, kinds in HOSTILE
            if bool(kinds & {"timeout", "too_large"}) is that_end_their_process
        ],
    )


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


@statements(that_end_their_process=False)
def test_hostile_statements_fail_in_time_and_the_next_query_answers(battery, query, kinds):
    check(battery, query, kinds)


# One database is enough in most runs: what these statements take does not depend on it.
@pytest.mark.parametrize("battery", ["file", pytest.param("memory", marks=pytest.mark.slow)], indirect=True)
@statements(that_end_their_process=True)
def test_statements_without_end_or_bounds_are_stopped_and_the_next_query_answers(battery, query, kinds):
    check(battery, query, kinds)


def check(battery, query, kinds):
    engine, folder = battery
    written = query.replace("{folder}", str(folder)).replace("{database}", str(folder / "concerts.duckdb"))
    began = time.monotonic()

    limit = 0.3 if "timeout" in kinds else 10  # the machine may be busy
    execution = engine.execute(written, timeout=limit, max_rows=100_000)
    elapsed = time.monotonic() - began
    following = engine.execute("select count(*), min(upper(city)) from concerts", timeout=10, max_rows=10)

    assert execution.answer is None
    assert execution.error.kind in kinds, execution.error
    assert elapsed < 60  # by itself it ends never, or much later
    assert following.answer.rows == [(3, "GRAZ")]


def test_nothing_is_created_before_a_query_wherever_comments_seem_to_end(battery):
    engine, _ = battery
    counted = ("schemas", "secrets", "sequences", "settings", "tables", "types", "views", "variables")
    counts = ", ".join(f"(select count(*) from duckdb_{name}())" for name in counted)
    state = f"select {counts}, (select count(*) from duckdb_functions()), upper('a'), min(city) from concerts"
    before = engine.execute(state, timeout=20, max_rows=1).table.rows

    executions = [(query, engine.execute(query, timeout=20, max_rows=10)) for query in BEFORE_READING]

    assert [query for query, execution in executions if not refused(execution)] == []
    assert engine.execute(state, timeout=20, max_rows=1).table.rows == before
    assert len(set(BEFORE_READING)) > 500


def refused(execution):
    return execution.error is not None and execution.error.kind in ("unsafe", "invalid")


@pytest.mark.parametrize("comment", ["", "/* /* */ delete */ ", "-- drop\n", "( /* /* '*/ */ "])
def test_comments_and_parentheses_may_precede_a_query(battery, comment):
    engine, _ = battery
    end = ")" if "(" in comment else ""

    for query in ("select 3", "pivot concerts on price using count(*)", "with a as (from concerts) from a"):
        execution = engine.execute(f"{comment}{query}{end} -- /*", timeout=20, max_rows=10)
        assert execution.error is None, execution.error


def test_spaces_beyond_ascii_do_not_make_names_and_texts_calls(battery):
    engine, _ = battery
    query = "select query,\u00a0'checkpoint()' as t, count(*)\u2003from (select 1 as query) group by query"

    assert engine.execute(query, timeout=20, max_rows=10).table.rows == [(1, "checkpoint()", 1)]


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
