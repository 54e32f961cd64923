"""Trino through SQLAlchemy, against what stands in for a server, and what other warehouses are told of limits."""

import re
from types import SimpleNamespace

import pytest
from http_services import Said, serving
from opened_sources import source_of

from pytest_queryeval.testing import open_engine

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
        url = service.url.replace("http://", "trino://reader@") + "tpch/tiny"
        with open_engine(source_of("sqlalchemy", url=url), hosts) as engine:
            yield engine, service.asked


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
    session = child.Session(stand_in)
    lines.clear()  # of those for a new connection
    session.begin(2.5)

    assert lines == ["rollback", *commands]
