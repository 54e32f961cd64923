"""All SQL engines of the registry, and ClickHouse, give the same tables and the same schema for the same data."""

import time
from contextlib import ExitStack

import pytest
import sqlglot
from every_engine import CLICKHOUSE, DATABASES, WITHOUT_KEYS, source_on
from samples import make_case, query

from pytest_queryeval.core.table import Policy
from pytest_queryeval.engines import ENGINES, SupportsSchema, SupportsTiming
from pytest_queryeval.evaluation import evaluate_case
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy
from pytest_queryeval.sandbox.host import Hosts

pytestmark = pytest.mark.process

pytest_plugins = ["postgres", "clickhouse", "fakesnow_server"]

SCRIPT = """
create table hall (hall_id integer primary key, name varchar(40) not null, seats integer);
create table concert (
    concert_id integer primary key,
    hall_id integer references hall (hall_id),
    title varchar(80),
    price double precision,
    day date
);
create table sold (
    concert_id integer references concert (concert_id),
    seat integer,
    buyer varchar(40),
    primary key (concert_id, seat)
);
insert into hall values (1, 'Große Halle', 400), (2, 'Keller', 60), (3, 'Garten', null);
insert into concert values
    (1, 1, 'Requiem', 42.5, '2024-02-29'),
    (2, 1, 'It''s a "duo"', 12.0, '2024-03-01'),
    (3, 2, 'Trio', 12.0, '2024-03-08'),
    (4, null, null, null, null);
insert into sold values (1, 1, 'Anna'), (1, 2, 'Anna'), (1, 3, null), (3, 1, 'Bo');
create view dear as select title from concert where price > 40;
"""
ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
QUERIES = {
    "all columns": "select * from hall",
    "no rows": "select name, seats from hall where seats > 1000",
    "nulls": "select title, price from concert where hall_id is null",
    "text": "select title from concert where title like '%''s%'",
    "unicode": "select name, length(name) from hall where name = 'Große Halle'",
    "numbers": "select seats * 2, seats + 0.5, -seats from hall where seats is not null",
    "integer aggregates": "select count(*), count(seats), sum(seats), min(seats), max(seats) from hall",
    "mean": "select avg(price) from concert",
    "group": "select hall_id, count(*), sum(price) from concert group by hall_id",
    "having": "select buyer from sold group by buyer having count(*) > 1",
    "join": "select h.name, c.title from hall h join concert c on c.hall_id = h.hall_id",
    "left join": "select h.name, c.title from hall h left join concert c on c.hall_id = h.hall_id",
    "self join": "select a.seat, b.seat from sold a join sold b on a.concert_id = b.concert_id and a.seat < b.seat",
    "subquery": "select title from concert where price = (select max(price) from concert)",
    "in": "select name from hall where hall_id in (select hall_id from concert)",
    "exists": "select name from hall h where not exists (select 1 from concert c where c.hall_id = h.hall_id)",
    "case": "select name, case when seats > 100 then 'large' else 'small' end from hall",
    "distinct": "select distinct price from concert",
    "union": "select name from hall union select buyer from sold",
    "union all": "select 1 as x union all select 1",
    "intersect": "select price from concert intersect select 12.0",
    "except": "select hall_id from hall except select hall_id from concert",
    "CTE": "with s as (select concert_id, count(*) as n from sold group by concert_id) select max(n) from s",
    "recursive CTE": "with recursive n(i) as (select 1 union all select i + 1 from n where i < 5) select i from n",
    "window": "select concert_id, rank() over (order by price desc nulls last, concert_id) from concert",
    "view": "select * from dear",
    "values": "values (1, 'a'), (2, 'b')",
    "coalesce": "select coalesce(buyer, 'nobody') from sold",
    "concatenation": "select name || '!' from hall",
    "duplicate column names": "select hall_id, hall_id from hall",
    "comparison": "select case when price > 12 then 1 else 0 end from concert",
}
ORDERED = {
    "order by": "select name, seats from hall order by seats nulls first",
    "order by two": "select title from concert order by price desc nulls last, title",
    "limit": "select title from concert where title is not null order by title limit 2",
    "offset": "select hall_id from hall order by hall_id limit 1 offset 1",
}
REFUSED = {
    "write": ("delete from hall", "unsafe"),
    "write within reading": ("insert into hall values (9, 'x', 1) returning hall_id", "unsafe"),
    "drop": ("drop table sold", "unsafe"),
    "create": ("create table extra (x integer)", "unsafe"),
    "temporary table": ("create temp table extra as select 1", "unsafe"),
    "transaction": ("begin", "unsafe"),
    "two statements": ("select 1; delete from hall", "unsafe"),
    "two queries": ("select 1;\n-- ;\n/* ; */ ; select 2", "unsafe"),
    "a query and a command": ("select ';';\nexplain select 1", "unsafe"),
    "sentence behind a semicolon": ("select 1;\n\nThis query counts the rows (see above).", "invalid"),
    "sentence of writes behind a semicolon": ("select 1; It doesn't insert into or delete from any table.", "invalid"),
    "labels behind a semicolon": ("select 1;\nSQLResult: \nAnswer: 1", "invalid"),
    "one word behind a semicolon": ("select 1; Done", "invalid"),
    "sentence behind a blank line": ("select 1\n\nThis query doesn't delete from any table.", "invalid"),
    "part of a query behind a semicolon": ("select name from hall;\nlimit 1", "invalid"),
    "syntax": ("selec 1", "invalid"),
    "no such table": ("select * from nowhere", "invalid"),
    "no such column": ("select nowhere from hall", "invalid"),
    "comment": ("-- nothing", "invalid"),
    "prose": ("Sure! Here is your query.", "invalid"),
    "nothing": ("  \n", "empty"),
    "too many rows": (f"select 1 from {', '.join(f'hall h{n}' for n in range(7))}", "too_large"),
    "too long": (ENDLESS, "timeout"),
}
COMMA_JOIN = "select title from hall, concert where hall.hall_id = concert.hall_id and 99 < seats"
# Why ClickHouse 18.16 answers otherwise, or not.
DIFFERENCES = {
    "unicode": "its length is that of the bytes",
    "self join": "it joins on equality only",
    "exists": "it has no EXISTS",
    "union": "it has no UNION but UNION ALL",
    "intersect": "it has no INTERSECT",
    "except": "it has no EXCEPT",
    "CTE": "it has WITH for expressions only",
    "recursive CTE": "it has no recursion",
    "window": "it has no window functions",
    "values": "it has VALUES within INSERT only",
}
# What it is asked instead of what it cannot read.
INSTEAD = {
    ENDLESS: "select count(*) from system.numbers where number % 7 = 8",
    REFUSED["too many rows"][0]: "select number from system.numbers limit 1001",
    COMMA_JOIN: "select title from hall join concert on hall.hall_id = concert.hall_id where 99 < seats",
}


