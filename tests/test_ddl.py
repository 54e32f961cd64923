"""How the tables of a source are made, as predictors are shown them: keys, tables by name, in the source's dialect."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from samples import fake_source, install_engine, make_case
from table_definitions import SCRIPT, ddl

from pytest_queryeval.core.db_schema import Schema, schema_of_entry
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.json_value import JsonSchema
from pytest_queryeval.evaluation.prediction_call import SchemaTexts
from pytest_queryeval.evaluation.session import Session


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


def test_a_database_that_is_missing_is_an_error_of_the_source(hosts, tmp_path):
    with pytest.raises(SourceError, match=r"^source 'music': .*gone\.db: no such file$"):
        ddl(hosts, "sqlite", tmp_path, path="gone.db")


ENTRY = {
    "db_id": "concerts",
    "table_names_original": ["Singer", "appearance"],
    "column_names_original": [[-1, "*"], [0, "Singer_ID"], [0, "Full Name"], [1, "Singer"], [1, "day"]],
    "column_types": ["text", "number", "text", "number", "time"],
    "primary_keys": [1, [3, 4]],
    "foreign_keys": [[3, 1]],
}


def test_a_stated_schema_is_shown_with_types_and_keys():
    schema = schema_of_entry(ENTRY)

    text, backticks = (SchemaTexts().of(make_case(db_schema=schema, dialect=name))() for name in ("sqlite", "mysql"))

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
    calls = []
    texts = SchemaTexts(lambda source: calls.append(source.name) or f"tables of {source.name}")

    opened_source = [texts.of(make_case(source=fake_source(name)))() for name in ("a", "b", "a")]

    assert opened_source == ["tables of a", "tables of b", "tables of a"]
    assert calls == ["a", "b"]


def test_an_engine_that_only_lists_columns_will_do(monkeypatch):
    engine = install_engine(monkeypatch, {})
    engine.schema = lambda timeout: Schema(
        tables={"order": ("id",), "line": ("no", "of")}, foreign_keys=((("line", "of"), ("order", "id")),)
    )
    with Session() as session:
        text = session.list_ddl(fake_source())

    assert text == (
        'CREATE TABLE line (\n  no,\n  of,\n  FOREIGN KEY (of) REFERENCES "order" (id)\n);'
        '\n\nCREATE TABLE "order" (\n  id\n);'
    )


def test_an_engine_that_lists_nothing_has_no_schema(monkeypatch):
    install_engine(monkeypatch, {})

    with Session() as session:
        assert session.list_ddl(fake_source()) is None
