"""Trino, Snowflake and BigQuery through SQLAlchemy: against what stands in for servers that nobody has at hand."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from http_services import Said, serving

from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.engines.readonly import UNREADABLE, refusal
from pytest_queryeval.features.database_servers.engine import dialect

SECONDS = 20
COLUMNS = [
    {"name": "id", "type": "integer", "typeSignature": {"rawType": "integer", "arguments": []}},
    {
        "name": "name",
        "type": "varchar(25)",
        "typeSignature": {"rawType": "varchar", "arguments": [{"kind": "LONG", "value": 25}]},
    },
]


def page(origin, state, headers=None, **more):
    document = {"id": "q1", "infoUri": f"{origin}/ui", "stats": {"state": state}, **more}
    return Said(document, headers=headers or {})


def coordinator(asked):
    """Answers as Trino does: https://trino.io/docs/current/develop/client-protocol.html."""
    statement, origin = asked.body, asked.origin
    if match := re.match(r"SET SESSION (\w+) = '(\w+)'", statement):
        return page(origin, "FINISHED", {"X-Trino-Set-Session": f"{match[1]}={match[2]}"}, updateType="SET SESSION")
    if "endless" in statement or asked.method == "GET":
        return page(origin, "RUNNING", nextUri=f"{origin}/v1/statement/executing/1")
    if "nowhere" in statement:
        error = {"message": "Table 'nowhere' does not exist", "errorCode": 46, "errorName": "TABLE_NOT_FOUND"}
        return page(origin, "FAILED", error={**error, "errorType": "USER_ERROR", "failureInfo": {}})
    return page(origin, "FINISHED", columns=COLUMNS, data=[[1, "Graz"], [2, None]])


@pytest.fixture
def trino(hosts):
    """An engine on a coordinator, and what that was asked."""
    pytest.importorskip("trino", reason="pip install 'trino[sqlalchemy]'")
    with serving(coordinator) as service:
        settings = {"url": service.url.replace("http://", "trino://reader@") + "tpch/tiny"}
        source = Source(name="m", engine="sqlalchemy", settings=settings, folder=Path())
        yield ENGINES["sqlalchemy"].open(source, hosts), service.asked


def test_query_has_its_limit_as_a_property_of_its_session(trino):
    engine, requests = trino

    execution = engine.execute("select id, name from nation", timeout=SECONDS, max_rows=10)

    assert execution.error is None, execution.error
    assert (execution.answer.columns, execution.answer.rows) == (("id", "name"), [(1, "Graz"), (2, None)])
    query = requests[-1]
    assert query.body == "select id, name from nation"
    assert query.headers["x-trino-session"] == f"query_max_run_time={SECONDS * 1000}ms"
    assert (query.headers["x-trino-catalog"], query.headers["x-trino-schema"]) == ("tpch", "tiny")


def test_error_of_trino_is_one_of_the_query(trino):
    error = trino[0].execute("select * from nowhere", timeout=SECONDS, max_rows=10).error

    assert error.kind == "invalid"
    assert "Table 'nowhere' does not exist" in error.message


@pytest.mark.parametrize(
    "query",
    [
        "insert into nation values (1)",
        "create table memory.default.x as select 1",
        "call system.sync_partition_metadata('a', 'b', 'FULL')",
        "select * from table(postgresql.system.query(query => 'drop table x'))",
        "select 1; drop table nation",
        "set session query_max_run_time = '1d'",
        "grant select on nation to public",
        "execute immediate 'drop table nation'",
    ],
)
def test_what_does_more_than_read_never_reaches_trino(trino, query):
    engine, requests = trino

    assert engine.execute(query, timeout=SECONDS, max_rows=10).error.kind == "unsafe"
    assert requests == []


def test_late_query_is_given_up(trino):
    engine, requests = trino
    engine.execute("select 1", timeout=SECONDS, max_rows=10)

    error = engine.execute("select endless from nation", timeout=1, max_rows=10).error

    assert error.kind == "timeout"
    assert [request.headers["x-trino-session"] for request in requests if "endless" in request.body] == [
        "query_max_run_time=1000ms"
    ]


