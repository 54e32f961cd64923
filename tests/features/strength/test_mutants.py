"""Mutants of SQL queries: each operator makes what it should, and what is called equivalent answers as gold does."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_databases import make_database
from samples import change

from pytest_queryeval.core.model import QueryOrAnswer
from pytest_queryeval.core.table import Policy
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength import MAX_MUTANTS
from pytest_queryeval.features.strength.case_strength import is_right
from pytest_queryeval.features.strength.sql import mutants
from pytest_queryeval.features.strength.sql.source_tables import read_tables
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.suites import load_cases

DDL = """
CREATE TABLE country (code TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, continent TEXT, area REAL);
CREATE TABLE singer (
  id INTEGER PRIMARY KEY, name TEXT, stage_name TEXT, age INTEGER NOT NULL, height INTEGER,
  country TEXT NOT NULL REFERENCES country (code), manager INTEGER REFERENCES singer (id)
);
CREATE TABLE concert (id INTEGER PRIMARY KEY, title TEXT, year TEXT, seats INTEGER, country TEXT REFERENCES country);
CREATE TABLE appearance (
  singer INTEGER, concert INTEGER, fee INTEGER, minutes INTEGER NOT NULL,
  PRIMARY KEY (singer, concert),
  FOREIGN KEY (singer) REFERENCES singer (id), FOREIGN KEY (concert) REFERENCES concert (id)
);
CREATE TABLE rumour (singer INTEGER, text TEXT, height INTEGER);
"""
GOLDS = (
    """
