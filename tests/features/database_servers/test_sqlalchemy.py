"""Databases by their URLs: what comes back, whose fault it is that nothing does."""

import datetime
import os
import re
import signal
import socket
import sqlite3
import threading
import time
from contextlib import closing, suppress
from decimal import Decimal
from pathlib import Path

import pytest
from servers import HOST, free_port
from suites import load, write
from waiting import wait_for

from pytest_queryeval import evaluate
from pytest_queryeval.core.errors import SettingError, SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.core.table import FrozenMapping
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy
from pytest_queryeval.sandbox.host import RETRY_SECONDS, Host, Hosts

pytest.importorskip("sqlalchemy")
pytest.importorskip("sqlglot")
from pytest_queryeval.engines.readonly import UNREADABLE, refusal

pytest_plugins = ["postgres"]

UTC = datetime.UTC
CEILING = 20  # seconds: ten times what a query and the question whether anybody answers take at a limit of 1
VALUES = {
    "null": ("null", None),
    "boolean": ("true", True),
    "integer": ("9223372036854775807", 2**63 - 1),
    "numeric": ("1.50::numeric", Decimal("1.50")),
    "long numeric": ("123456789012345678901234567890.5", Decimal("123456789012345678901234567890.5")),
    "infinite numeric": ("'-infinity'::numeric", Decimal("-Infinity")),
    "infinite float": ("'infinity'::float8", float("inf")),
    "text": ("'naïve 🎻'", "naïve 🎻"),
    "per cent": ("'50 %, %s and %(x)s'", "50 %, %s and %(x)s"),
    "padded text": ("'a'::char(3)", "a"),
    "padded texts in an array": ("array['a', ' b ']::char(3)[]", ("a", " b")),
    "bytes": (r"'\x00ff'::bytea", b"\x00\xff"),
    "date": ("date '2026-02-28'", datetime.date(2026, 2, 28)),
    "infinite date": ("'infinity'::date", "infinity"),
    "date before our era": ("'0044-03-15 BC'::date", "0044-03-15 BC"),
    "date far ahead": ("'12026-01-01'::date", "12026-01-01"),
    "time": ("time '10:00:01.5'", datetime.time(10, 0, 1, 500_000)),
    "end of the day": ("time '24:00'", "24:00:00"),
    "time with a zone": ("timetz '10:00+02'", datetime.time(10, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))),
    "timestamp": ("timestamp '2026-01-01 10:00:00.25'", datetime.datetime(2026, 1, 1, 10, 0, 0, 250_000)),
    "infinite timestamp": ("'infinity'::timestamp", "infinity"),
    "timestamp with a zone": ("timestamptz '2026-01-01 10:00+02'", datetime.datetime(2026, 1, 1, 8, tzinfo=UTC)),
    "infinite timestamp with a zone": ("'-infinity'::timestamptz", "-infinity"),
    "interval": ("interval '1 day 2 hours 0.5 s'", "P1DT2H0.5S"),
    "interval of hours": ("interval '36 hours'", "P1DT12H"),
    "interval of months": ("interval '1 year 2 months 3 days 04:05:06'", "P423DT4H5M6S"),
    "interval of a year": ("interval '12 months'", "P360D"),
    "negative interval": ("interval '-36 hours'", "-P1DT12H"),
    "interval of negative months": ("interval '-1 month'", "-P30D"),
    "mixed interval": ("interval '1 month -1 day'", "P29D"),
    "interval too long for Python": ("interval '100000000 years'", "100000000 years"),
    "no interval": ("interval '0'", "PT0S"),
    "array": ("array[1, 2, null]", (1, 2, None)),
    "array of texts": ("array['a', 'ü']", ("a", "ü")),
    "nested array": ("array[array[1.5, 2], array[3, 4]]", ((Decimal("1.5"), Decimal(2)), (Decimal(3), Decimal(4)))),
    "array of dates": ("array['2026-01-01', 'infinity']::date[]", (datetime.date(2026, 1, 1), "infinity")),
    "json": ("""'{"b": 1.50, "a": [null, "ü"]}'::json""", FrozenMapping({"a": (None, "ü"), "b": Decimal("1.50")})),
    "jsonb": ("""'{"b": 1, "a": 2}'::jsonb""", FrozenMapping({"a": 2, "b": 1})),
    "numbers in jsonb": (
        """'{"b": [1.0, 1.10, 1e2, -0.0], "a": 12345678901234567890.12345678901234567890}'::jsonb""",
        FrozenMapping(
            {
                "a": Decimal("12345678901234567890.12345678901234567890"),
                "b": (Decimal("1.0"), Decimal("1.10"), Decimal("1E+2"), Decimal("0.0")),
            }
        ),
    ),
    "large exponent in json": ("""'[1e99999, 1.5]'::json""", (Decimal("1E+99999"), Decimal("1.5"))),
    "json text": ("""'"s"'::jsonb""", '"s"'),
    "json null": ("'null'::jsonb", "null"),
    "uuid": ("'6ba7b810-9dad-11d1-80b4-00c04fd430c8'::uuid", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
    "address": ("'10.0.0.1'::inet", "10.0.0.1"),
    "network": ("'10.0.0.0/8'::cidr", "10.0.0.0/8"),
    "range": ("int4range(1, 5)", "[1,5)"),
    "open range": ("daterange('2026-01-01', null)", "[2026-01-01,)"),
    "record": ("row(1, 'a')", "(1,a)"),
    "enum": ("'loud'::volume", "loud"),
    "money": ("12.5::money", "$12.50"),
    "bits": ("b'101'", "101"),
    "point": ("point(1, 2)", "(1,2)"),
    "name of a table": ("'concerts'::regclass", "concerts"),
}


