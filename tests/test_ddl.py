"""How the tables of a source are made, as predictors are shown them: keys, tables by name, in the source's dialect."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from http_services import SERVICES, SETTINGS, Said, serving
from samples import fake_source, install_engine, make_case

from pytest_queryeval.core.db_schema import Schema, schema_of_entry
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.json_value import JsonSchema
from pytest_queryeval.core.model import Source
from pytest_queryeval.core.table import Table
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.evaluation.calls.schema_text import SchemaTexts
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.http_engine.information_schema import listed_ddl

pytest_plugins = ["postgres", "mariadb"]

SCRIPT = """
create table Singer (
    id integer primary key, -- 'quoted' and "quoted"
    "full name" text not null
);
create table appearance (singer int references Singer (id), day text, primary key (singer, day));
create view names as select "full name" from Singer;
"""
PLAIN = {"body": {"sql": "{query}", "top": "{limit}"}, "rows": "$.rows"}


def opened(hosts, engine, folder=Path(), **settings):
    return ENGINES[engine].open(Source(name="music", engine=engine, settings=settings, folder=folder), hosts)


def ddl(hosts, engine, folder=Path(), **settings):
    with closing(opened(hosts, engine, folder, **settings)) as source:
        return source.ddl(timeout=20)


def lines(text):
    return [line.strip() for line in text.splitlines()]


def test_sqlite_gives_the_statements_as_they_were_written(hosts, tmp_path):
    (tmp_path / "s.sql").write_text(SCRIPT)

    text = ddl(hosts, "sqlite", tmp_path, script="s.sql")

    assert text == (
        "CREATE TABLE appearance (singer int references Singer (id), day text, primary key (singer, day));\n\n"
        'CREATE VIEW names as select "full name" from Singer;\n\n'
        "CREATE TABLE Singer (\n"
        "    id integer primary key, -- 'quoted' and \"quoted\"\n"
        '    "full name" text not null\n'
        ");"
    )
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(text.replace("int references Singer (id)", "int"))


def test_statements_that_a_file_hides_behind_a_definition_are_refused(hosts, tmp_path):
    with closing(sqlite3.connect(tmp_path / "music.db")) as connection:
        connection.executescript("create table singer (id); pragma writable_schema = on;")
        hidden = f"CREATE TABLE singer (id); ATTACH '{tmp_path / 'made.db'}' AS made; CREATE TABLE made.t (a)"
        connection.execute("update sqlite_master set sql = ?", (hidden,))
        connection.commit()

    with pytest.raises(SourceError, match="the definition of a table is not one statement"):
        ddl(hosts, "sqlite", tmp_path, path="music.db")


@pytest.mark.feature("duckdb")
def test_duckdb_gives_the_statements_as_it_keeps_them(hosts, tmp_path):
    (tmp_path / "s.sql").write_text(f"{SCRIPT}; create schema other; create table other.z (a int);")

    text = ddl(hosts, "duckdb", tmp_path, script="s.sql")

    assert [line.split("(")[0].replace('"', "") for line in text.splitlines() if line] == [
        "CREATE TABLE appearance",
        "CREATE VIEW names AS SELECT full name FROM Singer;",
        "CREATE TABLE Singer",
        "CREATE TABLE other.z",
    ]
    assert "FOREIGN KEY (singer) REFERENCES Singer(id)" in text
    assert "PRIMARY KEY(singer, day)" in text.replace('"', "")


@pytest.mark.feature("duckdb")
def test_an_empty_database_has_no_statements(hosts, tmp_path):
    (tmp_path / "s.sql").write_text("")

    assert ddl(hosts, "duckdb", tmp_path, script="s.sql") == ""


def test_a_database_that_is_missing_is_an_error_of_the_source(hosts, tmp_path):
    with pytest.raises(SourceError, match=r"^source 'music': .*gone\.db: no such file$"):
        ddl(hosts, "sqlite", tmp_path, path="gone.db")


def test_sqlalchemy_writes_the_statements_of_what_it_finds(hosts, tmp_path):
    with closing(sqlite3.connect(tmp_path / "music.db")) as connection:
        connection.executescript(SCRIPT)

    assert ddl(hosts, "sqlalchemy", tmp_path, url="sqlite:///music.db").split("\n\n")[0] == (
        "CREATE TABLE appearance (\n"
        "  singer INTEGER,\n"
        "  day TEXT,\n"
        "  PRIMARY KEY (singer, day),\n"
        '  FOREIGN KEY (singer) REFERENCES "Singer" (id)\n'
        ");"
    )


def test_postgresql_spells_types_and_names_as_it_does(hosts, cluster):
    cluster.sql(
        "create schema far; create type far.mood as enum ('a'); create table far.t (a int primary key);"
        'create table far."Odd" (m far.mood, a int[], j jsonb, t timestamptz, place point, '
        '"order" int references far.t (a));'
        "grant usage on schema far to owner; grant select on all tables in schema far to owner"
    )
    try:
        text = ddl(hosts, "sqlalchemy", url=cluster.url())
        odd = ddl(hosts, "sqlalchemy", url=f"{cluster.url()}?options=-csearch_path%3Dfar")
    finally:
        cluster.sql("drop schema far cascade")

    assert [line for line in text.splitlines() if line.startswith("CREATE")] == [
        "CREATE TABLE cities (",
        "CREATE TABLE concerts (",
        "CREATE TABLE tickets (",
    ]
    assert {"price NUMERIC(6, 2),", "FOREIGN KEY (concert) REFERENCES concerts (id)"} <= {*lines(text)}
    assert odd.splitlines()[:8] == [
        'CREATE TABLE "Odd" (',
        "  m mood,",
        "  a INTEGER[],",
        "  j JSONB,",
        "  t TIMESTAMP WITH TIME ZONE,",
        "  place,",
        '  "order" INTEGER,',
        '  FOREIGN KEY ("order") REFERENCES t (a)',
    ]


def test_mariadb_spells_types_and_names_as_it_does(hosts, mariadb):
    text = ddl(hosts, "sqlalchemy", url=mariadb.url())

    assert {
        "CREATE TABLE tickets (",
        "concert INTEGER(11),",
        "FOREIGN KEY (concert) REFERENCES concerts (id)",
    } <= {*lines(text)}


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
    listed = Table(columns=columns, rows=[("PUBLIC", "SINGER", "ID", "NUMBER"), ("PUBLIC", "SINGER", "Name", None)])

    text = listed_ddl(lambda query: listed if "columns" in query else None, "snowflake")

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


ENTRY = {
    "db_id": "concerts",
    "table_names_original": ["Singer", "appearance"],
    "column_names_original": [[-1, "*"], [0, "Singer_ID"], [0, "Full Name"], [1, "Singer"], [1, "day"]],
    "column_types": ["text", "number", "text", "number", "time"],
    "primary_keys": [1, [3, 4]],
    "foreign_keys": [[3, 1]],
}


def test_a_stated_schema_is_shown_with_types_and_keys():
    stated = schema_of_entry(ENTRY)

    text, backticks = (SchemaTexts().of(make_case(db_schema=stated, dialect=name))() for name in ("sqlite", "mysql"))

    assert text == (
        "CREATE TABLE appearance (\n"
        "  Singer number,\n"
        "  day time,\n"
        "  PRIMARY KEY (Singer, day),\n"
        "  FOREIGN KEY (Singer) REFERENCES Singer (Singer_ID)\n"
        ");\n\n"
        "CREATE TABLE Singer (\n"
        "  Singer_ID number,\n"
        '  "Full Name" text,\n'
        "  PRIMARY KEY (Singer_ID)\n"
        ");"
    )
    assert backticks == text.replace('"', "`")


@pytest.mark.parametrize(
    "more", [{"column_types": ["text"]}, {"primary_keys": [99]}, {"primary_keys": [["Singer_ID"]]}]
)
def test_an_entry_with_odd_types_or_keys_is_none(more):
    with pytest.raises((ValueError, IndexError)):
        schema_of_entry(ENTRY | more)


def test_a_json_schema_is_shown_as_its_file_says_it():
    schema = JsonSchema(Path("s.json"), {"type": "object", "description": "größer"})

    text = SchemaTexts().of(make_case(kind="json", extra={"json_schema": schema}))()

    assert json.loads(text) == schema.document
    assert "größer" in text


@pytest.mark.parametrize("kind", ["sparql", "sdmx", "json"])
def test_other_cases_have_no_schema(kind):
    assert SchemaTexts(lambda source: "CREATE TABLE t").of(make_case(kind=kind, source=fake_source()))() is None


def test_a_source_is_listed_once_for_all_its_cases():
    listed = []
    texts = SchemaTexts(lambda source: listed.append(source.name) or f"tables of {source.name}")

    found = [texts.of(make_case(source=fake_source(name)))() for name in ("a", "b", "a")]

    assert found == ["tables of a", "tables of b", "tables of a"]
    assert listed == ["a", "b"]


def test_an_engine_that_only_lists_columns_will_do(monkeypatch):
    engine = install_engine(monkeypatch, {})
    engine.schema = lambda timeout: Schema(
        tables={"order": ("id",), "line": ("no", "of")}, foreign_keys=((("line", "of"), ("order", "id")),)
    )
    with Session() as session:
        text = session._list_ddl(fake_source())

    assert text == (
        'CREATE TABLE line (\n  no,\n  of,\n  FOREIGN KEY (of) REFERENCES "order" (id)\n);'
        '\n\nCREATE TABLE "order" (\n  id\n);'
    )


def test_an_engine_that_lists_nothing_has_no_schema(monkeypatch):
    install_engine(monkeypatch, {})

    with Session() as session:
        assert session._list_ddl(fake_source()) is None
