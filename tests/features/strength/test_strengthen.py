"""`queryeval strengthen` and what it builds: variants of a database that keep its constraints and kill survivors."""

import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import make_case, query
from suites import write

from pytest_queryeval.cli import main
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength import neighbours
from pytest_queryeval.features.strength.case_strength import measure_strength
from pytest_queryeval.features.strength.sql.rows import MAX_ROWS, RowGenerator, insertion_order
from pytest_queryeval.features.strength.sql.source_tables import read_tables
from pytest_queryeval.features.strength.sql.values import Compared, coerce_value, compared_columns
from pytest_queryeval.features.strength.strengthen_command import build_variants

DDL = """
CREATE TABLE concert (
  id INTEGER PRIMARY KEY, singer INTEGER NOT NULL REFERENCES singer (id), year TEXT, UNIQUE (singer, year)
);
CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, age INTEGER, boss INTEGER REFERENCES singer);
"""
DATA = """
INSERT INTO singer VALUES (1, 'Ann', 20, NULL), (2, 'Bob', 40, 1), (3, 'O''Neil', 50, 1);
INSERT INTO concert VALUES (1, 1, '2019'), (2, 2, '2020'), (3, 2, '2021');
"""
GOLDS = {
    "boundary": "SELECT name FROM singer WHERE age > 30",
    "distinct": "SELECT count(DISTINCT year) FROM concert",
    "condition": "SELECT name FROM singer WHERE age > 45 AND name = 'O''Neil'",
    "join": "SELECT s.name FROM singer s JOIN concert c ON c.singer = s.id WHERE c.year > '2020'",
    "group": "SELECT singer FROM concert GROUP BY singer HAVING count(*) > 1",
    "limit": "SELECT name FROM singer ORDER BY age DESC LIMIT 1",
}
HEAD = "kind: sql\nsource: {sqlite: {script: music.sql}}\ncases:\n"


def tables(ddl=DDL, dialect="sqlite"):
    return read_tables(ddl, dialect)


@pytest.fixture
def strengths(tmp_path):
    """A function that measures golds on a SQLite database made by a script, and keeps the session open."""
    with Session() as session:

        def measure(golds=GOLDS, script=DDL + DATA, engine="sqlite"):
            (tmp_path / "music.sql").write_text(script, encoding="utf-8")
            source = Source(name="music.sql", engine=engine, settings={"script": "music.sql"}, folder=tmp_path)
            cases = [
                make_case(id=name, source=source, golds=(query(gold),), thresholds={}, dialect=engine, max_rows=1_000)
                for name, gold in golds.items()
            ]
            return [measure_strength(case, session) for case in cases], session

        yield measure


def survivors_of(measured):
    return {(case.case.id, mutant.change) for case in measured for mutant in case.survivors}


def killed_by(variants):
    return {(case.id, mutant.change) for variant in variants for case, mutant in variant.kills}


def test_the_columns_values_and_numbers_of_a_query_are_found():
    text = """
        SELECT t.name FROM (SELECT id, name AS name, age FROM singer) AS t JOIN concert c ON c.singer = t.id
        WHERE t.age BETWEEN 18 AND -3.5 AND c.year IN ('2019') AND name LIKE 'A%'
            AND t.id IN (SELECT boss FROM singer) GROUP BY t.name HAVING count(*) >= 3 LIMIT 7
    """

    columns = compared_columns(text, "sqlite", tables())

    values = dict.fromkeys(column for column, _ in columns.values)
    assert values.keys() == {("singer", "age"), ("concert", "year"), ("singer", "name")}
    assert {value for column, value in columns.values if column == ("singer", "age")} == {18, -3.5}
    assert {"A", "Aa", "aA"} <= {value for column, value in columns.values if column == ("singer", "name")}
    assert {frozenset(pair) for pair in columns.pairs} >= {
        frozenset({("concert", "singer"), ("singer", "id")}),
        frozenset({("singer", "id"), ("singer", "boss")}),
    }
    assert set(columns.numbers) == {3, 7}


def test_a_name_in_double_quotes_that_is_no_column_is_a_text():
    columns = compared_columns('SELECT "name" FROM singer WHERE name = "Ann"', "sqlite", tables())

    assert columns.values == ((("singer", "name"), "Ann"),)


