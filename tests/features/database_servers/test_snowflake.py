"""Snowflake by its own driver, on fakesnow: what docs/reference/sql.md says of it, as far as fakesnow shows it."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest
from opened_sources import execute, source_of
from servers import free_port

from pytest_queryeval import score_pairs
from pytest_queryeval.core.errors import SettingError, SourceError
from pytest_queryeval.core.table import FrozenMapping
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.testing import open_engine

pytest_plugins = ["fakesnow_server"]

SECONDS = 60
PREPARED = """
create schema music.shop;
use schema music.shop;
create table hall (hall_id int primary key, name varchar(40) not null, seats int);
insert into hall values (1, 'Große Halle', 400), (2, 'Keller', 60), (3, 'Garten', null), (4, 'Hof', 60);
create table listed (x array, y object);
insert into listed select parse_json('[3,  1, null]'), object_construct('a', 1);
create view large as select name from hall where seats > 100;
"""


@pytest.fixture(scope="module")
def shop(snowflake):
    snowflake.sql(*filter(str.strip, PREPARED.split(";")))
    return snowflake.url("music/shop")


@pytest.fixture
def engine(hosts, shop):
    with open_engine(source_of("sqlalchemy", url=shop), hosts) as engine:
        yield engine


def rows(engine, text):
    execution = engine.execute(text, timeout=SECONDS, max_rows=100)
    assert execution.error is None, execution.error
    return execution.answer.rows


@pytest.mark.parametrize(
    ("expression", "cell"),
    [
        ("5::number(38, 0)", 5),
        ("12.50::number(10, 2)", Decimal("12.50")),
        ("12345678901234567890123456789.25::number(38, 2)", Decimal("12345678901234567890123456789.25")),
        ("1.5::float", 1.5),
        ("true", True),
        ("x'AB01'", b"\xab\x01"),
        ("'2024-02-29'::date", date(2024, 2, 29)),
        ("'03:04:05'::time", time(3, 4, 5)),
        ("'2024-02-29 03:04:05.123456'::timestamp_ntz", datetime(2024, 2, 29, 3, 4, 5, 123456)),
        ("'2024-02-29 03:04:05'::timestamp_ltz", datetime(2024, 2, 29, 3, 4, 5, tzinfo=UTC)),
        (
            "'2024-02-29 03:04:05 +02:00'::timestamp_tz",
            datetime(2024, 2, 29, 3, 4, 5, tzinfo=timezone(timedelta(hours=2))),
        ),
        ("""parse_json('{"b": 1.50, "a": [1, null]}')""", FrozenMapping({"a": (1, None), "b": Decimal("1.50")})),
        ("object_construct('b', 1, 'a', 'x')", FrozenMapping({"a": "x", "b": 1})),
        ("""parse_json('{"a": "Graz"}'):a""", '"Graz"'),
        ("""parse_json('{"a": "Graz"}'):a::string""", "Graz"),
        ("parse_json('null')", "null"),
        ("null::variant", None),
    ],
)
def test_types_of_snowflake_become_cells(engine, expression, cell):
    assert rows(engine, f"select {expression} as x") == [(cell,)]


def test_semi_structured_columns_are_lists_and_mappings(engine):
    assert rows(engine, "select * from listed") == [((3, 1, None), {"a": 1})]


def test_names_that_are_not_quoted_are_in_lower_case(engine):
    execution = engine.execute('select name, seats as "Seats" from hall limit 1', timeout=SECONDS, max_rows=10)

    assert execution.answer.columns == ("name", "Seats")


def test_schema_has_tables_and_views_of_the_schema_in_the_url(engine):
    schema = engine.schema(timeout=SECONDS)

    assert schema.tables == {"hall": ("hall_id", "name", "seats"), "large": ("name",), "listed": ("x", "y")}


def test_ddl_has_types_and_keys(engine):
    ddl = engine.ddl(timeout=SECONDS)

    assert "CREATE TABLE hall (" in ddl
    assert "name VARCHAR(40) NOT NULL" in ddl
    assert "PRIMARY KEY (hall_id)" in ddl


@pytest.mark.parametrize(
    ("gold", "predicted", "score"),
    [
        ("select name from hall order by seats nulls last", "select name from hall order by seats nulls last, name", 1),
        ("select name from hall order by seats desc nulls last", "select name from hall order by seats nulls last", 0),
        ("select name from hall", "select name from hall order by name", 1),
        ("select sum(seats) from hall", "select 520.00::number(10, 2)", 1),
        ("select name from hall qualify row_number() over (order by hall_id) = 1", "select 'Große Halle'", 1),
    ],
    ids=["ties", "order", "no order", "numbers", "qualify"],
)
def test_answers_are_compared_with_order_and_ties(shop, gold, predicted, score):
    (pair,) = score_pairs([(gold, predicted)], {"sqlalchemy": shop}, ["execution_accuracy"], timeout=SECONDS)

    assert pair.scores == {"execution_accuracy": score}, pair


def test_session_takes_one_statement_and_has_the_time_limit_of_the_query(engine, snowflake):
    before = len(snowflake.statements())
    rows(engine, "select 1")
    rows(engine, "select 2")

    commands = [text for text in snowflake.statements()[before:] if not text.startswith("select")]
    assert commands.count(f"ALTER SESSION SET STATEMENT_TIMEOUT_IN_SECONDS = {SECONDS}") == 2
    assert commands.count("ROLLBACK") >= 2
    assert "ALTER SESSION SET MULTI_STATEMENT_COUNT = 1" in snowflake.statements()


@pytest.mark.parametrize(
    ("text", "problem"),
    [("select * from nowhere", "NOWHERE"), ("select nowhere from hall", "NOWHERE"), ("select 'x'::number", "x")],
)
def test_error_of_a_query_is_its_own_and_reads_the_same_each_time(engine, text, problem):
    first, second = (engine.execute(text, timeout=SECONDS, max_rows=10).error for _ in range(2))

    assert first.kind == "invalid"
    assert problem in first.message
    assert "request_id" not in first.message
    assert first == second


def test_late_query_ends_by_the_limit_of_the_session_which_then_answers(engine):
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"

    assert engine.execute(endless, timeout=1, max_rows=10).error.kind == "timeout"
    assert rows(engine, "select count(*) from hall") == [(4,)]


def test_database_or_warehouse_that_the_role_does_not_see_is_an_error_of_the_source(hosts, snowflake):
    for url, part in [
        (snowflake.url("nowhere/shop"), "database 'nowhere'"),
        (snowflake.url("music/no"), "schema 'no'"),
        (snowflake.url("music/shop", warehouse="large"), "warehouse 'large'"),
    ]:
        with pytest.raises(SourceError, match=f"the session has no {part}, which the URL names: it does not exist"):
            execute(hosts, source_of("sqlalchemy", url=url), "select 1", timeout=SECONDS)


def test_server_that_cannot_be_reached_is_an_error_of_the_source_without_the_password(hosts, snowflake):
    url = snowflake.url("music/shop").replace(str(snowflake.port), str(free_port()))

    with pytest.raises(SourceError, match="Failed to login") as caught:
        execute(hosts, source_of("sqlalchemy", url=url), "select 1", timeout=SECONDS)

    assert "check server, user, password and database of the URL" in str(caught.value)
    assert not any(secret in str(caught.value) for secret in snowflake.secrets)


# Without a server.


@pytest.mark.parametrize(("parameter", "name"), [("rolle", "role"), ("Role", "role"), ("ware_house", "warehouse")])
def test_a_misspelled_role_or_warehouse_is_refused(parameter, name):
    with pytest.raises(SettingError, match=rf"resembles '{name}', and Snowflake would ignore it: write {name}=$"):
        ENGINES["sqlalchemy"].check(
            {"url": f"snowflake://reader@account/db/public?account=a&server_url=u&{parameter}=reader"}
        )


def driver_error(name, number, message):
    error_type = type(name, (Exception,), {"__module__": "snowflake.connector.errors"})
    error = error_type(f"{number:06d} (42000): {message} (request_id=1)")
    error.errno, error.raw_msg = number, message
    return error


@pytest.mark.parametrize(
    ("name", "number", "kind"),
    [
        ("ProgrammingError", 1003, "invalid"),
        ("ProgrammingError", 2003, "invalid"),
        ("ProgrammingError", 604, "timeout"),
        ("ProgrammingError", 630, "timeout"),
        ("ProgrammingError", 8, "unsafe"),
        ("ProgrammingError", 3001, "unsafe"),
        ("ProgrammingError", 606, "fault"),
        ("IntegrityError", 100072, "invalid"),
        ("OperationalError", 4, "rejected"),
        ("DatabaseError", 250001, "rejected"),
        ("InterfaceError", 252005, "rejected"),
    ],
)
def test_number_and_type_of_an_error_tell_whose_it_is(name, number, kind):
    session = pytest.importorskip("pytest_queryeval.features.database_servers.snowflake_session")

    assert session.snowflake_verdict(driver_error(name, number, "what is wrong")) == (kind, "what is wrong")


def test_a_query_without_a_schema_is_told_that_the_url_may_have_one(snowflake, hosts):
    source = source_of("sqlalchemy", url=snowflake.url("music"))

    error = execute(hosts, source, "SELECT * FROM hall", timeout=SECONDS).error

    remedy = "write qualified names, or add /DATABASE/SCHEMA to the URL of the source"
    assert (error.kind, error.message) == ("invalid", f"the session has no current schema: {remedy}")
