"""Exact set match of two queries in any dialect, and its components."""

import re
import sqlite3
from itertools import pairwise, permutations
from typing import get_args

import duckdb
import pytest
from query_pairs import DIFFERENT, DIFFERENT_BY_DIALECT, GOLDS, MATCHING, MATCHING_BY_DIALECT, TOWN

from pytest_queryeval import METRICS
from pytest_queryeval.core.case_report import ComponentName
from pytest_queryeval.core.db_schema import Schema

COMPONENTS = get_args(ComponentName)


def score(gold, predicted, dialect="sqlite", schema=TOWN):
    return METRICS["exact_set_match"].function(gold, predicted, dialect=dialect, schema=schema)


def component(name, gold, predicted):
    return METRICS[f"partial_{name}_f1"].function(gold, predicted, dialect="sqlite", schema=TOWN)


def unlike(verdict, pairs, by_dialect):
    """Pairs without this verdict in SQLite with a schema, and in a dialect without one, either of the two as gold."""
    rows = [
        *(("sqlite", TOWN, *pair) for pair in pairs),
        *((dialect, Schema(), *pair) for dialect, *pair in by_dialect),
    ]
    return [
        (dialect, *pair)
        for dialect, schema, *pair in rows
        if {score(*sides, dialect, schema).value for sides in (pair, pair[::-1])} != {verdict}
    ]


def test_queries_match_that_differ_in_spelling_and_values_only():
    assert unlike(1.0, MATCHING, MATCHING_BY_DIALECT) == []


def test_queries_do_not_match_that_ask_for_something_else():
    assert unlike(0.0, DIFFERENT, DIFFERENT_BY_DIALECT) == []


@pytest.mark.parametrize("schema", [Schema(), TOWN], ids=["without a schema", "with a schema"])
def test_a_query_matches_itself_in_the_words_of_its_dialect(schema):
    queries = [(query, dialect) for dialect, of_dialect in GOLDS.items() for query in of_dialect]
    queries += [(query, "sqlite") for query in sorted({query for pair in (*MATCHING, *DIFFERENT) for query in pair})]

    assert [query for query, dialect in queries if score(query, f"{query}\n", dialect, schema).value != 1.0] == []


def test_queries_that_match_share_all_components():
    unshared = [(name, *pair) for pair in MATCHING for name in COMPONENTS if component(name, *pair) != 1.0]

    assert unshared == []


