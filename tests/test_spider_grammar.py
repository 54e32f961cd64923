"""The published grammar of Spider: what it reads, what it rejects, and what it takes for equal."""

import pytest

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.languages.sql.match import comparable_view, exact_match
from pytest_queryeval.languages.sql.spider_grammar import (
    END,
    MAX_DEPTH,
    UnreadableQueryError,
    published_view,
    tokens_of,
)
from pytest_queryeval.languages.sql.view import EMPTY_VIEW

SHOP = Schema(
    tables={
        "shop": ("id", "name", "city", "opened"),
        "sale": ("number", "shop_id", "price", "discount", "count"),
        "visit": ("shop_id", "guests"),
    },
    foreign_keys=((("sale", "shop_id"), ("shop", "id")), (("visit", "shop_id"), ("shop", "id"))),
)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Price>3", ["price", ">", "3"]),
        ("price=3", ["price=3"]),
        ("price>=3", ["price", ">", "=3"]),
        ("price >= 3", ["price", ">=", "3"]),
        ("price ! = 3", ["price", "!=", "3"]),
        ("city = 'Bad Aibling'", ["city", "=", '"Bad Aibling"']),
        ("city='Ulm'", ["city=__text_0__"]),
        ("a.b,c.d", ["a.b", ",", "c.d"]),
        ("3,5", ["3,5"]),
        ("count(*)", ["count", "(", "*", ")"]),
        ("shop.*", ["shop", ".", "*"]),
        ("LIMIT 1. It", ["limit", "1", ".", "it"]),
        ("a -- b", ["a", "--", "b"]),
        ("`a`", ["`", "a", "`"]),
        ("i cannot", ["i", "can", "not"]),
    ],
)
def test_tokens_are_those_of_a_splitter_of_prose(text, tokens):
    assert tokens_of(text) == [*tokens, END]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT T1.name FROM shop AS T1 JOIN sale AS T2 ON T1.id = T2.shop_id WHERE T2.price BETWEEN 1 AND 5",
        "SELECT max(price - discount) FROM sale GROUP BY shop_id HAVING count(*) > 3 ORDER BY avg(price) DESC LIMIT 3",
        "SELECT name FROM shop WHERE id NOT IN (SELECT shop_id FROM sale) UNION SELECT city FROM shop",
        "(SELECT name FROM shop) EXCEPT (SELECT city FROM shop)",
        "SELECT count(*) FROM (SELECT DISTINCT city FROM shop)",
        "SELECT name FROM shop WHERE opened > 1990 LIMIT 1 OFFSET 2",
        "SELECT name FROM shop; DROP TABLE shop",
        "SELECT name city FROM shop sale",
    ],
)
def test_what_the_grammar_knows_is_read(query):
    assert published_view(query, SHOP).select != ()


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT 1", "no FROM"),
        ("DELETE FROM shop", "'delete' in place of 'select'"),
        ("SELECT colour FROM shop", "no column 'colour'"),
        ("SELECT name FROM", "no column 'name'"),
        ("SELECT name FROM store", "no table 'store'"),
        ("SELECT count(*) AS n FROM shop", "no column 'as'"),
        ("SELECT s.name FROM shop s", "no table 's'"),
        ("SELECT name FROM shop INNER JOIN sale", "no table 'inner'"),
        ("SELECT name FROM shop, sale", "no table ','"),
        ("SELECT sale.name FROM shop AS sale", "the alias 'sale' is a table's name"),
        ("SELECT name FROM shop WHERE city = 'Bo's'", "a quote is not closed"),
        ("SELECT name FROM shop WHERE opened <> 3", "no column '>'"),
        ("SELECT name FROM shop WHERE opened IS NULL", "no column 'null'"),
        ("SELECT name FROM shop WHERE opened IN (1, 2)", "',' in place of ')'"),
        ("SELECT name FROM shop WHERE (opened > 3 OR opened < 1)", "'>' in place of ')'"),
        ("SELECT name FROM shop WHERE NOT opened > 3", "no column 'not'"),
        ("SELECT name FROM shop WHERE opened", "the end is not an operator"),
        ("SELECT name FROM shop WHERE opened > (id)", "in parentheses as a value"),
        ("SELECT price FROM sale WHERE price > count", "as a value"),
        ("SELECT name FROM shop WHERE opened =", "without a value"),
        ("SELECT name FROM shop LIMIT few", "LIMIT without a whole number"),
        ("SELECT name FROM shop UNION ALL SELECT city FROM shop", "'all' in place of 'select'"),
        ("SELECT name FROM shop WHERE id = 1 city = 'a' and id = 3", "without a connector"),
        ("SELECT name FROM shop LIMIT 1 as", "nothing after AS"),
    ],
)
def test_what_the_grammar_does_not_know_is_rejected_with_a_reason(query, reason):
    with pytest.raises(UnreadableQueryError) as raised:
        published_view(query, SHOP)

    assert reason in str(raised.value)


def test_a_where_without_conditions_is_read_as_none():
    assert published_view("SELECT name FROM shop WHERE", SHOP).where.terms == ()


def test_a_rejected_query_compares_as_an_empty_one():
    assert comparable_view("SELECT colour FROM shop", SHOP) == EMPTY_VIEW


def test_a_bare_column_is_one_of_the_first_table_that_has_it():
    bare = comparable_view("SELECT shop_id FROM visit JOIN sale", Schema(tables=SHOP.tables))
    qualified = comparable_view("SELECT visit.shop_id FROM visit JOIN sale", Schema(tables=SHOP.tables))

    assert bare == qualified


