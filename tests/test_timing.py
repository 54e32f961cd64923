"""What engines say of their tables, and of the time that two queries take."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from samples import make_case, query

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES, SupportsSchema, SupportsTiming
from pytest_queryeval.evaluation import evaluate_case
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.sandbox.host import Host, Hosts, QueryRequest

pytestmark = pytest.mark.process

SCRIPT = """
    create table Singer (Id integer primary key, Name text);
    create table pair (x int, y int, primary key (x, y));
    create table Song (a int, b int, Singer references singer, cover int references Song(a),
        foreign key (a, b) references pair, foreign key (B) references Singer(ID));
    create table "odd ""name" ("sp ace" int);
    create view names as select name from singer;
"""
DESCRIBED = Schema(
    tables={
        "singer": ("id", "name"),
        "pair": ("x", "y"),
        "song": ("a", "b", "singer", "cover"),
        'odd "name': ("sp ace",),
        "names": ("name",),
    },
    foreign_keys=(
        (("song", "a"), ("pair", "x")),
        (("song", "b"), ("pair", "y")),
        (("song", "b"), ("singer", "id")),
        (("song", "singer"), ("singer", "id")),
        (("song", "cover"), ("song", "a")),
    ),
)
DEAF = "select length(printf('%.*c', 1e9, 'x')), length(printf('%.*c', 1e9, 'y')), length(printf('%.*c', 1e9, 'z'))"
ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
# A driver that keeps its calls, and fails as its queries say.
TOY = """
import time

class Driver:
    calls = []

    def run(self, settings, query, timeout):
        self.calls.append(query)
        if query == "calls":
            answer = [(call,) for call in self.calls]
        elif query == "stuck":
            time.sleep(30)
        elif query == "broken":
            raise OSError("no such table")
        elif query == "fault":
            raise ValueError("the disk is gone")
        else:
            answer = [(number,) for number in range(int(query))]
        left = iter(answer)
        return ("x",), lambda count: [row for _, row in zip(range(count), left)]

    def describe(self, settings):
        if "fault" in settings:
            raise ValueError("the disk is gone")
        if "stuck" in settings:
            time.sleep(30)
        rows = iter([("A", "B", None, None, None)] * settings.get("columns", 1))
        return ("table", "column", "type", "to", "at"), lambda count: [row for _, row in zip(range(count), rows)]

    def classify(self, error):
        return ("failure", "invalid", str(error)) if isinstance(error, OSError) else ("fault", str(error))
