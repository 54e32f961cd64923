"""A database without a recipe as strong as PostgreSQL's: MariaDB, by the URL of MySQL and by its own."""

import datetime
import threading
import time
from decimal import Decimal
from pathlib import Path

import pytest
from servers import untouched

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES

pytest_plugins = ["mariadb"]

LIMIT = 0.4
HOSTILE = {
    "insert": ("insert into plain values (2)", "unsafe"),
    "update": ("update concerts set city = 'x'", "unsafe"),
    "delete behind a CTE": ("with old as (select 1) delete from plain", "unsafe"),
    "replace": ("replace into concerts values (1, 'x', 1)", "unsafe"),
    "truncate": ("truncate plain", "unsafe"),
    "drop": ("drop table plain", "unsafe"),
    "create": ("create temporary table extra (x int)", "unsafe"),
    "second statement": ("select 1; delete from plain", "unsafe"),
    "comment that is run": ("select 1 /*! into outfile '{folder}/written' */", "unsafe"),
    "comment that MariaDB runs": ("select 1 /*M! into outfile '{folder}/written' */", "unsafe"),
    "file written": ("select * from concerts into outfile '{folder}/written'", "unsafe"),
    "file dumped": ("select 'x' into dumpfile '{folder}/written'", "unsafe"),
    "file read": ("select load_file ('/etc/passwd')", "unsafe"),
    "template's comment": ("select {#\n x 'evil' } into outfile '{folder}/written' -- #} 1", "unsafe"),
    "dashes that are not a comment": ("select 1 --1 into/**/outfile '{folder}/written'", "unsafe"),
    "lock behind dashes that are not a comment": ("select * from concerts where 1 --1 for update", "unsafe"),
    "lock behind a comment": ("select 'x' #> '\n from concerts for update #'", "unsafe"),
    "share lock": ("select * from concerts lock in/**/share mode", "unsafe"),
    "variable": ("select 1 into @x", "unsafe"),
    "variable set": ("select @c := 7", "unsafe"),
    "variable's quoted name": ("select @`c`", "unsafe"),
    "variable of the last query": ("select @c", "unsafe"),
    "number kept for the next query": ("select last_insert_id /* x */ (7)", "unsafe"),
    "rows of the last query": ("select found_rows()", "unsafe"),
    "rows that the last query changed": ("select `row_count` ()", "unsafe"),
    "lock": ("select get_lock('x', 1)", "unsafe"),
    "select for update": ("select * from concerts for update", "unsafe"),
    "sequence": ("select nextval(numbers)", "unsafe"),
    "next value": ("select next value for numbers", "unsafe"),
    "function that writes": ("select wipe()", "unsafe"),
    "set": ("set global max_connections = 1", "unsafe"),
    "commit": ("commit", "unsafe"),
    "transaction": ("start transaction read write", "unsafe"),
    "kill": ("kill 1", "unsafe"),
    "handler": ("handler plain open", "unsafe"),
    "do": ("do sleep(9)", "unsafe"),
    "call": ("call mysql.extra()", "unsafe"),
    "show": ("show grants", "unsafe"),
    "what nobody can read": ("select from where", "unsafe"),
    "no such table": ("select * from nowhere", "invalid"),
    "no such database": ("select * from nowhere.concerts", "invalid"),
    "no such column": ("select nowhere from concerts", "invalid"),
    "prose": ("Sure! Here is your query.", "invalid"),
    "sleep": ("select sleep(60)", "timeout"),
    "sleep a row": ("select seq, sleep(0.01) from seq_1_to_99999", "timeout"),
    "benchmark": ("select benchmark(1000000000000, sha2('x', 512))", "timeout"),
    "cartesian join": ("select count(*) from seq_1_to_99999 a, seq_1_to_99999 b", "timeout"),
    "too many rows": ("select a.seq from seq_1_to_9999 a, seq_1_to_9999 b", "too_large"),
}


def opened(hosts, url):
    source = Source(name="m", engine="sqlalchemy", settings={"url": url}, folder=Path())
    return ENGINES["sqlalchemy"].open(source, hosts)


@pytest.fixture(scope="module")
def battery(mariadb, hosts, tmp_path_factory):
    with untouched(tmp_path_factory.mktemp("battery"), mariadb.dump) as (folder, _):
        yield opened(hosts, mariadb.url()), folder


