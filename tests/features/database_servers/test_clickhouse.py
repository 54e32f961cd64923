"""ClickHouse through SQLAlchemy, by the native protocol and by HTTP, for a user with `readonly = 1`."""

import datetime
import re
from decimal import Decimal

import pytest
from hostile_statements import hostile
from opened_sources import execute, rows_of, source_of
from servers import untouched
from waiting import wait_for

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.testing import open_engine

pytest_plugins = ["clickhouse"]

SCHEMES = ("clickhouse+native", "clickhouse+http")
SECONDS = 20
LATE = 0.5
ENDLESS = "select count(*) from system.numbers where number % 7 = 8"
STATE = "select count(*) from concerts"


@pytest.fixture(params=SCHEMES)
def engine(request, hosts, clickhouse):
    with open_engine(source_of("sqlalchemy", url=clickhouse.url(request.param)), hosts) as engine:
        yield engine


@pytest.fixture(scope="module")
def battery(clickhouse, tmp_path_factory):
    with untouched(tmp_path_factory.mktemp("battery"), clickhouse.dump) as folder_and_address:
        yield folder_and_address


@pytest.mark.parametrize("query", hostile("clickhouse")["unsafe invalid"])
def test_hostile_statements_leave_data_files_and_network_alone(engine, battery, query):
    folder, address = battery

    execution = engine.execute(
        query.replace("{folder}", folder).replace("{address}", address), timeout=SECONDS, max_rows=1000
    )

    assert execution.error.kind in ("unsafe", "invalid"), execution.error
    assert engine.execute(STATE, timeout=SECONDS, max_rows=10).answer.rows == [(3,)]


@pytest.mark.parametrize(
    ("query", "kind", "words"),
    [
        ("select * from nowhere", "invalid", "Table music.nowhere doesn't exist"),
        ("select nowhere from concerts", "invalid", "Unknown identifier: nowhere"),
        ("select * from default.secrets", "unsafe", "Database default doesn't exist|denied|not allowed|Access"),
    ],
)
def test_what_is_wrong_with_a_query_has_its_kind(engine, query, kind, words):
    execution = engine.execute(query, timeout=SECONDS, max_rows=1000)

    assert execution.error.kind == kind, execution.error
    assert re.search(words, execution.error.message)
    assert "Stack trace" not in execution.error.message


def test_a_late_query_runs_no_longer_on_the_server(engine, clickhouse):
    engine.execute("select 1", timeout=SECONDS, max_rows=10)

    error = engine.execute(ENDLESS, timeout=LATE, max_rows=10).error

    assert error.kind == "timeout"
    wait_for(lambda: clickhouse.running() == "")
    assert engine.execute("select 1", timeout=SECONDS, max_rows=10).answer.rows == [(1,)]


def test_values_come_through(hosts, clickhouse):
    values = {
        "null": None,
        "toDecimal32(1.5, 2)": Decimal("1.5"),
        "toDate('2024-02-29')": datetime.date(2024, 2, 29),
        "'naïve 🎻 50 %'": "naïve 🎻 50 %",
        "array(1, 2)": "[1, 2]",
        "tuple(1, 'a')": '[1, "a"]',
        "toUUID('00000000-0000-0000-0000-000000000001')": "00000000-0000-0000-0000-000000000001",
        "2.5": 2.5,
        "toUInt64('18446744073709551615')": 18446744073709551615,
    }

    rows = rows_of(hosts, source_of("sqlalchemy", url=clickhouse.url()), f"select {', '.join(values)}")

    assert rows == [tuple(values.values())]


def test_tables_are_written_as_statements(engine):
    assert "CREATE TABLE concerts (" in engine.ddl(timeout=SECONDS)


@pytest.mark.parametrize(
    ("login", "reason"), [({"password": "mistaken-horse"}, "password"), ({"database": "nowhere"}, "EOFError")]
)
def test_a_server_that_does_not_let_us_in_is_a_source_error(hosts, clickhouse, login, reason):
    with pytest.raises(SourceError, match=f"^source 'music': .*{reason}") as caught:
        execute(hosts, source_of("sqlalchemy", url=clickhouse.url(**login)), "select 1")

    assert "mistaken" not in str(caught.value)
    assert clickhouse.password not in str(caught.value)
