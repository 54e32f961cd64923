"""How hard a gold query is: Spider's four levels, for queries in any dialect."""

import pytest

from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import METRICS

SHOP = "SELECT name FROM shop"
PLAIN, CONNECTED = f"{SHOP} WHERE opened > 3", f"{SHOP} WHERE opened > 3 OR city LIKE 'a' OR id = 3"


def difficulty(query, dialect="sqlite"):
    return KINDS["sql"].difficulty(query, dialect)


@pytest.mark.parametrize(
    ("query", "level"),
    [
        (SHOP, "easy"),
        (f"{SHOP} WHERE city = 'Ulm'", "easy"),
        ("SELECT count(*) FROM shop WHERE city = 'Ulm'", "easy"),
        ("SELECT city FROM shop GROUP BY city HAVING count(*) > 3", "easy"),
        ("SELECT name, city FROM shop", "medium"),
        ("SELECT name, city FROM shop WHERE opened > 3", "medium"),
        ("SELECT max(price), min(price) FROM sale", "medium"),
        (f"{SHOP} WHERE city LIKE 'U%'", "medium"),
        (f"{SHOP} WHERE city = 'Ulm' AND opened > 1990", "medium"),
        (f"{SHOP} ORDER BY opened LIMIT 1", "medium"),
        ("SELECT city FROM shop GROUP BY city HAVING count(*) > 1 AND count(*) < 9 AND max(opened) > 3", "medium"),
        (f"{SHOP} WHERE city = 'Ulm' OR city = 'Bonn' OR city = 'Kiel'", "hard"),
        (f"{PLAIN} ORDER BY opened LIMIT 1", "hard"),
        (f"{SHOP} WHERE id IN (SELECT shop_id FROM sale)", "hard"),
        (f"{SHOP} UNION SELECT name FROM sale", "hard"),
        ("SELECT name, city, max(opened), min(id) FROM shop WHERE a = 1 AND b = 2 GROUP BY c", "hard"),
        ("SELECT name, count(*) FROM shop WHERE id IN (SELECT shop_id FROM sale)", "extra"),
        (f"{SHOP} WHERE id IN (SELECT a FROM b) AND id IN (SELECT c FROM d)", "extra"),
        ("SELECT a, b FROM s JOIN t JOIN u JOIN v JOIN w", "extra"),
        ("SELECT city, count(*) FROM shop GROUP BY city ORDER BY count(*) DESC", "extra"),
        ("SELECT city FROM shop WHERE opened > 3 GROUP BY city ORDER BY city LIMIT 1", "extra"),
        # a set operation counts, and what is in its second query does not
        (f"{SHOP} UNION {CONNECTED} ORDER BY d LIMIT 1", "hard"),
        (f"{CONNECTED} EXCEPT {SHOP}", "extra"),
        # a query in FROM is one table
        ("SELECT count(*) FROM (SELECT a FROM t WHERE b = 1 OR c = 2)", "easy"),
        # a negation counts as an aggregate
        ("SELECT max(a), b FROM t WHERE c LIKE 'x'", "medium"),
        ("SELECT max(a), b FROM t WHERE c NOT LIKE 'x'", "extra"),
        # aggregates in HAVING do not count, but its connectors do
        ("SELECT a FROM t WHERE b = 1 GROUP BY c HAVING max(d) > 1", "medium"),
        ("SELECT a, b FROM t WHERE c = 1 GROUP BY d HAVING e = 1 AND f = 2 AND g = 3", "extra"),
    ],
)
def test_what_the_published_grammar_reads_has_the_published_level(query, level):
    published = METRICS["exact_set_match_spider"].function(query, query).details["spider"]["hardness"]

    assert published == difficulty(query) == level


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
        ("SELECT max(a), b FROM t WHERE c NOT LIKE 'x'", "SELECT max(a) m, b FROM t WHERE NOT c LIKE 'x'"),
        (
            "SELECT a, b FROM t WHERE c = 1 GROUP BY d HAVING e = 1 AND f = 2 AND g = 3",
            "SELECT a x, b FROM t WHERE c = 1 GROUP BY d HAVING e = 1 AND f = 2 AND g = 3",
        ),
    ],
)
def test_what_it_does_not_read_has_the_level_of_what_it_does(read, not_read):
    assert difficulty(not_read) == difficulty(read)


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
    ],
)
def test_queries_of_with_count_like_nested_ones(query, level):
    assert difficulty(query) == level


@pytest.mark.parametrize(
    ("dialect", "query", "level"),
    [
        ("tsql", "SELECT TOP 3 [name] FROM [dbo].[shop] ORDER BY [name]", "medium"),
        ("postgres", "SELECT name::text FROM shop WHERE city ILIKE 'a%'", "medium"),
        ("mysql", "SELECT `name` FROM `shop`", "easy"),
        ("duckdb", "FROM shop SELECT name", "easy"),
        ("sqlite", "", None),
        ("sqlite", "no query", None),
        ("sqlite", "SELECT name FROM ((", None),
        ("sqlite", "DELETE FROM shop", None),
        ("sqlite", "SELECT " + "(" * 9_000, None),
    ],
    ids=lambda value: str(value)[:20],
)
def test_queries_are_read_in_their_dialect_and_what_cannot_be_read_has_no_level(dialect, query, level):
    assert difficulty(query, dialect) == level