def on_each(engines, queries):
    """Each engine with the name of each query; a difference that is known must be there."""
    expected_failures = {
        name: [pytest.mark.xfail(reason=reason, raises=AssertionError)] for name, reason in DIFFERENCES.items()
    }
    return [
        pytest.param(engine, name, marks=expected_failures.get(name, []) if engine in CLICKHOUSE else [])
        for engine in engines
        for name in queries
    ]


@pytest.fixture(scope="module")
def source(request, tmp_path_factory):
    """Gives a source on each engine, made on first use and then kept."""
    sources = {}
    with ExitStack() as stack:

        def give(name):
            if name not in sources:
                folder = tmp_path_factory.mktemp(f"all_{name}")
                sources[name] = stack.enter_context(source_on(name, folder, SCRIPT, request))
            return sources[name]

        yield give


@pytest.fixture(scope="module")
def opened(source):
    """Gives each engine, opened on first use and then kept."""
    engines = {}
    with ExitStack() as stack:
        hosts = stack.enter_context(Hosts())

        def give(name):
            if name not in engines:
                engines[name] = ENGINES[source(name).engine].open(source(name), hosts)
                stack.callback(engines[name].close)
            return engines[name]

        yield give


def answered(engine, query):
    execution = engine.execute(query, timeout=20, max_rows=1000)
    assert execution.error is None, execution.error
    return execution.answer


@pytest.mark.parametrize(("name", "query"), on_each(DATABASES[1:], QUERIES))
def test_engines_give_the_same_tables(opened, name, query):
    first, second = answered(opened(DATABASES[0]), QUERIES[query]), answered(opened(name), QUERIES[query])

    assert len(first.rows) == len(second.rows)
    assert len(first.columns) == len(second.columns)
    assert execution_accuracy(first, second, policy=Policy(row_order="ignore")) == 1.0


