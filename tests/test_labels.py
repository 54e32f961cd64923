"""Hardness as the label of a query, in any dialect."""

import pytest

from pytest_queryeval.languages.sql import parse_query

SHOP = "SELECT name FROM shop"


@pytest.mark.parametrize(
    ("query", "level"),
    [
        (SHOP, "easy"),
        ("SELECT count(*) FROM shop WHERE city = 'Ulm'", "easy"),
        ("SELECT name, city FROM shop WHERE opened > 3", "medium"),
        ("SELECT city, count(*) FROM shop GROUP BY city ORDER BY count(*) DESC", "extra"),
        ("SELECT name FROM shop WHERE id IN (SELECT shop_id FROM sale)", "hard"),
        ("SELECT city FROM shop WHERE opened > 3 GROUP BY city ORDER BY city LIMIT 1", "extra"),
        (f"{SHOP} EXCEPT {SHOP} WHERE opened > 3 OR city LIKE 'a' OR id = 3", "hard"),
        (f"{SHOP} WHERE opened > 3 OR city LIKE 'a' OR id = 3 EXCEPT {SHOP}", "extra"),
    ],
)
def test_what_the_published_grammar_reads_has_the_published_level(query, level):
    assert parse_query(query, "sqlite").difficulty == level


@pytest.mark.parametrize(
    ("read", "not_read"),
    [
        (f"{SHOP} WHERE opened >= 3", f"{SHOP} WHERE opened>=3"),
        (f"{SHOP} WHERE opened != 3", f"{SHOP} WHERE opened <> 3"),
        (
            "SELECT a.name FROM shop AS a JOIN sale AS b ON a.id = b.shop_id",
            "SELECT name FROM shop INNER JOIN sale ON id = shop_id",
        ),
        ("SELECT a.name FROM shop AS a JOIN sale AS b", "SELECT a.name FROM shop a, sale b"),
        ("SELECT city, count(*) FROM shop GROUP BY city", "SELECT city AS c, count(*) AS n FROM shop GROUP BY c"),
        (f"{SHOP} WHERE id = 1 OR id = 2", f"{SHOP} WHERE (id = 1 OR id = 2)"),
        (f"{SHOP} UNION {SHOP}", f"{SHOP} UNION ALL {SHOP}"),
        (
            f"{SHOP} WHERE id IN (SELECT shop_id FROM sale)",
            f"{SHOP} AS s WHERE EXISTS (SELECT 1 FROM sale WHERE shop_id = s.id)",
        ),
        (f"{SHOP} ORDER BY name LIMIT 1", f"{SHOP} ORDER BY lower(name) LIMIT 1 OFFSET 3"),
    ],
)
def test_what_it_does_not_read_has_the_level_of_what_it_does(read, not_read):
    assert parse_query(not_read, "sqlite").difficulty == parse_query(read, "sqlite").difficulty


@pytest.mark.parametrize(
    ("query", "level"),
    [
        (f"WITH a AS ({SHOP}) SELECT name FROM a", "hard"),
        (f"WITH a AS ({SHOP}) SELECT name, count(*) FROM a GROUP BY name", "extra"),
        (f"WITH a AS ({SHOP}), b AS ({SHOP}) SELECT name FROM a", "extra"),
        (f"WITH a AS ({SHOP}) {SHOP} UNION SELECT name FROM a", "extra"),
        (f"(WITH a AS ({SHOP}) SELECT name FROM a)", "hard"),
        (f"WITH a AS (WITH b AS ({SHOP} WHERE id = 1 OR id > 3) SELECT name FROM b) SELECT name FROM a", "hard"),
        (f"{SHOP} WHERE id IN (WITH a AS ({SHOP}) SELECT name FROM a)", "hard"),
        (
            """WITH old AS (SELECT id FROM shop WHERE city LIKE 'U%' OR opened < 1990),
            sold AS (SELECT shop_id FROM sale GROUP BY shop_id HAVING count(*) > 3)
            SELECT id FROM old JOIN sold ON id = shop_id WHERE id IN (1, 2)""",
            "extra",
        ),
    ],
)
def test_queries_of_with_count_like_nested_ones(query, level):
    assert parse_query(query, "sqlite").difficulty == level


@pytest.mark.parametrize(
    ("dialect", "query", "level"),
    [
        ("tsql", "SELECT TOP 3 [name] FROM [dbo].[shop] ORDER BY [name]", "medium"),
        ("postgres", "SELECT name::text FROM shop WHERE city ILIKE 'a%'", "medium"),
        ("mysql", "SELECT `name` FROM `shop`", "easy"),
        ("duckdb", "FROM shop SELECT name", "easy"),
    ],
)
def test_queries_are_read_in_their_dialect(dialect, query, level):
    assert parse_query(query, dialect).difficulty == level


@pytest.mark.parametrize("query", ["", "no query", "SELECT name FROM ((", "DELETE FROM shop", "SELECT " + "(" * 9_000])
def test_what_cannot_be_read_has_no_level(query):
    assert parse_query(query, "sqlite").difficulty is None