@pytest.mark.parametrize(
    "text", ["", "SELECT", "DROP TABLE singer", "SELECT * FROM nowhere WHERE x = 1", "SELECT a.b.c.d"]
)
def test_of_a_query_that_cannot_be_read_nothing_is_found(text):
    assert compared_columns(text, "sqlite", tables()).values == ()


@given(st.integers(0, 10_000))
def test_rows_keep_keys_foreign_keys_and_not_null(seed):
    compared = [compared_columns(gold, "sqlite", tables()) for gold in GOLDS.values()]
    samples = {"singer": [(1, "Ann", 20, None), (2, "Bob", 40, 9)], "concert": [(1, 1, "2019")]}
    rows = RowGenerator(tables(), compared, samples, is_strict=False).rows(Random(seed))

    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.executescript(DDL)
        for name, of_table in rows.items():
            assert len(of_table) <= MAX_ROWS
            for row in of_table:
                connection.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)


def test_a_group_may_be_as_large_as_a_table():
    queries = [compared_columns(f"SELECT singer FROM concert LIMIT {MAX_ROWS}", "sqlite", tables())]
    generator = RowGenerator(tables(), queries, {}, is_strict=False)

    assert {MAX_ROWS} == {max(len(rows["singer"]) for rows in map(generator.rows, map(Random, range(40))))}


def test_values_are_those_of_the_queries_their_neighbours_and_samples():
    generator = RowGenerator(
        tables("CREATE TABLE t (a INTEGER, b TEXT)"),
        [Compared(values=((("t", "a"), 30),))],
        {"t": [(7, "x")]},
        is_strict=True,
    )

    rows = [row for seed in range(50) for row in generator.rows(Random(seed))["t"]]

    assert {row[0] for row in rows} == {29, 30, 31, 7, None}
    assert {row[1] for row in rows} == {"x", None}


def test_tables_follow_those_that_they_refer_to_also_in_a_circle():
    circle = "CREATE TABLE a (x INT REFERENCES b (y)); CREATE TABLE b (y INT REFERENCES a (x));"

    assert insertion_order(tables()) == ["singer", "concert"]
    assert set(insertion_order(tables(circle))) == {"a", "b"}
    assert RowGenerator(tables(circle), [], {}, is_strict=False).rows(Random(1)).keys() == {"a", "b"}


@pytest.mark.parametrize(
    ("value", "declared", "expected"),
    [
        ("2020-01-05 10:30:00", "DATE", ["2020-01-05"]),
        ("2020-01-05", "DATETIME", ["2020-01-05 00:00:00"]),
        ("10:30", "TIME", ["10:30:00"]),
        ("2020-01-05", "TIME", ["00:00:00"]),
        ("2020", "DATE", ["2020-01-01"]),
        ("2020a", "DATE", []),
        (20200105, "DATE", []),
        ("soon", "TIMESTAMP", []),
        (1.5, "INTEGER", []),
        (2.0, "BIGINT", [2.0]),
        ("1.5", "DECIMAL(9,2)", [1.5]),
        ("abc", "DOUBLE", []),
        (3, "VARCHAR", ["3"]),
        ("x", "BOOLEAN", []),
    ],
)
def test_a_strict_column_takes_values_of_its_type(value, declared, expected):
    assert coerce_value(value, declared, is_strict=True) == expected


def test_neighbours_of_texts_of_numbers_and_of_words():
    assert neighbours("2020") == ["2020", "2019", "2021"]
    assert neighbours("Ann") == ["Ann"]
    assert neighbours(0.5) == [0.5, 0.0, 1.0]
    assert neighbours("0001-01-01") == ["0001-01-01"]  # there is no day before


def test_variants_kill_what_survives_in_the_source(strengths):
    measured, session = strengths()

    variants = list(build_variants(measured, session))

    left = survivors_of(measured) - killed_by(variants)
    assert {change for _, change in survivors_of(measured)} >= {"age > 30 → age >= 30", "age > 30 → age > 29"}
    assert {case for case, _ in left} <= {"limit"}
    assert len(survivors_of(measured)) > 15
    assert all(len(table.rows) <= MAX_ROWS for variant in variants for table in variant.tables.values())


