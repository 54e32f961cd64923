"""The engine `duckdb`: the contract of engines with all that DuckDB has, its files, scripts, tables and settings."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import product
from pathlib import Path

import duckdb
import pytest
from documentation import page as page_of
from hostile_statements import hostile, statements
from opened_sources import contents, execute, rows_of, source_of
from table_definitions import SCRIPT
from waiting import child_processes, wait_for

from pytest_queryeval import METRICS, evaluate, load_cases
from pytest_queryeval.core.errors import SettingError, SourceError
from pytest_queryeval.core.table import FrozenMapping
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.testing import EngineContract, open_engine

pytestmark = pytest.mark.process

DOCS = page_of("sql").partition("## DuckDB\n")[2].partition("\n## ")[0]
CONCERTS = """
    create table concerts (id integer primary key, city varchar, price double);
    insert into concerts values (1, 'Graz', 12.5), (2, 'Wien', null), (3, 'Linz', 8.0);
    create view cities as select distinct city from concerts;
"""
VALUES = {
    "null": None,
    "true": True,
    "9223372036854775807": 2**63 - 1,
    "170141183460469231731687303715884105727::hugeint": 2**127 - 1,
    "340282366920938463463374607431768211455::uhugeint": 2**128 - 1,
    "1.50::decimal(10, 2)": Decimal("1.50"),
    "1e999::double": float("inf"),
    "0.5::float": 0.5,
    "'naïve 🎻'": "naïve 🎻",
    "'a' || chr(0) || 'b'": "a\0b",
    "'\\x00\\xFF'::blob": b"\x00\xff",
    "'0101'::bit": "0101",
    "'b'::enum('a', 'b')": "b",
    "'8d3f9c1e-0000-4000-8000-000000000000'::uuid": "8d3f9c1e-0000-4000-8000-000000000000",
    "date '2024-02-29'": date(2024, 2, 29),
    "timestamp '2024-02-29 03:04:05.678'": datetime(2024, 2, 29, 3, 4, 5, 678000),
    "timestamptz '2024-02-29 03:04:05+02'": datetime(2024, 2, 29, 1, 4, 5, tzinfo=UTC),
    "timestamp_ns '2024-02-29 03:04:05.123456789'": datetime(2024, 2, 29, 3, 4, 5, 123456),
    "time '01:02:03.5'": time(1, 2, 3, 500000),
    "timetz '01:02:03+02'": time(1, 2, 3, tzinfo=timezone(timedelta(hours=2))),
    "time '24:00:00'": "24:00:00",
    "'infinity'::date": date.max,
    "'-infinity'::date": date.min,
    "'infinity'::timestamp": datetime.max,
    "'-infinity'::timestamp": datetime.min,
    "date '290000-01-01'": "290000-01-01",
    "date '0044-03-15 (BC)'": "0044-03-15 (BC)",
    "interval '2 days 3 hours 0.5 seconds'": "P2DT3H0.5S",
    "interval '1 month 2 days'": "P32D",
    "interval (-90) seconds": "-PT1M30S",
    "[1, 2, null]": (1, 2, None),
    "[date '2024-02-29']": (date(2024, 2, 29),),
    "array_value(1, 2)": (1, 2),
    "{'b': 1, 'a': 1.5::decimal(5, 2), 'c': [true]}": FrozenMapping({"a": Decimal("1.50"), "b": 1, "c": (True,)}),
    "row(1, 'x')": (1, "x"),
    "map {'b': 2, 'a': 1}": FrozenMapping({"a": 1, "b": 2}),
    "union_value(number := 1)": 1,
    """'{"b": [1, 2]}'::json""": '{"b": [1, 2]}',
    "len([x for x in range(3) if x > 0])": 2,
    "now() > timestamptz '2000-01-01'": True,
    # Names of functions that change something are words as others.
    "'from checkpoint()'": "from checkpoint()",
    "$$checkpoint()$$ -- checkpoint()\n": "checkpoint()",
    "strftime(timestamptz '2024-02-29 03:04:05+02', '%H')": "01",  # whatever the machine's time zone is
}
READING = [
    "with c as (select 1 as x) select * from c",
    "(select 1 as x)",
    "from concerts select 1 as x where city = 'Graz'",
    'select "query" as x from (select 1 as "query") where query in (1)',
    "select id as x from (pivot concerts on city using count(*) group by id) where id = 1",
    "/* /* */ delete */ select 1 as x -- /*",
    "-- drop\nselect 1 as x",
    "( /* /* '*/ */ select 1 as x)",
    "select query as x,\u2003from (select 1 as query) group by query",  # a space beyond ASCII
]


@pytest.fixture(scope="module")
def kept_hosts():
    """Keep nothing: a child process sees the variables of the environment that a fixture sets."""


def make(path, script=CONCERTS):
    with duckdb.connect(str(path)) as connection:
        connection.execute(script)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with all that statements may attack, in which nothing may change."""
    folder = tmp_path_factory.mktemp("battery")
    make(folder / "all.duckdb", statements("duckdb")["schema"])
    (folder / "next to.csv").write_text("secret\n1\n", encoding="utf-8")
    before = contents(folder)
    yield folder
    assert contents(folder) == before


