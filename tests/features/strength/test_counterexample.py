"""Counterexamples: small databases in which two queries differ that agree on the source."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from samples import make_case, query

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.core.table import Policy
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength.counterexample import find_counterexample

SCRIPT = """
CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, age INTEGER);
CREATE TABLE concert (id INTEGER PRIMARY KEY, singer INTEGER NOT NULL REFERENCES singer (id), year INTEGER);
INSERT INTO singer VALUES (1, 'Ann', 20), (2, 'Bob', 40), (3, 'O''Neil', 50);
INSERT INTO concert VALUES (1, 1, 2019), (2, 2, 2020);
"""


@pytest.fixture
def counterexample_to(tmp_path):
    def find(gold, predicted, *, script=SCRIPT, engine="sqlite", **changes):
        (tmp_path / "music.sql").write_text(script, encoding="utf-8")
        source = Source(name="music.sql", engine=engine, settings={"script": "music.sql"}, folder=tmp_path)
        case = make_case(source=source, golds=(query(gold),), thresholds={}, dialect=engine, max_rows=1_000, **changes)
        with Session() as session:
            result = find_counterexample(case, gold, predicted, session)
        return result.counterexample or result.ruled_out

    return find


@pytest.mark.parametrize(
    "statement",
    [
        "ATTACH '{file}' AS made",
        "VACUUM INTO '{file}'",
        "CREATE TABLE t AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
    ],
)
def test_a_small_database_reaches_no_other_file_and_is_soon_there(statement, tmp_path):
    with Session() as session:
        source = session.build(
            Source(name="s", engine="sqlite", settings={}, folder=Path()), statement.format(file=tmp_path / "made.db")
        )
        with pytest.raises(SourceError, match=r"too many attached databases|interrupted"):
            session.execute(query("SELECT 1"), make_case(source=source, timeout=0.3))

    assert not [*tmp_path.iterdir()]


@pytest.mark.feature("duckdb")
def test_tables_that_no_small_database_can_have_are_told(counterexample_to, tmp_path):
    (tmp_path / "ages.csv").write_text("age\n20\n")
    script = f"CREATE TABLE singer (age INTEGER); CREATE VIEW ages AS FROM read_csv('{tmp_path / 'ages.csv'}');"

    with pytest.raises(SourceError, match=r"no small database with these tables can be built: .*LocalFileSystem"):
        counterexample_to("SELECT age FROM singer", "SELECT DISTINCT age FROM singer", script=script, engine="duckdb")


@pytest.mark.feature("duckdb")
def test_a_query_or_a_check_that_does_not_end_ends_the_search(counterexample_to):
    heavy = (
        "CREATE TABLE singer (age INTEGER CHECK (levenshtein(repeat('a', 60000), repeat('b', age % 2 + 60000)) > 0));"
    )
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    message = "a query does not end in a small database: no answer within 0.5 s"

    with pytest.raises(SourceError, match=message):
        counterexample_to("SELECT name FROM singer", endless, timeout=0.5)
    with pytest.raises(SourceError, match=message):
        counterexample_to("SELECT 1", "SELECT 1 FROM singer", script=heavy, engine="duckdb", timeout=0.5)


@pytest.mark.parametrize(
    ("gold", "predicted", "most"),
    [
        ("SELECT name FROM singer WHERE age > 30", "SELECT name FROM singer WHERE age >= 30", 1),
        ("SELECT name FROM singer", "SELECT DISTINCT name FROM singer", 2),
        ("SELECT count(*) FROM singer", "SELECT count(age) FROM singer", 1),
        ("SELECT 1 UNION SELECT 1", "SELECT 1 UNION ALL SELECT 1", 0),
        (
            "SELECT name FROM singer WHERE id NOT IN (SELECT singer FROM concert)",
            "SELECT s.name FROM singer s LEFT JOIN concert c ON c.singer = s.id AND c.year > 2018 WHERE c.id IS NULL",
            2,
        ),
        ("SELECT name FROM singer ORDER BY age DESC LIMIT 1", "SELECT name FROM singer WHERE age = 50", 2),
        (
            "SELECT name FROM singer WHERE age = (SELECT max(age) FROM singer)",
            "SELECT name FROM singer ORDER BY age DESC LIMIT 1",
            2,
        ),
    ],
)
def test_few_rows_tell_the_queries_apart_when_their_script_is_run_alone(counterexample_to, gold, predicted, most):
    example = counterexample_to(gold, predicted)

    assert sum(len(table.rows) for table in example.tables.values()) <= most
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.executescript(example.script)
        answers = [connection.execute(text).fetchall() for text in (gold, predicted)]
    assert answers == [example.gold.answer.rows, example.predicted.answer.rows]
    assert sorted(answers[0]) != sorted(answers[1])


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("duckdb", marks=pytest.mark.feature("duckdb"))])
def test_values_of_generated_columns_are_left_to_the_database(counterexample_to, engine):
    script = """
        CREATE TABLE singer (id INTEGER PRIMARY KEY, decade INTEGER GENERATED ALWAYS AS (age - age % 10), age INTEGER);
        INSERT INTO singer (id, age) VALUES (1, 25), (2, 33);
    """
    gold, predicted = "SELECT id FROM singer WHERE decade >= 30", "SELECT id FROM singer WHERE age > 30"

    example = counterexample_to(gold, predicted, script=script, engine=engine)

    (table,) = example.tables.values()
    assert (table.columns, table.rows[0][1]) == (("id", "age"), 30)
    assert "decade" in example.script
    assert counterexample_to(gold, "SELECT id FROM singer WHERE age >= 30", script=script, engine=engine) is None


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [
        ("SELECT name FROM singer WHERE age > 30", "SELECT name FROM singer WHERE NOT age <= 30"),
        ("SELECT DISTINCT id FROM singer", "SELECT id FROM singer"),  # a key
        ("SELECT c.id FROM concert c JOIN singer s ON s.id = c.singer", "SELECT id FROM concert"),  # a foreign key
        ("SELECT name FROM singer", "SELECT name FROM singer WHERE name IS NOT NULL"),
    ],
)
def test_of_queries_that_declared_constraints_make_equal_there_is_none(counterexample_to, gold, predicted):
    assert counterexample_to(gold, predicted) is None


def test_a_difference_that_depends_on_the_order_of_rows_does_not_count(counterexample_to):
    script = "CREATE TABLE t (a INTEGER, b INTEGER); INSERT INTO t VALUES (1, 1);"

    any_row = "SELECT max(b) FROM (SELECT b FROM t LIMIT 1)"
    assert counterexample_to(any_row, "SELECT max(b) FROM (SELECT b FROM t ORDER BY a LIMIT 1)", script=script) is None


@pytest.mark.parametrize(
    ("declared", "held", "wanted"),
    [
        ("DATE", "'2019-12-31'", r"2020-\d\d-\d\d"),
        ("DATETIME", "'2019-12-31 10:30:00'", r"2020-\d\d-\d\d \d\d:\d\d:\d\d"),
        ("TIMESTAMP", "NULL", r"2020-\d\d-\d\d \d\d:\d\d:\d\d"),
        ("DATE", "'31 December 2019'", "2020.*"),
    ],
)
def test_columns_of_times_hold_times_as_the_source_writes_them(counterexample_to, declared, held, wanted):
    script = f"CREATE TABLE t (id INTEGER PRIMARY KEY, d {declared}); INSERT INTO t VALUES (1, {held});"
    example = counterexample_to("SELECT id FROM t WHERE d LIKE '2020%'", "SELECT 0 FROM t WHERE 1 = 0", script=script)

    assert all(re.fullmatch(wanted, str(row[1])) for row in example.tables["t"].rows)


def test_no_date_tells_two_ways_to_ask_for_a_year_apart(counterexample_to):
    script = "CREATE TABLE t (id INTEGER PRIMARY KEY, d DATE NOT NULL); INSERT INTO t VALUES (1, '2020-05-01');"
    pair = ("SELECT id FROM t WHERE strftime('%Y', d) = '2020'", "SELECT id FROM t WHERE d LIKE '2020%'")

    assert counterexample_to(*pair, script=script) is None


@pytest.mark.feature("duckdb")
def test_keys_of_times_are_times_in_duckdb(counterexample_to):
    script = "CREATE TABLE t (d DATE PRIMARY KEY, n INTEGER);"

    assert counterexample_to("SELECT n FROM t", "SELECT DISTINCT n FROM t", script=script, engine="duckdb") is not None


@pytest.mark.parametrize("function", ["last_insert_rowid", "changes", "total_changes", "random"])
def test_what_is_not_read_from_tables_is_no_difference(counterexample_to, function):
    with pytest.raises(SourceError, match=rf"the value of {function.upper()}\(\) does not depend on data"):
        counterexample_to(f"SELECT {function}()", "SELECT 0 FROM singer")


def test_queries_are_compared_by_the_policy_of_the_case(counterexample_to):
    pair = ("SELECT name FROM singer", "SELECT DISTINCT name FROM singer")

    assert counterexample_to(*pair, policy=Policy(duplicates="ignore")) is None


def test_a_query_that_fails_in_a_candidate_is_no_difference(counterexample_to):
    # abs() of the least integer is an error.
    pair = (
        "SELECT name FROM singer WHERE age = -9223372036854775808",
        "SELECT name FROM singer WHERE age = -9223372036854775808 AND abs(age) <> 0",
    )

    assert counterexample_to(*pair) is None


def test_a_table_that_a_query_of_the_same_name_reads_has_rows(counterexample_to):
    gold = "WITH singer AS (SELECT age FROM main.singer) SELECT age FROM singer"

    assert counterexample_to(gold, gold.replace(") SELECT age", ") SELECT DISTINCT age")) is not None


def test_without_tables_there_is_none(counterexample_to):
    assert counterexample_to("SELECT 1", "SELECT 2 - 1", script="CREATE VIEW one AS SELECT 1 AS a;") is None


def test_the_same_is_found_again(counterexample_to):
    pair = ("SELECT name FROM singer WHERE age > 30", "SELECT name FROM singer WHERE age > 31")

    assert counterexample_to(*pair).script == counterexample_to(*pair).script


@pytest.mark.feature("duckdb")
def test_counterexamples_on_duckdb_keep_types(counterexample_to):
    pytest.importorskip("duckdb")
    script = "CREATE TABLE zone (id INTEGER PRIMARY KEY, opened DATE); INSERT INTO zone VALUES (1, '2020-01-01');"

    example = counterexample_to(
        "SELECT id FROM zone WHERE opened > DATE '2020-05-05'",
        "SELECT id FROM zone WHERE opened >= DATE '2020-05-05'",
        script=script,
        engine="duckdb",
    )

    assert example.tables["zone"].rows


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [
        (
            "SELECT singer FROM concert GROUP BY singer HAVING sum(year) > 4038 AND max(year) < 3000",
            "SELECT singer FROM concert GROUP BY singer HAVING sum(year) >= 4038 AND max(year) < 3000",
        ),
        (
            "SELECT s.id FROM singer s JOIN concert c ON c.year = s.age + 4000 GROUP BY s.id HAVING count(c.id) = 2",
            "SELECT s.id FROM singer s JOIN concert c ON c.year = s.age + 4000 GROUP BY s.id HAVING count(c.id) >= 2",
        ),
        (
            "SELECT id FROM singer s WHERE age = (SELECT count(*) FROM concert WHERE singer = s.id)",
            "SELECT s.id FROM singer s JOIN concert c ON c.singer = s.id GROUP BY s.id, s.age HAVING count(*) = s.age",
        ),
        (
            "SELECT name FROM singer GROUP BY name HAVING avg(age) > 900 AND count(DISTINCT age) = 3",
            "SELECT name FROM singer GROUP BY name HAVING avg(age) > 900 AND count(DISTINCT age) > 2",
        ),
        ("SELECT name FROM singer WHERE name LIKE 'zed'", "SELECT name FROM singer WHERE name = 'zed'"),
    ],
)
def test_values_just_meet_sums_counts_differences_and_patterns(counterexample_to, gold, predicted):
    example = counterexample_to(gold, predicted)

    assert example is not None


@pytest.mark.feature("duckdb")
def test_set_operations_in_parentheses_are_read(counterexample_to):
    example = counterexample_to(
        "SELECT name FROM singer WHERE age > 500",
        "(SELECT name FROM singer WHERE age > 500) UNION (SELECT name FROM singer WHERE age >= 500)",
        engine="duckdb",
    )

    assert {row[2] for row in example.tables["singer"].rows} <= {500, 501}