def opened(hosts, url, folder=Path()):
    return ENGINES["sqlalchemy"].open(
        Source(name="m", engine="sqlalchemy", settings={"url": url}, folder=folder), hosts
    )


@pytest.fixture
def run(hosts, cluster):
    def execute(query, timeout=5, max_rows=1000, user="owner"):
        return opened(hosts, cluster.url(user)).execute(query, timeout=timeout, max_rows=max_rows)

    return execute


@pytest.mark.parametrize(
    ("gold", "predicted", "equal"),
    [
        ("'ab'::char(5)", "'ab'::text", True),
        ("'ab'::char(5)", "'ab'::char(3)", True),
        ("'ab '::text", "'ab'::text", False),
        ("' ab'::char(5)", "'ab'::char(5)", False),
        ("'1'::jsonb", "'1.0'::jsonb", True),
        ("""'{"a": [1.50], "b": 1}'::jsonb""", """'{"b": 1.0, "a": [1.5]}'::jsonb""", True),
        ("'0.1'::jsonb", "'0.1000000000000000055'::jsonb", False),
        ("interval '1 month'", "interval '30 days'", True),
        ("interval '24 hours'", "interval '1 day'", True),
        ("interval '1 year'", "interval '365 days'", False),
        ("interval '1 month -30 days'", "interval '0'", True),
        ("(select sum(x) from (values (1000001::bigint)) t (x))", "1000000", False),
        ("(select sum(x) from (values (1000001::bigint)) t (x))", "1000001", True),
        ("1234567.89::numeric(12, 2)", "1234568.89::numeric(12, 2)", False),
        ("1.10::numeric", "1.1::numeric", True),
    ],
)
def test_values_are_equal_where_postgresql_says_so(run, gold, predicted, equal):
    assert run(f"select {gold} = {predicted}").answer.rows == [(equal,)]

    golds, predicted_rows = (run(f"select {value}").answer for value in (gold, predicted))

    assert execution_accuracy(golds, predicted_rows) == equal


def test_select_gives_columns_and_rows_as_tuples(run):
    execution = run("select id, city, price from concerts order by id")

    assert execution.error is None
    assert execution.engine == "postgresql"
    assert execution.seconds > 0
    assert execution.answer.columns == ("id", "city", "price")
    assert execution.answer.rows == [(1, "Graz", Decimal("12.50")), (2, "Wien", None), (3, "Linz", Decimal("8.00"))]


