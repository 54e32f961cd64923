import os
import shutil
import signal
import subprocess
import sys
import textwrap
from contextlib import closing
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import partial
from pathlib import Path

import duckdb
import pytest
from waiting import wait_for

import pytest_queryeval
from pytest_queryeval.core.errors import SettingError, SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.core.table import FrozenMapping
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.features.duckdb.engine import DRIVER, READERS, SETTINGS
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy
from pytest_queryeval.sandbox.host import Host, Hosts

pytestmark = pytest.mark.process

SCHEMA = """
    create table concerts (id integer primary key, city varchar, price double);
    insert into concerts values (1, 'Graz', 12.5), (2, 'Wien', null), (3, 'Linz', 8.0);
    create view cities as select distinct city from concerts;
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make(tmp_path_factory.mktemp("made") / "concerts.duckdb")


@pytest.fixture
def run(hosts, made, tmp_path):
    """Executes a query on a database of `tmp_path`, or on the one of other settings."""

    def execute(query, timeout=10, max_rows=1000, **settings):
        engine = opened(hosts, tmp_path, **(settings or {"path": "concerts.duckdb"}))
        try:
            return engine.execute(query, timeout=timeout, max_rows=max_rows)
        finally:
            engine.close()

    shutil.copy(made, tmp_path)  # making one takes longer
    return execute


def opened(hosts, folder, **settings):
    return ENGINES["duckdb"].open(Source(name="music", engine="duckdb", settings=settings, folder=folder), hosts)


@pytest.fixture
def tables_of(hosts, tmp_path):
    """The columns and rows of files, by their names, as tables of one database: it takes long to make one."""

    def read(names):
        engine = opened(hosts, tmp_path, tables={name: name for name in names})
        try:
            answers = {name: engine.execute(f'from "{name}"', timeout=10, max_rows=1000).answer for name in names}
        finally:
            engine.close()
        return {name: (answer.columns, answer.rows) for name, answer in answers.items()}

    return read


def make(path, script=SCHEMA):
    with duckdb.connect(str(path)) as connection:
        connection.execute(script)
    return path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def failure(execution):
    assert execution.answer is None
    return execution.error


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("null", None),
        ("true", True),
        ("9223372036854775807", 2**63 - 1),
        ("170141183460469231731687303715884105727::hugeint", 2**127 - 1),
        ("340282366920938463463374607431768211455::uhugeint", 2**128 - 1),
        ("1.50::decimal(10, 2)", Decimal("1.50")),
        ("1e999::double", float("inf")),
        ("0.5::float", 0.5),
        ("'naïve 🎻'", "naïve 🎻"),
        ("'a' || chr(0) || 'b'", "a\0b"),
        ("'\\x00\\xFF'::blob", b"\x00\xff"),
        ("'0101'::bit", "0101"),
        ("'b'::enum('a', 'b')", "b"),
        ("'8d3f9c1e-0000-4000-8000-000000000000'::uuid", "8d3f9c1e-0000-4000-8000-000000000000"),
        ("date '2024-02-29'", date(2024, 2, 29)),
        ("timestamp '2024-02-29 03:04:05.678'", datetime(2024, 2, 29, 3, 4, 5, 678000)),
        ("timestamptz '2024-02-29 03:04:05+02'", datetime(2024, 2, 29, 1, 4, 5, tzinfo=UTC)),
        ("timestamp_ns '2024-02-29 03:04:05.123456789'", datetime(2024, 2, 29, 3, 4, 5, 123456)),
        ("time '01:02:03.5'", time(1, 2, 3, 500000)),
        ("timetz '01:02:03+02'", time(1, 2, 3, tzinfo=timezone(timedelta(hours=2)))),
        ("time '24:00:00'", "24:00:00"),
        ("'infinity'::date", date.max),
        ("'-infinity'::date", date.min),
        ("'infinity'::timestamp", datetime.max),
        ("'-infinity'::timestamp", datetime.min),
        ("date '290000-01-01'", "290000-01-01"),
        ("date '0044-03-15 (BC)'", "0044-03-15 (BC)"),
        ("interval '2 days 3 hours 0.5 seconds'", "P2DT3H0.5S"),
        ("interval '1 month 2 days'", "P32D"),
        ("interval (-90) seconds", "-PT1M30S"),
        ("[1, 2, null]", (1, 2, None)),
        ("[date '2024-02-29']", (date(2024, 2, 29),)),
        ("array_value(1, 2)", (1, 2)),
        ("{'b': 1, 'a': 1.5::decimal(5, 2), 'c': [true]}", FrozenMapping({"a": Decimal("1.50"), "b": 1, "c": (True,)})),
        ("row(1, 'x')", (1, "x")),
        ("map {'b': 2, 'a': 1}", FrozenMapping({"a": 1, "b": 2})),
        ("union_value(number := 1)", 1),
        ("""'{"b": [1, 2]}'::json""", '{"b": [1, 2]}'),
    ],
)
def test_values_become_cells(run, expression, value):
    [[cell]] = run(f"select {expression}").answer.rows

    assert (type(cell), cell) == (type(value), value)


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
def test_lists_structs_and_maps_are_equal_by_their_elements(run, gold, predicted, equal):
    answers = [run(f"SELECT {value}").answer for value in (gold, predicted)]

    assert execution_accuracy(*answers) == execution_accuracy(*reversed(answers)) == equal


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

    report = pytest_queryeval.evaluate(pytest_queryeval.load_cases(tmp_path), cause="off")

    assert [case["outcome"] for case in report["cases"]] == ["passed", "passed", "passed", "failed"]
    assert report["cases"][3]["difference"]["summary"] == 'gold {"a": 1, "b": 1.10}, predicted {"a": 1, "b": "1.10"}'


def test_nan_is_a_number_that_is_none(run):
    [[cell]] = run("select 'nan'::double").answer.rows

    assert cell != cell


def test_times_with_a_zone_do_not_depend_on_the_machine(tmp_path, monkeypatch):
    make(tmp_path / "concerts.duckdb")
    monkeypatch.setenv("TZ", "Asia/Tokyo")

    with Hosts() as fresh:
        engine = opened(fresh, tmp_path, path="concerts.duckdb")
        rows = engine.execute("select strftime(timestamptz '2024-02-29 03:04:05+02', '%H')", timeout=10, max_rows=1)

    assert rows.answer.rows == [("01",)]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("with c as (select 1) select * from c", [(1,)]),
        ("(select 1)", [(1,)]),
        ("values (1)", [(1,)]),
        ("from concerts select count(*)", [(3,)]),
        ("from cities where city = 'Graz'", [("Graz",)]),
        ("table cities order by 1 limit 1", [("Graz",)]),
        ("select column_name from (describe concerts) limit 1", [("id",)]),
        ("select name from (show tables)", [("cities",), ("concerts",)]),
        ("select column_name from (summarize concerts) limit 1", [("id",)]),
        ("select len([x for x in range(3) if x > 0])", [(2,)]),
        ("select now() > timestamptz '2000-01-01'", [(True,)]),
    ],
)
def test_whatever_reads_is_allowed(run, query, rows):
    assert run(query).answer.rows == rows


@pytest.mark.parametrize(
    "query",
    [
        "select 'from checkpoint()'",
        "select $$checkpoint()$$ -- checkpoint()",
        'select "query" from (select 1 as "query") where query in (1)',
        "from pragma_version()",
    ],
)
def test_names_of_functions_that_change_something_are_words_as_others(run, query):
    assert len(run(query).answer.rows) == 1


@pytest.mark.parametrize("query", ["describe concerts", "show tables", "show concerts", "summarize concerts"])
def test_statements_that_tell_of_tables_have_answers(run, query):
    assert run(query).answer.rows


@pytest.mark.parametrize("start", ["", "/* ( */ -- (\n ", "from (", "select * from (", "with w as (from ("])
def test_pivot_is_allowed(run, start):
    end = ")" * start.replace("/* ( */ -- (", "").count("(") + (" from w" if start.startswith("with") else "")

    answer = run(f"{start}pivot concerts on city using count(*) group by id{end} order by id").answer

    assert answer.columns == ("id", "Graz", "Linz", "Wien")
    assert answer.rows[0] == (1, 1, 0, 0)


def test_pivot_with_values_and_unpivot_are_allowed(run):
    assert run("pivot concerts on city in ('Graz') using sum(price) group by id order by id").answer.rows[0] == (
        1,
        12.5,
    )
    assert len(run("unpivot concerts on id into name n value v").answer.rows) == 3


def test_what_one_query_leaves_behind_is_gone_for_the_next(run):
    first = run("pivot concerts on city using count(*)")
    types = run("select count(*) from duckdb_types() where database_name = 'temp' and type_name like '%pivot%'")

    assert first.answer
    assert types.answer.rows == [(0,)]


def test_messages_do_not_quote_the_query(run):
    assert failure(run("select nowhere")).message.startswith('Binder Error: Referenced column "nowhere"')
    assert "LINE" not in failure(run("select\nnowhere")).message


def test_large_answers_arrive_whole(run):
    rows = run("select i, 'text ' || i from range(50000) t(i)", max_rows=50_000).answer.rows

    assert rows == [(number, f"text {number}") for number in range(50_000)]


def test_environment_is_out_of_reach(tmp_path, monkeypatch):
    make(tmp_path / "concerts.duckdb")
    monkeypatch.setenv("HOME", "/home/somebody")

    with Hosts() as fresh:
        engine = opened(fresh, tmp_path, path="concerts.duckdb")
        execution = engine.execute("select value from duckdb_settings()", timeout=10, max_rows=1000)

    assert "somebody" not in str(execution.answer.rows)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"x", "not a DuckDB database"),
        (b"SQLite format 3\0" * 999, "not a DuckDB database, but a SQLite database"),
    ],
)
def test_file_that_is_no_database_is_a_source_error(run, tmp_path, content, reason):
    (tmp_path / "other.duckdb").write_bytes(content)

    with pytest.raises(SourceError, match=reason):
        run("select 1", path="other.duckdb")


@pytest.mark.parametrize("start", [16, 4096, 12288])
def test_damaged_database_is_a_source_error(run, tmp_path, start):
    content = (tmp_path / "concerts.duckdb").read_bytes()
    (tmp_path / "torn.duckdb").write_bytes(content[:start] + b"\xff" * (len(content) - start))

    with pytest.raises(SourceError, match="Corrupt database file"):
        run("select * from concerts", path="torn.duckdb")


def test_block_that_is_damaged_is_a_source_error(run, tmp_path):
    make(tmp_path / "big.duckdb", "create table t as select hash(i) as x from range(300000) t(i)")
    content = bytearray((tmp_path / "big.duckdb").read_bytes())
    middle = len(content) // 2
    content[middle : middle + 8] = b"broken" + b"!!"
    (tmp_path / "big.duckdb").write_bytes(content)

    with pytest.raises(SourceError, match="Corrupt database file"):
        run("select sum(x) from t", path="big.duckdb")


def test_database_of_a_later_version_is_a_source_error(run, tmp_path):
    content = bytearray((tmp_path / "concerts.duckdb").read_bytes())
    content[12:20] = (99).to_bytes(8, "little")
    (tmp_path / "later.duckdb").write_bytes(content)

    with pytest.raises(SourceError, match=r"later\.duckdb: "):
        run("select 1", path="later.duckdb")


def test_database_that_another_process_writes_is_a_source_error(run, tmp_path):
    program = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", program, str(tmp_path / "concerts.duckdb")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline() == b"open\n"

        with pytest.raises(SourceError, match="Could not set lock"):
            run("select 1")
        writer.stdin.close()

    assert run("select count(*) from concerts").answer.rows == [(3,)]


def test_write_ahead_log_is_read_and_left_alone(run, tmp_path):
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

    rows = run("select count(*) from concerts").answer.rows

    assert "concerts.duckdb.wal" in before
    assert rows == [(4,)]
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "script",
    [
        "begin;\ncreate table t (x varchar);\ninsert into t values ('a;\nb');\ncommit;",
        "begin; create table t (x int); insert into t values (2); insert into t values (1); commit",
        "\ufeffcreate table t (x int); insert into t values (1), (2) -- no end",
        "create table t (x int primary key); insert into t values (1); delete from t; insert into t values (1);",
        "create table t (x int); insert into t values (1); alter table t add y int; insert into t values (2, 2);",
        "create table t as from 'beside.csv'; -- it's fine; really\n/* ; ' */",
        "attach ':memory:' as m; create table m.t (x int); insert into m.t values (1); create table t as from m.t;",
        "create table p as pivot (from range(2) r(i)) on i using count(*); create table t as from p; checkpoint;",
    ],
)
def test_scripts_of_all_shapes_are_run(run, tmp_path, script):
    (tmp_path / "beside.csv").write_text("x\n1\n", encoding="utf-8")
    (tmp_path / "t.sql").write_text(script, encoding="utf-8")

    assert run("select count(*) > 0 from t", script="t.sql").answer.rows == [(True,)]


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
def test_failing_script_is_named_with_its_line(hosts, tmp_path, script, place):
    (tmp_path / "bad.sql").write_text(script)

    with pytest.raises(SourceError, match=rf"^\S*bad\.sql:{place}"):
        opened(hosts, tmp_path, script="bad.sql")


def test_empty_script_makes_an_empty_database(run, tmp_path):
    (tmp_path / "empty.sql").write_text("-- nothing")

    assert run("select count(*) from duckdb_tables()", script="empty.sql").answer.rows == [(0,)]


@pytest.fixture
def build(hosts):
    """Opens a database in the memory of the child process, and returns what executes a query there."""
    return lambda script: partial(ENGINES["duckdb"].build(script, {}, hosts).execute, timeout=10, max_rows=1000)


def test_a_database_in_memory_is_made_again_after_another_one(build):
    first, second = build("create table t as select 1 as a"), build("create table t as select 2 as b;")
    tables = "select count(*) from duckdb_tables()"

    assert [run("from t").answer.rows for run in (first, second, first, first)] == [[(1,)], [(2,)], [(1,)], [(1,)]]
    assert second(tables).answer.rows == [(1,)]
    assert first("select current_database() from built.main.t").answer.rows == [("built",)]


def test_a_database_in_memory_is_only_read_and_sees_no_files(build, tmp_path):
    run = build(SCHEMA)
    (tmp_path / "beside.csv").write_text("secret\n1\n", encoding="utf-8")

    writes = (
        "insert into concerts values (4, 'x', 1)",
        "create table t (a int)",
        "with w as (select 1) delete from cities",
    )
    assert {run(query).error.kind for query in writes} == {"unsafe"}
    assert run(f"from '{tmp_path}/beside.csv'").answer is None
    assert run("pivot concerts on city using count(*)").answer.rows
    assert run("select count(*) from concerts").answer.rows == [(3,)]


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("create table t (a int); insert into t values (1, 2);", "Binder Error: .*has 1 columns"),
        ("create table t (a int primary key); insert into t values (1), (1);", "Constraint Error: "),
        ("copy (select 1) to 'out.csv'", "Permission Error: File system LocalFileSystem has been disabled"),
        ("set lock_configuration = false", "the configuration has been locked"),
        ("create table", "Parser Error"),
    ],
)
def test_a_script_that_fails_in_memory_is_a_source_error_and_no_harm_to_the_next(build, script, problem):
    with pytest.raises(SourceError, match=problem):
        build(script)("select 1")
    assert build(SCHEMA)("select count(*) from concerts").answer.rows == [(3,)]


def test_a_database_in_memory_is_there_again_after_its_process_was_killed(hosts, build):
    run = build(SCHEMA)
    before = run("from concerts").answer.rows
    host = hosts.shared(Host("duckdb", DRIVER))
    os.kill(host.pid, signal.SIGKILL)
    wait_for(lambda: host.pid is None)  # its threads may end after it

    assert run("from concerts").answer.rows == before


def test_missing_file_of_a_table_is_named(hosts, tmp_path):
    with pytest.raises(SourceError, match=r"gone\.csv: no such file$"):
        opened(hosts, tmp_path, tables={"t": "gone.csv"})


@pytest.fixture
def files(tmp_path):
    """The same table in all formats."""
    (tmp_path / "t.csv").write_text('id,name,day\n1,"Graz, Süd",2024-02-29\n2,,2024-03-01\n', encoding="utf-8")
    (tmp_path / "t.tsv").write_text("id\tname\tday\n1\tGraz, Süd\t2024-02-29\n2\t\t2024-03-01\n", encoding="utf-8")
    lines = '{"id": 1, "name": "Graz, Süd", "day": "2024-02-29"}\n{"id": 2, "name": null, "day": "2024-03-01"}\n'
    (tmp_path / "t.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "t.ndjson").write_text(lines, encoding="utf-8")
    duckdb.execute(f"copy (from read_csv('{tmp_path}/t.csv')) to '{tmp_path}/t.parquet'")


@pytest.mark.usefixtures("files")
def test_tables_come_from_files_of_all_formats(tables_of):
    names = ["t.csv", "t.tsv", "t.parquet", "t.jsonl", "t.ndjson"]
    rows = [(1, "Graz, Süd", date(2024, 2, 29)), (2, None, date(2024, 3, 1))]

    assert tables_of(names) == dict.fromkeys(names, (("id", "name", "day"), rows))


@pytest.mark.usefixtures("files")
def test_several_files_become_tables_of_one_database(run):
    tables = {"a": "t.csv", 'the "b"': "t.parquet"}

    assert run('select count(*) from a join "the ""b""" using (id)', tables=tables).answer.rows == [(2,)]


