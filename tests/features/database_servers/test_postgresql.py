"""PostgreSQL: the contract of engines as the roles that may do the most, values, sessions and encodings."""

import datetime
from decimal import Decimal

import pytest
from hostile_statements import hostile, statements
from opened_sources import execute, rows_of, source_of
from servers import HOST, free_port
from suites import load, write
from waiting import wait_for

from pytest_queryeval import METRICS, evaluate
from pytest_queryeval.core.table import FrozenMapping
from pytest_queryeval.testing import EngineContract, open_engine

pytest.importorskip("sqlalchemy")
pytest_plugins = ["postgres"]

UTC = datetime.UTC
VALUES = {
    "null": None,
    "true": True,
    "9223372036854775807": 2**63 - 1,
    "1.50::numeric": Decimal("1.50"),
    "123456789012345678901234567890.5": Decimal("123456789012345678901234567890.5"),
    "'-infinity'::numeric": Decimal("-Infinity"),
    "'infinity'::float8": float("inf"),
    "'naïve 🎻'": "naïve 🎻",
    "'50 %, %s and %(x)s'": "50 %, %s and %(x)s",
    "'a'::char(3)": "a",
    "array['a', ' b ']::char(3)[]": ("a", " b"),
    r"'\x00ff'::bytea": b"\x00\xff",
    "date '2026-02-28'": datetime.date(2026, 2, 28),
    "'infinity'::date": "infinity",
    "'0044-03-15 BC'::date": "0044-03-15 BC",
    "'12026-01-01'::date": "12026-01-01",
    "time '10:00:01.5'": datetime.time(10, 0, 1, 500_000),
    "time '24:00'": "24:00:00",
    "timetz '10:00+02'": datetime.time(10, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
    "timestamp '2026-01-01 10:00:00.25'": datetime.datetime(2026, 1, 1, 10, 0, 0, 250_000),
    "'infinity'::timestamp": "infinity",
    "timestamptz '2026-01-01 10:00+02'": datetime.datetime(2026, 1, 1, 8, tzinfo=UTC),
    "'-infinity'::timestamptz": "-infinity",
    "interval '1 day 2 hours 0.5 s'": "P1DT2H0.5S",
    "interval '36 hours'": "P1DT12H",
    "interval '1 year 2 months 3 days 04:05:06'": "P423DT4H5M6S",
    "interval '12 months'": "P360D",
    "interval '-36 hours'": "-P1DT12H",
    "interval '-1 month'": "-P30D",
    "interval '1 month -1 day'": "P29D",
    "interval '100000000 years'": "100000000 years",
    "interval '0'": "PT0S",
    "array[1, 2, null]": (1, 2, None),
    "array['a', 'ü']": ("a", "ü"),
    "array[array[1.5, 2], array[3, 4]]": ((Decimal("1.5"), Decimal(2)), (Decimal(3), Decimal(4))),
    "array['2026-01-01', 'infinity']::date[]": (datetime.date(2026, 1, 1), "infinity"),
    """'{"b": 1.50, "a": [null, "ü"]}'::json""": FrozenMapping({"a": (None, "ü"), "b": Decimal("1.50")}),
    """'{"b": 1, "a": 2}'::jsonb""": FrozenMapping({"a": 2, "b": 1}),
    "'[1.0, 1.10, 1e2, -0.0, 12345678901234567890.12345678901234567890]'::jsonb": (
        Decimal("1.0"),
        Decimal("1.10"),
        Decimal("1E+2"),
        Decimal("0.0"),
        Decimal("12345678901234567890.12345678901234567890"),
    ),
    """'[1e99999, 1.5]'::json""": (Decimal("1E+99999"), Decimal("1.5")),
    """'"s"'::jsonb""": '"s"',
    "'null'::jsonb": "null",
    "'6ba7b810-9dad-11d1-80b4-00c04fd430c8'::uuid": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    "'10.0.0.1'::inet": "10.0.0.1",
    "'10.0.0.0/8'::cidr": "10.0.0.0/8",
    "int4range(1, 5)": "[1,5)",
    "daterange('2026-01-01', null)": "[2026-01-01,)",
    "row(1, 'a')": "(1,a)",
    "'loud'::volume": "loud",
    "12.5::money": "$12.50",
    "b'101'": "101",
    "point(1, 2)": "(1,2)",
    "'concerts'::regclass": "concerts",
}
READING = [
    *(f"select 1 as x{end}" for end in (";;", " ; -- done", "; /* done */", " -- done;", ";/* ; */;-- done\n;")),
    "with c as (select 1 as x) select * from c",
    "-- how many?\n(select 1 as x)",
    "/* /* */ delete */ select 1 as x",
    "select count(*) as x from cities where city = 'Graz' and now() > '2000-01-01' and random() < 2",
]
# Functions by which a query could do more than read.
PREPARED = """
    create type volume as enum ('soft', 'loud');
    create function wipe_tickets() returns int language sql volatile as 'delete from tickets; select 1';
    create procedure wipe() language sql as 'delete from tickets';
    create function keep_lock() returns void language sql as 'select pg_advisory_lock(8)';
    create table locked (x int);
    create table private (x int);
    create function broken(state text) returns int language plpgsql stable as
        'begin raise exception ''broken'' using errcode = state; end';
"""


@pytest.fixture(scope="module")
def folder(cluster, tmp_path_factory):
    """A folder in which everybody may write and nobody does; nothing may change on the server."""
    folder = tmp_path_factory.mktemp("battery")
    folder.chmod(0o777)
    for extension in ("dblink", "tablefunc"):
        cluster.sql(f"create extension if not exists {extension}")
    cluster.sql(PREPARED, user="owner")
    before = cluster.dump()
    with cluster.connect("owner") as bystander, cluster.connect() as locker:
        locker.execute("begin; lock table locked in access exclusive mode")
        yield folder
        assert bystander.execute("select 1").fetchall() == [(1,)]
    wait_for(lambda: cluster.backends() == 0)
    assert cluster.dump() == before
    assert cluster.sql("select * from pg_locks where locktype = 'advisory'") == []
    assert cluster.sql("select * from pg_replication_slots") == []
    assert list(folder.iterdir()) == []


@pytest.fixture(scope="module")
def owner(cluster, hosts, folder):
    with open_engine(source_of("sqlalchemy", folder, url=cluster.url()), hosts) as engine:
        yield engine


@pytest.fixture(scope="module")
def superuser(cluster, hosts, folder):
    with open_engine(source_of("sqlalchemy", folder, url=cluster.url("postgres")), hosts) as engine:
        yield engine


class TestPostgreSQL(EngineContract):
    answers = {
        **{f"select {expression} as x": (("x",), [(value,)]) for expression, value in VALUES.items()},
        **{query: (("x",), [(1,)]) for query in READING},
        "select id, city, price from concerts order by id": (
            ("id", "city", "price"),
            [(1, "Graz", Decimal("12.50")), (2, "Wien", None), (3, "Linz", Decimal("8.00"))],
        ),
        "values (1)": (("column1",), [(1,)]),
        """select 'delete from x' as "update", 1 as "set", 2 as system""": (
            ("update", "set", "system"),
            [("delete from x", 1, 2)],
        ),
        "select keep_lock()": (("keep_lock",), [("",)]),  # until the end of the query
    }
    failures = hostile("postgresql")
    rows = "select * from generate_series(1, {count})"
    state = "select count(*), (select count(*) from tickets), min(city) from concerts"
    schema = {"concerts": ("id", "city", "price"), "cities": ("city",)}
    ddl = ("CREATE TABLE tickets (", "price NUMERIC(6, 2),", "FOREIGN KEY (concert) REFERENCES concerts (id)")
    max_rows = 100_000
    late_seconds = 0.4

    @pytest.fixture
    def engine(self, owner):
        return owner

    @pytest.fixture(autouse=True)
    def place(self, cluster, folder):
        self.cluster, self.folder = cluster, folder

    def filled(self, query):
        return query.replace("{folder}", str(self.folder))

    def broken_sources(self, folder):
        url = self.cluster.url
        for address, reason in {
            url(database="nowhere"): 'database "nowhere" does not exist',
            url("nobody"): 'role "nobody" does not exist',
            url("guarded", password="wrong"): 'authentication failed for user "guarded"',
            url("guarded"): "no password supplied",
            f"postgresql://owner@{HOST}:{free_port()}/music": "refused",
            "postgresql://owner@no-such-host.invalid/music": "check server, user",
            f"{url()}?sslmode=require": "SSL",
            f"{url()}?nonsense=1": "nonsense",
        }.items():
            yield source_of("sqlalchemy", url=address), reason


class TestPostgreSQLForSuperusers(TestPostgreSQL):
    """What only superusers may is refused to them."""

    failures = {
        **{kinds: queries[:1] for kinds, queries in TestPostgreSQL.failures.items()},
        "unsafe": statements("postgresql")["superuser"],
    }

    @pytest.fixture
    def engine(self, superuser):
        return superuser

    def broken_sources(self, folder):
        return ()


@pytest.fixture
def run(owner):
    return lambda query, timeout=5, max_rows=1000: owner.execute(query, timeout=timeout, max_rows=max_rows)


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
    accuracy = METRICS["execution_accuracy"].function

    assert run(f"select {gold} = {predicted}").answer.rows == [(equal,)]
    assert accuracy(run(f"select {gold}").answer, run(f"select {predicted}").answer) == equal


def test_a_role_without_the_right_to_a_table_is_refused(hosts, cluster, folder):
    source = source_of("sqlalchemy", url=cluster.url("reader"))

    error = execute(hosts, source, "select * from private").error

    assert (error.kind, error.message) == ("unsafe", "permission denied for table private")


def test_not_a_number_and_what_the_server_says_come_through(run):
    ((single, exact),) = run("select 'NaN'::float8, 'NaN'::numeric").answer.rows
    error = run('select ctiy from concerts where "\x1b[2J" = 1').error

    assert single != single
    assert exact.is_nan()
    assert error.message == 'column "ctiy" does not exist. Perhaps you meant to reference the column "concerts.city".'


def test_what_others_commit_is_seen_by_the_next_query(run, cluster):
    before = run("select count(*) from concerts").answer.rows
    cluster.sql("insert into concerts values (4, 'Bonn', 1)")
    after = run("select count(*) from concerts").answer.rows
    cluster.sql("delete from concerts where id = 4")

    assert (before, after) == ([(3,)], [(4,)])


def test_settings_of_the_session_hold(hosts, cluster):
    source = source_of("sqlalchemy", url=f"{cluster.url()}?options=-ctimezone%3DAsia/Tokyo")

    ((moment, text),) = rows_of(hosts, source, "select now(), (interval '1 day')::text")

    assert moment.utcoffset() == datetime.timedelta(hours=9)
    assert text == "1 day"


@pytest.fixture(scope="module")
def encoded(cluster):
    """Databases that keep their texts in other encodings than UTF-8."""
    for encoding, text in (("LATIN1", "\\xe9"), ("SQL_ASCII", "\\x61e9")):
        name = encoding.lower()
        create = f"create database {name} encoding '{encoding}' lc_collate 'C' lc_ctype 'C' template template0"
        cluster.sql(create, database="postgres")
        cluster.sql(f"create table t as select convert_from('{text}', '{encoding}') as x", database=name)
        cluster.sql("grant select on t to owner", database=name)


@pytest.mark.usefixtures("encoded")
@pytest.mark.parametrize("asked", ["", "?client_encoding=LATIN1", "?client_encoding=SQL_ASCII"])
def test_texts_come_through_from_a_database_in_another_encoding(hosts, cluster, asked):
    source = source_of("sqlalchemy", url=f"{cluster.url(database='latin1')}{asked}")

    assert rows_of(hosts, source, "select x, x = 'é', 'ß', array[x] from t") == [("é", True, "ß", ("é",))]


@pytest.mark.usefixtures("encoded")
def test_bytes_that_are_no_text_are_spelled_out(hosts, cluster):
    source = source_of("sqlalchemy", url=cluster.url(database="sql_ascii"))

    (row,) = rows_of(hosts, source, "select x as ü, x::name, array[x], 'é', null from t")

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

    with open_engine(source_of("sqlalchemy", url=cluster.url("reader"))) as engine:
        ((span, day, moment, text),) = engine.execute(values, timeout=5, max_rows=1).answer.rows
        table = engine.execute("select count(*) from concerts", timeout=5, max_rows=1).answer.rows
    cluster.sql("alter role reader reset all")

    assert (span, day) == ("P1DT2H", datetime.date(2026, 2, 28))
    assert moment == datetime.datetime(2026, 1, 1, 8, tzinfo=UTC)
    assert moment.utcoffset() != datetime.timedelta(hours=9)
    assert (text, table) == ("é", [(3,)])


def test_the_slower_of_two_timed_queries_takes_longer(owner):
    timed = owner.time("select 1", "select pg_sleep(0.05)", iterations=3, timeout=5)

    assert all(gold < predicted for gold, predicted in timed.answer.rows)


def test_a_connection_is_kept_and_made_again_if_the_server_ends_it(run, cluster):
    pids = {run("select pg_backend_pid()").answer.rows[0] for _ in range(5)}
    ((pid,),) = pids
    cluster.sql(f"select pg_terminate_backend({pid}, 5000)")

    assert run("select 1").answer.rows == [(1,)]


def test_a_query_that_is_stopped_or_cut_off_runs_no_longer_on_the_server(run, cluster):
    for query, timeout in (("select pg_sleep(60)", 0.4), ("select * from generate_series(1, 1000000)", 5)):
        run(query, timeout=timeout, max_rows=10)

        wait_for(lambda: cluster.backends() == 0, seconds=30)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql+psycopg", "POSTGRESQL"])
def test_schemes_and_drivers_of_one_database_mean_the_same(hosts, cluster, scheme):
    url = cluster.url("guarded", password=cluster.spelled).replace("postgresql", scheme, 1)

    assert rows_of(hosts, source_of("sqlalchemy", url=url), "select current_user") == [("guarded",)]


def test_the_ddl_spells_types_and_names_as_postgresql_does(hosts, cluster):
    cluster.sql(
        "create schema far; create type far.mood as enum ('a'); create table far.t (a int primary key);"
        'create table far."Odd" (m far.mood, a int[], j jsonb, t timestamptz, place point, '
        '"order" int references far.t (a));'
        "grant usage on schema far to owner; grant select on all tables in schema far to owner"
    )
    try:
        with open_engine(source_of("sqlalchemy", url=f"{cluster.url()}?options=-csearch_path%3Dfar"), hosts) as engine:
            ddl = engine.ddl(timeout=20)
    finally:
        cluster.sql("drop schema far cascade")

    assert ddl.splitlines()[:8] == [
        'CREATE TABLE "Odd" (',
        "  m mood,",
        "  a INTEGER[],",
        "  j JSONB,",
        "  t TIMESTAMP WITH TIME ZONE,",
        "  place,",
        '  "order" INTEGER,',
        '  FOREIGN KEY ("order") REFERENCES t (a)',
    ]


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