def test_columns_are_known_without_rows(run):
    answer = run("select id, city as town from concerts where false").answer

    assert (answer.columns, answer.rows) == (("id", "town"), [])


@pytest.fixture(scope="module")
def volume(cluster):
    cluster.sql("create type volume as enum ('soft', 'loud')", user="owner")
    yield
    cluster.sql("drop type volume", user="owner")


@pytest.mark.usefixtures("volume")
@pytest.mark.parametrize(("expression", "value"), VALUES.values(), ids=VALUES)
def test_values_come_through(run, expression, value):
    (row,) = run(f"select {expression}").answer.rows

    assert row == (value,)
    assert type(row[0]) is type(value)


def test_not_a_number_comes_through(run):
    ((single, exact),) = run("select 'NaN'::float8, 'NaN'::numeric").answer.rows

    assert single != single
    assert exact.is_nan()


@pytest.mark.parametrize(
    "end", [";", ";;", " ; -- done", "; /* done */", " -- done;", "\n;\n", ";;; -- done", ";/* ; */;-- done\n;"]
)
def test_semicolons_and_comments_may_follow(run, end):
    assert run(f"select 1{end}").answer.rows == [(1,)]


@pytest.mark.parametrize(
    "query",
    [
        "with c as (select 1) select * from c",
        "values (1)",
        "(select 1)",
        "-- how many?\nselect 1",
        "/* /* */ delete */ select 1",
        "select count(*) from cities where city = 'Graz' and now() > '2000-01-01' and random() < 2",
    ],
)
def test_whatever_reads_is_allowed(run, query):
    assert run(query).answer.rows == [(1,)]


def test_columns_and_texts_may_be_called_like_commands(run):
    assert run("""select 'delete from x' as "update", 1 as "set", 2 as system""").answer.rows == [
        ("delete from x", 1, 2)
    ]


def test_a_role_without_the_right_to_a_table_is_refused(run, cluster):
    cluster.sql("create table private (x int)", user="owner")
    execution = run("select * from private", user="reader")
    cluster.sql("drop table private", user="owner")

    assert (execution.error.kind, execution.error.message) == ("unsafe", "permission denied for table private")


def test_messages_tell_what_the_server_said_without_control_characters(run):
    error = run('select ctiy from concerts where "\x1b[2J" = 1').error

    assert error.message == 'column "ctiy" does not exist. Perhaps you meant to reference the column "concerts.city".'
    assert run('select "\x1b[2J"').error.message.isprintable()


def test_max_rows_is_the_most_that_is_allowed(run):
    numbers = "select * from generate_series(1, 300)"

    assert len(run(numbers, max_rows=300).answer.rows) == 300
    assert run(numbers, max_rows=299).error.message == "more than 299 rows: raise `max_rows` if there may be more"


def test_many_rows_come_in_order(run):
    rows = run("select i, 'row ' || i from generate_series(1, 100000) i", max_rows=100_000, timeout=30).answer.rows

    assert rows == [(number, f"row {number}") for number in range(1, 100_001)]


def test_rows_of_another_query_are_not_mixed_in_after_too_many(run):
    assert run("select * from generate_series(1, 100000)", max_rows=10).error.kind == "too_large"

    assert run("select 'fresh'").answer.rows == [("fresh",)]


def test_a_lock_that_another_holds_is_a_time_out(run, cluster):
    with cluster.connect("owner") as connection:
        connection.execute("begin; lock table tickets in access exclusive mode")

        error = run("select * from tickets", timeout=0.5).error

    assert (error.kind, error.message) == ("timeout", "no answer within 0.5 s")
    assert run("select count(*) from tickets").answer.rows == [(2,)]


def test_what_others_commit_is_seen_by_the_next_query(run, cluster):
    before = run("select count(*) from concerts").answer.rows
    cluster.sql("insert into concerts values (4, 'Bonn', 1)")
    after = run("select count(*) from concerts").answer.rows
    cluster.sql("delete from concerts where id = 4")

    assert (before, after) == ([(3,)], [(4,)])