def test_first_line_names_the_columns_also_where_all_is_text(run, tmp_path):
    (tmp_path / "t.csv").write_text("name,city\nAnna,Graz\n", encoding="utf-8")

    assert run("from t", tables={"t": "t.csv"}).answer.columns == ("name", "city")


def test_late_rows_decide_on_the_type_of_a_column(run, tmp_path):
    (tmp_path / "t.csv").write_text("x\n" + "1\n" * 50_000 + "one\n", encoding="utf-8")

    assert run("select count(*), max(x) from t", tables={"t": "t.csv"}).answer.rows == [(50_001, "one")]


CSV_FILES = (
    ("id,name\n#1,a\n2,b\n", ("id", "name"), [("#1", "a"), ("2", "b")]),
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


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("Report 2024\nid,name\n1,a\n2,b\n", 2, "2 cells where there is 1 column"),
        ("a,b\n1\n1,2,3\n", 2, "1 cell where there are 2 columns"),
        ("id,name\n1,a\n2\n3,c\n", 3, "1 cell where there are 2 columns"),
        ("id,name,x\n1,a\n2,b\n", 2, "2 cells where there are 3 columns"),
        ('id,name\n1,"a\nb"\n2,b,\n', 4, "3 cells where there are 2 columns"),
        ("", 1, "no names of columns in the first line"),
        ("\n\na,b\n1,2\n", 1, "no names of columns in the first line"),
        ('a,b\n1,2\n3,"x"y\n', 3, ".* expected after .*"),
        ('a,b\n1,2\n3,"x\n', 3, "unexpected end of data"),
    ],
)
def test_a_csv_file_that_is_no_table_is_named_with_the_line(hosts, tmp_path, content, line, reason):
    (tmp_path / "t.csv").write_text(content, encoding="utf-8")

    with pytest.raises(SourceError, match=rf"^\S*t\.csv:{line}: {reason}$"):
        opened(hosts, tmp_path, tables={"t": "t.csv"})