def test_the_same_seed_builds_the_same_variants(strengths):
    measured, session = strengths({"boundary": GOLDS["boundary"], "join": GOLDS["join"]})

    first, again, second = (
        [variant.script for variant in build_variants(measured, session, seed=seed)] for seed in (1, 1, 2)
    )

    assert first == again
    assert first != second


def test_what_a_variant_kills_is_killed_when_its_script_is_run_alone(strengths, tmp_path):
    measured, session = strengths({"boundary": GOLDS["boundary"], "condition": GOLDS["condition"]})

    for variant in build_variants(measured, session):
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.executescript(variant.script)
            for case, mutant in variant.kills:
                golds = connection.execute(case.golds[0].query).fetchall()
                assert sorted(golds) != sorted(connection.execute(mutant.query).fetchall())


def test_a_gold_that_fails_in_a_candidate_is_in_no_variant(strengths):
    # abs() of the least integer is an error, which 1 - 9223372036854775807 - 2 is.
    golds = {"abs": "SELECT abs(age) FROM singer WHERE age > -9223372036854775807", "boundary": GOLDS["boundary"]}
    measured, session = strengths(golds)

    variants = list(build_variants(measured, session))

    assert ("boundary", "age > 30 → age >= 30") in killed_by(variants)
    for variant in variants:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.executescript(variant.script)
            for gold in golds.values():
                connection.execute(gold).fetchall()


def test_names_and_values_that_need_quotes_are_written_as_they_are(strengths):
    script = """
        CREATE TABLE "odd ""table" ("a ;b" TEXT, "--c" INTEGER, d BLOB);
        INSERT INTO "odd ""table" VALUES ('x''); DROP TABLE y; --', 5, x'00ff'), (char(10) || 'é', 6, NULL);
        CREATE VIEW seen AS SELECT "a ;b" FROM "odd ""table";
    """
    measured, session = strengths({"odd": 'SELECT "a ;b" FROM "odd ""table" WHERE "--c" > 8'}, script)

    assert ("odd", '"--c" > 8 → "--c" >= 8') in killed_by(build_variants(measured, session))


def test_variants_keep_unique_indexes(strengths):
    script = (
        DDL
        + DATA
        + "CREATE UNIQUE INDEX names ON singer (name); CREATE UNIQUE INDEX old ON singer (age) WHERE age > 39;"
    )
    measured, session = strengths(script=script)

    variants = list(build_variants(measured, session))

    assert variants
    for variant in variants:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.executescript(variant.script)
            names = connection.execute("SELECT count(*), count(DISTINCT name) FROM singer").fetchone()
            old = connection.execute("SELECT count(age), count(DISTINCT age) FROM singer WHERE age > 39").fetchone()
        assert names[0] == names[1]
        assert old[0] == old[1]


def test_candidates_whose_rows_a_check_refuses_are_left_out(strengths):
    script = "CREATE TABLE t (a INTEGER CHECK (a > 20)); INSERT INTO t VALUES (40);"
    measured, session = strengths({"check": "SELECT a FROM t WHERE a > 30"}, script)

    assert ("check", "a > 30 → a >= 30") in killed_by(build_variants(measured, session))


def test_tables_of_which_no_small_database_can_be_built_are_an_error_that_says_why(strengths):
    script = "CREATE TABLE t (a INTEGER NOT NULL CHECK (typeof(a) = 'blob')); INSERT INTO t VALUES (x'03');"
    measured, session = strengths({"blob": "SELECT a FROM t WHERE a > 30"}, script)

    with pytest.raises(SourceError, match=r"no small database with these tables can be built: CHECK .*typeof"):
        list(build_variants(measured, session))


def test_nothing_is_built_where_nothing_survives_or_no_table_is_known(strengths):
    strong, session = strengths({"all": "SELECT name FROM singer ORDER BY id"})
    without_tables, session = strengths({"one": "SELECT 1 WHERE 2 > 1 AND 3 > 2"}, "SELECT 1;")

    assert (
        list(build_variants([case for case in strong if not case.survivors] or strong[:0] or without_tables, session))
        == []
    )


