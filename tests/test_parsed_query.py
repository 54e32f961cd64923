"""One parsed query for all that is computed from its text: what it shares, and which column a name refers to."""

import pytest
from query_pairs import TOWN
from sqlglot import exp

from pytest_queryeval.core.table import Policy
from pytest_queryeval.features.strength.sql import mutants
from pytest_queryeval.features.strength.sql.source_tables import read_tables
from pytest_queryeval.features.strength.sql.values import compared_columns
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.languages.sql.columns import Columns
from pytest_queryeval.languages.sql.kind import SQL
from pytest_queryeval.languages.sql.match import match_queries
from pytest_queryeval.languages.sql.order import order_plan, sort_key_query

QUERY = """WITH a AS (SELECT * FROM shop) SELECT a.NAME AS n, count(*) FROM a LEFT JOIN sale ON a.id = shop_id
WHERE city = "Ulm" AND EXISTS (SELECT 1 FROM visit WHERE shop_id = a.id) GROUP BY 1 ORDER BY 2 DESC, n LIMIT 3"""
TABLES = read_tables("CREATE TABLE shop (id INT, name TEXT, city TEXT); CREATE TABLE sale (shop_id INT)", "sqlite")


def test_nothing_changes_the_tree_that_all_share():
    tree = parse_query(QUERY, "sqlite").whole_tree
    before = repr(tree)
    columns = ("n", "count(*)")

    assert mutants(QUERY, "sqlite", TABLES, Policy())
    assert order_plan(QUERY, columns, 3, "sqlite").queries
    assert sort_key_query(QUERY, columns, "sqlite")
    assert SQL.without_data(QUERY, "sqlite")
    assert "a.name" in SQL.normal_text(QUERY, "sqlite")
    assert compared_columns(QUERY, "sqlite", TABLES).values
    assert match_queries(QUERY, QUERY, "sqlite", TOWN).exact

    assert parse_query(QUERY, "sqlite").whole_tree is tree
    assert repr(tree) == before


@pytest.mark.parametrize(
    ("query", "origin"),
    [
        ("SELECT name FROM shop", ("shop", "name")),
        ("SELECT NAME FROM visit, shop", ("shop", "name")),
        ("SELECT s.name FROM (SELECT * FROM shop) AS s", ("shop", "name")),
        ("SELECT name FROM (SELECT v.*, shop.name FROM shop, visit AS v) AS s, sale", ("shop", "name")),
        ("SELECT n FROM (SELECT name AS n FROM shop) AS s", ("shop", "name")),
        ("SELECT n FROM (SELECT upper(name) AS n FROM shop) AS s", None),
        ("WITH a (n) AS (SELECT name FROM shop) SELECT n FROM a", ("shop", "name")),
        ("WITH shop AS (SELECT price FROM sale) SELECT price FROM shop", ("sale", "price")),
        ("WITH shop AS (SELECT name FROM shop) SELECT name FROM shop", ("shop", "name")),
        ("WITH RECURSIVE r AS (SELECT x FROM r) SELECT x FROM r", None),
        ("WITH RECURSIVE r AS (SELECT * FROM r) SELECT x FROM r", None),
        ("SELECT price FROM shop", None),
        ("SELECT price FROM nowhere", None),
        ("SELECT name FROM (shop JOIN visit ON shop.id = shop_id)", ("shop", "name")),
    ],
)
def test_a_column_comes_from_a_table_through_the_queries_that_pass_it_on(query, origin):
    tree = parse_query(query, "sqlite").whole_tree
    columns = Columns(TOWN.tables, "sqlite")
    column = tree.selects[0]

    assert columns.origin(columns.names_at(column), column.table.lower(), column.name.lower()) == origin


def test_a_query_sees_what_is_around_it_but_not_what_it_is_joined_with():
    tree = parse_query(
        "SELECT 1 FROM person WHERE EXISTS (SELECT 1 FROM sale JOIN (SELECT price, boss_id FROM visit) AS v ON true)",
        "sqlite",
    ).whole_tree
    columns = Columns(TOWN.tables, "sqlite")
    price, boss = tree.find_all(exp.Column)

    assert columns.find(price) is None
    assert columns.find(boss)[0].select is tree


@pytest.mark.parametrize(("dialect", "exact"), [("sqlite", True), ("", True), ("postgres", False), ("duckdb", False)])
def test_a_name_in_double_quotes_is_a_text_where_databases_read_it_so(dialect, exact):
    gold, predicted = "SELECT name FROM shop WHERE city = 'Ulm'", 'SELECT name FROM shop WHERE city = "Ulm"'

    assert match_queries(gold, predicted, dialect, TOWN).exact is exact