def test_settings_of_the_session_hold(hosts, cluster):
    engine = opened(hosts, f"{cluster.url()}?options=-ctimezone%3DAsia/Tokyo")

    ((moment, text),) = engine.execute("select now(), (interval '1 day')::text", timeout=5, max_rows=1).answer.rows

    assert moment.utcoffset() == datetime.timedelta(hours=9)
    assert text == "1 day"


@pytest.fixture(scope="module")
def encoded(cluster):
    """Databases that keep their texts in other encodings than UTF-8."""
    for encoding in ("LATIN1", "SQL_ASCII"):
        name = encoding.lower()
        create = f"create database {name} encoding '{encoding}' lc_collate 'C' lc_ctype 'C' template template0"
        cluster.sql(create, database="postgres")
    cluster.sql("create table t as select convert_from('\\xe9', 'LATIN1') as x", database="latin1")
    cluster.sql("create table t as select convert_from('\\x61e9', 'SQL_ASCII') as x", database="sql_ascii")
    cluster.sql("grant select on t to owner", database="latin1")
    cluster.sql("grant select on t to owner", database="sql_ascii")


@pytest.mark.usefixtures("encoded")
@pytest.mark.parametrize("asked", ["", "?client_encoding=LATIN1", "?client_encoding=SQL_ASCII"])
def test_texts_come_through_from_a_database_in_another_encoding(hosts, cluster, asked):
    engine = opened(hosts, f"{cluster.url(database='latin1')}{asked}")

    (row,) = engine.execute("select x, x = 'é', 'ß', array[x] from t", timeout=5, max_rows=9).answer.rows

    assert row == ("é", True, "ß", ("é",))


@pytest.mark.usefixtures("encoded")
def test_bytes_that_are_no_text_are_spelled_out(hosts, cluster):
    engine = opened(hosts, cluster.url(database="sql_ascii"))

    (row,) = engine.execute("select x as ü, x::name, array[x], 'é', null from t", timeout=5, max_rows=9).answer.rows

    assert row == (r"a\xe9", r"a\xe9", (r"a\xe9",), "é", None)


def test_variables_of_the_environment_and_settings_of_a_role_change_no_values(cluster, monkeypatch):
    values = "select interval '1 day 2 hours', date '2026-02-28', timestamptz '2026-01-01 10:00+02', 'é'"
    for name, value in {
        "PGOPTIONS": "-c search_path=nowhere -c intervalstyle=iso_8601",
        "PGCLIENTENCODING": "LATIN1",
        "PGDATESTYLE": "German",
        "PGTZ": "Asia/Tokyo",
    }.items():
        monkeypatch.setenv(name, value)
    cluster.sql("alter role reader set datestyle = 'German'; alter role reader set intervalstyle = 'sql_standard'")

    with Hosts() as hosts_of_test:
        engine = opened(hosts_of_test, cluster.url("reader"))
        ((span, day, moment, text),) = engine.execute(values, timeout=5, max_rows=1).answer.rows
        table = engine.execute("select count(*) from concerts", timeout=5, max_rows=1).answer.rows
    cluster.sql("alter role reader reset all")

    assert (span, day) == ("P1DT2H", datetime.date(2026, 2, 28))
    assert moment == datetime.datetime(2026, 1, 1, 8, tzinfo=UTC)
    assert moment.utcoffset() != datetime.timedelta(hours=9)
    assert (text, table) == ("é", [(3,)])


def test_schema_lists_tables_columns_and_foreign_keys(hosts, cluster):
    schema = opened(hosts, cluster.url()).schema(timeout=10)

    assert list(schema.tables) == sorted(schema.tables)
    assert schema.tables["concerts"] == ("id", "city", "price")
    assert schema.tables["cities"] == ("city",)
    assert schema.foreign_keys == ((("tickets", "concert"), ("concerts", "id")),)


def test_two_queries_are_timed_in_turn(hosts, cluster):
    timed = opened(hosts, cluster.url()).time("select 1", "select pg_sleep(0.05)", iterations=3, timeout=5)

    assert len(timed.answer.rows) == 3
    assert all(gold < predicted for gold, predicted in timed.answer.rows)


