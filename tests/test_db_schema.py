"""The key `db_schema`: which schema a case gets, and what can be wrong with its file."""

import json
import os
from pathlib import Path

import pytest
from suites import case, enter, load, problem, problems, write

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.suites import sources

HEAD = "kind: sql\nsource: a.db\n"


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    return enter(tmp_path, monkeypatch)


def entry(name="music", table="Singer", **changes):
    defaults = {"db_id": name, "table_names_original": [table], "column_names_original": [[-1, "*"], [0, "Name"]]}
    return defaults | changes


def tables(*entries, name="tables.json"):
    Path(name).write_text(json.dumps(entries))


def schema(table):
    return Schema(tables={table: ("name",)})


def test_a_case_without_the_key_states_no_schema():
    assert case().db_schema is None


def test_a_file_with_one_database_needs_no_name():
    tables(entry())

    assert case("db_schema: tables.json").db_schema == schema("singer")


def test_a_file_may_hold_one_entry_without_a_list():
    Path("tables.json").write_text("\ufeff" + json.dumps(entry()), encoding="utf-8")

    assert case("db_schema: tables.json").db_schema == schema("singer")


def test_the_database_is_named_beside_the_file_or_by_the_case_or_by_its_source():
    tables(entry("a"), entry("b", "Concert"), entry("c", "Stadium"), entry("5", "Year"))

    assert case("db_schema: tables.json").db_schema == schema("singer")
    assert case("db_schema: tables.json", "metadata: {db_id: b}").db_schema == schema("concert")
    assert case("db_schema: tables.json", "metadata: {db_id: 5}").db_schema == schema("year")
    stated_case = case("db_schema: {file: tables.json, db_id: c}", "metadata: {db_id: b}")
    assert stated_case.db_schema == schema("stadium")


def test_the_nearest_level_holds_and_its_file_is_found_from_there():
    tables(entry())
    Path("below").mkdir()
    tables(entry("music", "Concert"), name="below/tables.json")
    write("kind: sql\nsource: a.db\ndb_schema: tables.json\n", "queryeval.yaml")
    text = "cases:\n  - {id: a, gold: x, predicted: y}\n  - {id: b, gold: x, predicted: y, db_schema: tables.json}\n"

    above, below = load(text, "below/s.queryeval.yaml")

    assert (above.db_schema, below.db_schema) == (schema("singer"), schema("concert"))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("db_schema: {file: tables.json, db_id: musik}", "tables.json has no database 'musik': did you mean 'music'?"),
        ("db_schema: {db_id: music}", "db_schema needs a file"),
        ("db_schema: {file: tables.json, database: music}", "unknown key 'database': choose from db_id, file"),
        ("db_schema:", "db_schema: expected text, found nothing: write a value, or leave out the key"),
        (
            "db_schema: [tables.json]",
            "db_schema: expected text, found a list: write tables.json",
        ),
    ],
)
def test_what_the_key_cannot_mean_is_reported(written, expected):
    tables(entry(), entry("films"))

    assert problem(written).removesuffix(": name one by `db_id`") == expected


def test_of_several_databases_one_has_to_be_named():
    tables(entry(), entry("films"))

    assert problem("db_schema: tables.json") == (
        "tables.json has no database 'a': choose from films, music: name one by `db_id`"
    )
    rows = "{columns: [], rows: []}"
    assert problem("db_schema: tables.json", f"gold_table: {rows}", f"predicted_table: {rows}", head="kind: sql\n") == (
        "tables.json has several databases: name one by `db_id`"
    )
    assert problem("db_schema: tables.json", "metadata: {db_id: [1]}").startswith("tables.json has no database '[1]'")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "Expecting value: line 1 column 1 (char 0)"),
        (b"{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (b"\xff", "byte 0xff is not UTF-8: save the file as UTF-8"),
        (b"[" * 200_000, "its JSON is nested too deeply"),
        (b"[]", "it lists no database"),
        (b"5", "entry 1 is not as in Spider's tables.json (it is not an object)"),
        (b"null", "entry 1 is not as in Spider's tables.json (it is not an object)"),
        (b'["a"]', "entry 1 is not as in Spider's tables.json (it is not an object)"),
        (b"{}", "entry 1 is not as in Spider's tables.json (no 'db_id')"),
        (b'[{"db_id": "a"}]', "entry 1 is not as in Spider's tables.json (no 'table_names_original')"),
    ],
    ids=lambda value: repr(value[:16]) if isinstance(value, bytes) else "",
)
def test_a_file_that_holds_no_schema_is_one_problem_at_the_key(content, expected):
    Path("tables.json").write_bytes(content)

    lines = problems(f"{HEAD}db_schema: tables.json\ncases:\n  - {{id: a, gold: x, predicted: y}}\n")

    assert lines == [f"s.queryeval.yaml:3: no schema in tables.json: {expected}"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"foreign_keys": [[1, -1]]}, "a column that is not listed"),
        ({"foreign_keys": [[1, 9]]}, "a column that is not listed"),
        ({"column_names_original": [[1, "Name"]]}, "a table that is not listed"),
        ({"column_names_original": [[0, 7]]}, "a name that is not text"),
        ({"table_names_original": [7]}, "a name that is not text"),
    ],
)
def test_an_entry_that_contradicts_itself_is_told_by_its_number(changes, expected):
    tables(entry("a"), entry("b", **changes))

    assert problem("db_schema: tables.json") == (
        f"no schema in tables.json: entry 2 is not as in Spider's tables.json ({expected})"
    )


