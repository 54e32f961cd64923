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
UNREADABLE = "SELECT name FROM (("


def score(gold, predicted, dialect="sqlite", schema=TOWN):
    return METRICS["exact_set_match"].function(gold, predicted, dialect=dialect, schema=schema)


def component(name, gold, predicted):
    return METRICS[f"partial_{name}_f1"].function(gold, predicted, dialect="sqlite", schema=TOWN)


def verdicts(gold, predicted, dialect, schema):
    """Both ways round: which of the two is gold makes no difference."""
    return {score(*pair, dialect, schema).value for pair in ((gold, predicted), (predicted, gold))}


def test_queries_match_that_differ_in_spelling_and_values_only():
    assert [pair for pair in MATCHING if verdicts(*pair, "sqlite", TOWN) != {1.0}] == []


def test_queries_do_not_match_that_ask_for_something_else():
    assert [pair for pair in DIFFERENT if verdicts(*pair, "sqlite", TOWN) != {0.0}] == []


def test_queries_of_a_dialect_match():
    assert [row for row in MATCHING_BY_DIALECT if verdicts(*row[1:], row[0], Schema()) != {1.0}] == []


def test_queries_of_a_dialect_do_not_match():
    assert [row for row in DIFFERENT_BY_DIALECT if verdicts(*row[1:], row[0], Schema()) != {0.0}] == []


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


def test_a_match_has_its_components_as_details():
    scores = score("SELECT name FROM shop", "select a.name from shop as a")

    assert scores.value == 1.0
    assert scores.details["partial_match"]["select"] == [1, 1, 1]
    assert "exact_set_match" not in scores.details


def test_details_say_in_which_clauses_queries_differ():
    scores = score("SELECT name FROM shop WHERE id = 1", "SELECT city FROM shop ORDER BY name")

    assert scores.value == 0.0
    assert scores.details["exact_set_match"] == {"differs": ["select", "where", "order"]}


def test_a_prediction_that_cannot_be_read_scores_0_and_details_say_why():
    scores = score("SELECT name FROM shop", UNREADABLE)

    assert scores.value == 0.0
    assert scores.details["exact_set_match"]["unreadable"].startswith("Expect")
    assert component("select", "SELECT name FROM shop", "I do not know") == 0.0


def test_what_could_be_read_of_a_broken_prediction_counts_for_components():
    broken = "SELECT name FROM shop WHERE id = ORDER BY name"

    assert score("SELECT name FROM shop ORDER BY name", broken).value == 0.0
    assert component("order", "SELECT name FROM shop ORDER BY name", broken) == 1.0


def test_a_gold_that_cannot_be_read_has_no_score_but_matches_itself():
    assert score(UNREADABLE, "SELECT name FROM shop").value is None
    assert score(UNREADABLE, UNREADABLE).value == 1.0
    assert component("select", UNREADABLE, "SELECT name FROM shop").value is None


@pytest.mark.parametrize(
    ("gold", "reason"),
    [
        ("SELECT name\nFROM shop WHERE id ==== 3", "gold cannot be read: EQ lacks a part, line 2, column 23"),
        ("SELECT name; SELECT id", "gold cannot be read: 2 statements, not one"),
        ("PRAGMA table_info(shop)", "gold cannot be read: no query but PRAGMA"),
    ],
)
def test_a_note_says_why_and_where_a_gold_cannot_be_read(gold, reason):
    assert score(gold, "SELECT name FROM shop").details["notes"] == [reason]
    assert component("select", gold, "SELECT name FROM shop").details["notes"] == [reason]


def test_a_second_statement_is_no_match():
    scores = score("SELECT name FROM shop", "SELECT name FROM shop; DROP TABLE shop")

    assert scores.value == 0.0
    assert scores.details["exact_set_match"]["unreadable"] == "2 statements, not one"


def test_without_a_schema_qualified_names_are_compared():
    gold = "SELECT a.name FROM shop AS a JOIN sale AS b ON a.id = b.shop_id"

    assert (
        score(gold, "SELECT shop.name FROM sale JOIN shop ON sale.shop_id = shop.id", "sqlite", Schema()).value == 1.0
    )
    assert score(gold, "SELECT name FROM sale JOIN shop ON shop_id = shop.id", "sqlite", Schema()).value == 0.0


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


@pytest.mark.parametrize(
    ("dialect", "query"),
    [
        ("oracle", "SELECT id FROM shop HAVING count(*) > 1 GROUP BY id"),
        ("tsql", "SELECT id, limit FROM shop WHERE limit > 3 ORDER BY limit"),
        ("bigquery", "FROM shop |> WHERE id > 1 |> AGGREGATE count(*) AS n GROUP BY id |> WHERE n > 2"),
        ("bigquery", "SELECT id, FROM shop"),
        ("snowflake", "SELECT id, FROM shop"),
        ("clickhouse", "SELECT id FROM shop LIMIT 1 UNION ALL SELECT id FROM shop"),
        ("postgres", "SELECT id FROM shop OFFSET 1 LIMIT 2"),
        ("mysql", "SELECT id FROM shop USE INDEX FOR ORDER BY (i) WHERE id > 1 ORDER BY id"),
        ("mysql", "SELECT id FROM shop IGNORE INDEX FOR GROUP BY (i) JOIN sale ON id = shop_id GROUP BY id"),
        ("postgres", "SELECT count(*) FILTER (WHERE id > 1) OVER (ORDER BY id) FROM shop WHERE id IN (1) GROUP BY id"),
    ],
)
def test_what_a_dialect_allows_is_read(dialect, query):
    assert score(query, f"{query} ", dialect, Schema()).value == 1.0