def test_connection_is_kept_for_the_next_query(run):
    pids = {run("select pg_backend_pid()").answer.rows[0] for _ in range(5)}

    assert len(pids) == 1


def test_connection_that_the_server_ended_is_made_again(run, cluster):
    ((pid,),) = run("select pg_backend_pid()").answer.rows
    cluster.sql(f"select pg_terminate_backend({pid}, 5000)")

    assert run("select 1").answer.rows == [(1,)]


def crash(cluster, pid):
    os.kill(pid, signal.SIGSEGV)


def function_of(name):
    return lambda cluster, pid: cluster.sql(f"select {name}({pid})")


TERMINATE, CANCEL = function_of("pg_terminate_backend"), function_of("pg_cancel_backend")


@pytest.fixture
def ended(cluster):
    """Ends queries that fetch, so many times; gives a list with the process and the start of each."""
    import psycopg

    stop = threading.Event()
    threads = []

    def start(end_query, times):
        busy = "application_name = 'pytest-queryeval' and state = 'active' and query like 'FETCH%'"
        ends = []

        def end():
            while len(ends) < times and not stop.wait(0.05):
                with suppress(psycopg.Error):  # the server may be starting again
                    for query in cluster.sql(f"select pid, query_start from pg_stat_activity where {busy}"):
                        if query not in ends:  # a query is listed until the server has seen its end
                            end_query(cluster, query[0])
                            ends.append(query)

        threads.append(threading.Thread(target=end))
        threads[-1].start()
        return ends

    yield start
    stop.set()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("end_query", [TERMINATE, CANCEL])
def test_query_that_is_ended_once_runs_again(run, ended, end_query):
    ends = ended(end_query, 1)

    assert run("select 7 from pg_sleep(1)").answer.rows == [(7,)]
    assert len(ends) == 1


@pytest.mark.parametrize(
    ("end_query", "reason"),
    [
        (TERMINATE, "terminating connection"),
        (CANCEL, "the query was ended from elsewhere: .*user request"),
    ],
)
def test_query_that_ends_each_time_on_a_server_that_answers_is_a_failed_one(run, ended, end_query, reason):
    ended(end_query, 2)

    error = run("select pg_sleep(5)", timeout=9).error

    assert error.kind == "rejected"
    assert re.search(reason, error.message)
    assert run("select 1").answer.rows == [(1,)]


def test_query_with_which_a_server_goes_down_is_not_sent_to_it_again(run, ended):
    ends = ended(crash, 2)

    error = run("select pg_sleep(5)", timeout=9).error

    assert error.kind == "rejected"
    assert "server closed the connection unexpectedly" in error.message
    assert len(ends) == 1
    assert run("select 1").answer.rows == [(1,)]


def test_child_that_is_killed_leaves_no_query_running(cluster):
    with Hosts() as hosts_of_test:
        engine = opened(hosts_of_test, cluster.url())
        engine.execute("select 1", timeout=5, max_rows=1)
        thread = threading.Thread(target=lambda: engine.execute("select pg_sleep(30)", timeout=60, max_rows=1))
        thread.start()
        time.sleep(RETRY_SECONDS + 0.2)  # a child that dies sooner has a successor that is sent the query again
        began = cluster.backends()
        os.kill(hosts_of_test.shared(Host("postgresql", Path())).pid, signal.SIGKILL)
        thread.join(30)

    assert began == 1
    wait_for(lambda: cluster.backends() == 0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda cluster: cluster.url(database="nowhere"), 'database "nowhere" does not exist'),
        (lambda cluster: cluster.url("nobody"), 'role "nobody" does not exist'),
        (lambda cluster: cluster.url("guarded", password="wrong"), 'authentication failed for user "guarded"'),
        (lambda cluster: cluster.url("guarded"), "no password supplied"),
        (lambda cluster: f"postgresql://owner@{HOST}:{free_port()}/music", "refused"),
        (
            lambda cluster: "postgresql://owner@no-such-host.invalid/music",
            "(?:no-such-host|Name or service|name resolution)",
        ),
        (lambda cluster: f"{cluster.url()}?sslmode=require", "SSL"),
        (lambda cluster: f"{cluster.url()}?nonsense=1", "nonsense"),
    ],
)
def test_server_that_does_not_let_us_in_is_a_source_error(hosts, cluster, change, reason):
    with pytest.raises(SourceError, match=rf"^source 'm': .*{reason}.*check server, user"):
        opened(hosts, change(cluster)).execute("select 1", timeout=5, max_rows=1)