def test_an_alias_counts_in_the_whole_text_and_the_last_one_wins():
    view = published_view("SELECT T1.name FROM shop AS T1 UNION SELECT T1.name FROM shop AS T1", SHOP)

    assert view.arm is not None
    assert view.select == view.arm.select
    with pytest.raises(UnreadableQueryError, match=r"no column 't1\.name'"):
        published_view("SELECT T1.name FROM shop AS T1 UNION SELECT T1.price FROM sale AS T1", SHOP)


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [
        ("SELECT name FROM shop WHERE opened > 1990", "select name from shop where opened > 2000"),
        ("SELECT DISTINCT city FROM shop", "SELECT city FROM shop"),
        ("SELECT count(DISTINCT city) FROM shop", "SELECT count(city) FROM shop"),
        ("SELECT name FROM shop WHERE id = 3", "SELECT name FROM shop WHERE id = opened"),
        (
            "SELECT T2.shop_id FROM shop AS T1 JOIN sale AS T2 ON T1.id = T2.shop_id",
            "SELECT shop.id FROM sale JOIN shop",
        ),
        (
            "SELECT name FROM shop WHERE id IN (SELECT shop_id FROM sale WHERE price > 3)",
            "SELECT name FROM shop WHERE id IN (SELECT shop_id FROM sale WHERE price > 9)",
        ),
    ],
)
def test_values_distinct_and_foreign_keys_make_no_difference(gold, predicted):
    assert exact_match(comparable_view(gold, SHOP), comparable_view(predicted, SHOP))


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [
        ("SELECT id FROM shop", "SELECT shop_id FROM sale"),
        (
            "SELECT name FROM shop WHERE id IN (SELECT shop_id FROM sale)",
            "SELECT name FROM shop WHERE id IN (SELECT DISTINCT shop_id FROM sale)",
        ),
        (
            "SELECT count(*) FROM (SELECT name FROM shop WHERE opened > 3)",
            "SELECT count(*) FROM (SELECT name FROM shop WHERE opened > 4)",
        ),
        (
            "SELECT name FROM shop EXCEPT SELECT city FROM shop JOIN sale WHERE sale.shop_id > 1",
            "SELECT name FROM shop EXCEPT SELECT city FROM shop JOIN sale WHERE shop.name > 1",
        ),
        (
            "SELECT guests FROM visit UNION SELECT T1.id FROM shop AS T1 JOIN sale AS T2",
            "SELECT guests FROM visit UNION SELECT T2.shop_id FROM shop AS T1 JOIN sale AS T2",
        ),
    ],
)
def test_nested_queries_and_later_arms_are_compared_more_strictly(gold, predicted):
    assert not exact_match(comparable_view(gold, SHOP), comparable_view(predicted, SHOP))


def test_one_direction_counts_for_all_of_order_by():
    mixed = comparable_view("SELECT name FROM shop ORDER BY city DESC, name ASC", SHOP)
    ascending = comparable_view("SELECT name FROM shop ORDER BY city, name", SHOP)

    assert mixed == ascending


def test_without_a_schema_names_are_taken_as_they_are():
    view = published_view("SELECT T1.name FROM shop AS T1 JOIN sale ON T1.id = sale.shop_id WHERE price > 3")

    assert view.tables == ("shop", "sale")
    assert view.select[0].expression == published_view("SELECT shop.name FROM shop").select[0].expression


@pytest.mark.parametrize(
    "query",
    [
        "SELECT s.name FROM shop s",
        "SELECT round(price) FROM sale",
        "SELECT name n FROM shop",
        "SELECT name FROM shop LEFT JOIN sale",
        "SELECT CASE WHEN price > 3 THEN 1 END FROM sale",
        "SELECT price FROM sale WHERE price=3",
    ],
)
def test_without_a_schema_what_only_a_schema_could_tell_is_rejected(query):
    with pytest.raises(UnreadableQueryError):
        published_view(query)


NESTED = "SELECT name FROM shop WHERE id IN ("


@pytest.mark.parametrize("schema", [None, SHOP])
def test_queries_nest_up_to_a_limit(schema):
    deepest = NESTED * (MAX_DEPTH - 1) + "SELECT id FROM shop" + ")" * (MAX_DEPTH - 1)

    assert exact_match(comparable_view(deepest, schema), comparable_view(f"{deepest} ", schema))
    with pytest.raises(UnreadableQueryError, match="within each other"):
        published_view(f"{NESTED}{deepest})", schema)


def test_set_operations_chain_up_to_the_same_limit():
    longest = " UNION ".join(["SELECT name FROM shop"] * MAX_DEPTH)

    assert exact_match(comparable_view(longest, SHOP), comparable_view(f"{longest} ", SHOP))
    assert comparable_view(f"{longest} UNION {longest}", SHOP) == EMPTY_VIEW


@pytest.mark.parametrize(
    "query",
    [
        "(" * 10_000,
        "SELECT " + "(" * 10_000 + "name FROM shop",
        NESTED * 3_000,
        " UNION ".join(["SELECT name FROM shop"] * 4_000),
        "SELECT name FROM (" * 5_000,
        "'" * 100_001,
        "from " * 20_000,
        ". " * 50_000,
        "SELECT name FROM shop LIMIT " + "9" * 100_000,
    ],
    ids=["brackets", "operand", "nested", "arms", "tables", "quotes", "froms", "periods", "limit"],
)
def test_hostile_text_is_rejected_in_one_short_line(query):
    with pytest.raises(UnreadableQueryError) as raised:
        published_view(query, SHOP)

    assert len(str(raised.value)) < 100


def test_messages_hold_no_control_characters():
    with pytest.raises(UnreadableQueryError) as raised:
        published_view("SELECT a\x1b[31mb FROM shop", SHOP)

    assert str(raised.value).isprintable()