@pytest.mark.parametrize(
    ("name", "gold", "predicted", "f1"),
    [
        ("select", "SELECT name, city FROM shop", "SELECT name FROM shop", 2 / 3),
        ("select", "SELECT max(price) FROM sale", "SELECT min(price) FROM sale", 0),
        ("select_no_agg", "SELECT max(price) FROM sale", "SELECT min(price) FROM sale", 1),
        ("select", "SELECT name FROM shop", "SELECT a.name, city AS c FROM shop AS a", 2 / 3),
        ("where", "SELECT id FROM shop WHERE city = 'a'", "SELECT id FROM shop WHERE city = 'b' OR id = 3", 2 / 3),
        ("where", "SELECT id FROM shop WHERE opened > 3", "SELECT id FROM shop WHERE opened < 3", 0),
        ("where_no_op", "SELECT id FROM shop WHERE opened > 3", "SELECT id FROM shop WHERE opened < 3", 1),
        ("where", "SELECT name FROM shop WHERE 3 < opened", "SELECT id FROM shop WHERE opened > 4", 1),
        ("where", "SELECT name FROM shop WHERE NOT city LIKE 'a'", "SELECT id FROM shop WHERE city NOT LIKE 'b'", 1),
        (
            "group_no_having",
            "SELECT count(*) FROM shop GROUP BY city, id",
            "SELECT id FROM person GROUP BY city",
            2 / 3,
        ),
        ("group", "SELECT id FROM shop GROUP BY id HAVING count(*) > 1", "SELECT id FROM shop GROUP BY id", 0),
        ("order", "SELECT id FROM shop ORDER BY id", "SELECT name FROM shop ORDER BY id ASC", 1),
        ("order", "SELECT id FROM shop ORDER BY id", "SELECT id FROM shop ORDER BY id DESC", 0),
        ("and_or", "SELECT id FROM shop WHERE id = 1 AND id = 2", "SELECT id FROM shop WHERE id = 1 OR id = 2", 0),
        ("iuen", "SELECT id FROM shop UNION SELECT id FROM visit", "SELECT id FROM shop", 0),
        ("select", "SELECT count(city), name FROM shop", "SELECT count(name), name FROM shop", 0.5),
        ("where", "SELECT id FROM shop WHERE id IN (SELECT 1)", "SELECT id FROM shop WHERE id IN (SELECT 2, 3)", 0),
        ("where", "SELECT id FROM shop WHERE opened BETWEEN 1 AND 3", "SELECT id FROM shop WHERE opened > 1", 0),
        ("group", "SELECT id FROM shop GROUP BY id, city", "SELECT id FROM shop GROUP BY city, id", 1),
        ("order", "SELECT id FROM shop ORDER BY id LIMIT 1", "SELECT id FROM shop ORDER BY id", 0),
        ("order", "SELECT id FROM shop UNION SELECT 1 ORDER BY id", "SELECT id FROM shop ORDER BY id", 0),
        ("iuen", "SELECT id FROM shop UNION SELECT 1 ORDER BY id", "SELECT id FROM shop UNION SELECT 1", 0),
        ("iuen", "SELECT id FROM shop UNION SELECT id FROM visit", "SELECT id FROM shop UNION SELECT id FROM sale", 0),
        ("keywords", "SELECT id FROM shop WHERE id NOT IN (1)", "SELECT id FROM shop WHERE id IN (SELECT 1)", 0.8),
        ("keywords", "SELECT id FROM shop WHERE id = 1 LIMIT 1", "SELECT id FROM shop LIMIT 1", 2 / 3),
    ],
)
def test_a_component_is_the_f1_of_what_both_share(name, gold, predicted, f1):
    assert component(name, gold, predicted) == pytest.approx(f1)
    assert component(name, predicted, gold) == pytest.approx(f1)


GOLD = "SELECT name FROM shop"


def test_details_have_the_components_and_the_clauses_that_differ():
    match = score(GOLD, "select a.name from shop as a")

    assert match.value == 1.0
    assert match.details["partial_match"]["select"] == [1, 1, 1]
    assert "exact_set_match" not in match.details
    different = score(f"{GOLD} WHERE id = 1", "SELECT city FROM shop ORDER BY name")
    assert different.value == 0.0
    assert different.details["exact_set_match"] == {"differs": ["select", "where", "order"]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT name\nFROM shop WHERE id ==== 3", "EQ lacks a part, line 2, column 23"),
        (f"{GOLD}; DROP TABLE shop", "2 statements, not one"),
        ("PRAGMA table_info(shop)", "no query but PRAGMA"),
    ],
)
def test_a_text_that_cannot_be_read_scores_0_as_prediction_and_nothing_as_gold_and_why_is_said(text, problem):
    assert score(GOLD, text).value == 0.0
    assert score(GOLD, text).details["exact_set_match"]["unreadable"] == problem
    for scores in (score(text, GOLD), component("select", text, GOLD)):
        assert scores.value is None
        assert scores.details["notes"] == [f"the gold query cannot be read: {problem}"]
    assert score(text, text).value == 1.0


def test_what_could_be_read_of_a_broken_prediction_counts_for_components():
    broken = f"{GOLD} WHERE id = ORDER BY name"

    assert score(f"{GOLD} ORDER BY name", broken).value == 0.0
    assert component("order", f"{GOLD} ORDER BY name", broken) == 1.0
    assert component("select", GOLD, "I do not know") == 0.0