def test_password_of_any_characters_lets_us_in(hosts, cluster):
    engine = opened(hosts, cluster.url("guarded", password=cluster.spelled))

    assert engine.execute("select current_user", timeout=5, max_rows=1).answer.rows == [("guarded",)]


@pytest.mark.usefixtures("impatient")
def test_server_that_never_answers_is_a_source_error_in_time(cluster):
    with Hosts() as hosts_of_test, socket.create_server((HOST, 0)) as silent:
        engine = opened(hosts_of_test, f"postgresql://owner@{HOST}:{silent.getsockname()[1]}/music")
        began = time.monotonic()

        with pytest.raises(SourceError, match=r"no answer within 1 s; nor does it answer SELECT 1"):
            engine.execute("select 1", timeout=1, max_rows=1)

        assert time.monotonic() - began < CEILING


def test_short_scheme_and_driver_mean_the_same_source(hosts, cluster):
    for scheme in ("postgres", "postgresql+psycopg", "POSTGRESQL"):
        url = cluster.url().replace("postgresql", scheme, 1)
        assert opened(hosts, url).execute("select 1", timeout=5, max_rows=1).answer.rows == [(1,)]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "needs a url"),
        ({"url": 7}, "'url' is not a URL such as postgresql://"),
        ({"url": "music"}, "'url' is not a URL such as postgresql://"),
        ({"url": "postgresql://u:se@cret@host/db"}, "in a password, @ is %40"),
        ({"url": "postgresql://host:port/db"}, "'url' is not a URL such as postgresql://"),
        ({"url": "postgresql+psycopg2://host/db"}, r"write postgresql\+psycopg://"),
        ({"url": "postgresql+asyncpg://host/db"}, r"write postgresql\+psycopg://"),
        ({"url": "postgresq://u:se%40cret@host/db"}, "unknown scheme 'postgresq://': did you mean 'postgresql'"),
        ({"url": "nothing+pymysql://host/db"}, "unknown scheme 'nothing://': install"),
        ({"url": "htp://host/sparql"}, "unknown scheme 'htp://': did you mean 'http'"),
        ({"url": "mysql+nodriver://host/db"}, "unknown driver 'nodriver' for 'mysql://': choose from .*pymysql"),
        ({"url": "mysql+pymsql://host/db"}, "unknown driver 'pymsql' for 'mysql://': did you mean 'pymysql'"),
        ({"url": "postgresql://host/db", "ulr": 1}, "unknown setting 'ulr': did you mean 'url'"),
    ],
)
def test_wrong_settings_are_told_without_the_url(settings, problem):
    with pytest.raises(SettingError, match=problem) as caught:
        ENGINES["sqlalchemy"].check(settings)

    assert "cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "package", "install"),
    [
        ("trino://user@host/catalog", "trino", "trino[sqlalchemy]"),
        ("snowflake://user@account/db", "snowflake.sqlalchemy", "pytest-queryeval[snowflake]"),
        ("snowflake://user@account/db", "sqlalchemy", "pytest-queryeval[snowflake]"),
        ("trino://user@host/catalog", "sqlalchemy", "pytest-queryeval[sqlalchemy]"),
        ("bigquery://project", "sqlalchemy_bigquery", "sqlalchemy-bigquery"),
        ("mssql+pyodbc://host/db", "pyodbc", "pyodbc"),
        ("mysql+mysqldb://host/db", "MySQLdb", "mysqlclient"),
        ("denodo+flightsql://host/db", "denodo", "denodo-sqlalchemy"),
    ],
)
def test_driver_that_is_not_installed_is_named_with_what_installs_it(monkeypatch, url, package, install):
    monkeypatch.setattr(
        "pytest_queryeval.features.database_servers.engine.find_spec", lambda name: None if name == package else name
    )

    with pytest.raises(SettingError) as caught:
        ENGINES["sqlalchemy"].check({"url": url})

    assert f"needs the package '{package}', which is not installed: pip install '{install}'" in str(caught.value)