@pytest.mark.parametrize(
    ("name", "commands"),
    [
        ("snowflake", ["ALTER SESSION SET STATEMENT_TIMEOUT_IN_SECONDS = 3"]),
        ("trino", ["SET SESSION query_max_run_time = '2500ms'"]),
        ("bigquery", []),
    ],
)
def test_database_is_told_the_limit_before_each_query(name, commands):
    child = pytest.importorskip("pytest_queryeval.features.database_servers.sqlalchemy_child")
    lines = []

    def told_to(text):
        lines.append(text)
        return SimpleNamespace(close=lambda: None)

    stand_in = SimpleNamespace(
        dialect=SimpleNamespace(name=name), exec_driver_sql=told_to, rollback=lambda: lines.append("rollback")
    )
    child.begin(stand_in, 2.5)

    assert lines == ["rollback", *commands]


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("trino://reader@host/catalog/schema", "trino"),
        ("snowflake://reader:password@account/db/schema?warehouse=small&role=reader", "snowflake"),
        ("bigquery://project/dataset", "bigquery"),
        ("clickhouse+native://reader@host/db", "clickhouse"),
        ("clickhousedb://reader@host/db", "clickhouse"),
    ],
)
def test_dialect_of_queries_is_that_of_the_url(url, name):
    assert dialect({"url": url}) == name


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("select system$cancel_query('x')", "snowflake"),
        ("select * from table(result_scan('x')) ; drop table x", "snowflake"),
        ("copy into @stage from x", "snowflake"),
        ("put file:///etc/passwd @stage", "snowflake"),
        ("select sequence.nextval", "snowflake"),
        ("select * from table(result_scan(last_query_id()))", "snowflake"),
        ("select 1 ->> insert into x select * from $1", "snowflake"),
        ("select $1 from @stage/x.csv", "snowflake"),
        ("select $1 from '@~/x.csv'", "snowflake"),
        ("select snowflake.cortex.complete('model', 'text')", "snowflake"),
        ("select ai_classify('text', ['a'])", "snowflake"),
        ("execute immediate 'drop table x'", "snowflake"),
        ("export data options(uri='gs://x/*') as select 1", "bigquery"),
        ("select * from external_query('x', 'drop table y')", "bigquery"),
        ("create temp function f() as (1); select f()", "bigquery"),
        ("begin select 1; end", "bigquery"),
        ("select 1 settings max_execution_time = 0", "clickhouse"),
        ("select 1 format JSON", "clickhouse"),
    ],
)
def test_statements_of_warehouses_that_reach_further_are_refused(query, name):
    assert refusal(query, name).kind in ("unsafe", "invalid")


@pytest.mark.parametrize(
    ("query", "name", "what"),
    [
        ("select '--', load_file /* x */ ('/etc/passwd')", "mysql", "load_file"),
        ("select '/*' as a, x.* from url/**/('http://h', CSV, 'a String') as x", "clickhouse", "url ("),
        ("select '#', * from remote/**/('h', a.b)", "clickhouse", "remote ("),
        ("select * from `\\x75rl`('http://h', CSV, 'a String')", "clickhouse", "an escape in a quoted name"),
        ("select * from \u201curl\u201d('http://h', CSV, 'a String')", "clickhouse", "not ASCII"),
        ("select * from url\u200b('http://h', CSV, 'a String')", "clickhouse", "not ASCII"),
        ("select * from oss('http://h/x')", "clickhouse", "oss"),
        ("select reverseDNSQuery('127.0.0.1')", "clickhouse", "reverseDNSQuery"),
        ("select * from `\\x65xternal_query`('a', 'b')", "bigquery", "an escape in a quoted name"),
        ("select '--', pg_sleep/**/(1)", "redshift", "pg_sleep"),
        ("select '--', * from table(system/* a */. /* b */query(query => 'x'))", "trino", "system . query"),
        ("select '--', reflect/**/('java.util.UUID', 'randomUUID')", "spark", "reflect"),
        ("select transform(a) using r'tee /x' as (b) from t", "spark", "using"),
        ("select '${env:PATH}'", "spark", "${"),
        ("select * from text.`secret.txt`", "spark", "a path"),
        ("select 1 where 1 in (select 1 from `org.x.Text`.`secret.txt`)", "hive", "a path"),
        ("select to_protobuf(a, 'A', '/etc/passwd') from t", "databricks", "to_protobuf"),
    ],
)
def test_what_is_hidden_from_the_parser_is_found(query, name, what):
    failure = refusal(query, name)

    assert failure.kind == "unsafe"
    assert what in failure.message


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("select 'naïve --', \"größe\", 'a\\'b' from t -- naïve", "clickhouse"),
        ("select count(a), url from t where file in ('x') -- url", "clickhouse"),
        ('select "a\\b" from t', "sqlite"),
        ("select a.text, b.csv, '$', '{' from a join b using (x)", "spark"),
        ("select * from main.hall.seats", "databricks"),
        ("select v:a.b::string from t, lateral flatten(input => v) where email like '%@x'", "snowflake"),
        ("select * exclude (a) from t qualify row_number() over (order by a) = 1", "snowflake"),
    ],
)
def test_what_only_looks_like_that_may_be_sent(query, name):
    assert refusal(query, name) is None


def test_text_on_which_the_parser_fails_is_refused():
    failure = refusal("select * from range(5) |> limit 2 |> tablesample (10 percent)", "spark")

    assert failure.kind == "unsafe"
    assert UNREADABLE in failure.message