@pytest.mark.parametrize(("name", "query"), on_each(DATABASES[1:], ORDERED))
def test_engines_give_rows_in_the_same_order(opened, name, query):
    assert answered(opened(DATABASES[0]), ORDERED[query]).rows == answered(opened(name), ORDERED[query]).rows


@pytest.mark.parametrize("name", DATABASES)
def test_named_columns_keep_their_names(opened, name):
    assert answered(opened(name), "select seats as places, name from hall").columns == ("places", "name")


@pytest.mark.parametrize("name", DATABASES)
@pytest.mark.parametrize(("query", "kind"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_with_a_query_has_the_same_kind_everywhere(opened, name, query, kind):
    query_text = INSTEAD.get(query, query) if name in CLICKHOUSE else query
    execution = opened(name).execute(query_text, timeout=0.5 if kind == "timeout" else 20, max_rows=1000)

    assert execution.answer is None
    assert execution.error.kind == kind, execution.error
    assert execution.error.message.isprintable()
    assert answered(opened(name), "select count(*) from hall").rows == [(3,)]


@pytest.mark.parametrize("name", DATABASES)
def test_cells_are_plain_values(opened, name):
    [row] = answered(opened(name), "select hall_id, name, seats from hall where hall_id = 3").rows

    assert row == (3, "Garten", None)
    assert [type(cell) for cell in row] == [int, str, type(None)]


@pytest.mark.parametrize("name", DATABASES)
def test_schema_is_the_same_everywhere(opened, name):
    engine = opened(name)
    if not isinstance(engine, SupportsSchema):
        pytest.skip(f"{name} does not list its tables")

    schema = engine.schema(timeout=20)

    assert schema.tables == {
        "hall": ("hall_id", "name", "seats"),
        "concert": ("concert_id", "hall_id", "title", "price", "day"),
        "sold": ("concert_id", "seat", "buyer"),
        "dear": ("title",),
    }
    keys = {(("concert", "hall_id"), ("hall", "hall_id")), (("sold", "concert_id"), ("concert", "concert_id"))}
    assert set(schema.foreign_keys) == (set() if name in WITHOUT_KEYS else keys)


@pytest.mark.parametrize("name", DATABASES)
def test_queries_are_timed_everywhere(opened, name):
    engine = opened(name)
    assert isinstance(engine, SupportsTiming)

    timed = engine.time("select * from hall", "select name from hall", iterations=3, timeout=20)
    unsafe = engine.time("select * from hall", "delete from hall", iterations=3, timeout=20)
    broken = engine.time("select * from hall", "select * from nowhere", iterations=3, timeout=20)

    assert [len(row) for row in timed.answer.rows] == [2, 2, 2]
    assert min(seconds for row in timed.answer.rows for seconds in row) > 0
    assert (unsafe.error.kind, broken.error.kind) == ("unsafe", "invalid")


@pytest.mark.parametrize("name", DATABASES)
def test_all_default_metrics_are_scored_everywhere(source, opened, name):
    case = make_case(
        source=source(name),
        golds=(query("select c.title from concert c join hall h on h.hall_id = c.hall_id where h.seats > 100"),),
        predicted=query(INSTEAD[COMMA_JOIN] if name in CLICKHOUSE else COMMA_JOIN),
        metrics=KINDS["sql"].default_metrics,
        dialect=ENGINES[source(name).engine].dialect(source(name).settings),
        timeout=60,
    )

    with Session() as session:
        result = evaluate_case(case, session)

    # Without a schema nothing tells whose column `title` is.
    unknown = {} if isinstance(opened(name), SupportsSchema) else {"exact_set_match": 0.0}
    assert result.scores == dict.fromkeys(KINDS["sql"].default_metrics, 1.0) | unknown
    assert result.details.keys() == {"counts", "partial_match", *unknown}


@pytest.mark.parametrize("name", DATABASES)
def test_every_engine_says_which_dialect_it_has(source, name):
    assert sqlglot.parse_one("select 1", dialect=ENGINES[source(name).engine].dialect(source(name).settings))


@pytest.mark.parametrize("name", DATABASES)
def test_late_queries_end_soon_after_their_time(opened, name):
    query = INSTEAD[ENDLESS] if name in CLICKHOUSE else ENDLESS
    began = time.monotonic()

    execution = opened(name).execute(query, timeout=0.5, max_rows=10)

    assert execution.error.kind == "timeout"
    assert time.monotonic() - began < 5
