"""How the tables behind a service are made, as far as its information schema tells."""

import json
import sqlite3
from contextlib import closing

import duckdb
import pytest
from http_services import SERVICES, SETTINGS, Said, serving
from table_definitions import SCRIPT, ddl, lines

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.table import Table
from pytest_queryeval.features.http_engine import listed_ddl

pytest_plugins = ["postgres", "mariadb"]

PLAIN = {"body": {"sql": "{query}", "top": "{limit}"}, "rows": "$.rows"}


def asked_of(connection):
    """What answers the queries of a listing; None for those that the database does not take."""

    def ask(query):
        with closing(connection.cursor()) as cursor:
            try:
                cursor.execute(query)
            except Exception:  # noqa: BLE001 - drivers raise what they like
                return None
            rows = [tuple(row) for row in cursor.fetchall()]
            return Table(columns=tuple(column[0] for column in cursor.description), rows=rows)

    return ask


def test_an_information_schema_lists_tables_with_their_keys():
    with closing(duckdb.connect()) as connection:
        connection.execute(f"{SCRIPT}; create table pairs (a int, b int, primary key (a, b))")
        connection.execute("create table refers (b int, a int, foreign key (a, b) references pairs (a, b))")

        text = listed_ddl(asked_of(connection), "duckdb")

    assert text.split("\n\n")[0].startswith("CREATE TABLE Singer (\n  id INTEGER,\n")
    assert 'CREATE TABLE "names" (' in text or "CREATE TABLE names (" in text
    assert {
        '"full name" VARCHAR,',
        "FOREIGN KEY (singer) REFERENCES Singer (id)",
        "PRIMARY KEY (a, b)",
        "FOREIGN KEY (a, b) REFERENCES pairs (a, b)",
    } <= {*lines(text)}


def test_the_information_schema_of_postgresql_and_mariadb_lists_keys(cluster, mariadb):
    import pymysql

    with closing(cluster.connect("owner", "music")) as connection:
        postgres = listed_ddl(asked_of(connection), "postgres")
    login = {"host": "127.0.0.1", "port": mariadb.port, "user": "owner", "password": mariadb.password}
    with closing(pymysql.connect(**login, database="music")) as connection:
        mysql = listed_ddl(asked_of(connection), "mysql")

    for text in (postgres, mysql):
        assert {"PRIMARY KEY (id)", "FOREIGN KEY (concert) REFERENCES concerts (id)"} <= {*lines(text)}


def test_tables_of_several_schemas_are_named_in_full():
    with closing(duckdb.connect()) as connection:
        connection.execute(
            "create schema a; create schema b; create table a.t (x int primary key); create table b.t (x int)"
        )

        text = listed_ddl(asked_of(connection), "duckdb")

    assert [line for line in text.splitlines() if line.startswith("CREATE")] == [
        "CREATE TABLE a.t (",
        "CREATE TABLE b.t (",
    ]


def test_names_that_a_dialect_would_fold_are_quoted():
    columns = ("TABLE_SCHEMA", "TABLE_NAME", "COLUMN_NAME", "DATA_TYPE")
    table = Table(columns=columns, rows=[("PUBLIC", "SINGER", "ID", "NUMBER"), ("PUBLIC", "SINGER", "Name", None)])

    text = listed_ddl(lambda query: table if "columns" in query else None, "snowflake")

    assert text == 'CREATE TABLE SINGER (\n  ID NUMBER,\n  "Name"\n);'


def duckdb_service(connection):
    def answer(asked):
        try:
            cursor = connection.cursor().execute(json.loads(asked.body)["sql"])
        except duckdb.Error as error:
            return Said({"error": str(error)}, 400)
        names = [column[0] for column in cursor.description]
        return Said({"rows": [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]})

    return answer


def test_a_service_lists_its_tables_where_it_takes_the_query(hosts):
    with closing(duckdb.connect()) as connection:
        connection.execute("create table t (a int primary key)")
        with serving(duckdb_service(connection)) as running:
            text = ddl(hosts, "http", url=running.url, dialect="duckdb", **PLAIN)

    assert text == "CREATE TABLE t (\n  a INTEGER,\n  PRIMARY KEY (a)\n);"


@pytest.mark.parametrize("name", ["denodo", "clickhouse", "trino"])
def test_a_service_that_does_not_take_the_query_lists_nothing(hosts, tmp_path, name):
    sqlite3.connect(tmp_path / "music.db").close()
    service, path = SERVICES[name]

    with serving(service(tmp_path / "music.db"), path) as running:
        assert ddl(hosts, "http", url=running.url, **SETTINGS[name]) is None


def test_a_service_that_does_not_answer_is_an_error_of_the_source(hosts):
    with pytest.raises(SourceError, match=r"^source 'music': "):
        ddl(hosts, "http", url="http://127.0.0.1:9/", **PLAIN)


def test_a_service_on_sqlite_lists_what_sqlite_keeps(hosts):
    def answer(asked):
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.executescript("create table t (a)")
            rows = connection.execute(json.loads(asked.body)["sql"]).fetchall()
            return Said({"rows": rows})

    with serving(answer) as running:
        assert ddl(hosts, "http", url=running.url, dialect="sqlite", **PLAIN) == "CREATE TABLE t (a);"
