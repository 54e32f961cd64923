"""What holds for every engine whose database is one file: those in the registry that know its write-ahead log."""

import os
import re
import shutil
import sqlite3
from contextlib import closing

import duckdb
import pytest

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.sandbox.driver import strip_trailing_semicolons

SCHEMA = """
    create table concerts (id integer primary key, city varchar(40), price double precision);
    insert into concerts values (1, 'Graz', 12.5), (2, 'Wien', null), (3, 'Linz', 8.0);
"""
# What people take for a database, by what is to be said of it.
CONTENTS = {
    "a text file: if it holds a table, write `source: {duckdb: {tables: {TABLE: FILE}}}`": b"id,name\n1,Graz\n",
    "a text file with SQL: write `source: {ENGINE: {script: FILE}}`": b"-- tables\nCREATE TABLE a (x int);\n",
    "a ZIP archive or a workbook: unpack it": b"PK\x03\x04\x14\x00",
    "compressed by gzip: unpack it": b"\x1f\x8b\x08\x00",
    "a pointer of Git LFS: fetch the file with `git lfs pull`": b"version https://git-lfs.github.com/spec/v1\n",
    "a Parquet file: name it under `duckdb: {tables: {TABLE: FILE}}`": b"PAR1\x15\x04",
}
NAMES = [name for name in ENGINES.available() if ENGINES[name].fingerprint.wal_suffix]
MAKERS = {"sqlite": sqlite3.connect, "duckdb": duckdb.connect}
# More than the driver of an engine keeps open.
MANY = {"sqlite": 70, "duckdb": 34}


@pytest.fixture(scope="module", params=NAMES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def made(name, tmp_path_factory):
    return make(name, tmp_path_factory.mktemp("made") / "concerts.db")


@pytest.fixture
def run(name, hosts, made, tmp_path):
    """Executes a query on a database of `tmp_path`."""

    def execute(query, path="concerts.db", max_rows=1000):
        engine = opened(name, hosts, tmp_path, path=path)
        try:
            return engine.execute(query, timeout=10, max_rows=max_rows)
        finally:
            engine.close()

    shutil.copy(made, tmp_path)
    return execute


def opened(name, hosts, folder, **settings):
    return ENGINES[name].open(Source(name="music", engine=name, settings=settings, folder=folder), hosts)


def make(name, path, script=SCHEMA):
    with closing(MAKERS[name](path)) as connection:
        for statement in script.split(";\n"):
            connection.execute(statement)
        connection.commit()
    return path


def test_select_gives_columns_and_rows_as_tuples(name, run):
    execution = run("select id, city, price from concerts order by id")

    assert execution.error is None
    assert execution.engine == name
    assert execution.seconds > 0
    assert execution.answer.columns == ("id", "city", "price")
    assert execution.answer.rows == [(1, "Graz", 12.5), (2, "Wien", None), (3, "Linz", 8.0)]


def test_columns_are_known_without_rows(run):
    answer = run("select id, city as town from concerts where 1 = 0").answer

    assert (answer.columns, answer.rows) == (("id", "town"), [])


@pytest.mark.parametrize("end", [";", ";;", " ; -- done", "; /* done */", " -- done;", "\n;\n"])
def test_semicolons_and_comments_may_follow(run, end):
    assert run(f"select 1{end}").answer.rows == [(1,)]


def test_no_break_spaces_may_follow_a_semicolon():
    assert strip_trailing_semicolons("select 1;\u00a0") == "select 1"


def test_a_bracket_that_does_not_end_takes_all_that_follows():
    query = "select 1; " + "[;" * 10_000

    assert strip_trailing_semicolons(query) == query


@pytest.mark.parametrize("query", ["", "  ", "\n\t\n"])
def test_no_text_is_empty(run, query):
    execution = run(query)

    assert (execution.answer, execution.error.kind) == (None, "empty")


def test_max_rows_is_the_most_that_is_allowed(run):
    numbers = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 300) select i from n"

    assert len(run(numbers, max_rows=300).answer.rows) == 300
    assert run(numbers, max_rows=299).error.message == "more than 299 rows: raise `max_rows` if there may be more"


def test_replaced_database_is_opened_again(name, run, tmp_path):
    run("select 1")

    make(name, tmp_path / "new.db", "create table concerts (x integer)").replace(tmp_path / "concerts.db")

    assert run("select count(*) from concerts").answer.rows == [(0,)]


