"""How the tables of a DuckDB database are made."""

from table_definitions import SCRIPT, ddl

INDEXES = (
    "create unique index one on Singer (id); create unique index two on other.z (a); create index i on other.z (a);"
)


def test_duckdb_gives_the_statements_as_it_keeps_them(hosts, tmp_path):
    (tmp_path / "s.sql").write_text(f"{SCRIPT}; create schema other; create table other.z (a int);{INDEXES}")

    text = ddl(hosts, "duckdb", tmp_path, script="s.sql")

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


def test_an_empty_database_has_no_statements(hosts, tmp_path):
    (tmp_path / "s.sql").write_text("")

    assert ddl(hosts, "duckdb", tmp_path, script="s.sql") == ""
