"""ClickHouse through SQLAlchemy, by the native protocol and by HTTP, for a user with `readonly = 1`."""

import datetime
import re
import time
from decimal import Decimal
from pathlib import Path

import pytest
from servers import untouched

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES

pytest_plugins = ["clickhouse"]

SCHEMES = ("clickhouse+native", "clickhouse+http")
SECONDS = 20
LATE = 0.5
ENDLESS = "select count(*) from system.numbers where number % 7 = 8"
HOSTILE = {
    "insert": "insert into plain values (2)",
    "insert behind a CTE": "with (select 1) as x insert into plain select x",
    "alter": "alter table plain delete where 1",
    "optimize": "optimize table plain",
    "rename": "rename table plain to other",
    "detach": "detach table plain",
    "attach": "attach table plain",
    "drop": "drop table plain",
    "truncate": "truncate table plain",
    "create": "create table extra (x Int32) engine = Memory",
    "file by its engine": "create table extra engine = File(CSV) as select 1",
    "temporary table": "create temporary table extra (x Int32)",
    "two statements": "select 1; drop table plain",
    "set": "set max_execution_time = 0",
    "settings": "select 1 settings max_execution_time = 0",
    "settings of a subquery": "select * from (select 1 settings readonly = 0)",
    "settings behind a comment": "select 1 /* x */ settings/**/readonly=0",
    "format": "select * from concerts format Native",
    "file written": "select * from concerts into outfile '{folder}/written'",
    "system": "system shutdown",
    "caches": "system drop mark cache",
    "kill": "kill query where 1",
    "grant": "grant all on *.* to reader",
    "use": "use system",
    "show": "show tables",
    "describe": "describe table concerts",
    "explain": "explain select 1",
    "check": "check table plain",
    "URL": "select * from url('http://{address}/x', CSV, 'a String')",
    "URL in quotes": "select * from `url`('http://{address}/x', CSV, 'a String')",
    "URL behind a comment": "select * from url /* x */ ('http://{address}/x', CSV, 'a String')",
    "URL behind a comment in a text": "select '--', x.* from url/* x */('http://{address}/x', CSV, 'a String') as x",
    "URL by an escape": "select * from `\\x75rl`('http://{address}/x', CSV, 'a String')",
    "URL before an invisible blank": "select * from url\u200b('http://{address}/x', CSV, 'a String')",
    "file": "select * from file('secret.txt', CSV, 'a String')",
    "file as a value": "select file('/etc/passwd')",
    "model in a file": "select modelEvaluate('/etc/passwd', 1)",
    "another server": "select * from remote('{address}', music.concerts)",
    "the same server": "select * from remote('127.0.0.1', default.secrets)",
    "server by TLS": "select * from remoteSecure('{address}', music.concerts)",
    "bucket": "select * from s3('http://{address}/x', 'CSV')",
    "MySQL": "select * from mysql('{address}', 'a', 'b', 'c', 'd')",
    "PostgreSQL": "select * from postgresql('{address}', 'a', 'b', 'c', 'd')",
    "ODBC": "select * from odbc('DSN=x', 'y')",
    "JDBC": "select * from jdbc('http://{address}', 'y')",
    "cluster": "select * from cluster('x', default.secrets)",
    "all tables": "select * from merge('default', '.*')",
    "Hadoop": "select * from hdfs('hdfs://{address}/x', 'CSV', 'a String')",
    "program": "select * from executable('touch {folder}/written', CSV, 'a String')",
    "another database": "select * from default.secrets",
    "prose": "Sure! Here is your query.",
}


def opened(hosts, url):
    return ENGINES["sqlalchemy"].open(
        Source(name="m", engine="sqlalchemy", settings={"url": url}, folder=Path()), hosts
    )


@pytest.fixture(params=SCHEMES)
def engine(request, hosts, clickhouse):
    return opened(hosts, clickhouse.url(request.param))


@pytest.fixture(scope="module")
def battery(clickhouse, tmp_path_factory):
    with untouched(tmp_path_factory.mktemp("battery"), clickhouse.dump) as folder_and_address:
        yield folder_and_address


@pytest.mark.parametrize("query", HOSTILE.values(), ids=HOSTILE)
def test_hostile_statements_leave_data_files_and_network_alone(engine, battery, query):
    folder, address = battery

    execution = engine.execute(
        query.replace("{folder}", folder).replace("{address}", address), timeout=SECONDS, max_rows=1000
    )

    assert execution.error.kind in ("unsafe", "invalid"), execution.error
    assert engine.execute("select count(*) from concerts", timeout=SECONDS, max_rows=10).answer.rows == [(3,)]


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


def test_late_query_runs_no_longer_on_the_server(hosts, clickhouse):
    engine = opened(hosts, clickhouse.url())
    engine.execute("select 1", timeout=SECONDS, max_rows=10)

    error = engine.execute(ENDLESS, timeout=LATE, max_rows=10).error

    assert error.kind == "timeout"
    deadline = time.monotonic() + 30
    while clickhouse.running() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert clickhouse.running() == ""
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

    execution = opened(hosts, clickhouse.url()).execute(f"select {', '.join(values)}", timeout=SECONDS, max_rows=9)

    assert execution.error is None, execution.error
    assert execution.answer.rows == [tuple(values.values())]


def test_tables_are_written_as_statements(engine):
    assert "CREATE TABLE concerts (" in engine.ddl(timeout=SECONDS)


@pytest.mark.parametrize(
    ("login", "reason"), [({"password": "mistaken-horse"}, "password"), ({"database": "nowhere"}, "EOFError")]
)
def test_server_that_does_not_let_us_in_is_a_source_error(hosts, clickhouse, login, reason):
    with pytest.raises(SourceError, match=f"^source 'm': .*{reason}") as caught:
        opened(hosts, clickhouse.url(**login)).execute("select 1", timeout=SECONDS, max_rows=1)

    assert "mistaken" not in str(caught.value)
    assert clickhouse.password not in str(caught.value)