def test_a_name_that_the_locale_cannot_express_is_one_line(tmp_path):
    program = """
        from pathlib import Path
        from pytest_queryeval.engines.settings import absolute
        from pytest_queryeval.core.errors import SourceError
        try:
            absolute(Path.cwd(), "caf\\u00e9.db")
        except SourceError as error:
            print(error)
    """
    environment = {**os.environ, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "'caf\\xe9.db': not a file name in this locale (ascii): set PYTHONUTF8=1\n"


def test_file_names_are_no_patterns(tables_of, tmp_path):
    names = ["a*.csv", "a?.csv", "[ab].csv", "x=1/a.csv", "it's.csv"]
    (tmp_path / "x=1").mkdir()
    (tmp_path / "ab.csv").write_text("y\n1\n2\n", encoding="utf-8")
    for name in names:
        (tmp_path / name).write_text("y\n3\n", encoding="utf-8")

    assert tables_of(names) == dict.fromkeys(names, (("y",), [(3,)]))


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("bad.csv", b"a,b\n1,2\n1,\xff\xfe\n", "unicode|utf-8"),
        ("bad.parquet", b"no parquet at all", "magic bytes|too small"),
        ("bad.jsonl", b'{"a": 1}\n{"a": \n', "malformed json"),
    ],
)
def test_file_that_cannot_be_read_is_named(hosts, tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)

    with pytest.raises(SourceError, match=rf"(?i)^\S*{name}: .*({reason})"):
        opened(hosts, tmp_path, tables={"t": name})


