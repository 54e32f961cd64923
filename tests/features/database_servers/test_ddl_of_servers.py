"""How the tables of database servers are made, in their spelling."""

import sqlite3
from contextlib import closing

from table_definitions import SCRIPT, ddl, lines

pytest_plugins = ["postgres", "mariadb"]


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
