"""All SQL engines of the registry, and ClickHouse, give the same answers, failures and tables for the same data."""

from contextlib import ExitStack

import pytest
from every_engine import CLICKHOUSE, DATABASES, WITHOUT_KEYS, source_on

from pytest_queryeval import METRICS, score_pairs
from pytest_queryeval.core.table import Policy
from pytest_queryeval.engines import ENGINES, SupportsSchema
from pytest_queryeval.languages import KINDS
from pytest_queryeval.testing import EngineContract, open_engine

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
MANY = f"select h0.hall_id from {', '.join(f'hall h{number}' for number in range(7))}"
ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
COMMA_JOIN = "select title from hall, concert where hall.hall_id = concert.hall_id and 99 < seats"
EXPLICIT_JOIN = "select title from hall join concert on hall.hall_id = concert.hall_id where 99 < seats"
# What ClickHouse is asked instead of what it cannot read.
INSTEAD = {
    ENDLESS: "select count(*) from system.numbers where number % 7 = 8",
    MANY: "select number from system.numbers limit 2000",
    f"{MANY} limit": "select number from system.numbers limit",
    COMMA_JOIN: EXPLICIT_JOIN,
}
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
# What ClickHouse 18.16 answers otherwise, or not.
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
KEYS = {(("concert", "hall_id"), ("hall", "hall_id")), (("sold", "concert_id"), ("concert", "concert_id"))}
DIALECTS = {"sqlalchemy": "postgres", "http": "sqlite", **dict.fromkeys(CLICKHOUSE, "clickhouse")}


@pytest.fixture(scope="module", params=DATABASES)
def source(request, tmp_path_factory):
    with source_on(request.param, tmp_path_factory.mktemp(f"all_{request.param}"), SCRIPT, request) as source:
        yield source


@pytest.fixture(scope="module")
def engine(source, hosts):
    with open_engine(source, hosts) as engine:
        yield engine


@pytest.fixture(scope="module")
def sqlite(request, tmp_path_factory, hosts):
    """What all answers are compared with."""
    with ExitStack() as stack:
        source = stack.enter_context(source_on("sqlite", tmp_path_factory.mktemp("gold"), SCRIPT, request))
        yield stack.enter_context(open_engine(source, hosts))


class TestSqlEngines(EngineContract):
    answers = {
        "select hall_id, name, seats from hall order by hall_id": (
            ("hall_id", "name", "seats"),
            [(1, "Große Halle", 400), (2, "Keller", 60), (3, "Garten", None)],
        ),
        "select name as n, hall_id as n from hall where hall_id = 2": (("n", "n"), [("Keller", 2)]),
        "select seats as places, name from hall where seats > 1000": (("places", "name"), []),
        "select 1 as x; -- done": (("x",), [(1,)]),
        "/* how many? */ select ';' as x; /* all */": (("x",), [(";",)]),
    }
    failures = {
        "unsafe": [
            "delete from hall",
            "insert into hall values (9, 'x', 1) returning hall_id",
            "drop table sold",
            "create table extra (x integer)",
            "create temp table extra as select 1",
            "begin",
            "select 1; delete from hall",
            "select 1;\n-- ;\n/* ; */ ; select 2",
            "select ';';\nexplain select 1",
        ],
        "invalid": [
            "select 1;\n\nThis query counts the rows (see above).",
            "select 1; It doesn't insert into or delete from any table.",
            "select 1;\nSQLResult: \nAnswer: 1",
            "select 1; Done",
            "select 1\n\nThis query doesn't delete from any table.",
            "select name from hall;\nlimit 1",
            "selec 1",
            "select * from nowhere",
            "select nowhere from hall",
            "-- nothing",
            "Sure! Here is your query.",
        ],
        "too_large": [MANY],
        "timeout": [ENDLESS],
    }
    rows = f"{MANY} limit {{count}}"
    state = "select count(*), max(seats) from hall"
    schema = {
        "hall": ("hall_id", "name", "seats"),
        "concert": ("concert_id", "hall_id", "title", "price", "day"),
        "sold": ("concert_id", "seat", "buyer"),
        "dear": ("title",),
    }
    late_seconds = 0.5
    name = ""

    def filled(self, query):
        if self.name in CLICKHOUSE:
            for standard in sorted(INSTEAD, key=len, reverse=True):
                query = query.replace(standard, INSTEAD[standard])
        return query

    @pytest.fixture(autouse=True)
    def of_source(self, source):
        self.name = source.name

    def test_answers_are_those_of_sqlite(self, engine, sqlite):
        accuracy, different = METRICS["execution_accuracy"].function, {}
        for name, query in (QUERIES | ORDERED).items():
            gold, execution = (of.execute(query, timeout=20, max_rows=1000) for of in (sqlite, engine))
            policy = Policy(row_order="strict" if name in ORDERED else "ignore")
            if execution.error or accuracy(gold.answer, execution.answer, policy=policy) != 1.0:
                different[name] = execution

        assert different.keys() == (DIFFERENCES.keys() if self.name in CLICKHOUSE else set()), different

    def test_the_schema_has_all_foreign_keys(self, engine):
        if isinstance(engine, SupportsSchema):
            listed = engine.schema(timeout=20)
            assert listed.tables == self.schema
            assert set(listed.foreign_keys) == (set() if self.name in WITHOUT_KEYS else KEYS)

    def test_all_default_metrics_are_scored(self, engine, source, monkeypatch):
        monkeypatch.chdir(source.folder)
        gold = "select c.title from concert c join hall h on h.hall_id = c.hall_id where h.seats > 100"
        settings = {source.engine: dict(source.settings)}

        (pair,) = score_pairs([(gold, self.filled(COMMA_JOIN))], settings, timeout=60)

        # Without a schema nothing tells whose column `title` is.
        unknown = {} if isinstance(engine, SupportsSchema) else {"exact_set_match": 0.0}
        assert pair.scores == dict.fromkeys(KINDS["sql"].default_metrics, 1.0) | unknown, pair

    def test_the_dialect_of_queries_is_that_of_the_database(self, source):
        assert ENGINES[source.engine].dialect(source.settings) == DIALECTS.get(self.name, self.name)