SELECT name FROM singer
SELECT DISTINCT country FROM singer
SELECT DISTINCT id, name FROM singer
SELECT DISTINCT s.name FROM singer s JOIN country c ON s.country = c.code WHERE c.name = 'a'
SELECT c.name FROM country c WHERE c.code IN (SELECT country FROM singer WHERE age > 1)
SELECT name FROM country WHERE code NOT IN (SELECT country FROM concert)
SELECT name FROM country WHERE code NOT IN (SELECT country FROM singer ORDER BY age)
SELECT count(*) FROM singer
SELECT count(*) FROM singer WHERE height IS NOT NULL
SELECT count(*) FROM singer WHERE age IS NOT NULL
SELECT count(*) FROM singer WHERE height > 1 AND height IS NOT NULL
SELECT count(height), count(DISTINCT country) FROM singer
SELECT count(id) FROM singer WHERE age > 1.5 OR height < 2
SELECT count(DISTINCT id) FROM singer WHERE age BETWEEN 1 AND 2
SELECT max(age), min(height), avg(age), sum(height) FROM singer
SELECT max(age) FROM singer WHERE id = 1
SELECT sum(a.fee) FROM concert c JOIN appearance a ON a.concert = c.id
SELECT count(*) FROM concert c JOIN appearance a ON a.concert = c.id
SELECT max(a.fee) FROM singer s LEFT JOIN appearance a ON a.singer = s.id
SELECT s.name, c.name FROM singer s JOIN country c ON s.country = c.code
SELECT s.name, c.name FROM singer s LEFT JOIN country c ON s.country = c.code
SELECT s.name, m.name FROM singer s JOIN singer m ON s.manager = m.id
SELECT s.name, m.name FROM singer s JOIN singer m ON s.manager = m.id WHERE s.manager > 0
SELECT c.title, k.name FROM concert c LEFT JOIN country k ON c.country = k.code WHERE k.area > 1
SELECT c.title, k.name FROM concert c LEFT JOIN country k ON c.country = k.code WHERE k.area IS NULL
SELECT c.title, k.name FROM concert c LEFT JOIN country k ON c.country = k.code AND k.area > 1 WHERE c.seats > 1
SELECT s.name, c.title FROM singer s JOIN appearance a ON a.singer = s.id JOIN concert c ON a.concert = c.id
SELECT s.name, c.title FROM appearance a JOIN singer s ON a.singer = s.id JOIN concert c ON a.concert = c.id
SELECT s.name, c.title FROM singer s LEFT JOIN appearance a ON a.singer = s.id LEFT JOIN concert c ON a.concert = c.id
SELECT DISTINCT s.id, c.name FROM singer s LEFT JOIN country c ON s.country = c.code
SELECT DISTINCT s.id FROM singer s LEFT JOIN appearance a ON a.singer = s.id
SELECT DISTINCT a.singer, a.concert, s.name FROM appearance a LEFT JOIN singer s ON a.singer = s.id
SELECT DISTINCT c.code FROM country c LEFT JOIN singer s ON s.country = c.code AND s.id = 1
SELECT country, count(*) FROM singer GROUP BY country
SELECT country, count(*) FROM singer GROUP BY country HAVING count(*) > 0
SELECT country, count(*) FROM singer GROUP BY country HAVING count(*) >= 1 AND max(age) > 1
SELECT country FROM concert GROUP BY country HAVING count(country) > 0
SELECT country FROM singer GROUP BY country HAVING count(*) > 1 ORDER BY count(*) DESC
SELECT s.name, count(*) FROM singer s JOIN appearance a ON a.singer = s.id GROUP BY s.id
SELECT s.name, count(*) FROM singer s JOIN appearance a ON a.singer = s.id GROUP BY a.singer, s.name
SELECT s.name, max(a.fee) FROM singer s JOIN appearance a ON a.singer = s.id GROUP BY s.id, a.concert
SELECT DISTINCT c.name, count(*) FROM country c JOIN singer s ON s.country = c.code GROUP BY c.code
SELECT c.name, max(c.area) FROM country c JOIN singer s ON s.country = c.code GROUP BY c.name
SELECT id, name FROM singer GROUP BY id
SELECT s.name FROM singer s JOIN appearance a ON a.singer = s.id GROUP BY s.id HAVING count(*) >= 2
SELECT s.name FROM singer s JOIN appearance a ON a.singer = s.id GROUP BY s.name HAVING count(*) >= 2
SELECT s.name FROM singer s JOIN appearance a ON a.singer = s.id GROUP BY a.singer HAVING count(*) > 1 AND s.age > 1
SELECT s.name FROM singer s JOIN appearance a ON a.singer = s.id GROUP BY s.id HAVING count(*) < 2
SELECT c.name FROM country c JOIN singer s ON s.country = c.code GROUP BY c.name HAVING count(*) > 1
SELECT name FROM singer ORDER BY age
SELECT name, age FROM singer ORDER BY id, age DESC
SELECT name, country FROM singer ORDER BY country, age
SELECT name FROM country ORDER BY name LIMIT 2
SELECT name FROM singer ORDER BY age DESC LIMIT 1
SELECT name FROM singer WHERE age = (SELECT max(age) FROM singer)
SELECT name FROM singer WHERE age > (SELECT avg(age) FROM singer)
SELECT name FROM singer WHERE age = (SELECT age FROM singer ORDER BY id LIMIT 1)
SELECT count(*) FROM singer ORDER BY 1 LIMIT 1
SELECT country, count(*) FROM singer GROUP BY country ORDER BY country, count(*) DESC
SELECT country, count(*) AS n FROM singer GROUP BY country ORDER BY n DESC LIMIT 1
SELECT name FROM singer UNION SELECT name FROM country
SELECT code FROM country EXCEPT SELECT country FROM concert
SELECT country FROM singer INTERSECT SELECT country FROM concert ORDER BY country
SELECT DISTINCT country FROM singer WHERE age > 1 UNION ALL SELECT country FROM concert
SELECT name FROM singer WHERE name LIKE '%a%' OR name LIKE 'b%'
SELECT name FROM singer WHERE NOT (age > 1 AND height > 1)
SELECT name FROM singer WHERE age > 1 AND age > 0 AND (height = 2 OR height = 3)
SELECT name FROM singer s WHERE EXISTS (SELECT 1 FROM appearance a WHERE a.singer = s.id AND a.fee > 1)
SELECT name FROM singer s WHERE NOT EXISTS (SELECT a.fee FROM appearance a WHERE a.singer = s.id LIMIT 1)
SELECT s.name FROM singer s WHERE s.age > (SELECT avg(o.age) FROM singer o WHERE o.country = s.country)
SELECT age + height, age * 2 FROM singer
SELECT r.text FROM rumour r JOIN singer s ON r.singer = s.id
SELECT DISTINCT text FROM rumour
SELECT s.name FROM singer s JOIN appearance a USING (id)
SELECT t.n FROM (SELECT country, count(*) AS n FROM singer GROUP BY country) AS t WHERE t.n > 1
WITH old AS (SELECT * FROM singer WHERE age > 1) SELECT name, country FROM old WHERE country = 'a'
SELECT c.name, (SELECT count(*) FROM singer s WHERE s.country = c.code) FROM country c
SELECT country, name FROM singer WHERE id = 1 ORDER BY name
SELECT a.singer, c.title FROM appearance a, concert c WHERE a.concert = c.id AND a.singer = 1
SELECT c.title FROM concert c RIGHT JOIN appearance a ON a.concert = c.id
SELECT c.title, k.name FROM concert c FULL JOIN country k ON c.country = k.code
SELECT count(*), count(DISTINCT manager) FROM singer WHERE manager IS NOT NULL GROUP BY country
""".strip()
    .replace("USING (id)", "ON a.singer = s.id")
    .splitlines()
)


def of(query, dialect="sqlite", ddl=DDL, policy=Policy()):  # noqa: B008 (immutable)
    return mutants(query, dialect, read_tables(ddl, dialect), policy)


def changes(query, operator, **arguments):
    return {mutant.change: bool(mutant.equivalent) for mutant in of(query, **arguments) if mutant.operator == operator}


@pytest.mark.parametrize(
    ("operator", "query", "change"),
    [
        ("comparison-boundary", "SELECT id FROM singer WHERE age > 1", "age > 1 → age >= 1"),
        ("comparison-boundary", "SELECT id FROM singer WHERE age <= 1", "age <= 1 → age < 1"),
        ("comparison-flip", "SELECT id FROM singer WHERE name = 'a'", "name = 'a' → name <> 'a'"),
        ("comparison-flip", "SELECT id FROM singer WHERE age < 3", "age < 3 → age > 3"),
        ("value", "SELECT id FROM singer WHERE age = 30", "age = 30 → age = 31"),
        ("value", "SELECT id FROM concert WHERE year = '2014'", "year = '2014' → year = '2013'"),
        ("value", "SELECT id FROM singer WHERE age IN (3, 5)", "5 → 6"),
        ("value", "SELECT id FROM country WHERE area > 2.5", "area > 2.5 → area > 3.5"),
        ("condition-dropped", "SELECT id FROM singer WHERE age > 1 AND height > 2", "AND age > 1 dropped"),
        ("condition-dropped", "SELECT id FROM singer WHERE age > 1 OR height > 2", "OR height > 2 dropped"),
        (
            "connector",
            "SELECT id FROM singer WHERE age > 1 AND height > 2",
            "age > 1 AND height > 2 → age > 1 OR height > 2",
        ),
        ("where-dropped", "SELECT id FROM singer WHERE age > 1", "WHERE age > 1 dropped"),
        (
            "having-dropped",
            "SELECT country FROM singer GROUP BY country HAVING COUNT(*) > 1",
            "HAVING COUNT(*) > 1 dropped",
        ),
        ("distinct", "SELECT DISTINCT name FROM singer", "DISTINCT dropped"),
        ("distinct", "SELECT name FROM singer", "DISTINCT added"),
        ("count", "SELECT COUNT(*) FROM singer", "COUNT(*) → COUNT(name)"),
        ("count", "SELECT COUNT(height) FROM singer", "COUNT(height) → COUNT(DISTINCT height)"),
        ("count", "SELECT COUNT(DISTINCT height) FROM singer", "COUNT(DISTINCT height) → COUNT(height)"),
        ("aggregate", "SELECT MAX(age) FROM singer", "MAX(age) → MIN(age)"),
        ("aggregate", "SELECT SUM(age) FROM singer", "SUM(age) → AVG(age)"),
        (
            "join-type",
            "SELECT s.id FROM singer AS s JOIN rumour AS r ON r.singer = s.id",
            "JOIN rumour AS r → LEFT JOIN rumour AS r",
        ),
        (
            "join-type",
            "SELECT s.id FROM singer AS s LEFT JOIN rumour AS r ON r.singer = s.id",
            "LEFT JOIN rumour AS r → JOIN rumour AS r",
        ),
        ("join-condition", "SELECT s.id FROM singer AS s JOIN rumour AS r ON r.singer = s.id", "r.singer → r.height"),
        ("order-direction", "SELECT id FROM singer ORDER BY age", "age → age DESC"),
        (
            "order-direction",
            "SELECT country FROM singer GROUP BY country ORDER BY COUNT(*) DESC",
            "COUNT(*) DESC → COUNT(*) ASC",
        ),
        ("order-key-dropped", "SELECT id FROM singer ORDER BY age, height DESC", "height DESC dropped"),
        ("order-dropped", "SELECT id FROM singer ORDER BY age LIMIT 2", "ORDER BY age dropped"),
        ("limit", "SELECT id FROM singer LIMIT 2", "LIMIT 2 → LIMIT 3"),
        ("limit", "SELECT id FROM singer LIMIT 2", "LIMIT 2 → LIMIT 1"),
        ("limit", "SELECT id FROM singer LIMIT 2", "LIMIT 2 dropped"),
        ("grouping", "SELECT COUNT(*) FROM singer GROUP BY country, age", "GROUP BY age dropped"),
        ("grouping", "SELECT name, COUNT(*) FROM singer GROUP BY country", "GROUP BY name added"),
        ("union-all", "SELECT name FROM singer UNION SELECT name FROM country", "UNION → UNION ALL"),
        ("set-operation", "SELECT name FROM singer UNION SELECT name FROM country", "UNION → INTERSECT"),
        ("set-operation", "SELECT name FROM singer INTERSECT SELECT name FROM country", "INTERSECT → EXCEPT"),
        ("except-swapped", "SELECT name FROM singer EXCEPT SELECT name FROM country", "operands of EXCEPT swapped"),
        ("between", "SELECT id FROM singer WHERE age BETWEEN 1 AND 3", "age BETWEEN 1 AND 3 → (age > 1 AND age <= 3)"),
        ("like", "SELECT id FROM singer WHERE name LIKE '%a%'", "'%a%' → 'a%'"),
        ("like", "SELECT id FROM singer WHERE name LIKE 'a%'", "'a%' → '%a%'"),
        (
            "not-dropped",
            "SELECT id FROM singer WHERE NOT country IN ('a', 'b')",
            "NOT country IN ('a', 'b') → country IN ('a', 'b')",
        ),
        ("not-added", "SELECT id FROM singer WHERE name LIKE 'a%'", "name LIKE 'a%' → NOT name LIKE 'a%'"),
        ("null-test", "SELECT id FROM singer WHERE height IS NULL", "height IS NULL → NOT height IS NULL"),
        ("column", "SELECT name FROM singer", "name → stage_name"),
        ("column", "SELECT id FROM singer WHERE age > 1", "age → height"),
        ("arithmetic", "SELECT age + height FROM singer", "age + height → age - height"),
    ],
)
def test_each_operator_makes_its_change(operator, query, change):
    assert changes(query, operator)[change] is False


@pytest.mark.parametrize(
    ("query", "change"),
    [
        ("SELECT id, name FROM singer", "DISTINCT added"),
        ("SELECT 1", "DISTINCT added"),
        ("SELECT DISTINCT 1 + 1 AS two, NULL", "DISTINCT dropped"),
        ("SELECT name FROM country", "DISTINCT added"),
        ("SELECT COUNT(*) FROM singer", "DISTINCT added"),
        ("SELECT country, COUNT(*) FROM singer GROUP BY country", "DISTINCT added"),
        ("SELECT s.id, c.name FROM singer AS s JOIN country AS c ON s.country = c.code", "DISTINCT added"),
        (
            "SELECT s.id, c.name FROM singer AS s JOIN country AS c ON s.country = c.code",
            "JOIN country AS c → LEFT JOIN country AS c",
        ),
        (
            "SELECT s.name FROM singer AS s JOIN rumour AS r ON r.singer = s.id GROUP BY s.id HAVING COUNT(*) > 1",
            "JOIN rumour AS r → LEFT JOIN rumour AS r",
        ),
        ("SELECT COUNT(age) FROM singer", "COUNT(age) → COUNT(*)"),
        ("SELECT COUNT(id) FROM singer", "COUNT(id) → COUNT(DISTINCT id)"),
        ("SELECT id FROM singer WHERE age > 1.5", "age > 1.5 → age >= 1.5"),
        ("SELECT id FROM singer WHERE age > 1 AND age > 0", "AND age > 0 dropped"),
        ("SELECT id FROM singer WHERE NOT age IS NULL", "WHERE NOT age IS NULL dropped"),
        ("SELECT country FROM singer GROUP BY country HAVING COUNT(*) > 0", "HAVING COUNT(*) > 0 dropped"),
        ("SELECT country FROM singer GROUP BY country HAVING COUNT(*) > 0", "COUNT(*) > 0 → COUNT(*) >= 0"),
        ("SELECT MAX(age) FROM singer WHERE id = 1", "MAX(age) → MIN(age)"),
        ("SELECT COUNT(*) FROM singer LIMIT 1", "LIMIT 1 → LIMIT 2"),
        ("SELECT id FROM singer ORDER BY id, age", "age dropped"),
        ("SELECT id, name, COUNT(*) FROM singer GROUP BY id", "GROUP BY name added"),
    ],
)
def test_equivalent_mutants_are_recognised(query, change):
    assert {mutant.change: bool(mutant.equivalent) for mutant in of(query)}[change] is True


def test_what_only_undeclared_constraints_would_make_equivalent_is_not():
    assert changes("SELECT text FROM rumour", "distinct") == {"DISTINCT added": False}
    assert changes("SELECT 1 FROM rumour", "distinct") == {"DISTINCT added": False}
    assert changes("SELECT generate_series(1, 3)", "distinct", dialect="postgres") == {"DISTINCT added": False}
    assert changes("SELECT unnest([1, 1])", "distinct", dialect="duckdb") == {"DISTINCT added": False}
    assert changes("SELECT r.text FROM rumour AS r JOIN singer AS s ON r.singer = s.id", "join-type") == {
        "JOIN singer AS s → LEFT JOIN singer AS s": False
    }


@pytest.mark.parametrize(
    ("query", "operator", "change"),
    [
        ("SELECT (SELECT text FROM rumour ORDER BY rowid LIMIT 1)", "order-direction", "rowid"),
        ("SELECT name AS country, COUNT(*) FROM singer GROUP BY country", "distinct", "DISTINCT added"),
    ],
)
def test_a_name_is_a_column_of_the_table_before_an_alias_or_a_column_of_a_query_around(query, operator, change):
    assert [of_change for name, of_change in changes(query, operator).items() if change in name] == [False]


def test_a_number_in_quotes_is_no_place_in_the_list():
    assert changes("SELECT id, name FROM singer ORDER BY 1, age", "order-key-dropped")["age dropped"] is True
    assert changes("SELECT id, name FROM singer ORDER BY '1', age", "order-key-dropped")["age dropped"] is False


def test_the_policy_of_the_case_makes_mutants_equivalent():
    without_duplicates, without_order = Policy(duplicates="ignore"), Policy(row_order="ignore")

    assert changes("SELECT name FROM singer", "distinct", policy=without_duplicates) == {"DISTINCT added": True}
    assert changes("SELECT name FROM singer", "distinct", policy=without_order) == {"DISTINCT added": False}
    assert changes("SELECT name FROM singer ORDER BY age", "order-dropped", policy=without_order) == {
        "ORDER BY age dropped": True
    }


def test_a_mutant_that_drops_the_last_item_of_a_list_leaves_it_to_the_next_ones():
    query = "SELECT stage_name, count(*) FROM singer GROUP BY stage_name, height"

    assert {mutant.change for mutant in of(query) if "height" not in mutant.query} == {
        "GROUP BY height dropped",
        "height → manager",
    }


def test_texts_in_double_quotes_are_no_columns():
    query = 'SELECT id FROM singer WHERE name LIKE "%a%" AND country = "France"'

    assert "'%a%' → 'a%'" in changes(query, "like")
    assert not any("France" in change for change in changes(query, "column"))


@pytest.mark.parametrize("query", ["SELEC 1", "SELECT (((", "", "DROP TABLE singer", "SELECT 1; SELECT 2"])
def test_what_is_no_query_has_no_mutants(query):
    assert of(query) == ()


@pytest.mark.parametrize("ddl", ["", "no sql", "CREATE TABLE (", "CREATE VIEW a AS SELECT 1", "SELECT 1;" * 3])
def test_mutants_need_no_tables(ddl):
    assert {"where-dropped", "comparison-boundary"} <= {
        mutant.operator for mutant in of("SELECT id FROM singer WHERE age > 1", ddl=ddl)
    }


def test_of_many_mutants_the_operators_take_turns():
    query = " UNION ALL ".join(f"SELECT DISTINCT name FROM singer WHERE age > {n} AND id < 9" for n in range(12))

    mutants = of(query)

    assert len(mutants) == MAX_MUTANTS
    assert {"distinct", "value", "condition-dropped", "union-all"} <= {mutant.operator for mutant in mutants}


@pytest.mark.long
@pytest.mark.parametrize(
    "query",
    [
        f"SELECT id FROM singer WHERE age IN ({', '.join(map(str, range(1200)))})",
        f"SELECT id FROM singer WHERE {' AND '.join(f'age > {n}' for n in range(1200))}",
        f"SELECT id FROM singer WHERE {' OR '.join(f'age > {n}' for n in range(1200))}",
        f"SELECT {', '.join(f'age + {n}' for n in range(1200))} FROM singer",
        " UNION ALL ".join(["SELECT id FROM singer WHERE age > 1"] * 500),
    ],
    ids=["in", "and", "or", "columns", "unions"],
)
def test_long_queries_have_few_mutants(query):
    mutants = of(query)

    assert 0 < len(mutants) < 50


@pytest.mark.long
@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgres", "mysql", "tsql", ""])
def test_every_mutant_parses_and_none_comes_twice_or_is_gold(dialect):
    for gold in GOLDS if dialect == "sqlite" else GOLDS[::4]:
        mutants = of(gold, dialect=dialect)
        texts = [mutant.query for mutant in mutants]
        assert mutants
        assert len({*texts, parse_query(gold, dialect).tree.sql(dialect=dialect)}) == len(texts) + 1
        assert not any(parse_query(text, dialect).problem for text in texts), gold
        assert all(mutant.clause and mutant.change and mutant.operator for mutant in mutants)


def test_names_keep_their_case_where_the_dialect_folds_it():
    ddl = 'CREATE TABLE singer ("Id" INT PRIMARY KEY, "Name" TEXT, "Stage Name" TEXT)'

    assert changes('SELECT "Name" FROM singer', "column", dialect="postgres", ddl=ddl) == {
        '"Name" → "Stage Name"': False
    }


def test_declared_constraints_are_read():
    ddl = """
    CREATE TABLE "A b" ("K" INT, other TEXT NOT NULL, CONSTRAINT p PRIMARY KEY ("K"), UNIQUE (other, "K"));
    CREATE TABLE c (k INT REFERENCES "A b", x INT UNIQUE, CHECK (x > 1), FOREIGN KEY (x) REFERENCES "A b" ("K"));
    """
    tables = read_tables(ddl, "sqlite")

    assert tables["a b"].primary_key == ("k",)
    assert [column.not_null for column in tables["a b"].columns] == [True, True]
    assert tables["a b"].unique == (("other", "k"),)
    assert [(key.columns, key.table, key.referred) for key in tables["c"].foreign_keys] == [
        (("k",), "a b", ("k",)),
        (("x",), "a b", ("k",)),
    ]
    assert tables["c"].unique == (("x",),)


def test_unique_indexes_are_read():
    ddl = """
    CREATE TABLE "A b" (k INT NOT NULL, "Name" TEXT, other TEXT);
    CREATE UNIQUE INDEX one ON "A b" (k);
    CREATE UNIQUE INDEX IF NOT EXISTS two ON "A b" ("Name" COLLATE NOCASE, other DESC);
    CREATE UNIQUE INDEX some ON "A b" (other) WHERE k > 1;
    CREATE UNIQUE INDEX folded ON "A b" (lower(other));
    CREATE INDEX plain ON "A b" (other);
    """

    assert read_tables(ddl, "sqlite")["a b"].unique == (("k",), ("name", "other"))
    assert changes('SELECT k FROM "A b"', "distinct", ddl=ddl) == {"DISTINCT added": True}


@pytest.mark.parametrize("tail", ["WITHOUT ROWID", "STRICT, without  rowid", "\nWITHOUT ROWID, STRICT"])
def test_tables_without_rowid_are_read(tail):
    tables = read_tables(f"CREATE TABLE t (k INTEGER PRIMARY KEY, x TEXT) {tail}; CREATE TABLE u (y TEXT);", "sqlite")

    assert [[column.name for column in table.columns] for table in tables.values()] == [["k", "x"], ["y"]]
    assert (tables["t"].primary_key, tables["t"].nullable_key) == (("k",), ())


@pytest.fixture(scope="module")
def running():
    """A function that returns whether a mutant of a gold is right on a database of a seed."""
    with TemporaryDirectory() as folder, Session() as session:
        suite = Path(folder) / "s.queryeval.yaml"
        suite.write_text("kind: sql\nsource: a.sqlite\ncases: [{id: a, gold: SELECT 1}]\n", encoding="utf-8")
        (case,) = load_cases(suite, require_prediction=False)

        def differing(gold, seed, policy):
            path = Path(folder) / f"{seed}.sqlite"
            if not path.exists():
                make_database(path, DDL, seed)
            here = change(case, source=replace(case.settings.source, settings={"path": str(path)}), policy=policy)
            answer = session.execute_cached(QueryOrAnswer(query=gold), here)
            assert answer.error is None, answer.error
            return [
                mutant
                for mutant in of(gold, policy=policy)
                if mutant.equivalent
                and not is_right(session.execute(QueryOrAnswer(query=mutant.query), here), [answer], here, session)
            ]

        yield differing


POLICIES = [
    Policy(),
    Policy(duplicates="ignore"),
    Policy(row_order="ignore"),
    Policy(row_order="strict"),
    Policy(gold_columns=(0,)),
]


@settings(deadline=None)
@given(gold=st.sampled_from(GOLDS), seed=st.integers(0, 50), policy=st.sampled_from(POLICIES))
def test_equivalent_mutants_never_differ_from_gold(running, gold, seed, policy):
    assert running(gold, seed, policy) == []


def test_random_databases_keep_their_constraints(tmp_path):
    for seed in range(20):
        make_database(tmp_path / f"{seed}.sqlite", DDL, seed)
        with closing(sqlite3.connect(tmp_path / f"{seed}.sqlite")) as connection:
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
            nulls = connection.execute("SELECT count(*) FROM country WHERE code IS NULL OR name IS NULL").fetchone()
            assert nulls == (0,)


def test_the_golds_have_equivalent_mutants_of_many_sorts():
    mutants = chain.from_iterable(of(gold) for gold in GOLDS)

    assert len({mutant.operator for mutant in mutants if mutant.equivalent}) >= 12