@pytest.mark.parametrize("missing", ["sqlalchemy", "psycopg"])
def test_missing_extra_is_named(monkeypatch, missing):
    monkeypatch.setattr(
        "pytest_queryeval.features.database_servers.engine.find_spec", lambda name: None if name == missing else name
    )

    with pytest.raises(SettingError, match=r"pip install 'pytest-queryeval\[postgres\]'"):
        ENGINES["sqlalchemy"].check({"url": "postgresql://host/db"})
    ENGINES["sqlalchemy"].check({"url": "sqlite:///shop.db"})  # a file, which is read without SQLAlchemy


@pytest.mark.parametrize(
    ("url", "dialect"),
    [
        ("postgresql+psycopg://h/d", "postgres"),
        ("mariadb+pymysql://h/d", "mysql"),
        ("mssql+pyodbc://h/d", "tsql"),
        ("sqlite:///a.db", "sqlite"),
        ("trino://h/c", "trino"),
        ("awsathena+rest://h/d", ""),
    ],
)
def test_dialect_of_a_source_is_told_by_its_scheme(url, dialect):
    assert ENGINES["sqlalchemy"].dialect({"url": url}) == dialect


@pytest.fixture
def sqlite(hosts, tmp_path):
    with closing(sqlite3.connect(tmp_path / "music.db")) as connection:
        connection.executescript("create table concerts (id integer primary key, city text);")
        connection.executescript("create table tickets (concert int references concerts (id));")
        connection.executescript("insert into concerts values (1, 'Graz'), (2, '50 %')")
    return lambda url="sqlite:///music.db": opened(hosts, url, tmp_path)


def test_sqlite_file_is_relative_to_the_suite(sqlite):
    answer = sqlite().execute("select id, city from concerts where city like '%\\%' escape '\\'", timeout=5, max_rows=9)

    assert answer.engine == "sqlalchemy"
    assert (answer.answer.columns, answer.answer.rows) == (("id", "city"), [(2, "50 %")])
    assert sqlite().schema(timeout=5).foreign_keys == ((("tickets", "concert"), ("concerts", "id")),)


def test_comment_may_follow_the_semicolon_on_other_databases(sqlite):
    answer = sqlite().execute("select '{# x', '/* /*'; -- done", timeout=5, max_rows=9).answer

    assert answer.rows == [("{# x", "/* /*")]


@pytest.mark.parametrize("dialect", ["", "postgres", "redshift"])
@pytest.mark.parametrize("query", ['select U&"pg\\005fsleep"(1)', "select 1 {# ; delete from t #}"])
def test_what_hides_its_meaning_from_the_reader_is_refused(query, dialect):
    assert refusal(query, dialect).kind == "unsafe"


@pytest.mark.parametrize("dialect", ["", "duckdb", "mysql", "postgres", "sqlite"])
def test_comments_end_where_the_database_ends_them(dialect):
    assert refusal("/* /* */ select */ create table t (x int)", dialect).kind == "unsafe"
    assert (refusal("/* /* */ delete */ select 1", dialect) is None) == (dialect == "duckdb")


def test_file_that_a_template_hides_from_the_reader_is_refused():
    assert refusal("select {#\n x 'evil' } into outfile '/dir/file' -- #} 1", "mysql").kind == "unsafe"
    assert refusal("select {#\n x 'evil' } -- #} 1", "mysql").kind == "unsafe"


def test_only_what_cannot_be_read_is_called_so():
    assert UNREADABLE in refusal("select ( from", "postgres").message
    assert UNREADABLE not in refusal("select 1 {# x #}", "postgres").message


