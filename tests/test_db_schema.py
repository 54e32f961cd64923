"""The schema that predictors are shown, by the key `db_schema` (see `reading/db_schema.yaml`) or from the source."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from opened_sources import source_of
from samples import make_case
from suites import case, enter, problem, write
from table_definitions import SCRIPT

from pytest_queryeval import evaluate
from pytest_queryeval.core.db_schema import schema_of_entry
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import PredictorSpec
from pytest_queryeval.testing import open_engine

ENTRY = {
    "db_id": "concerts",
    "table_names_original": ["Singer", "appearance"],
    "column_names_original": [[-1, "*"], [0, "Singer_ID"], [0, "Full Name"], [1, "Singer"], [1, "day"]],
    "column_types": ["text", "number", "text", "number", "time"],
    "primary_keys": [1, [3, 4]],
    "foreign_keys": [[3, 1]],
}


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    return enter(tmp_path, monkeypatch)


# Files.


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff", "byte 0xff is not UTF-8: save the file as UTF-8"),
        (b"[" * 200_000, "its JSON is nested too deeply"),
        (
            json.dumps(ENTRY).replace("[0,", f"[{'9' * 5000},").encode(),
            "a number of 5,000 digits is too large: write a smaller one, or a text in double quotes",
        ),
        (b" " * (1024 * 1024) + b"[]", "is larger than 1 MiB: split it"),
    ],
    ids=["bytes", "nested", "number", "large"],
)
def test_a_file_that_has_no_schema_is_a_problem_and_no_crash(monkeypatch, content, said):
    monkeypatch.setattr("pytest_queryeval.suites.sources.MAX_SCHEMA_BYTES", 1024 * 1024)
    Path("tables.json").write_bytes(content)

    assert problem("db_schema: tables.json") == f"no schema in tables.json: {said}"


def test_what_is_no_file_is_a_problem():
    Path("folder.json").mkdir()
    os.mkfifo("pipe.json")

    for name in ("folder.json", "pipe.json"):
        assert problem(f"db_schema: {name}").startswith(f"no schema in {name}: is not a file")


def test_a_file_that_changed_is_read_again():
    for number, table in enumerate(("Singer", "Concert")):
        Path("tables.json").write_text(json.dumps({**ENTRY, "table_names_original": [table, "appearance"]}))
        os.utime("tables.json", ns=(number, number))

        assert case("db_schema: tables.json").db_schema.tables.keys() == {table.lower(), "appearance"}


@pytest.mark.parametrize(
    "more", [{"column_types": ["text"]}, {"primary_keys": [99]}, {"primary_keys": [["Singer_ID"]]}]
)
def test_an_entry_with_odd_types_or_keys_is_none(more):
    with pytest.raises((ValueError, IndexError)):
        schema_of_entry(ENTRY | more)


# What predictors are shown.


@pytest.fixture
def shown(tmp_path):
    """Returns what predictors see of the schemas of cases."""
    see = 'Path(f"seen-{case.id}.json").write_text(json.dumps(case.schema))'
    write(f"import json\nfrom pathlib import Path\n\ndef predict(case):\n    {see}\n    return 'x'\n", "predict.py")
    spec = PredictorSpec(kind="python", settings={"target": "predict.py:predict"}, folder=tmp_path)

    def schemas(*changes):
        cases = [make_case(id=str(n), predicted=None, predictor=spec, **change) for n, change in enumerate(changes)]
        evaluate(cases)
        return [json.loads(Path(f"seen-{case.id}.json").read_text()) for case in cases]

    return schemas


def test_a_stated_schema_is_shown_with_types_and_keys(shown):
    schema = schema_of_entry(ENTRY)

    text, backticks = shown(*({"db_schema": schema, "dialect": dialect} for dialect in ("sqlite", "mysql")))

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


# What SQLite lists.


def ddl(hosts, folder, **settings):
    with open_engine(source_of("sqlite", folder, **settings), hosts) as engine:
        return engine.ddl(timeout=20)


def test_sqlite_gives_the_statements_as_they_were_written(hosts, tmp_path):
    (tmp_path / "s.sql").write_text(SCRIPT)

    text = ddl(hosts, tmp_path, script="s.sql")

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
        ddl(hosts, tmp_path, path="music.db")
    with pytest.raises(SourceError, match=r"^source 'music': .*gone\.db: no such file$"):
        ddl(hosts, tmp_path, path="gone.db")
