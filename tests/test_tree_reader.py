"""What the reader of trees makes of a query: its view, and its clauses as texts."""

import pytest
from query_pairs import TOWN

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.languages.sql.columns import MAX_NUMBERINGS
from pytest_queryeval.languages.sql.view import View


def clauses(query, schema=TOWN, dialect="sqlite"):
    return {name: texts for name, texts in parse_query(query, dialect).reading(schema).clauses.items() if texts}


def view(query):
    return parse_query(query, "sqlite").reading(TOWN).view


@pytest.mark.parametrize(
    ("query", "clause", "texts"),
    [
        ("SELECT T.name FROM shop AS T", "select", ("shop.name",)),
        ("SELECT count(DISTINCT city), 3 FROM shop", "select", ("?", "count(shop.city)")),
        ("SELECT price FROM shop JOIN sale ON shop.id = shop_id", "join", ("sale.shop_id = shop.id",)),
        ("SELECT price FROM shop JOIN sale USING (id)", "from", ("sale", "shop")),
        ("SELECT id FROM shop WHERE opened BETWEEN 1 AND 3", "where", ("shop.opened <= ?", "shop.opened >= ?")),
        (
            "SELECT id FROM shop WHERE NOT (id = 1 AND name IS NULL)",
            "where",
            ("(shop.id != ? or shop.name is not null)",),
        ),
        ("SELECT id FROM shop WHERE id IN (1, 2)", "where", ("(shop.id = ? or shop.id = ?)",)),
        ("SELECT city AS c FROM shop GROUP BY c, 1", "group", ("shop.city", "shop.city")),
        ("SELECT name FROM shop ORDER BY 1 DESC, id", "order", ("desc, asc", "shop.name", "shop.id")),
        ("SELECT name FROM shop LIMIT 3 OFFSET 7", "limit", ("limit offset",)),
        (
            "SELECT 1 FROM shop a WHERE EXISTS (SELECT 1 FROM shop b WHERE b.id > a.id)",
            "where",
            ("exists((select ?; from shop; where ^shop.id < shop.id))",),
        ),
        (
            "SELECT name FROM shop UNION SELECT city FROM shop",
            "union",
            ("select shop.city; from shop", "select shop.name; from shop"),
        ),
        ("SELECT a.id FROM person a JOIN person b ON a.boss_id = b.id", "join", ("person#1.boss_id = person#2.id",)),
        (
            "SELECT id FROM shop LEFT JOIN sale ON id = shop_id AND price > 3",
            "join",
            (" left sale on sale.price > ? and sale.shop_id = shop.id",),
        ),
    ],
)
def test_a_clause_has_its_texts(query, clause, texts):
    assert clauses(query)[clause] == texts


def test_outputs_are_what_the_columns_stand_for():
    assert parse_query("SELECT name AS n, max(id) FROM shop", "sqlite").reading(TOWN).outputs == {
        "n": "shop.name",
        "": "max(shop.id)",
    }
    assert parse_query("SELECT * FROM shop", "sqlite").reading(TOWN).outputs is None


def test_columns_of_a_nested_query_are_told_apart_from_those_of_its_table():
    query = "SELECT {}.name FROM shop AS a JOIN (SELECT id, name FROM shop) AS b ON a.id < b.id"

    assert clauses(query.format("a"))["select"] != clauses(query.format("b"))["select"]


def test_a_long_query_within_another_is_a_digest():
    long = " AND ".join(f"name != {number}" for number in range(300))

    (text,) = clauses(f"SELECT id FROM shop WHERE id IN (SELECT id FROM shop WHERE {long})")["where"]

    assert len(text) < 100


def test_the_numbering_of_a_table_joined_with_itself_is_the_same_in_any_order():
    tables = ["person a", "person b", "person c"]
    steps = "a.boss_id = b.id AND b.city = 'x' AND c.id < a.id"
    queries = [
        f"SELECT a.name FROM {', '.join(order)} WHERE {steps}"
        for order in (tables, tables[::-1], tables[1:] + tables[:1])
    ]

    assert len({str(clauses(query)) for query in queries}) == 1


def test_numberings_of_nested_queries_share_a_budget():
    nested = "SELECT 1 FROM person a, person b WHERE a.id < b.id AND EXISTS ({})"
    query = "SELECT 1"
    for _ in range(30):
        query = nested.format(query)

    assert MAX_NUMBERINGS < 2**30
    assert clauses(query)


def test_a_view_has_the_parts_that_components_and_hardness_need():
    read_view = view(
        "SELECT city, count(*) FROM shop JOIN sale ON id = shop_id WHERE name LIKE 'a' OR NOT price = 3 "
        "GROUP BY city HAVING count(*) > 1 ORDER BY city DESC LIMIT 1"
    )

    assert [item.aggregate for item in read_view.select] == ["count", ""]
    assert read_view.tables == ("sale", "shop")
    assert {(term.negated, term.operator) for term in read_view.where.terms} == {(False, "like"), (True, "=")}
    assert read_view.where.connectors == ("or",)
    assert [key.column for key in read_view.group] == ["city"]
    assert len(read_view.having.terms) == 1
    assert read_view.order.direction == "desc"
    assert read_view.limit


def test_a_nested_query_is_a_view_among_the_values():
    (term,) = view("SELECT id FROM shop WHERE id NOT IN (SELECT shop_id FROM sale)").where.terms

    assert term.negated
    assert isinstance(term.values[0], View)


def test_order_and_limit_of_a_set_operation_belong_to_its_last_arm():
    read_view = view("SELECT id FROM shop UNION SELECT id FROM visit EXCEPT SELECT id FROM person ORDER BY id LIMIT 1")

    assert (read_view.operation, read_view.arm.operation) == ("union", "except")
    assert read_view.order is None
    assert read_view.arm.arm.order.direction == "asc"
    assert read_view.arm.arm.limit


def test_without_a_schema_a_bare_name_belongs_to_the_only_table():
    assert clauses("SELECT name FROM shop", Schema())["select"] == ("shop.name",)
    assert clauses("SELECT name FROM shop, sale", Schema())["select"] == ("name",)