@pytest.mark.feature("duckdb")
def test_variants_of_duckdb_keep_types(strengths):
    pytest.importorskip("duckdb")
    script = """
        CREATE TABLE zone (id INTEGER PRIMARY KEY, name VARCHAR, opened DATE, price DECIMAL(9,2), free BOOLEAN);
        CREATE TABLE area (id INTEGER PRIMARY KEY, zone INTEGER REFERENCES zone (id), seen TIMESTAMP);
        INSERT INTO zone VALUES (1, 'A', '2020-01-01', 1.50, true), (2, 'B', '2021-06-01', 9.99, false);
        INSERT INTO area VALUES (1, 1, '2020-01-01 10:00:00');
    """
    golds = {"price": "SELECT name FROM zone WHERE price > 5 AND opened > DATE '2020-05-05'"}
    measured, session = strengths(golds, script, engine="duckdb")

    variants = killed_by(build_variants(measured, session))

    assert variants
    assert variants <= survivors_of(measured)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "music.sql").write_text(DDL + DATA, encoding="utf-8")
    write(f"{HEAD}  - {{id: boundary, gold: {GOLDS['boundary']}}}\n")
    return tmp_path


def test_the_command_writes_variants_that_a_suite_can_name(folder, capsys):
    assert main(["strengthen", ".", "-o", "variants", "--json"]) == 0

    (source_report,) = json.loads(capsys.readouterr().out)["sources"]
    assert source_report["variants"] == "variants/music-*.sql"
    assert source_report["killed"] == source_report["survivors"] > 0
    first = Path(source_report["files"][0]["file"])
    assert "-- boundary: age > 30 → age >= 30" in "".join(file.read_text() for file in Path("variants").iterdir())
    assert first.read_text().startswith("-- A variant of music.sql")


def name_variants(pattern):
    """Write the suite again, with variants of its source."""
    head = HEAD.replace("music.sql}", f"music.sql, variants: '{pattern}'}}")
    write(f"{head}  - {{id: boundary, gold: {GOLDS['boundary']}}}\n")


def summary_of_strength(capsys):
    assert main(["strength", ".", "--json"]) == 0
    return json.loads(capsys.readouterr().out)["summary"]


def test_variants_that_the_source_names_kill_what_they_were_built_for(folder, capsys):
    before = summary_of_strength(capsys)
    main(["strengthen", ".", "-o", "variants"])
    name_variants("variants/music-*.sql")
    capsys.readouterr()

    after = summary_of_strength(capsys)

    assert before["survivors"] > 0
    assert (after["survivors"], after["killed"]) == (0, before["killed"] + before["survivors"])
    assert after["equivalent"] == before["equivalent"]
    assert main(["strengthen", ".", "-o", "more"]) == 0
    assert capsys.readouterr().out.endswith("passes on a source of SQLite, DuckDB or RDF files: nothing to build\n")


def test_variants_that_are_replaced_do_not_count(folder, capsys):
    main(["strengthen", ".", "-o", "variants"])
    counts, advice = capsys.readouterr().out.splitlines()
    scripts = [file.read_text() for file in sorted(Path("variants").iterdir())]
    name_variants("variants/music-*.sql")

    assert main(["strengthen", ".", "-o", "variants", "--force"]) == 0

    assert "add to the source" in advice
    assert capsys.readouterr().out.splitlines() == [counts]
    assert [file.read_text() for file in sorted(Path("variants").iterdir())] == scripts


def test_a_source_with_other_variants_is_told_to_match_both(folder, capsys):
    Path("old.sqlite.sql").write_text(DDL + DATA, encoding="utf-8")
    name_variants("old.sqlite.sql")

    assert main(["strengthen", ".", "-o", "variants"]) == 0

    assert capsys.readouterr().out.endswith(
        'variants: "old.sqlite.sql": change this to a pattern that matches variants/music-*.sql as well\n'
    )


def test_a_gold_that_fails_on_a_variant_is_a_problem_of_its_place(folder, capsys):
    Path("empty.sql").write_text("CREATE TABLE other (id);", encoding="utf-8")
    name_variants("empty.sql")

    assert main(["strength", "."]) == 1

    place = "s.queryeval.yaml:4: gold query failed on the variant empty.sql (invalid): no such table: singer"
    assert capsys.readouterr().out.startswith(place)


