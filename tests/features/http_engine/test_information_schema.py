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
        connection.execute("create schema a; create table a.t (x int primary key)")
        of_several = listed_ddl(asked_of(connection), "duckdb")

    assert text.split("\n\n")[0].startswith("CREATE TABLE Singer (\n  id INTEGER,\n")
    assert 'CREATE TABLE "names" (' in text or "CREATE TABLE names (" in text
    assert {
        '"full name" VARCHAR,',
        "FOREIGN KEY (singer) REFERENCES Singer (id)",
        "PRIMARY KEY (a, b)",
        "FOREIGN KEY (a, b) REFERENCES pairs (a, b)",
    } <= {*lines(text)}
    assert "CREATE TABLE a.t (" in of_several
    assert "CREATE TABLE main.pairs (" in of_several


def test_the_information_schema_of_postgresql_and_mariadb_lists_keys(cluster, mariadb):
    import pymysql

    with closing(cluster.connect("owner", "music")) as connection:
        postgres = listed_ddl(asked_of(connection), "postgres")
    login = {"host": "127.0.0.1", "port": mariadb.port, "user": "owner", "password": mariadb.password}
    with closing(pymysql.connect(**login, database="music")) as connection:
        mysql = listed_ddl(asked_of(connection), "mysql")

    for text in (postgres, mysql):
        assert {"PRIMARY KEY (id)", "FOREIGN KEY (concert) REFERENCES concerts (id)"} <= {*lines(text)}


def test_names_that_a_dialect_would_fold_are_quoted():
    columns = ("TABLE_SCHEMA", "TABLE_NAME", "COLUMN_NAME", "DATA_TYPE")
    table = Table(columns=columns, rows=[("PUBLIC", "SINGER", "ID", "NUMBER"), ("PUBLIC", "SINGER", "Name", None)])

    text = listed_ddl(lambda query: table if "columns" in query else None, "snowflake")

    assert text == 'CREATE TABLE SINGER (\n  ID NUMBER,\n  "Name"\n);'


def test_a_service_lists_its_tables_where_it_takes_the_query(hosts):
    tables = {}
    with (
        closing(duckdb.connect()) as of_duckdb,
        closing(sqlite3.connect(":memory:", check_same_thread=False)) as sqlite,
    ):
        for dialect, connection in {"duckdb": of_duckdb, "sqlite": sqlite}.items():
            connection.execute("create table t (a int primary key)")

            def answer(asked, connection=connection):
                table = asked_of(connection)(json.loads(asked.body)["sql"])
                return Said({"error": "no"}, 400) if table is None else Said({"rows": dicts(table)})

            with serving(answer) as running:
                tables[dialect] = ddl(hosts, "http", url=running.url, dialect=dialect, **PLAIN)

    assert tables["duckdb"] == "CREATE TABLE t (\n  a INTEGER,\n  PRIMARY KEY (a)\n);"
    assert tables["sqlite"] == "CREATE TABLE t (a int primary key);"


def dicts(table):
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


@pytest.mark.parametrize("name", ["denodo", "clickhouse", "trino"])
def test_a_service_that_does_not_take_the_query_lists_nothing(hosts, tmp_path, name):
    sqlite3.connect(tmp_path / "music.db").close()
    service, path = SERVICES[name]

    with serving(service(tmp_path / "music.db"), path) as running:
        assert ddl(hosts, "http", url=running.url, **SETTINGS[name]) is None


def test_a_service_that_does_not_answer_is_an_error_of_the_source(hosts):
    with pytest.raises(SourceError, match=r"^source 'music': "):
        ddl(hosts, "http", url="http://127.0.0.1:9/", **PLAIN)