@pytest.mark.long
def test_more_databases_than_are_kept_open_can_be_used(name, run, tmp_path):
    many = range(MANY[name])
    paths = [make(name, tmp_path / f"{number}.db", f"create table t as select {number} as x").name for number in many]

    answers = [run("select x from t", path).answer.rows for path in paths * 2]

    assert answers == [[(number,)] for number in many] * 2


@pytest.mark.parametrize("path", ["a b.db", "100%.db", "a#b", "ü.db", "a&mode=rwc.db", "a;b='c'.db"])
def test_any_file_name_will_do(run, made, tmp_path, path):
    shutil.copy(made, tmp_path / path)

    assert run("select count(*) from concerts", path).answer.rows == [(3,)]


def test_missing_file_is_named_and_not_created(run, tmp_path):
    with pytest.raises(SourceError, match=r"^source 'music': .*gone\.db: no such file$"):
        run("select 1", "gone.db")

    assert not (tmp_path / "gone.db").exists()


@pytest.mark.parametrize(
    ("content", "reason"), [(b"", "the file is empty"), (b"no database at all" * 999, "(?i)not a .*database")]
)
def test_file_that_is_no_database_is_a_source_error(run, tmp_path, content, reason):
    (tmp_path / "other.db").write_bytes(content)

    with pytest.raises(SourceError, match=reason):
        run("select 1", "other.db")


def test_directory_is_a_source_error(run):
    with pytest.raises(SourceError, match="a directory, not a file"):
        run("select 1", ".")


def test_pipe_is_a_source_error(run, tmp_path):
    os.mkfifo(tmp_path / "pipe.db")

    with pytest.raises(SourceError, match="not a regular file"):
        run("select 1", "pipe.db")


def test_script_is_built_into_a_file_that_close_removes(name, hosts, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    (tmp_path / "concerts.sql").write_text(SCHEMA)

    with closing(opened(name, hosts, tmp_path, script="concerts.sql")) as engine:
        rows = engine.execute("select count(*) from concerts", timeout=10, max_rows=10).answer.rows
        write = engine.execute("delete from concerts", timeout=10, max_rows=10)
        built = [path for path in temporary.rglob("*") if path.is_file()]
    engine.close()

    assert rows == [(3,)]
    assert write.error.kind == "unsafe"
    assert len(built) == 1
    assert list(temporary.iterdir()) == []


def test_missing_script_is_named(name, hosts, tmp_path):
    with pytest.raises(SourceError, match=r"gone\.sql: no such file$"):
        opened(name, hosts, tmp_path, script="gone.sql")


def test_script_that_is_not_utf8_is_named(name, hosts, tmp_path):
    (tmp_path / "bad.sql").write_bytes(b"select '\xff';")

    with pytest.raises(SourceError, match=r"bad\.sql: .*utf-8"):
        opened(name, hosts, tmp_path, script="bad.sql")


def test_schema_of_a_missing_database_is_a_source_error(name, hosts, tmp_path):
    with pytest.raises(SourceError, match=r"^source 'music': .*gone\.db: no such file$"):
        opened(name, hosts, tmp_path, path="gone.db").schema(timeout=10)


def test_messages_are_one_short_line_without_control_characters(run):
    error = run('select "' + "\x1b[2J\r\n" * 1000 + '" from concerts, nowhere').error

    assert error.message.isprintable()
    assert len(error.message) <= 300


@pytest.mark.parametrize("content", CONTENTS)
def test_a_file_that_is_no_database_is_called_what_it_is(name, run, tmp_path, content):
    (tmp_path / "taken.db").write_bytes(CONTENTS[content])
    term = re.escape(content.replace("ENGINE", name))

    with pytest.raises(SourceError, match=rf"taken\.db: not a (SQLite|DuckDB) database, but {term}$"):
        run("select 1", path="taken.db")


def test_a_file_of_bytes_that_mean_nothing_is_only_called_no_database(run, tmp_path):
    (tmp_path / "taken.db").write_bytes(bytes(range(256)) * 4)

    with pytest.raises(SourceError, match=r"taken\.db: not a (SQLite|DuckDB) database$"):
        run("select 1", path="taken.db")


@pytest.mark.feature("duckdb")
def test_a_database_of_another_engine_is_named(name, run, tmp_path):
    second = next(other for other in NAMES if other != name)
    make(second, tmp_path / "taken.db")

    with pytest.raises(SourceError, match=rf"(?i)database, but a {second} database: name it under `{second}`"):
        run("select 1", path="taken.db")