def test_two_entries_of_one_database_are_a_problem():
    tables(entry("a"), entry("a", "Other"))

    assert problem("db_schema: tables.json") == (
        "no schema in tables.json: entry 2 is a second one of the database 'a'"
    )


def test_a_number_too_large_to_be_one_is_a_problem_and_no_crash():
    Path("tables.json").write_text(json.dumps(entry()).replace("[0,", "[1e999,"))
    assert problem("db_schema: tables.json").endswith("(a table that is not listed)")

    Path("tables.json").write_text(json.dumps(entry()).replace("[0,", f"[{'9' * 5000},"))
    assert problem("db_schema: tables.json").endswith("no schema in tables.json: a number of 5,000 digits is too large")


def test_a_file_that_is_missing_or_no_file_is_a_problem():
    Path("folder.json").mkdir()
    os.mkfifo("pipe.json")

    assert problem("db_schema: none.json").startswith("no schema in none.json: no such file: correct the path, which")
    assert problem("db_schema: folder.json") == "no schema in folder.json: is not a file"
    assert problem("db_schema: pipe.json") == "no schema in pipe.json: is not a file"


def test_a_file_over_the_limit_is_not_read(monkeypatch):
    monkeypatch.setattr(sources, "MAX_SCHEMA_BYTES", 1024 * 1024)
    Path("tables.json").write_bytes(b" " * (1024 * 1024) + b"[]")

    assert problem("db_schema: tables.json") == "no schema in tables.json: is larger than 1 MiB: split it"


def test_names_in_a_file_cannot_reach_a_terminal_as_controls():
    tables(entry("\x1b[2J"), entry("\x1b[2K"))

    assert "\x1b" not in problem("db_schema: tables.json")


def test_a_broken_file_is_one_problem_however_many_cases_it_has():
    Path("tables.json").write_text("[]")
    cases = "".join(f"  - {{id: a{number}, gold: x, predicted: y}}\n" for number in range(50))

    lines = problems(f"{HEAD}db_schema: tables.json\ncases:\n{cases}")

    assert lines == ["s.queryeval.yaml:3: no schema in tables.json: it lists no database"]


def test_a_file_that_changed_is_read_again():
    tables(entry())
    assert case("db_schema: tables.json").db_schema == schema("singer")

    tables(entry("music", "Concert"))
    os.utime("tables.json", ns=(1, 1))

    assert case("db_schema: tables.json").db_schema == schema("concert")


# The dialect


@pytest.mark.parametrize(
    ("written", "dialect"),
    [("", "sqlite"), ("options: {sql: {dialect: snowflake}}", "snowflake"), ("options: {sql: {dialect: ''}}", "")],
)
def test_the_dialect_is_the_sources_unless_options_say_another(written, dialect):
    assert case(*filter(None, [written])).settings.dialect == dialect


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("sqlit", "unknown dialect 'sqlit': did you mean 'sqlite'?"),
        ("SQLite", "unknown dialect 'SQLite': did you mean 'sqlite'?"),
        ("5", "unknown dialect '5'"),
        ("[sqlite]", "unknown dialect '['sqlite']': did you mean 'sqlite'?"),
    ],
)
def test_an_unknown_dialect_is_reported_at_its_line(written, expected):
    assert problem(f"options: {{sql: {{dialect: {written}}}}}") == expected


@pytest.mark.parametrize("iterations", ["0", "many", "1000000000", "1.5", "true", "'20'"])
def test_options_of_a_metric_are_checked_at_their_line(iterations):
    text = f"{HEAD}options:\n  r_ves:\n    iterations: {iterations}\ncases:\n  - {{id: a, gold: x, predicted: y}}\n"

    assert problems(text) == ["s.queryeval.yaml:5: `iterations` must be a whole number from 1 to 1,000"]
    assert problem("options: {ves: {iteration: 5}}") == (
        "metric 'ves' has no option 'iteration': did you mean 'iterations'?"
    )