"""


@pytest.fixture
def toy(tmp_path):
    (tmp_path / "driver.py").write_text(TOY)
    with Hosts() as pool:
        yield pool.shared(Host("toy", tmp_path / "driver.py"))


@pytest.fixture
def database(tmp_path):
    with closing(sqlite3.connect(tmp_path / "music.db")) as connection:
        connection.executescript(SCRIPT)
        yield connection


@pytest.fixture
def engine(hosts, database, tmp_path):
    return ENGINES["sqlite"].open(source(tmp_path), hosts)


def source(folder, path="music.db"):
    return Source(name="music", engine="sqlite", settings={"path": path}, folder=folder)


def asked(text):
    return QueryRequest(text, {})


def timed(engine, gold="select 1", predicted="select 2", iterations=3, timeout=5.0):
    return engine.time(gold, predicted, iterations=iterations, timeout=timeout)


# Schemas


def test_sqlite_lists_tables_views_and_foreign_keys(engine):
    assert engine.schema(timeout=5) == DESCRIBED


def test_a_view_that_does_not_work_is_left_out(engine, database):
    database.executescript("create view broken as select * from nothing_there; create table later (n int)")

    assert engine.schema(timeout=5).tables == {**DESCRIBED.tables, "later": ("n",)}


@pytest.mark.parametrize("name", ["sqlite", pytest.param("duckdb", marks=pytest.mark.feature("duckdb"))])
def test_columns_are_those_of_a_star_generated_ones_included(hosts, tmp_path, name):
    script = "create table person (first text, initial text generated always as (substr(first, 1, 1)), last text);"
    if name == "sqlite":  # whose virtual tables have hidden columns, such as `rank`
        script += (
            "create virtual table notes using fts5(words); create table n (b int as (a * 2) stored, a int) strict;"
        )
    (tmp_path / "s.sql").write_text(script, encoding="utf-8")
    engine = ENGINES[name].open(replace(source(tmp_path), engine=name, settings={"script": "s.sql"}), hosts)

    tables = engine.schema(timeout=20).tables

    assert tables["person"] == ("first", "initial", "last")
    for table in tables.keys() & {"person", "notes", "n"}:
        assert engine.execute(f"select * from {table}", timeout=20, max_rows=1).table.columns == tables[table]
    engine.close()


def test_a_schema_follows_the_database(engine, database):
    database.executescript("drop view names; drop table song")

    schema = engine.schema(timeout=5)

    assert "song" not in schema.tables
    assert schema.foreign_keys == ()


def test_an_empty_database_has_no_tables(hosts, tmp_path):
    with closing(sqlite3.connect(tmp_path / "empty.db")) as connection:
        connection.executescript("create table t (n); drop table t")

    assert ENGINES["sqlite"].open(source(tmp_path, "empty.db"), hosts).schema(timeout=5) == Schema()


def test_a_refused_query_does_not_spoil_what_comes_after_it(engine, hosts, tmp_path):
    assert engine.execute("drop table singer", timeout=5, max_rows=1).error.kind == "unsafe"
    (tmp_path / "text.db").write_text("no database " * 100)
    with pytest.raises(SourceError, match="not a SQLite database"):
        ENGINES["sqlite"].open(source(tmp_path, "text.db"), hosts).schema(timeout=5)

    assert engine.schema(timeout=5) == DESCRIBED


def test_a_database_that_is_missing_is_a_fault_of_its_source(hosts, tmp_path):
    engine = ENGINES["sqlite"].open(source(tmp_path, "none.db"), hosts)

    with pytest.raises(SourceError, match=r"^source 'music': .*none\.db: no such file$"):
        engine.schema(timeout=5)
    with pytest.raises(SourceError, match=r"^source 'music': .*none\.db: no such file$"):
        timed(engine)


def test_a_fault_while_tables_are_listed_is_a_fault_of_the_source(toy):
    with pytest.raises(SourceError, match=r"^the disk is gone$"):
        toy.describe({"fault": True}, timeout=5)


def test_a_list_of_tables_that_is_late_or_too_long_has_no_answer(toy):
    assert toy.describe({"stuck": True}, timeout=0.2).error.message == "no answer within 0.2 s"
    assert toy.describe({"columns": 100_001}, timeout=5).error.kind == "too_large"
    assert len(toy.describe({"columns": 100_000}, timeout=5).answer.rows) == 100_000


# Times


@pytest.mark.parametrize("iterations", [1, 2, 20, 100])
def test_there_is_a_row_of_positive_seconds_an_iteration(engine, iterations):
    answer = timed(engine, iterations=iterations).answer

    assert answer.columns == ("gold", "predicted")
    assert len(answer.rows) == iterations
    assert all(gold > 0 and predicted > 0 for gold, predicted in answer.rows)


def test_the_columns_of_times_are_those_of_their_queries(engine):
    counted = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 30000) select count(*) from n"

    slow_gold = timed(engine, gold=counted, iterations=10).answer.rows
    slow_predicted = timed(engine, predicted=counted, iterations=10).answer.rows

    assert sum(gold for gold, _ in slow_gold) > sum(predicted for _, predicted in slow_gold)
    assert sum(gold for gold, _ in slow_predicted) < sum(predicted for _, predicted in slow_predicted)


def test_both_queries_run_once_an_iteration_and_once_before(toy):
    timed_ = toy.time(asked("1"), asked("2"), iterations=5, timeout=5)

    ran = [row[0] for row in toy.execute({}, "calls", timeout=5, max_rows=100).answer.rows[:-1]]

    assert len(timed_.answer.rows) == 5
    assert (ran.count("1"), ran.count("2")) == (6, 6)
    assert all(set(ran[at : at + 2]) == {"1", "2"} for at in range(0, 12, 2))


def test_answers_of_any_length_are_read_to_their_end(toy):
    assert len(toy.time(asked("0"), asked("8192"), iterations=2, timeout=5).answer.rows) == 2
    assert len(toy.time(asked("8191"), asked("50000"), iterations=2, timeout=5).answer.rows) == 2


@pytest.mark.parametrize(("query_", "said"), [("broken", "no such table"), ("stuck", "no answer within 0.2 s")])
def test_a_query_that_fails_or_is_late_while_it_is_timed_has_no_times(toy, query_, said):
    for pair in (("1", query_), (query_, "1")):
        seconds = toy.time(*map(asked, pair), iterations=20, timeout=0.2)

        assert (seconds.answer, seconds.error.message) == (None, said)


def test_a_single_run_that_no_interrupt_reaches_is_ended_long_before_all_would_be(toy):
    seconds = toy.time(asked("1"), asked("stuck"), iterations=1000, timeout=1.0)

    assert seconds.error.kind == "timeout"
    assert seconds.seconds < 15  # all runs together may take 2002 s


def test_a_fault_while_queries_are_timed_is_a_fault_of_the_source(toy):
    with pytest.raises(SourceError, match=r"^the disk is gone$"):
        toy.time(asked("1"), asked("fault"), iterations=2, timeout=5)


def test_the_next_query_has_a_child_of_its_own_after_a_late_one(toy):
    toy.time(asked("stuck"), asked("1"), iterations=2, timeout=0.2)

    assert toy.execute({}, "2", timeout=5, max_rows=5).answer.rows == [(0,), (1,)]


def test_any_timeout_can_be_asked_for(engine):
    assert len(timed(engine, timeout=1e300).answer.rows) == 3


@pytest.mark.parametrize(
    ("predicted", "kind"),
    [(ENDLESS, "timeout"), (DEAF, "timeout"), ("select nope", "invalid"), ("drop table singer", "unsafe")],
)
def test_what_is_timed_is_guarded_like_any_query(engine, database, predicted, kind):
    assert timed(engine, predicted=predicted, timeout=0.2).error.kind == kind
    assert len(timed(engine).answer.rows) == 3
    assert engine.schema(timeout=5) == DESCRIBED


def test_engines_of_sql_in_this_process_describe_and_time(engine):
    assert isinstance(engine, SupportsSchema)
    assert isinstance(engine, SupportsTiming)


def test_times_of_a_case_come_from_its_database(database, tmp_path):
    case = make_case(
        source=source(tmp_path),
        golds=(query("select name from singer"),),
        predicted=query("select name from singer"),
        metrics=("ves", "r_ves", "r_ves_bird"),
        options={"ves": {"iterations": 3}, "r_ves": {"iterations": 3}, "r_ves_bird": {"iterations": 3}},
        allow_empty=True,
    )

    with Session() as session:
        result = evaluate_case(case, session)

    assert all(result.scores[name] > 0 for name in case.settings.metrics)
    assert result.details["efficiency"]["iterations"] == 3
    assert result.details["efficiency"]["gold_seconds"] > 0