@pytest.mark.parametrize(
    ("settings", "setting", "problem"),
    [
        ({}, "path", "duckdb: expected one of path, script and tables, found none"),
        (
            {"path": "a.duckdb", "script": "a.sql"},
            "path",
            "duckdb: expected one of path, script and tables, found path and script",
        ),
        ({"file": "a.duckdb"}, "file", "unknown setting 'file'"),
        ({"path": ["a", "b"]}, "path", "'path' is not the name of a file"),
        ({"tables": "a.csv"}, "tables", "'tables' is not a mapping of names of tables to names of files"),
        *(
            (settings, setting, f"'{setting}' looks like a URL or a connection string, not a file")
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
        ({"tables": {"a": ["a.csv"]}}, "tables", "'tables' is not a mapping"),
        ({"tables": {}}, "tables", "'tables' is not a mapping"),
        ({"tables": {"a": "a.xlsx"}}, "tables", "cannot tell the format of 'a.xlsx': known suffixes are .csv, .tsv"),
    ],
)
def test_settings_are_checked_before_anything_is_opened(settings, setting, problem):
    with pytest.raises(SettingError) as caught:
        ENGINES["duckdb"].check(settings)

    assert caught.value.setting == setting
    assert str(caught.value).startswith(problem)


def test_missing_package_is_an_error_that_names_the_extra(tmp_path):
    program = """
        import sys
        sys.path[:] = [path for path in sys.path if "-packages" not in path]
        sys.path += sys.argv[1:]
        from pytest_queryeval.features.duckdb.engine import check
        from pytest_queryeval.core.errors import SettingError
        try:
            check({"path": "a.duckdb"})
        except SettingError as error:
            print(error.setting, error)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(Path(pytest_queryeval.__file__).parents[1])]

    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, cwd=tmp_path).stdout

    assert said == "path needs duckdb and pytz: pip install 'pytest-queryeval[duckdb]'\n"


def test_schema_tells_tables_columns_and_foreign_keys(hosts, tmp_path):
    (tmp_path / "s.sql").write_text(
        """create table Halls (id int primary key, Town varchar);
        create table concerts (id int, hall int references halls(id), seats int);
        create table pairs (a int, b int, primary key (a, b));
        create table rows_of_pairs (x int, y int, foreign key (x, y) references pairs(a, b));
        create view towns as select town from halls;
        create schema other; create table other.late (z int); create table other.halls (gone int);"""
    )

    with closing(opened(hosts, tmp_path, script="s.sql")) as engine:
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


@pytest.mark.parametrize("path", ["what?.duckdb", "what?/music.duckdb"])
def test_a_question_mark_in_the_path_is_named_as_what_duckdb_cannot_read(hosts, tmp_path, path):
    source = Source(name="music", engine="duckdb", settings={"path": path}, folder=tmp_path)

    with pytest.raises(SourceError, match=r"^source 'music': .*: DuckDB takes `\?` in a path for .*: rename the file"):
        ENGINES["duckdb"].open(source, hosts)


def test_parent_never_loads_duckdb(tmp_path):
    (tmp_path / "t.csv").write_text("x\n1\n", encoding="utf-8")
    program = """
        import sys
        from contextlib import closing
        from pathlib import Path
        from pytest_queryeval.engines import ENGINES
        from pytest_queryeval.sandbox.host import Hosts
        from pytest_queryeval.core.model import Source
        source = Source(name="t", engine="duckdb", settings={"tables": {"t": "t.csv"}}, folder=Path.cwd())
        with Hosts() as hosts, closing(ENGINES["duckdb"].open(source, hosts)) as engine:
            print(engine.execute("from t", timeout=10, max_rows=10).answer.rows, "duckdb" in sys.modules)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]

    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, cwd=tmp_path).stdout

    assert said == "[(1,)] False\n"


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_setting_is_documented(setting):
    page = (Path(__file__).parents[3] / "docs" / "duckdb.md").read_text(encoding="utf-8")

    assert f"| `{setting}` |" in page


@pytest.mark.parametrize("suffix", READERS)
def test_every_suffix_is_documented(suffix):
    page = (Path(__file__).parents[3] / "docs" / "duckdb.md").read_text(encoding="utf-8")

    assert f"`{suffix}`" in page