def test_variants_keep_the_constraints_of_the_source_whatever_db_schema_lists(folder, capsys):
    entry = {
        "db_id": "music",
        "table_names_original": ["concert", "singer"],
        "column_names_original": [
            *([-1, "*"], [0, "id"], [0, "singer"], [0, "year"]),
            *([1, "id"], [1, "name"], [1, "age"], [1, "boss"]),
        ],
        "column_types": ["text", "number", "number", "text", "number", "text", "number", "number"],
        "primary_keys": [1, 4],
        "foreign_keys": [],
    }
    Path("tables.json").write_text(json.dumps([entry]), encoding="utf-8")
    cases = "".join(f'  - {{id: {name}, gold: "{gold}"}}\n' for name, gold in GOLDS.items())
    write(HEAD.replace("cases:", "db_schema: tables.json\ncases:") + cases)

    assert main(["strengthen", ".", "-o", "variants", "--json"]) == 0

    (source_report,) = json.loads(capsys.readouterr().out)["sources"]
    assert source_report["killed"] == source_report["survivors"] > 0
    for file in source_report["files"]:
        with closing(sqlite3.connect(":memory:")) as source, closing(sqlite3.connect(":memory:")) as variant:
            source.executescript(DDL)
            variant.executescript(Path(file["file"]).read_text(encoding="utf-8"))
            for table, marks in (("singer", "?, ?, ?, ?"), ("concert", "?, ?, ?")):
                source.executemany(f"INSERT INTO {table} VALUES ({marks})", variant.execute(f"SELECT * FROM {table}"))
            assert source.execute("PRAGMA foreign_key_check").fetchall() == []


def test_variants_that_are_there_are_replaced_with_force_only(folder, capsys):
    Path("variants").mkdir()
    old = Path("variants/music-09.sql")
    old.write_text("-- A variant of music.sql")

    with pytest.raises(SystemExit, match="2"):
        main(["strengthen", ".", "-o", "variants"])
    assert "variants/music-09.sql: already exists" in capsys.readouterr().err
    assert main(["strengthen", ".", "-o", "variants", "--force"]) == 0
    assert not old.exists()


@pytest.mark.parametrize("options", [[], ["--force"]])
def test_a_file_that_is_no_variant_is_never_replaced(folder, capsys, options):
    script = Path("music-01.sql")
    script.write_text("CREATE TABLE own (id)")

    with pytest.raises(SystemExit, match="2"):
        main(["strengthen", ".", "-o", ".", *options])
    assert capsys.readouterr().err.startswith("music-01.sql: already exists")
    assert script.read_text() == "CREATE TABLE own (id)"


def test_a_folder_that_cannot_be_written_is_named_before_anything_runs(folder, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["strengthen", ".", "-o", "music.sql"])
    assert capsys.readouterr().err == "music.sql: cannot be written: File exists\n"


def test_sigterm_ends_the_command_and_leaves_no_copy_of_a_database(folder, monkeypatch):
    temporary = folder / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    command = [sys.executable, "-m", "pytest_queryeval", "strengthen", ".", "-o", "variants"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while not list(temporary.glob("*/*")) and process.poll() is None:
            time.sleep(0.01)
        process.terminate()
        message = process.communicate()[1]

    assert process.returncode == 130
    assert message.endswith("queryeval: interrupted\n")
    assert not list(temporary.iterdir())


def test_a_gold_that_fails_is_a_problem_of_its_place(folder, capsys):
    write(f"{HEAD}  - {{id: broken, gold: SELECT x FROM singer}}\n")

    assert main(["strengthen", ".", "-o", "variants"]) == 1
    assert "gold query failed (invalid): no such column: x" in capsys.readouterr().out


def test_a_database_that_is_built_lasts_until_the_next_one(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Session() as session:
        for number in (1, 2, 2, 3):
            source = session.build(
                Source(name="s", engine="sqlite", settings={}, folder=Path()),
                f"CREATE TABLE t AS SELECT {number} AS a;",
            )
            answered = session.execute(query("SELECT a FROM t"), make_case(source=source))
            assert answered.answer.rows == [(number,)]
            assert not list(tmp_path.iterdir())