@pytest.mark.parametrize(("dialect", "exact"), [("sqlite", 1), ("", 1), ("postgres", 0), ("duckdb", 0)])
def test_a_name_in_double_quotes_is_a_text_where_databases_read_it_so_and_no_column_has_it(dialect, exact):
    gold = "SELECT name FROM shop WHERE city = 'Ulm'"

    assert score(gold, 'SELECT name FROM shop WHERE city = "Ulm"', dialect).value == exact
    assert score(gold, 'SELECT name FROM shop WHERE city = "name"', dialect).value == 0.0


@pytest.mark.parametrize("times", [2, 3, 4])
def test_tables_joined_with_themselves_may_come_in_any_order(times):
    names = [f"t{number}" for number in range(times)]
    steps = [f"{one}.boss_id = {partner}.id" for one, partner in pairwise(names)]

    def query(order, selected):
        tables = ", ".join(f"person {name}" for name in order)
        return f"SELECT {selected}.name FROM {tables} WHERE {' AND '.join(steps)}"

    assert score(query(names, "t0"), query(names[::-1], "t0")).value == 1.0
    assert score(query(names, "t0"), query(names, "t1")).value == 0.0


def test_more_tables_joined_with_themselves_keep_their_order():
    tables = ", ".join(f"person p{number}" for number in range(7))

    assert score(f"SELECT p3.name FROM {tables}", f"SELECT p3.city AS c, p3.name FROM {tables}").value == 0.0
    assert score(f"SELECT p3.name FROM {tables}", f"SELECT p3.name AS n FROM {tables}").value == 1.0


@pytest.mark.long
@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_clauses_match_in_the_one_order_that_databases_read(engine):
    database = sqlite3.connect(":memory:") if engine == "sqlite" else duckdb.connect()
    for name in ("shop", "visit"):
        database.execute(f"CREATE TABLE {name} (id INTEGER, city TEXT)")
    clauses = ["JOIN visit v ON s.id = v.id", "WHERE v.id > 1", "GROUP BY s.id", "HAVING count(*) > 1"]
    clauses += ["ORDER BY s.id", "LIMIT 2"]
    gold = f"SELECT s.id FROM shop s {' '.join(clauses)}"

    def runs(query):
        try:
            database.execute(query)
        except (sqlite3.Error, duckdb.Error):
            return False
        return True

    orders = [f"SELECT s.id FROM shop s {' '.join(order)}" for order in [*permutations(clauses)][::6]]
    assert gold in orders
    assert [query for query in orders if score(gold, query, engine, Schema()).value] == list(filter(runs, orders))


BROKEN = [
    "SELECT id, FROM shop",
    "SELECT , id FROM shop",
    "SELECT id,, id FROM shop",
    "SELECT id FROM shop, WHERE id = 1",
    "SELECT id FROM shop WHERE id IN (1, 2,)",
    "SELECT max(id,) FROM shop",
    "SELECT id FROM shop GROUP BY id, HAVING id > 1",
    "SELECT id FROM shop ORDER BY id,",
    "SELECT id FROM shop ORDER BY id UNION SELECT id FROM shop",
    "SELECT id FROM shop LIMIT 1 EXCEPT SELECT id FROM shop",
    "SELECT id FROM shop WHERE id IN (SELECT id FROM shop LIMIT 1 ORDER BY id)",
    "SELECT id FROM shop LIMIT -1 ORDER BY id",
]


@pytest.mark.parametrize("query", BROKEN)
@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_what_the_database_cannot_read_is_no_match(engine, query):
    database = sqlite3.connect(":memory:") if engine == "sqlite" else duckdb.connect()
    database.execute("CREATE TABLE shop (id INTEGER)")
    try:
        database.execute(query)
        runs = True
    except (sqlite3.Error, duckdb.Error):
        runs = False

    match = score("SELECT id FROM shop", query, engine, Schema()).details.get("exact_set_match", {})
    broken = match.get("unreadable", "")

    assert (broken == "") == runs
    assert runs or re.search(r" after |a comma without an item", broken)