@pytest.fixture(scope="module")
def file_engine(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        patch.setenv("HOME", "/home/somebody")
        with open_engine(source_of("duckdb", folder, path="all.duckdb")) as engine:
            yield engine


@pytest.fixture(scope="module")
def memory_engine(hosts):
    engine = ENGINES["duckdb"].build(statements("duckdb")["schema"], {}, hosts)
    yield engine
    engine.close()


class TestDuckDB(EngineContract):
    answers = {
        **{f"select {expression} as x": (("x",), [(value,)]) for expression, value in VALUES.items()},
        **{query: (("x",), [(1,)]) for query in READING},
        "values (1)": (("col0",), [(1,)]),
        "table cities order by 1 limit 1": (("city",), [("Graz",)]),
        "select column_name from (describe concerts) limit 1": (("column_name",), [("id",)]),
        "select column_name from (summarize concerts) limit 1": (("column_name",), [("id",)]),
        "pivot concerts on city in ('Graz') using sum(price) group by id order by id limit 1": (
            ("id", "Graz"),
            [(1, 12.5)],
        ),
        "select value from duckdb_settings() where value like '%somebody%'": (("value",), []),  # no environment
    }
    failures = hostile("duckdb")
    rows = "select i from range({count}) t(i)"
    state = "select count(*), min(upper(city)), (select count(*) from orders) from concerts"
    schema = {"concerts": ("id", "city", "price"), "cities": ("city",)}
    max_rows = 100_000

    @pytest.fixture
    def engine(self, file_engine):
        return file_engine

    @pytest.fixture(autouse=True)
    def place(self, folder):
        self.folder = folder

    def filled(self, query):
        return query.replace("{folder}", str(self.folder)).replace("{database}", str(self.folder / "all.duckdb"))

    def broken_sources(self, folder):
        whole = make(folder / "whole.duckdb").read_bytes()
        for start in (16, 4096, 12288):
            (folder / f"{start}.duckdb").write_bytes(whole[:start] + b"\xff" * (len(whole) - start))
            yield source_of("duckdb", folder, path=f"{start}.duckdb"), "Corrupt database file"
        (folder / "later.duckdb").write_bytes(whole[:12] + (99).to_bytes(8, "little") + whole[20:])
        yield source_of("duckdb", folder, path="later.duckdb"), "later.duckdb: "
        for path in ("what?.duckdb", "what?/music.duckdb"):
            yield source_of("duckdb", folder, path=path), "DuckDB takes `?` in a path for"

    def test_nothing_is_created_before_a_query_wherever_comments_seem_to_end(self, engine):
        parts = (statements("duckdb")[name] for name in ("comments", "created", "behind"))
        counted = ("schemas", "secrets", "sequences", "settings", "tables", "types", "views", "variables")
        counts = ", ".join(f"(select count(*) from duckdb_{name}())" for name in counted)
        state = f"select {counts}, (select count(*) from duckdb_functions()), upper('a'), min(city) from concerts"
        before = engine.execute(state, timeout=20, max_rows=1).table.rows

        kinds = {}
        for comment, what, query in product(*parts):
            text = f"{comment}create {what}{query}"
            error = engine.execute(text, timeout=20, max_rows=10).error
            kinds[text] = error and error.kind

        assert set(kinds.values()) <= {"unsafe", "invalid"}, kinds
        assert engine.execute(state, timeout=20, max_rows=1).table.rows == before

    def test_queries_that_need_too_much_memory_leave_enough_for_the_next(self, engine):
        hungry = "select string_agg(repeat('x', 100000), '') from range(1000000)"

        kinds = [engine.execute(hungry, timeout=20, max_rows=10).error.kind for _ in range(4)]
        following = engine.execute("select count(distinct i) from range(3000000) t(i)", timeout=20, max_rows=10)

        assert kinds == ["too_large"] * 4
        assert following.answer.rows == [(3_000_000,)]


class TestDuckDBInMemory(TestDuckDB):
    """A small database, which the child process makes; what limits take does not depend on where it is."""

    failures = {
        kinds: queries[:2] if {"timeout", "too_large"} & {*kinds.split()} else queries
        for kinds, queries in TestDuckDB.failures.items()
    }

    @pytest.fixture
    def engine(self, memory_engine):
        return memory_engine


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make(tmp_path_factory.mktemp("made") / "concerts.duckdb")


@pytest.fixture
def run(hosts, made, tmp_path):
    """Returns the rows of a query on a database of `tmp_path`, or on the one of other settings."""
    shutil.copy(made, tmp_path)  # making one takes longer
    return lambda query, **settings: rows_of(
        hosts, source_of("duckdb", tmp_path, **(settings or {"path": "concerts.duckdb"})), query, max_rows=60_000
    )


@pytest.mark.parametrize(
    ("gold", "predicted", "equal"),
    [
        ("[12345678901234567.89::DECIMAL(38,2)]", "[12345678901234567.88::DECIMAL(38,2)]", False),
        ("[1]", "[1::DOUBLE]", True),
        ("['nan'::DOUBLE]", "['NaN']", False),
        ("[0.1::DOUBLE + 0.2::DOUBLE]", "[0.3::DOUBLE]", True),
        ("[DATE '2024-01-01']", "['2024-01-01']", True),
        ("{'a': 1, 'b': [NULL, 2]}", "{'b': [NULL, 2.0], 'a': 1}", True),
        ("{'a': 1, 'b': 2}", "{'a': 1, 'c': 2}", False),
        ("MAP {1: 0.3::DOUBLE, 2: 1}", "MAP {2: 1, 1: 0.1::DOUBLE + 0.2::DOUBLE}", True),
        ("MAP {1: 1, 2: 1}", "MAP {1: 1, 3: 1}", False),
        ("[[1], []]", "[[1::DOUBLE], []]", True),
        ("[1, 2]", "to_json([1, 2])", True),
    ],
)
def test_lists_structs_and_maps_are_equal_by_their_elements(file_engine, gold, predicted, equal):
    accuracy = METRICS["execution_accuracy"].function
    one, other = (file_engine.execute(f"SELECT {value}", timeout=20, max_rows=9).answer for value in (gold, predicted))

    assert accuracy(one, other) == accuracy(other, one) == equal


@pytest.mark.feature("writes")
def test_suites_with_nested_cells_are_scored_and_shown(tmp_path):
    rows = "(1, ['a'], MAP {'x': 0.3}, {'a': 1, 'b': 1.10}), (2, NULL, MAP {}, NULL)"
    types = "id INT PRIMARY KEY, tags VARCHAR[], m MAP(VARCHAR, DOUBLE), s STRUCT(a INT, b DECIMAL(10, 2))"
    make(tmp_path / "a.duckdb", f"CREATE TABLE t ({types}); INSERT INTO t VALUES {rows};")
    (tmp_path / "a.queryeval.yaml").write_text(
        textwrap.dedent("""\
            kind: sql
            source: {duckdb: a.duckdb}
            cases:
              - id: stated
                gold_table: {columns: [m, s], rows: [[{x: 0.3}, {a: 1, b: 1.1}], [{}, null]]}
                predicted: SELECT m, s FROM t
              - id: ties
                gold: SELECT tags FROM t ORDER BY m['y'] LIMIT 1
                predicted: SELECT tags FROM t WHERE id = 2
              - id: change
                writes: true
                gold: "UPDATE t SET m = MAP {'x': 0.1::DOUBLE + 0.2::DOUBLE} WHERE id = 2"
                predicted: "UPDATE t SET m = MAP {'x': 0.3} WHERE id = 2"
              - {id: other, gold: "SELECT s FROM t WHERE id = 1", predicted: "SELECT {'a': 1, 'b': '1.10'}"}
        """)
    )

    report = evaluate(load_cases(tmp_path), cause="off")

    assert [case["outcome"] for case in report["cases"]] == ["passed", "passed", "passed", "failed"]
    assert report["cases"][3]["difference"]["summary"] == 'gold {"a": 1, "b": 1.10}, predicted {"a": 1, "b": "1.10"}'


def test_messages_do_not_quote_the_query_and_nan_is_none(file_engine, run):
    for query in ("select nowhere", "select\nnowhere"):
        message = file_engine.execute(query, timeout=20, max_rows=1).error.message

        assert message.startswith('Binder Error: Referenced column "nowhere"')
        assert "LINE" not in message
    [[cell]] = run("select 'nan'::double")
    assert cell != cell


def test_what_one_query_leaves_behind_is_gone_for_the_next(run):
    assert run("pivot concerts on city using count(*)")
    types = "select count(*) from duckdb_types() where database_name = 'temp' and type_name like '%pivot%'"

    assert run(types) == [(0,)]


def test_a_block_that_is_damaged_is_a_source_error(run, tmp_path):
    make(tmp_path / "big.duckdb", "create table t as select hash(i) as x from range(300000) t(i)")
    content = bytearray((tmp_path / "big.duckdb").read_bytes())
    middle = len(content) // 2
    content[middle : middle + 8] = b"broken!!"
    (tmp_path / "big.duckdb").write_bytes(content)

    with pytest.raises(SourceError, match="Corrupt database file"):
        run("select sum(x) from t", path="big.duckdb")


def test_a_database_that_another_process_writes_is_a_source_error(run, tmp_path):
    program = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", program, str(tmp_path / "concerts.duckdb")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline() == b"open\n"

        with pytest.raises(SourceError, match="Could not set lock"):
            run("select 1")
        writer.stdin.close()

    assert run("select count(*) from concerts") == [(3,)]


def test_a_write_ahead_log_is_read_and_left_alone(run, tmp_path):
    program = """
        import duckdb, os, sys
        connection = duckdb.connect(sys.argv[1])
        connection.execute("pragma disable_checkpoint_on_shutdown")
        connection.execute("insert into concerts values (4, 'Bonn', 1.0)")
        os._exit(0)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "concerts.duckdb")]
    subprocess.run(command, check=True, timeout=300)
    before = contents(tmp_path)

    assert Path("concerts.duckdb.wal") in before
    assert run("select count(*) from concerts") == [(4,)]
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "script",
    [
        "begin;\ncreate table t (x varchar);\ninsert into t values ('a;\nb');\ncommit;",
        "begin; create table t (x int); insert into t values (2); insert into t values (1); commit",
        "\ufeffcreate table t (x int); insert into t values (1), (2) -- no end",
        "create table t (x int primary key); insert into t values (1); delete from t; insert into t values (1);",
        "create table t (x int); insert into t values (1); alter table t add y int; insert into t values (2, 2);",
        "create table t as from 'next to.csv'; -- it's fine; really\n/* ; ' */",
        "attach ':memory:' as m; create table m.t (x int); insert into m.t values (1); create table t as from m.t;",
        "create table p as pivot (from range(2) r(i)) on i using count(*); create table t as from p; checkpoint;",
        "create table u (x int); -- without t",
    ],
)
def test_scripts_of_all_shapes_are_run(run, tmp_path, script):
    (tmp_path / "next to.csv").write_text("x\n1\n", encoding="utf-8")
    (tmp_path / "t.sql").write_text(script, encoding="utf-8")
    query = "select count(*) = 1 from duckdb_tables()" if "without t" in script else "select count(*) > 0 from t"

    assert run(query, script="t.sql") == [(True,)]


@pytest.mark.parametrize(
    ("script", "place"),
    [
        (
            "create table t (x int);\n\n-- wrong\ninsert into\n  nowhere values (1);\n",
            "4: Catalog Error: Table with name",
        ),
        ("create table t (x int);\ninsert into t values (1);\n\ninsert into t\nvalues ('x');", "4: Conversion Error"),
        ("create table t (x int);\ncreate tabel u (y int);\n", "2: Parser Error: syntax error"),
        ("create table t (x int)\ninsert into t values (1);\n", ".*: end the statement before insert with `;`$"),
        ("select 1; select 1;\nselect 1; select error('boom');", "2: Invalid Input Error: boom$"),
    ],
)
def test_a_failing_script_is_named_with_its_line(run, tmp_path, script, place):
    (tmp_path / "bad.sql").write_text(script)

    with pytest.raises(SourceError, match=rf"^\S*bad\.sql:{place}"):
        run("select 1", script="bad.sql")


@pytest.fixture
def build(hosts):
    """Opens a database in the memory of the child process, and returns what gives the rows of a query there."""

    def built(script):
        engine = ENGINES["duckdb"].build(script, {}, hosts)
        return lambda query: engine.execute(query, timeout=10, max_rows=1000).answer.rows

    return built


def test_a_database_in_memory_is_made_again_after_another_one(build):
    first, second = build("create table t as select 1 as a"), build("create table t as select 2 as b;")

    assert [rows("from t") for rows in (first, second, first, first)] == [[(1,)], [(2,)], [(1,)], [(1,)]]
    assert second("select count(*) from duckdb_tables()") == [(1,)]
    assert first("select current_database() from built.main.t") == [("built",)]
    for script, problem in {
        "create table t (a int primary key); insert into t values (1), (1);": "Constraint Error: ",
        "copy (select 1) to 'out.csv'": "Permission Error: File system LocalFileSystem has been disabled",
        "set lock_configuration = false": "the configuration has been locked",
        "create table": "Parser Error",
    }.items():
        with pytest.raises(SourceError, match=problem):
            build(script)("select 1")
        assert first("from t") == [(1,)]


def test_a_database_in_memory_is_there_again_after_its_process_was_killed(build):
    others = child_processes()
    rows = build(CONCERTS)
    before = rows("from concerts")
    for pid in child_processes() - others:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: child_processes() <= others)  # its threads may end after it

    assert rows("from concerts") == before


@pytest.fixture
def tables_of(hosts, tmp_path):
    """The columns and rows of files, by their names, as tables of one database: it takes long to make one."""

    def read(names):
        with open_engine(source_of("duckdb", tmp_path, tables={name: name for name in names}), hosts) as engine:
            answers = {name: engine.execute(f'from "{name}"', timeout=10, max_rows=1000).answer for name in names}
        return {name: (answer.columns, answer.rows) for name, answer in answers.items()}

    return read


def test_tables_come_from_files_of_all_formats(tables_of, run, tmp_path):
    (tmp_path / "t.csv").write_text('id,name,day\n1,"Graz, Süd",2024-02-29\n2,,2024-03-01\n', encoding="utf-8")
    (tmp_path / "t.tsv").write_text("id\tname\tday\n1\tGraz, Süd\t2024-02-29\n2\t\t2024-03-01\n", encoding="utf-8")
    records = [{"id": 1, "name": "Graz, Süd", "day": "2024-02-29"}, {"id": 2, "name": None, "day": "2024-03-01"}]
    for suffix in ("jsonl", "ndjson"):
        (tmp_path / f"t.{suffix}").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    duckdb.execute(f"copy (from read_csv('{tmp_path}/t.csv')) to '{tmp_path}/t.parquet'")
    names = ["t.csv", "t.tsv", "t.parquet", "t.jsonl", "t.ndjson"]
    rows = [(1, "Graz, Süd", date(2024, 2, 29)), (2, None, date(2024, 3, 1))]

    assert tables_of(names) == dict.fromkeys(names, (("id", "name", "day"), rows))
    tables = {"a": "t.csv", 'the "b"': "t.parquet"}
    assert run('select count(*) from a join "the ""b""" using (id)', tables=tables) == [(2,)]


def test_late_rows_decide_on_the_type_of_a_column(run, tmp_path):
    (tmp_path / "t.csv").write_text("x\n" + "1\n" * 50_000 + "one\n", encoding="utf-8")

    assert run("select count(*), max(x) from t", tables={"t": "t.csv"}) == [(50_001, "one")]


CSV_FILES = (
    ("id,name\n#1,a\n2,b\n", ("id", "name"), [("#1", "a"), ("2", "b")]),
    ("name,town\nAnna,Graz\n", ("name", "town"), [("Anna", "Graz")]),
    ("id,name\n1,'a\n2,b;c\n", ("id", "name"), [(1, "'a"), (2, "b;c")]),
    ("a;b\n1;2\n", ("a;b",), [("1;2",)]),
    ("id,name\n", ("id", "name"), []),
    ('id,name\r\n1,"a\r\n""b"",c"\r\n2,\r\n', ("id", "name"), [(1, 'a\r\n"b",c'), (2, None)]),
    ("id\n1\n\n2\n", ("id",), [(1,), (None,), (2,)]),
    ("a,b\n1,2\n\n3,4\n\n", ("a", "b"), [(1, 2), (3, 4)]),
    ("\ufeffid,name\n1,é", ("id", "name"), [(1, "é")]),
)


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_every_line_of_a_csv_file_is_a_row(tables_of, tmp_path, suffix):
    for number, (content, _, _) in enumerate(CSV_FILES):
        text = content if suffix == "csv" else content.replace(",c", "|c").replace(",", "\t").replace("|", ",")
        (tmp_path / f"{number}.{suffix}").write_text(text, encoding="utf-8", newline="")
    tables = {f"{number}.{suffix}": (columns, rows) for number, (_, columns, rows) in enumerate(CSV_FILES)}

    assert tables_of(tables) == tables


def test_file_names_are_no_patterns(tables_of, tmp_path):
    names = ["a*.csv", "a?.csv", "[ab].csv", "x=1/a.csv", "it's.csv"]
    (tmp_path / "x=1").mkdir()
    (tmp_path / "ab.csv").write_text("y\n1\n2\n", encoding="utf-8")
    for name in names:
        (tmp_path / name).write_text("y\n3\n", encoding="utf-8")

    assert tables_of(names) == dict.fromkeys(names, (("y",), [(3,)]))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("t.csv", b"Report 2024\nid,name\n1,a\n2,b\n", ":2: 2 cells where there is 1 column$"),
        ("t.csv", b"a,b\n1\n1,2,3\n", ":2: 1 cell where there are 2 columns$"),
        ("t.csv", b"id,name\n1,a\n2\n3,c\n", ":3: 1 cell where there are 2 columns$"),
        ("t.csv", b"id,name,x\n1,a\n2,b\n", ":2: 2 cells where there are 3 columns$"),
        ("t.csv", b'id,name\n1,"a\nb"\n2,b,\n', ":4: 3 cells where there are 2 columns$"),
        ("t.csv", b"", ":1: no names of columns in the first line$"),
        ("t.csv", b"\n\na,b\n1,2\n", ":1: no names of columns in the first line$"),
        ("t.csv", b'a,b\n1,2\n3,"x"y\n', ":3: .* expected after .*$"),
        ("t.csv", b'a,b\n1,2\n3,"x\n', ":3: unexpected end of data$"),
        ("t.csv", b"a,b\n1,2\n1,\xff\xfe\n", ": .*(unicode|utf-8)"),
        ("t.parquet", b"no parquet at all", ": .*(magic bytes|too small)"),
        ("t.jsonl", b'{"a": 1}\n{"a": \n', ": .*malformed json"),
        ("gone.csv", None, ": no such file$"),
    ],
)
def test_a_file_that_is_no_table_is_named_with_the_line(hosts, tmp_path, name, content, problem):
    if content is not None:
        (tmp_path / name).write_bytes(content)

    with pytest.raises(SourceError, match=rf"(?i)^\S*{name}{problem}"):
        execute(hosts, source_of("duckdb", tmp_path, tables={"t": name}), "select 1")


