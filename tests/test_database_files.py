"""What holds for every engine whose database is one file: those in the registry that know its write-ahead log."""

import os
import shutil
import sqlite3
from contextlib import closing

import duckdb
import pytest
from opened_sources import execute, rows_of, source_of

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.testing import open_engine

SCHEMA = """
    create table concerts (id integer primary key, city varchar(40), price double precision);
    insert into concerts values (1, 'Graz', 12.5), (2, 'Wien', null), (3, 'Linz', 8.0);
"""
COUNT = "select count(*) from concerts"
NAMES = [name for name in ENGINES.available() if ENGINES[name].fingerprint.wal_suffix]
MAKERS = {"sqlite": sqlite3.connect, "duckdb": duckdb.connect}
MANY = {"sqlite": 70, "duckdb": 34}  # more than the driver of an engine keeps open
# What people take for a database, and what is said of it.
CONTENTS = {
    b"": "the file is empty",
    b"id,name\n1,Graz\n": "a text file: if it contains a table, write `source: {duckdb: {tables: {TABLE: FILE}}}`",
    b"-- tables\nCREATE TABLE a (x int);\n": "a text file with SQL: write `source: {ENGINE: {script: FILE}}`",
    b"PK\x03\x04\x14\x00": "a ZIP archive or a workbook: unpack it",
    b"\x1f\x8b\x08\x00": "compressed by gzip: unpack it",
    b"version https://git-lfs.github.com/spec/v1\n": "a pointer of Git LFS: fetch the file with `git lfs pull`",
    b"PAR1\x15\x04": "a Parquet file: name it under `duckdb: {tables: {TABLE: FILE}}`",
    bytes(range(256)) * 4: " database",  # and nothing else
}


@pytest.fixture(scope="module", params=NAMES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def made(name, tmp_path_factory):
    return make(name, tmp_path_factory.mktemp("made") / "concerts.db")


@pytest.fixture
def rows(name, hosts, made, tmp_path):
    """Returns the rows of a query on a database of `tmp_path`."""
    shutil.copy(made, tmp_path)
    return lambda query, path="concerts.db": rows_of(hosts, source_of(name, tmp_path, path=path), query)


def make(name, path, script=SCHEMA):
    with closing(MAKERS[name](path)) as connection:
        for statement in script.split(";\n"):
            connection.execute(statement)
        connection.commit()
    return path


def problem(hosts, source):
    with pytest.raises(SourceError) as caught:
        execute(hosts, source, "select 1")
    return str(caught.value)


@pytest.mark.parametrize("end", [";;", " ; -- done", "; /* done */", " -- done;", "\n;\n", "\n;\u00a0\n"])
def test_semicolons_comments_and_blanks_may_follow(rows, end):
    assert rows(f"select 1{end}") == [(1,)]


def test_a_replaced_database_is_opened_again(name, rows, tmp_path):
    rows("select 1")

    make(name, tmp_path / "new.db", "create table concerts (x integer)").replace(tmp_path / "concerts.db")

    assert rows(COUNT) == [(0,)]


@pytest.mark.long
def test_more_databases_than_are_kept_open_can_be_used(name, rows, tmp_path):
    many = range(MANY[name])
    paths = [make(name, tmp_path / f"{number}.db", f"create table t as select {number} as x").name for number in many]

    assert [rows("select x from t", path) for path in paths * 2] == [[(number,)] for number in many] * 2


def test_any_file_name_will_do(rows, made, tmp_path):
    for path in ("a b.db", "100%.db", "a#b", "ü.db", "a&mode=rwc.db", "a;b='c'.db"):
        shutil.copy(made, tmp_path / path)

        assert rows(COUNT, path) == [(3,)]


def test_what_is_no_database_is_called_what_it_is(name, hosts, tmp_path):
    os.mkfifo(tmp_path / "pipe.db")
    wrong = {"pipe.db": "not a regular file", ".": "a directory, not a file", "gone.db": "gone.db: no such file"}
    for number, (content, said) in enumerate(CONTENTS.items()):
        (tmp_path / f"{number}.db").write_bytes(content)
        wrong[f"{number}.db"] = said.replace("ENGINE", name)
    files = {path.name for path in tmp_path.iterdir()}

    problems = {path: problem(hosts, source_of(name, tmp_path, path=path)) for path in wrong}

    assert {path: said for path, said in wrong.items() if not problems[path].endswith(said)} == {}, problems
    assert all(text.startswith("source 'music': ") for text in problems.values())
    assert "database, but" in problems["1.db"]
    assert {path.name for path in tmp_path.iterdir()} == files


@pytest.mark.feature("duckdb")
def test_a_database_of_another_engine_is_named(name, hosts, tmp_path):
    second = next(other for other in NAMES if other != name)
    make(second, tmp_path / "taken.db")

    said = problem(hosts, source_of(name, tmp_path, path="taken.db"))

    assert f"database, but a {second} database: name it under `{second}`" in said.replace("DuckDB", "duckdb").replace(
        "SQLite", "sqlite"
    )


def test_a_script_is_built_into_a_file_that_close_removes(name, hosts, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    (tmp_path / "concerts.sql").write_text(SCHEMA)

    with open_engine(source_of(name, tmp_path, script="concerts.sql"), hosts) as engine:
        rows = engine.execute(COUNT, timeout=10, max_rows=10).answer.rows
        write = engine.execute("delete from concerts", timeout=10, max_rows=10)
        built = [path for path in temporary.rglob("*") if path.is_file()]

    assert rows == [(3,)]
    assert write.error.kind == "unsafe"
    assert len(built) == 1
    assert list(temporary.iterdir()) == []


def test_a_script_that_cannot_be_read_and_the_schema_of_no_database_are_source_errors(name, hosts, tmp_path):
    (tmp_path / "bad.sql").write_bytes(b"select '\xff';")

    assert "utf-8" in problem(hosts, source_of(name, tmp_path, script="bad.sql"))
    assert problem(hosts, source_of(name, tmp_path, script="gone.sql")).endswith("gone.sql: no such file")
    with (
        pytest.raises(SourceError, match=r"^source 'music': .*gone\.db: no such file$"),
        open_engine(source_of(name, tmp_path, path="gone.db"), hosts) as engine,
    ):
        engine.schema(timeout=10)