@pytest.mark.parametrize(("query", "kind"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_statements_fail_in_time_and_the_next_query_answers(battery, query, kind):
    engine, folder = battery
    began = time.monotonic()

    limit = LIMIT if kind == "timeout" else 10  # the machine may be busy
    error = engine.execute(query.replace("{folder}", folder), timeout=limit, max_rows=1000).error
    elapsed = time.monotonic() - began
    following = engine.execute("select count(*) from concerts", timeout=5, max_rows=10)

    assert error.kind == kind, error
    assert elapsed < 60  # by itself it ends never, or much later
    assert following.answer.rows == [(3,)]


@pytest.mark.parametrize(
    ("query", "row"),
    [
        ("select 'a@b', '{# x #}', \"@x := 1\", '--1'", ("a@b", "{# x #}", "@x := 1", "--1")),
        ("select @@autocommit, last_insert_id()", (0, 0)),
        ("select 1; -- done", (1,)),
        ("select 1;; /* ; */ ;-- done", (1,)),
        ("select 1 -- done", (1,)),
        ("select 1 # done", (1,)),
    ],
)
def test_what_only_looks_like_a_variable_or_a_template_reads(battery, query, row):
    engine, _ = battery

    assert engine.execute(query, timeout=5, max_rows=10).answer.rows == [row]


def test_variable_is_refused_in_timed_queries_too(battery):
    engine, _ = battery

    error = engine.time("select 1", "select @c := 7", iterations=1, timeout=5).error

    assert error.kind == "unsafe"


@pytest.mark.parametrize(("times", "seconds", "failure"), [(1, 2, None), (2, 60, "rejected")])
def test_query_that_an_administrator_ends_runs_again_once(hosts, mariadb, times, seconds, failure):
    engine = opened(hosts, mariadb.url())
    engine.execute("select 1", timeout=5, max_rows=1)
    processes = "select query_id, id from information_schema.processlist"
    busy = f"{processes} where user = 'owner' and info like 'select sleep({seconds})%'"
    stop = threading.Event()

    def end():
        ended = set()  # a query that was ended may still be listed
        while len(ended) < times and not stop.wait(0.05):
            for query, connection in mariadb.sql(busy):
                if query not in ended:
                    mariadb.sql(f"kill query {connection}")
                    ended.add(query)

    killer = threading.Thread(target=end)
    killer.start()
    execution = engine.execute(f"select sleep({seconds}), count(*) from seq_1_to_9", timeout=50, max_rows=1)
    stop.set()
    killer.join()

    assert (execution.error and execution.error.kind) == failure


def test_query_that_is_stopped_runs_no_longer_on_the_server(battery, mariadb):
    engine, _ = battery

    engine.execute("select sleep(60)", timeout=LIMIT, max_rows=10)

    assert mariadb.sql("select info from information_schema.processlist where info like '%sleep(60)'") == []


@pytest.mark.parametrize("scheme", ["mysql+pymysql", "mariadb+pymysql"])
def test_values_come_through(hosts, mariadb, scheme):
    values = "null, 1.50, 'naïve 🎻', '50 %', x'00ff', date '2026-02-28', timestamp '2026-01-01 10:00:00.25', 1 = 1"
    span = "timediff('36:00:00', '0:0:0'), json_object('a', 1)"

    (row,) = opened(hosts, mariadb.url(scheme)).execute(f"select {values}, {span}", timeout=5, max_rows=9).answer.rows

    moment = datetime.datetime(2026, 1, 1, 10, 0, 0, 250_000)
    expected = (None, Decimal("1.50"), "naïve 🎻", "50 %", b"\x00\xff", datetime.date(2026, 2, 28), moment, 1)
    assert row == (*expected, "P1DT12H", '{"a": 1}')


def test_schema_lists_tables_columns_and_foreign_keys(hosts, mariadb):
    schema = opened(hosts, mariadb.url()).schema(timeout=10)

    assert schema.tables["concerts"] == ("id", "city", "price")
    assert schema.foreign_keys == ((("tickets", "concert"), ("concerts", "id")),)


@pytest.mark.parametrize(
    ("login", "reason"),
    [({"password": "mistaken-horse"}, "Access denied for user 'owner'"), ({"database": "nowhere"}, "nowhere")],
)
def test_server_that_does_not_let_us_in_is_a_source_error(hosts, mariadb, login, reason):
    with pytest.raises(SourceError, match=f"^source 'm': .*{reason}.*check server, user") as caught:
        opened(hosts, mariadb.url(**login)).execute("select 1", timeout=5, max_rows=1)

    assert "mistaken" not in str(caught.value)
    assert mariadb.password not in str(caught.value)


def test_connection_that_the_server_ended_is_made_again(hosts, mariadb):
    engine = opened(hosts, mariadb.url())
    ((number,),) = engine.execute("select connection_id()", timeout=5, max_rows=1).answer.rows
    mariadb.sql(f"kill {number}")

    assert engine.execute("select 1", timeout=5, max_rows=1).answer.rows == [(1,)]