@pytest.mark.parametrize(
    ("settings", "setting", "problem"),
    [
        ({"path": ["a", "b"]}, "path", "`path` must be the name of a file"),
        ({"tables": "a.csv"}, "tables", "`tables` must be a mapping of names of tables to names of files"),
        *(
            (settings, setting, f"`{setting}` looks like a URL or a connection string: write the name of a file")
            for url in (
                "postgresql://u:p@h/x.db",
                " postgresql:/u:p@h/x",
                "md:db?motherduck_token=p",
                "user=u password=p",
            )
            for setting, settings in (
                ("path", {"path": url}),
                ("script", {"script": url}),
                ("tables", {"tables": {"b": "b.csv", "a": url}}),
            )
        ),
        ({"tables": {"a": ["a.csv"]}}, "tables", "`tables` must be a mapping"),
        ({"tables": {}}, "tables", "`tables` must be a mapping"),
    ],
)
def test_settings_are_checked_before_anything_is_opened(settings, setting, problem):
    with pytest.raises(SettingError) as caught:
        ENGINES["duckdb"].check(settings)

    assert caught.value.setting == setting
    assert str(caught.value).startswith(problem)


def test_a_missing_package_is_an_error_that_names_the_extra(tmp_path):
    program = """
        import sys
        sys.path[:] = [path for path in sys.path if "-packages" not in path]
        sys.path += sys.argv[1:]
        from pytest_queryeval.core.errors import SettingError
        from pytest_queryeval.features.duckdb.engine import check
        try:
            check({"path": "a.duckdb"})
        except SettingError as error:
            print(error.setting, error)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(Path(__file__).parents[3])]

    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, cwd=tmp_path).stdout

    assert said == "path needs duckdb and pytz: pip install 'pytest-queryeval[duckdb]'\n"


def test_the_schema_has_tables_of_all_schemas_and_foreign_keys(hosts, tmp_path):
    (tmp_path / "s.sql").write_text(
        """create table Halls (id int primary key, Town varchar);
        create table concerts (id int, hall int references halls(id), seats int);
        create table pairs (a int, b int, primary key (a, b));
        create table rows_of_pairs (x int, y int, foreign key (x, y) references pairs(a, b));
        create view towns as select town from halls;
        create schema other; create table other.late (z int); create table other.halls (gone int);"""
    )

    with open_engine(source_of("duckdb", tmp_path, script="s.sql"), hosts) as engine:
        schema = engine.schema(timeout=10)

    assert schema.tables == {
        "halls": ("id", "town"),
        "concerts": ("id", "hall", "seats"),
        "pairs": ("a", "b"),
        "rows_of_pairs": ("x", "y"),
        "towns": ("town",),
        "late": ("z",),
    }
    assert set(schema.foreign_keys) == {
        (("concerts", "hall"), ("halls", "id")),
        (("rows_of_pairs", "x"), ("pairs", "a")),
        (("rows_of_pairs", "y"), ("pairs", "b")),
    }


def test_the_ddl_has_the_statements_as_duckdb_keeps_them(hosts, tmp_path):
    indexes = "create unique index one on Singer (id); create unique index two on other.z (a);"
    more = f"create schema other; create table other.z (a int); {indexes} create index i on other.z (a);"
    (tmp_path / "s.sql").write_text(f"{SCRIPT}; {more}")
    (tmp_path / "empty.sql").touch()

    with open_engine(source_of("duckdb", tmp_path, script="s.sql"), hosts) as engine:
        text = engine.ddl(timeout=20)
    with open_engine(source_of("duckdb", tmp_path, script="empty.sql"), hosts) as engine:
        assert engine.ddl(timeout=20) == ""

    assert [line.split("(")[0].replace('"', "") for line in text.splitlines() if line] == [
        "CREATE TABLE appearance",
        "CREATE VIEW names AS SELECT full name FROM Singer;",
        "CREATE TABLE Singer",
        "CREATE SCHEMA other;",
        "CREATE TABLE other.z",
        "CREATE UNIQUE INDEX one ON Singer",
        "CREATE UNIQUE INDEX two ON other.z",
    ]
    assert "FOREIGN KEY (singer) REFERENCES Singer(id)" in text
    assert "PRIMARY KEY(singer, day)" in text.replace('"', "")


def test_every_setting_and_suffix_is_documented():
    with pytest.raises(SettingError) as caught:
        ENGINES["duckdb"].check({"tables": {"a": "a.xlsx"}})
    suffixes = re.findall(r"\.[a-z]+\b", str(caught.value).partition("suffixes are")[2])

    assert len(suffixes) == 5
    assert [name for name in ENGINES["duckdb"].settings if f"| `{name}` |" not in DOCS] == []
    assert [suffix for suffix in suffixes if f"`{suffix}`" not in DOCS] == []
