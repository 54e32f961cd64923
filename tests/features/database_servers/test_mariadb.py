"""A database without a recipe as strong as PostgreSQL's: MariaDB, by the URL of MySQL and by its own."""

import datetime
import threading
from decimal import Decimal

import pytest
from hostile_statements import hostile
from opened_sources import execute, rows_of, source_of
from servers import untouched

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.testing import EngineContract, open_engine

pytest_plugins = ["mariadb"]


@pytest.fixture(scope="module")
def folder(mariadb, tmp_path_factory):
    with untouched(tmp_path_factory.mktemp("battery"), mariadb.dump) as (folder, _):
        yield folder


@pytest.fixture(scope="module")
def engine(mariadb, hosts, folder):
    with open_engine(source_of("sqlalchemy", url=mariadb.url()), hosts) as engine:
        yield engine


class TestMariaDB(EngineContract):
    answers = {
        "select 'a@b' as a, '{# x #}' as b, \"@x := 1\" as c, '--1' as d": (
            ("a", "b", "c", "d"),
            [("a@b", "{# x #}", "@x := 1", "--1")],
        ),
        "select @@autocommit as a, last_insert_id() as a": (("a", "a"), [(0, 0)]),
        **{
            f"select 1 as x{end}": (("x",), [(1,)])
            for end in ("; -- done", ";; /* ; */ ;-- done", " -- done", " # done")
        },
    }
    failures = hostile("mariadb")
    rows = "select seq from seq_1_to_{count}"
    state = "select count(*), (select count(*) from tickets), (select count(*) from plain) from concerts"
    schema = {"concerts": ("id", "city", "price")}
    ddl = ("CREATE TABLE tickets (", "concert INTEGER(11),", "FOREIGN KEY (concert) REFERENCES concerts (id)")
    late_seconds = 0.4

    @pytest.fixture(autouse=True)
    def place(self, folder):
        self.folder = folder

    def filled(self, query):
        return query.replace("{folder}", self.folder)

    def test_a_late_query_runs_no_longer_on_the_server(self, engine, mariadb):
        engine.execute("select sleep(60)", timeout=0.4, max_rows=10)

        assert mariadb.sql("select info from information_schema.processlist where info like '%sleep(60)'") == []


@pytest.mark.parametrize(("times", "seconds", "failure"), [(1, 2, None), (2, 60, "rejected")])
def test_a_query_that_an_administrator_ends_runs_again_once(engine, mariadb, times, seconds, failure):
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


@pytest.mark.parametrize("scheme", ["mysql+pymysql", "mariadb+pymysql"])
def test_values_come_through(hosts, mariadb, scheme):
    values = "null, 1.50, 'naïve 🎻', '50 %', x'00ff', date '2026-02-28', timestamp '2026-01-01 10:00:00.25', 1 = 1"
    span = "timediff('36:00:00', '0:0:0'), json_object('a', 1)"

    (row,) = rows_of(hosts, source_of("sqlalchemy", url=mariadb.url(scheme)), f"select {values}, {span}")

    moment = datetime.datetime(2026, 1, 1, 10, 0, 0, 250_000)
    expected = (None, Decimal("1.50"), "naïve 🎻", "50 %", b"\x00\xff", datetime.date(2026, 2, 28), moment, 1)
    assert row == (*expected, "P1DT12H", '{"a": 1}')


@pytest.mark.parametrize(
    ("login", "reason"),
    [({"password": "mistaken-horse"}, "Access denied for user 'owner'"), ({"database": "nowhere"}, "nowhere")],
)
def test_a_server_that_does_not_let_us_in_is_a_source_error_without_secrets(hosts, mariadb, login, reason):
    with pytest.raises(SourceError, match=f"^source 'music': .*{reason}.*check server, user") as caught:
        execute(hosts, source_of("sqlalchemy", url=mariadb.url(**login)), "select 1")

    assert "mistaken" not in str(caught.value)
    assert mariadb.password not in str(caught.value)


def test_a_connection_that_the_server_ended_is_made_again(engine, mariadb):
    ((number,),) = engine.execute("select connection_id()", timeout=5, max_rows=1).answer.rows
    mariadb.sql(f"kill {number}")

    assert engine.execute("select 1", timeout=5, max_rows=1).answer.rows == [(1,)]