def test_missing_sqlite_file_is_a_source_error_and_is_not_made(sqlite, tmp_path):
    with pytest.raises(SourceError, match=r"gone\.db: no such file"):
        sqlite("sqlite:///gone.db").execute("select 1", timeout=5, max_rows=9)

    assert not (tmp_path / "gone.db").exists()


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("delete from concerts", "unsafe"),
        ("with old as (select 1) delete from concerts", "unsafe"),
        ("attach 'x.db' as x", "unsafe"),
        ("pragma query_only = off", "unsafe"),
        ("vacuum into 'x.db'", "unsafe"),
        ("select 1; select 2", "unsafe"),
        ("select 1 {# ; delete from concerts #}", "unsafe"),
        ("select {{ 1 }}", "unsafe"),
        ("select /* /* */ 1; delete from concerts -- */ 1 */", "unsafe"),
        ("select load_extension /* x */ ('x')", "unsafe"),
        ("select ( from", "unsafe"),
        ("selec 1", "invalid"),
        ("select * from nowhere", "invalid"),
        ("select " + "(" * 30_000 + "1" + ")" * 30_000, "invalid"),
        ("-- nothing", "invalid"),
        ("select :name", "invalid"),
        ("with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n", "timeout"),
        ("with recursive n(i) as (select 1 union all select i + 1 from n) select i from n", "too_large"),
        ("select printf('%.*c', 1e9, 'x')", "timeout"),
    ],
)
def test_hostile_statements_fail_in_time_on_other_databases(sqlite, tmp_path, query, kind):
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    began = time.monotonic()

    error = sqlite().execute(query, timeout=1, max_rows=1000).error

    assert error.kind == kind, error
    assert time.monotonic() - began < CEILING
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_duckdb_file_is_read_without_access_to_others(hosts, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("duckdb_engine")
    with duckdb.connect(str(tmp_path / "music.duckdb")) as connection:
        connection.execute("create table t as select 1 as x")
    (tmp_path / "other.csv").write_text("a\n1\n")
    engine = opened(hosts, "duckdb:///music.duckdb", tmp_path)

    def outcome(query):
        execution = engine.execute(query, timeout=5, max_rows=10)
        return execution.answer.rows if execution.answer else execution.error.kind

    assert outcome("select x from t") == [(1,)]
    assert outcome("from t") == [(1,)]
    assert outcome(f"select * from '{tmp_path}/other.csv'") == "invalid"
    assert outcome(f"select * from read_csv('{tmp_path}/other.csv')") == "invalid"
    assert outcome("set enable_external_access = true") == "unsafe"
    assert outcome("insert into t values (2)") == "unsafe"
    assert outcome('select "setseed" (0.5)') == "unsafe"
    assert outcome("from query('select set' || 'seed(0.5)')") == "unsafe"
    assert outcome("select {'a': {'b': x}} is null from t") == [(False,)]
    assert outcome("select $$a; -- $$") == [("a; -- ",)]
    assert outcome("select $tag$a; $$ -- $tag$ ; ") == [("a; $$ -- ",)]


@pytest.mark.feature("duckdb")
def test_a_gold_of_postgres_is_compared_with_its_translation_for_another_engine(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("create table concerts (city text, price float8); insert into concerts values ('Wien', null);", "new.sql")
    (case,) = load(
        f"kind: sql\nsource: {{duckdb: {{script: new.sql}}}}\ngold_source: {cluster.url()}\n"
        "cases:\n  - {id: a, gold: 'SELECT city FROM concerts ORDER BY price DESC', predicted: {translate: gold}}\n"
    )
    (report,) = evaluate([case])["cases"]

    assert report["predicted"]["query"] == "SELECT city FROM concerts ORDER BY price DESC NULLS FIRST"
    assert [row[0] for row in report["gold"]["sample"]] == ["Wien", "Graz", "Linz"]
    assert report["difference"]["summary"] == "missing 2 of 3 rows"
    assert report["cause"] is None
