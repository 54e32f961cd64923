"""Pairs of queries that match clause by clause, pairs that do not, and queries in the words of a dozen dialects."""

from pytest_queryeval.core.db_schema import Schema

TOWN = Schema(
    tables={
        "shop": ("id", "name", "city", "opened"),
        "sale": ("number", "shop_id", "price", "discount"),
        "visit": ("id", "shop_id", "guests"),
        "person": ("id", "name", "boss_id", "city"),
    },
    foreign_keys=(
        (("sale", "shop_id"), ("shop", "id")),
        (("visit", "shop_id"), ("shop", "id")),
        (("person", "boss_id"), ("person", "id")),
    ),
)

# SQLite, with the schema of the town.
MATCHING = [
    ("SELECT a.name FROM shop AS a", "SELECT name FROM shop"),
    ("SELECT -opened AS id FROM shop ORDER BY (id)", "SELECT -opened AS id FROM shop ORDER BY -opened"),
    ("SELECT opened AS age FROM shop ORDER BY age + 0", "SELECT opened FROM shop ORDER BY opened + 0"),
    ("SELECT a.name FROM shop a", "SELECT shop.name FROM shop"),
    ("SELECT NAME FROM SHOP", "select name from shop"),
    (
        "SELECT s.price FROM shop a, sale s WHERE a.id = s.shop_id",
        "SELECT s.price FROM shop a JOIN sale s ON a.id = s.shop_id",
    ),
    (
        "SELECT s.price FROM shop a CROSS JOIN sale s WHERE a.id = s.shop_id",
        "SELECT s.price FROM shop a INNER JOIN sale s ON s.shop_id = a.id",
    ),
    ("SELECT price FROM shop JOIN sale ON id = shop_id", "SELECT price FROM sale JOIN shop ON shop_id = id"),
    ("SELECT name FROM shop JOIN visit USING (id)", "SELECT name FROM shop JOIN visit ON shop.id = visit.id"),
    (
        "SELECT price, guests FROM sale NATURAL JOIN visit",
        "SELECT price, guests FROM sale JOIN visit ON sale.shop_id = visit.shop_id",
    ),
    (
        "WITH a AS (SELECT shop_id FROM sale) SELECT shop_id FROM a",
        "SELECT shop_id FROM (SELECT shop_id FROM sale) AS b",
    ),
    (
        "SELECT x.shop_id FROM (SELECT shop_id, price FROM sale) AS x WHERE x.price > 3",
        "WITH y AS (SELECT shop_id, price FROM sale) SELECT y.shop_id FROM y WHERE price > 3",
    ),
    ("WITH a(n) AS (SELECT shop_id FROM sale) SELECT n FROM a", "SELECT shop_id FROM (SELECT shop_id FROM sale) AS b"),
    ("SELECT name FROM shop WHERE opened BETWEEN 1 AND 2", "SELECT name FROM shop WHERE opened >= 1 AND opened <= 2"),
    ("SELECT name FROM shop WHERE opened NOT BETWEEN 1 AND 2", "SELECT name FROM shop WHERE opened < 1 OR opened > 2"),
    ("SELECT name FROM shop WHERE city IN ('a', 'b')", "SELECT name FROM shop WHERE city = 'a' OR city = 'b'"),
    ("SELECT name FROM shop WHERE city NOT IN ('a', 'b')", "SELECT name FROM shop WHERE city <> 'a' AND city != 'b'"),
    (
        "SELECT name FROM shop WHERE NOT (city = 'a' OR opened > 3)",
        "SELECT name FROM shop WHERE city != 'a' AND opened <= 3",
    ),
    ("SELECT name FROM shop WHERE NOT city LIKE 'a'", "SELECT name FROM shop WHERE city NOT LIKE 'a'"),
    ("SELECT name FROM shop WHERE NOT city IS NULL", "SELECT name FROM shop WHERE city IS NOT NULL"),
    (
        "SELECT name FROM shop WHERE NOT id IN (SELECT shop_id FROM sale)",
        "SELECT name FROM shop WHERE id NOT IN (SELECT shop_id FROM sale)",
    ),
    ("SELECT name FROM shop WHERE NOT NOT city = 'a'", "SELECT name FROM shop WHERE city = 'a'"),
    ("SELECT name, city FROM shop ORDER BY 2", "SELECT name, city FROM shop ORDER BY city"),
    ("SELECT name AS n FROM shop ORDER BY n", "SELECT name FROM shop ORDER BY name ASC"),
    ("SELECT city AS c, count(*) FROM shop GROUP BY c", "SELECT city, count(*) FROM shop GROUP BY 1"),
    (
        "SELECT city, count(*) AS n FROM shop GROUP BY city HAVING n > 1",
        "SELECT city, count(*) FROM shop GROUP BY city HAVING count(*) > 2",
    ),
    (
        "SELECT city, count(*) AS n FROM shop GROUP BY city ORDER BY n DESC",
        "SELECT city, count(*) FROM shop GROUP BY city ORDER BY count(*) DESC",
    ),
    ('SELECT name FROM shop WHERE city = "Ulm"', "SELECT name FROM shop WHERE city = 'Ulm'"),
    ('SELECT "name" FROM shop', "SELECT name FROM shop"),
    ("SELECT `name` FROM `shop`", "SELECT [name] FROM [shop]"),
    ("SELECT name FROM main.shop", "SELECT name FROM shop"),
    ("SELECT main.shop.name FROM main.shop", "SELECT name FROM shop"),
    ("SELECT name FROM shop LIMIT 3", "SELECT name FROM shop LIMIT 7"),
    ("SELECT DISTINCT city FROM shop", "SELECT city FROM shop"),
    ("SELECT count(DISTINCT city) FROM shop", "SELECT COUNT(city) FROM shop"),
    ("SELECT name FROM shop UNION SELECT name FROM person", "SELECT name FROM person UNION SELECT name FROM shop"),
    (
        "SELECT name FROM shop INTERSECT SELECT name FROM person",
        "SELECT name FROM person INTERSECT SELECT name FROM shop",
    ),
    ("(SELECT name FROM shop)", "SELECT name FROM shop"),
    ("SELECT name FROM shop;", "SELECT name FROM shop"),
    ("SELECT name FROM shop -- all", "SELECT /* x */ name FROM shop"),
    ("SELECT (name) FROM shop WHERE ((city = 'a'))", "SELECT name FROM shop WHERE city = 'a'"),
    ("SELECT name FROM shop WHERE city <> 'a'", "SELECT name FROM shop WHERE city != 'b'"),
    ("SELECT count(1) FROM shop", "SELECT count(*) FROM shop"),
    ("SELECT name, city FROM shop", "SELECT city, name FROM shop"),
    ("SELECT name FROM shop WHERE 3 < opened", "SELECT name FROM shop WHERE opened > 4"),
    ("SELECT name FROM shop WHERE city = 'a' AND opened > 3", "SELECT name FROM shop WHERE opened > 1 AND city = 'b'"),
    ("SELECT name FROM shop WHERE opened > -3", "SELECT name FROM shop WHERE opened > 3.5"),
    (
        "SELECT name FROM shop WHERE city = 'a' OR (city = 'b' OR opened > 3)",
        "SELECT name FROM shop WHERE opened > 3 OR city = 'b' OR city = 'a'",
    ),
    (
        "SELECT shop.id FROM shop JOIN sale ON shop.id = sale.shop_id",
        "SELECT sale.shop_id FROM shop JOIN sale ON shop.id = sale.shop_id",
    ),
    (
        "SELECT name FROM shop WHERE id = (SELECT max(shop_id) FROM sale)",
        "SELECT name FROM shop WHERE (SELECT max(s.shop_id) FROM sale AS s) = id",
    ),
    (
        "SELECT name FROM shop WHERE EXISTS (SELECT 1 FROM sale WHERE sale.shop_id = shop.id)",
        "SELECT name FROM shop AS a WHERE EXISTS (SELECT 2 FROM sale AS b WHERE a.id = b.shop_id)",
    ),
    (
        "SELECT shop.name FROM shop LEFT JOIN sale ON shop.id = sale.shop_id",
        "SELECT a.name FROM shop a LEFT OUTER JOIN sale b ON b.shop_id = a.id",
    ),
    (
        "SELECT p.name FROM person p JOIN person b ON p.boss_id = b.id",
        "SELECT x.name FROM person AS x JOIN person AS y ON x.boss_id = y.id",
    ),
    (
        "SELECT b.name FROM person p JOIN person b ON p.boss_id = b.id",
        "SELECT x.name FROM person AS x JOIN person AS y ON y.boss_id = x.id",
    ),
    ("SELECT city, count(*) FROM shop GROUP BY city, opened", "SELECT city, count(*) FROM shop GROUP BY opened, city"),
    (
        "SELECT name FROM shop UNION (SELECT name FROM person UNION SELECT city FROM shop)",
        "(SELECT city FROM shop UNION SELECT name FROM shop) UNION SELECT name FROM person",
    ),
    ("SELECT price + discount FROM sale", "SELECT discount + price FROM sale"),
    ("SELECT name FROM shop WHERE opened > 3 GROUP BY name", "SELECT name FROM shop WHERE 4 < opened GROUP BY 1"),
    ("SELECT name FROM shop WHERE 1 = 1 AND city = 'a'", "SELECT name FROM shop WHERE city = 'a'"),
    ("SELECT shop.* FROM shop", "SELECT * FROM shop"),
    (
        "SELECT a.name FROM shop a JOIN sale b ON a.id=b.shop_id JOIN visit c ON c.shop_id=a.id",
        "SELECT a.name FROM shop a JOIN sale b ON a.id=b.shop_id JOIN visit c ON c.shop_id=b.shop_id",
    ),
    ("SELECT lower(name) FROM shop", "SELECT LOWER(name) FROM shop"),
    ("SELECT name FROM shop ORDER BY city ASC, name DESC", "SELECT name FROM shop ORDER BY city, name DESC"),
    (
        "SELECT CASE WHEN city='a' THEN name ELSE city END FROM shop",
        "SELECT CASE WHEN 'b' = city THEN name ELSE city END FROM shop",
    ),
    (
        "SELECT CASE city WHEN 'a' THEN name ELSE city END FROM shop",
        "SELECT CASE WHEN city = 'a' THEN name ELSE city END FROM shop",
    ),
    (
        "SELECT x.n FROM (SELECT name AS n FROM shop WHERE opened > 3) AS x",
        "SELECT name FROM (SELECT name FROM shop WHERE opened > 3)",
    ),
    (
        "SELECT name FROM shop WHERE id IN (SELECT shop_id FROM sale)",
        "SELECT name FROM shop WHERE shop.id IN (SELECT sale.shop_id FROM sale)",
    ),
    ("SELECT name FROM shop WHERE city IN ('a')", "SELECT name FROM shop WHERE city = 'a'"),
    (
        "SELECT name FROM shop WHERE (city, name) IN (SELECT city, name FROM person)",
        "SELECT name FROM shop WHERE (shop.city, shop.name) IN (SELECT city, name FROM person)",
    ),
    (
        "SELECT a.name FROM person a, person b, person c WHERE a.boss_id = b.id AND b.boss_id = c.id",
        "SELECT z.name FROM person x JOIN person y ON x.id = y.boss_id JOIN person z ON y.id = z.boss_id",
    ),
    (
        "SELECT name FROM shop LEFT JOIN sale ON shop.id = sale.shop_id",
        "SELECT name FROM sale RIGHT JOIN shop ON sale.shop_id = shop.id",
    ),
    (
        "SELECT guests FROM sale LEFT JOIN visit USING (shop_id)",
        "SELECT guests FROM sale LEFT JOIN visit ON sale.shop_id = visit.shop_id",
    ),
    ("(SELECT name FROM shop) LIMIT 1", "SELECT name FROM shop LIMIT 1"),
    ("SELECT (price + discount) + number FROM sale", "SELECT number + (discount + price) FROM sale"),
    (
        (
            "SELECT s.name FROM shop s WHERE s.id IN (SELECT v.shop_id FROM visit v WHERE v.guests > (SELECT "
            "avg(w.guests) FROM visit w WHERE w.shop_id = v.shop_id))"
        ),
        (
            "SELECT name FROM shop WHERE id IN (SELECT shop_id FROM visit AS b WHERE guests > (SELECT "
            "avg(guests) FROM visit AS c WHERE b.shop_id = c.shop_id))"
        ),
    ),
    ("SELECT name FROM shop ORDER BY name NULLS FIRST", "SELECT name FROM shop ORDER BY name"),
    (
        "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n+1 FROM t WHERE n < 5) SELECT n FROM t",
        "WITH RECURSIVE u AS (SELECT 2 AS n UNION ALL SELECT u.n+1 FROM u WHERE n < 9) SELECT u.n FROM u",
    ),
    (
        "WITH a AS (SELECT * FROM shop), b AS (SELECT * FROM a) SELECT name FROM b",
        "SELECT name FROM (SELECT * FROM (SELECT * FROM shop))",
    ),
    (
        (
            "WITH a AS (SELECT name FROM shop WHERE id IN (SELECT shop_id FROM sale WHERE price > shop.opened)) "
            "SELECT name FROM a"
        ),
        (
            "SELECT name FROM (SELECT name FROM shop WHERE id IN (WITH q AS (SELECT 1) SELECT shop_id FROM sale "
            "WHERE shop.opened < price))"
        ),
    ),
    ("SELECT * FROM shop", "SELECT city, name, id, opened FROM shop"),
]

# Likewise.
DIFFERENT = [
    ("SELECT name FROM shop ORDER BY name", "SELECT name FROM shop ORDER BY name DESC"),
    # A name is a column before it is an alias, also a hidden column, except for a whole key of ORDER BY.
    ("SELECT city, count(*) FROM shop GROUP BY city", "SELECT city AS rowid, count(*) FROM shop GROUP BY rowid"),
    ("SELECT city, count(*) FROM shop GROUP BY city", "SELECT city AS oid, count(*) FROM shop GROUP BY _rowid_"),
    ("SELECT name FROM shop ORDER BY city || ''", "SELECT name AS city FROM shop ORDER BY name || ''"),
    ("SELECT -opened AS id FROM shop ORDER BY id + 0", "SELECT -opened AS id FROM shop ORDER BY -opened + 0"),
    ("SELECT name FROM shop ORDER BY name, city", "SELECT name FROM shop ORDER BY city, name"),
    ("SELECT name FROM shop ORDER BY name, city DESC", "SELECT name FROM shop ORDER BY name DESC, city"),
    ("SELECT name FROM shop", "SELECT city FROM shop"),
    ("SELECT name FROM shop", "SELECT name FROM person"),
    ("SELECT price FROM shop JOIN sale ON shop.id = sale.shop_id", "SELECT price FROM shop JOIN sale"),
    (
        "SELECT price FROM shop JOIN sale ON shop.id = sale.shop_id",
        "SELECT price FROM shop JOIN sale ON shop.id = sale.number",
    ),
    (
        "SELECT price FROM shop JOIN sale ON shop.id = sale.shop_id",
        "SELECT price FROM shop JOIN sale ON shop.id = sale.shop_id AND shop.opened = sale.price",
    ),
    (
        "SELECT price FROM shop JOIN sale ON shop.id = sale.shop_id",
        "SELECT price FROM shop LEFT JOIN sale ON shop.id = sale.shop_id",
    ),
    (
        "SELECT price FROM shop LEFT JOIN sale ON shop.id = sale.shop_id",
        "SELECT price FROM sale LEFT JOIN shop ON shop.id = sale.shop_id",
    ),
    (
        "SELECT price FROM shop LEFT JOIN sale ON shop.id = sale.shop_id",
        "SELECT price FROM shop RIGHT JOIN sale ON shop.id = sale.shop_id",
    ),
    (
        "SELECT price FROM shop LEFT JOIN sale ON shop.id = sale.shop_id",
        "SELECT price FROM shop FULL JOIN sale ON shop.id = sale.shop_id",
    ),
    (
        "SELECT price FROM shop LEFT JOIN sale ON shop.id = sale.shop_id AND price > 3",
        "SELECT price FROM shop LEFT JOIN sale ON shop.id = sale.shop_id WHERE price > 3",
    ),
    (
        "SELECT shop.id FROM shop LEFT JOIN sale ON shop.id = sale.shop_id",
        "SELECT sale.shop_id FROM shop LEFT JOIN sale ON shop.id = sale.shop_id",
    ),
    ("SELECT name FROM shop WHERE city = 'a' AND opened = 3", "SELECT name FROM shop WHERE city = 'a' OR opened = 3"),
    (
        "SELECT name FROM shop WHERE city = 'a' AND (opened = 3 OR id = 1)",
        "SELECT name FROM shop WHERE city = 'a' AND opened = 3 OR id = 1",
    ),
    (
        "SELECT name FROM shop WHERE (city = 'a' OR opened = 3) AND id = 1",
        "SELECT name FROM shop WHERE city = 'a' OR opened = 3 AND id = 1",
    ),
    ("SELECT name FROM shop WHERE opened > 3", "SELECT name FROM shop WHERE opened >= 3"),
    ("SELECT name FROM shop WHERE opened > 3", "SELECT name FROM shop WHERE opened < 3"),
    ("SELECT name FROM shop WHERE opened = 3", "SELECT name FROM shop WHERE opened != 3"),
    ("SELECT name FROM shop WHERE city IS NULL", "SELECT name FROM shop WHERE city IS NOT NULL"),
    ("SELECT name FROM shop WHERE city IS NULL", "SELECT name FROM shop WHERE city = 'NULL'"),
    ("SELECT name FROM shop WHERE city LIKE 'a'", "SELECT name FROM shop WHERE city NOT LIKE 'a'"),
    ("SELECT name FROM shop WHERE city LIKE 'a'", "SELECT name FROM shop WHERE city = 'a'"),
    ("SELECT name FROM shop WHERE city LIKE 'a'", "SELECT name FROM shop WHERE city GLOB 'a'"),
    (
        "SELECT name FROM shop WHERE id IN (SELECT shop_id FROM sale)",
        "SELECT name FROM shop WHERE id NOT IN (SELECT shop_id FROM sale)",
    ),
    ("SELECT city FROM shop GROUP BY city HAVING opened > 3", "SELECT city FROM shop WHERE opened > 3 GROUP BY city"),
    ("SELECT max(price) FROM sale", "SELECT min(price) FROM sale"),
    ("SELECT sum(price) FROM sale", "SELECT price FROM sale"),
    ("SELECT sum(price) FROM sale", "SELECT total(price) FROM sale"),
    ("SELECT name FROM shop ORDER BY name LIMIT 1", "SELECT name FROM shop ORDER BY name"),
    ("SELECT name FROM shop LIMIT 1", "SELECT name FROM shop LIMIT 1 OFFSET 1"),
    ("SELECT name FROM shop UNION SELECT name FROM person", "SELECT name FROM shop UNION ALL SELECT name FROM person"),
    ("SELECT name FROM shop UNION SELECT name FROM person", "SELECT name FROM shop INTERSECT SELECT name FROM person"),
    ("SELECT name FROM shop EXCEPT SELECT name FROM person", "SELECT name FROM person EXCEPT SELECT name FROM shop"),
    (
        "SELECT name FROM shop EXCEPT SELECT name FROM person EXCEPT SELECT city FROM shop",
        "SELECT name FROM shop EXCEPT (SELECT name FROM person EXCEPT SELECT city FROM shop)",
    ),
    ("SELECT name FROM shop UNION SELECT name FROM person", "SELECT name FROM shop UNION SELECT city FROM person"),
    (
        "SELECT name FROM shop UNION SELECT name FROM person ORDER BY name",
        "SELECT name FROM shop UNION SELECT name FROM person",
    ),
    ("SELECT name FROM shop UNION SELECT name FROM person", "SELECT name FROM shop"),
    (
        "SELECT name FROM shop WHERE id IN (SELECT shop_id FROM sale)",
        "SELECT name FROM shop WHERE id IN (SELECT number FROM sale)",
    ),
    (
        "SELECT name FROM shop WHERE id IN (SELECT shop_id FROM sale)",
        "SELECT name FROM shop WHERE id IN (SELECT shop_id FROM sale WHERE price > 1)",
    ),
    ("SELECT city, count(*) FROM shop GROUP BY city", "SELECT city, count(*) FROM shop"),
    ("SELECT city, count(*) FROM shop GROUP BY city", "SELECT city, count(*) FROM shop GROUP BY city, opened"),
    ("SELECT name FROM shop", "SELECT name, city FROM shop"),
    ("SELECT name FROM shop", "SELECT name, name FROM shop"),
    (
        "SELECT name FROM shop a WHERE EXISTS (SELECT 1 FROM sale b WHERE b.shop_id = a.id)",
        "SELECT name FROM shop a WHERE EXISTS (SELECT 1 FROM sale b WHERE b.shop_id = b.number)",
    ),
    (
        "SELECT p.name FROM person p WHERE p.id > (SELECT avg(q.id) FROM person q WHERE q.city = p.city)",
        "SELECT p.name FROM person p WHERE p.id > (SELECT avg(q.id) FROM person q WHERE q.city = q.city)",
    ),
    ("SELECT rank() OVER (ORDER BY price) FROM sale", "SELECT rank() OVER (ORDER BY price DESC) FROM sale"),
    (
        "SELECT rank() OVER (PARTITION BY shop_id ORDER BY price) FROM sale",
        "SELECT rank() OVER (ORDER BY price) FROM sale",
    ),
    ("SELECT sum(price) OVER (PARTITION BY shop_id) FROM sale", "SELECT sum(price) OVER (ORDER BY shop_id) FROM sale"),
    (
        "SELECT sum(price) OVER (PARTITION BY shop_id, number) FROM sale",
        "SELECT sum(price) OVER (PARTITION BY shop_id ORDER BY number) FROM sale",
    ),
    (
        "SELECT sum(price) OVER (ORDER BY number ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM sale",
        "SELECT sum(price) OVER (ORDER BY number ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) FROM sale",
    ),
    (
        "SELECT sum(price) OVER (ORDER BY number ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM sale",
        "SELECT sum(price) OVER (ORDER BY number) FROM sale",
    ),
    (
        "SELECT CASE WHEN city = 'a' THEN name ELSE city END FROM shop",
        "SELECT CASE WHEN city = 'a' THEN city ELSE name END FROM shop",
    ),
    (
        "SELECT CASE WHEN city = 'a' THEN name END FROM shop",
        "SELECT CASE WHEN city = 'a' THEN name ELSE city END FROM shop",
    ),
    ("SELECT lower(name) FROM shop", "SELECT upper(name) FROM shop"),
    ("SELECT foo(name) FROM shop", "SELECT bar(name) FROM shop"),
    ("SELECT CAST(name AS INTEGER) FROM shop", "SELECT CAST(name AS REAL) FROM shop"),
    ("SELECT CAST(name AS INTEGER) FROM shop", "SELECT name FROM shop"),
    (
        "SELECT p.name FROM person p JOIN person b ON p.boss_id = b.id",
        "SELECT b.name FROM person p JOIN person b ON p.boss_id = b.id",
    ),
    (
        "SELECT p.name, b.city FROM person p JOIN person b ON p.boss_id = b.id",
        "SELECT b.name, p.city FROM person p JOIN person b ON p.boss_id = b.id",
    ),
    (
        "SELECT p.name FROM person p JOIN person b ON p.id < b.id",
        "SELECT b.name FROM person p JOIN person b ON p.id < b.id",
    ),
    (
        "SELECT p.name FROM person p JOIN person b ON p.boss_id = b.id WHERE p.city = 'a'",
        "SELECT p.name FROM person p JOIN person b ON p.boss_id = b.id WHERE b.city = 'a'",
    ),
    ("SELECT price - discount FROM sale", "SELECT discount - price FROM sale"),
    ("SELECT price / discount FROM sale", "SELECT discount / price FROM sale"),
    ("SELECT price + discount FROM sale", "SELECT price * discount FROM sale"),
    ("SELECT * FROM shop", "SELECT name FROM shop"),
    (
        "SELECT shop.* FROM shop JOIN sale ON shop.id = sale.shop_id",
        "SELECT * FROM shop JOIN sale ON shop.id = sale.shop_id",
    ),
    (
        "SELECT shop.* FROM shop JOIN sale ON shop.id = sale.shop_id",
        "SELECT sale.* FROM shop JOIN sale ON shop.id = sale.shop_id",
    ),
    ("SELECT count(*) FROM sale", "SELECT count(price) FROM sale"),
    ("SELECT count(*) FROM sale", "SELECT sum(price) FROM sale"),
    ("SELECT name FROM shop", "SELECT name FROM shop, sale"),
    ("SELECT name FROM shop", "SELECT name FROM (SELECT name FROM shop WHERE id > 1)"),
    ("SELECT name FROM shop WHERE city = name", "SELECT name FROM shop WHERE city = 'name'"),
    ("SELECT name FROM shop WHERE opened > id", "SELECT name FROM shop WHERE opened < id"),
    ("SELECT name FROM shop", "SELECT 'name' FROM shop"),
    (
        "SELECT name FROM shop WHERE opened > ALL (SELECT price FROM sale)",
        "SELECT name FROM shop WHERE opened > ANY (SELECT price FROM sale)",
    ),
    ("SELECT name FROM shop WHERE opened BETWEEN 1 AND id", "SELECT name FROM shop WHERE opened BETWEEN id AND 1"),
    ("SELECT name FROM shop WHERE city = 'a'", "SELECT name FROM shop WHERE city = 'a' OR city = 'b'"),
    ("SELECT name FROM shop WHERE city = 'a'", "SELECT name FROM shop"),
    ("SELECT name FROM shop WHERE city = 'a'", "SELECT name FROM shop WHERE name = 'a'"),
    ("SELECT substr(name, 1, 2) FROM shop", "SELECT substr(name, 1) FROM shop"),
    ("SELECT group_concat(name) FROM shop", "SELECT group_concat(city) FROM shop"),
    ("SELECT city AS name FROM shop ORDER BY name", "SELECT city FROM shop ORDER BY shop.name"),
    (
        "SELECT a.id FROM sale s JOIN shop a ON a.id = s.shop_id",
        "SELECT s.number FROM sale s JOIN shop a ON a.id = s.shop_id",
    ),
    (
        "SELECT name FROM shop WHERE NOT EXISTS (SELECT 1 FROM sale)",
        "SELECT name FROM shop WHERE EXISTS (SELECT 1 FROM sale)",
    ),
    ("SELECT name FROM shop WHERE id = 1 = 0", "SELECT name FROM shop WHERE id = 1"),
    ("SELECT name || city FROM shop", "SELECT city || name FROM shop"),
    ("SELECT name FROM shop ORDER BY 1", "SELECT name FROM shop ORDER BY 'x'"),
    ("SELECT coalesce(name, city) FROM shop", "SELECT coalesce(city, name) FROM shop"),
    ("SELECT max(price) FILTER (WHERE number > 1) FROM sale", "SELECT max(price) FROM sale"),
    (
        "SELECT a.name FROM shop a JOIN sale b ON a.id=b.shop_id WHERE a.id = 3",
        "SELECT a.name FROM shop a JOIN sale b ON a.id=3 WHERE a.id = 4",
    ),
    (
        "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n+1 FROM t WHERE n < 5) SELECT n FROM t",
        "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n*2 FROM t WHERE n < 5) SELECT n FROM t",
    ),
    (
        "SELECT name FROM shop WHERE id IN (SELECT shop_id FROM sale GROUP BY shop_id HAVING count(*) > 1)",
        "SELECT name FROM shop WHERE id IN (SELECT shop_id FROM sale GROUP BY shop_id HAVING sum(price) > 1)",
    ),
    ("SELECT max(price, discount) FROM sale", "SELECT max(price) FROM sale"),
    ("SELECT count(DISTINCT name, city) FROM shop", "SELECT count(name) FROM shop"),
    ("SELECT x FROM (VALUES (1)) AS t(x)", "SELECT x FROM (VALUES (1), (2)) AS t(x)"),
    ("SELECT city FROM shop GROUP BY city", "SELECT city FROM shop GROUP BY ROLLUP (city)"),
    ("SELECT name FROM shop WHERE id = 5 AND city = 'a'", "SELECT name FROM shop WHERE id = 'a' AND id = 5"),
    ("SELECT name FROM shop WHERE city COLLATE nocase = 'a'", "SELECT name FROM shop WHERE city = 'a'"),
    ("SELECT date('now', '+1 day') FROM shop", "SELECT date(name) FROM shop"),
    ("SELECT name FROM shop WHERE 1 = 0", "SELECT name FROM shop"),
    ("(SELECT name FROM shop) LIMIT 1", "SELECT name FROM shop"),
    (
        (
            "SELECT shop.name FROM shop LEFT JOIN (sale JOIN visit ON sale.shop_id = visit.shop_id) ON shop.id = "
            "sale.shop_id"
        ),
        (
            "SELECT shop.name FROM shop LEFT JOIN sale ON shop.id = sale.shop_id JOIN visit ON sale.shop_id = "
            "visit.shop_id"
        ),
    ),
    (
        "SELECT shop.name FROM shop JOIN sale ON shop.id = sale.shop_id RIGHT JOIN visit ON sale.number = visit.id",
        (
            "SELECT shop.name FROM shop CROSS JOIN sale RIGHT JOIN visit ON sale.number = visit.id WHERE shop.id "
            "= sale.shop_id"
        ),
    ),
    (
        "SELECT a.name FROM shop a JOIN (SELECT * FROM shop WHERE city = 'x') b ON a.id < b.id",
        "SELECT b.name FROM shop a JOIN (SELECT * FROM shop WHERE city = 'x') b ON a.id < b.id",
    ),
    (
        "SELECT a.name FROM shop a JOIN (SELECT name, id FROM shop WHERE city = 'x') b ON a.id < b.id",
        "SELECT b.name FROM shop a JOIN (SELECT name, id FROM shop WHERE city = 'x') b ON a.id < b.id",
    ),
    ("SELECT name FROM shop WHERE opened IS TRUE", "SELECT name FROM shop WHERE opened IS FALSE"),
    ("SELECT name FROM shop ORDER BY name NULLS LAST", "SELECT name FROM shop ORDER BY name"),
    ("SELECT name FROM other.shop", "SELECT name FROM shop"),
    (
        "SELECT a.name FROM person a, person b, person c WHERE a.boss_id = b.id AND b.boss_id = c.id",
        "SELECT b.name FROM person a, person b, person c WHERE a.boss_id = b.id AND b.boss_id = c.id",
    ),
    (
        "SELECT max(a.id) FROM person a, person b WHERE a.city = 'x' AND b.boss_id IS NULL",
        "SELECT max(b.id) FROM person a, person b WHERE a.city = 'x' AND b.boss_id IS NULL",
    ),
]

# Without a schema: the dialect, and two queries.
MATCHING_BY_DIALECT = [
    ("mysql", "SELECT a AS rowid, count(*) FROM t GROUP BY a", "SELECT a AS rowid, count(*) FROM t GROUP BY rowid"),
    ("postgres", "SELECT a::int FROM t", "SELECT CAST(a AS integer) FROM t"),
    ("tsql", "SELECT TOP 3 a FROM t", "SELECT TOP 5 [a] FROM [dbo].[t]"),
    ("mysql", "SELECT a FROM t LIMIT 5, 10", "SELECT `a` FROM `t` LIMIT 10 OFFSET 5"),
    ("oracle", "SELECT a FROM t FETCH FIRST 3 ROWS ONLY", "SELECT a FROM t FETCH FIRST 9 ROWS ONLY"),
    ("duckdb", "FROM t SELECT a", "SELECT a FROM t"),
    ("bigquery", "SELECT a FROM `p.d.t`", "SELECT a FROM p.d.t"),
    ("postgres", "TABLE t", "SELECT * FROM t"),
    ("postgres", 'SELECT "A" FROM t', "SELECT a FROM t"),
]

# Likewise.
DIFFERENT_BY_DIALECT = [
    *(
        (dialect, "SELECT a, count(*) FROM t GROUP BY a", f"SELECT a AS {name}, count(*) FROM t GROUP BY {name}")
        for dialect, name in (("duckdb", "rowid"), ("postgres", "ctid"), ("sqlite", "oid"))
    ),
    ("bigquery", "SELECT * EXCEPT (a) FROM t", "SELECT * FROM t"),
    ("bigquery", "SELECT * EXCEPT (a) FROM t", "SELECT * EXCEPT (b) FROM t"),
    ("postgres", "SELECT DISTINCT ON (a) b FROM t", "SELECT DISTINCT ON (c) b FROM t"),
    ("postgres", "SELECT a FROM t WHERE a ILIKE 'x'", "SELECT a FROM t WHERE a LIKE 'x'"),
    ("postgres", "SELECT a FROM t WHERE a ~ 'x'", "SELECT a FROM t WHERE a !~ 'x'"),
    ("postgres", "SELECT a::int FROM t", "SELECT a::text FROM t"),
    ("postgres", "SELECT EXTRACT(year FROM a) FROM t", "SELECT EXTRACT(month FROM a) FROM t"),
    ("postgres", "SELECT date_trunc('month', a) FROM t", "SELECT date_trunc('year', a) FROM t"),
    ("tsql", "SELECT TOP 3 a FROM t", "SELECT a FROM t"),
    ("tsql", "SELECT a FROM t CROSS APPLY f(t.x) AS g", "SELECT a FROM t OUTER APPLY f(t.x) AS g"),
    (
        "postgres",
        "SELECT a FROM t, LATERAL (SELECT b FROM u WHERE u.x = t.x) q",
        "SELECT a FROM t, LATERAL (SELECT b FROM u WHERE u.x = t.y) q",
    ),
    (
        "postgres",
        "SELECT a FROM t LEFT JOIN LATERAL (SELECT b FROM u WHERE u.x = t.x) q ON true",
        "SELECT a FROM t, LATERAL (SELECT b FROM u WHERE u.x = t.x) q",
    ),
    ("snowflake", "SELECT a FROM t QUALIFY row_number() OVER (PARTITION BY a ORDER BY b) = 1", "SELECT a FROM t"),
    (
        "snowflake",
        "SELECT a FROM t QUALIFY row_number() OVER (PARTITION BY a ORDER BY b) = 1",
        "SELECT a FROM t QUALIFY row_number() OVER (PARTITION BY a ORDER BY b DESC) = 1",
    ),
    ("clickhouse", "SELECT a FROM t FINAL", "SELECT a FROM t"),
    ("spark", "SELECT a FROM t LATERAL VIEW explode(b) x AS y", "SELECT a FROM t LATERAL VIEW explode(c) x AS y"),
    ("spark", "SELECT a FROM t LEFT SEMI JOIN u ON t.x = u.x", "SELECT a FROM t LEFT ANTI JOIN u ON t.x = u.x"),
    ("spark", "SELECT a FROM t LEFT SEMI JOIN u ON t.x = u.x", "SELECT a FROM t JOIN u ON t.x = u.x"),
    ("duckdb", "SELECT a FROM t USING SAMPLE 10", "SELECT a FROM t"),
    ("duckdb", "SELECT a FROM t ASOF JOIN u ON t.x >= u.x", "SELECT a FROM t JOIN u ON t.x >= u.x"),
    ("trino", "SELECT a FROM t TABLESAMPLE BERNOULLI (10)", "SELECT a FROM t"),
    (
        "redshift",
        "SELECT a, LISTAGG(b) WITHIN GROUP (ORDER BY c) FROM t GROUP BY a",
        "SELECT a, LISTAGG(b) WITHIN GROUP (ORDER BY d) FROM t GROUP BY a",
    ),
    ("postgres", "SELECT a FROM t WHERE a = ANY (SELECT b FROM u)", "SELECT a FROM t WHERE a = ALL (SELECT b FROM u)"),
    ("postgres", "SELECT string_agg(a, ',' ORDER BY b) FROM t", "SELECT string_agg(a, ',' ORDER BY c) FROM t"),
    ("postgres", "SELECT count(*) FILTER (WHERE a > 1) FROM t", "SELECT count(*) FILTER (WHERE b > 1) FROM t"),
    ("postgres", "SELECT a FROM t GROUP BY GROUPING SETS ((a),(b))", "SELECT a FROM t GROUP BY GROUPING SETS ((a,b))"),
    ("postgres", "SELECT a FROM t GROUP BY CUBE (a,b)", "SELECT a FROM t GROUP BY ROLLUP (a,b)"),
    ("postgres", "SELECT a FROM t FOR UPDATE", "SELECT a FROM t"),
    ("postgres", "SELECT j->'a' FROM t", "SELECT j->>'a' FROM t"),
    ("bigquery", "SELECT u FROM t, UNNEST(t.x) AS u", "SELECT u FROM t, UNNEST(t.y) AS u"),
    (
        "postgres",
        "SELECT sum(a) OVER w FROM t WINDOW w AS (ORDER BY b)",
        "SELECT sum(a) OVER w FROM t WINDOW w AS (ORDER BY c)",
    ),
    ("postgres", "SELECT a[1] FROM t", "SELECT a[1:2] FROM t"),
    ("postgres", "SELECT ROW(a,b) FROM t", "SELECT ROW(b,a) FROM t"),
    ("mysql", "SELECT a FROM t WHERE a <=> b", "SELECT a FROM t WHERE a = b"),
    ("mysql", "SELECT a XOR b FROM t", "SELECT a OR b FROM t"),
    ("mysql", "SELECT a DIV b FROM t", "SELECT a / b FROM t"),
    ("postgres", "SELECT a FROM t WHERE (a,b) = (1,2)", "SELECT a FROM t WHERE (b,a) = (1,2)"),
    ("postgres", "SELECT a FROM t UNION ALL SELECT b FROM u", "SELECT a FROM t UNION SELECT b FROM u"),
    ("postgres", "VALUES (1)", "VALUES (1),(2)"),
    ("postgres", "SELECT a FROM t ORDER BY a NULLS FIRST", "SELECT a FROM t ORDER BY a"),
    ("duckdb", "SELECT a FROM t UNION BY NAME SELECT a FROM u", "SELECT a FROM t UNION SELECT a FROM u"),
    (
        "sqlite",
        "SELECT sum(a) FROM t ORDER BY sum(a) OVER (PARTITION BY b)",
        "SELECT sum(a) FROM t ORDER BY sum(a) OVER (PARTITION BY c)",
    ),
]

# By dialect, what is said in it alone.
GOLDS = {
    "sqlite": [
        (
            "SELECT strftime('%Y', opened), group_concat(name, '; ') FROM shop WHERE name GLOB 'A*' GROUP BY 1 "
            "LIMIT 3 OFFSET 1"
        ),
        "SELECT iif(price > 3, 'dear', 'cheap') FROM sale ORDER BY price COLLATE NOCASE",
    ],
    "duckdb": [
        "FROM sale SELECT shop_id, list(price) GROUP BY ALL ORDER BY ALL",
        "SELECT * EXCLUDE (price) FROM sale QUALIFY row_number() OVER (PARTITION BY shop_id) = 1",
    ],
    "postgres": [
        "SELECT DISTINCT ON (city) name, opened::date FROM shop ORDER BY city, opened DESC NULLS LAST",
        (
            "SELECT s.name, t.price FROM shop s LEFT JOIN LATERAL (SELECT price FROM sale WHERE shop_id = s.id "
            "LIMIT 1) t ON true"
        ),
    ],
    "mysql": [
        "SELECT `name`, IFNULL(city, '?') FROM `shop` WHERE name REGEXP '^A' LIMIT 5, 10",
        (
            "SELECT GROUP_CONCAT(DISTINCT name ORDER BY name SEPARATOR ',') FROM shop STRAIGHT_JOIN sale ON "
            "shop.id = sale.shop_id"
        ),
    ],
    "tsql": [
        "SELECT TOP (5) [name], DATEPART(year, opened) FROM dbo.shop WITH (NOLOCK) ORDER BY opened DESC",
        "SELECT s.name, g.price FROM shop AS s CROSS APPLY (SELECT TOP 1 price FROM sale WHERE shop_id = s.id) AS g",
    ],
    "snowflake": [
        "SELECT name, payload:city::string FROM shop, LATERAL FLATTEN(input => payload:tags) f",
        "SELECT name FROM shop QUALIFY rank() OVER (ORDER BY opened) = 1",
    ],
    "bigquery": [
        "SELECT name, EXTRACT(YEAR FROM opened) FROM `town.shop`, UNNEST(tags) AS tag WHERE tag IN ('a', 'b')",
        "SELECT * EXCEPT (price), SAFE_CAST(price AS INT64) FROM town.sale",
    ],
    "oracle": [
        "SELECT name, NVL(city, '?') FROM shop WHERE ROWNUM <= 5",
        "SELECT name FROM person START WITH boss_id IS NULL CONNECT BY PRIOR id = boss_id",
    ],
    "trino": [
        (
            "SELECT approx_distinct(name), date_trunc('month', opened) FROM shop CROSS JOIN UNNEST(tags) AS t "
            "(tag) GROUP BY 2"
        ),
        "SELECT name FROM shop TABLESAMPLE BERNOULLI (10) FETCH FIRST 3 ROWS ONLY",
    ],
    "spark": [
        "SELECT name, tag FROM shop LATERAL VIEW explode(tags) t AS tag",
        "SELECT name FROM shop LEFT SEMI JOIN sale ON shop.id = sale.shop_id",
    ],
    "clickhouse": [
        "SELECT name, countIf(price > 3) FROM sale FINAL PREWHERE price > 1 GROUP BY name LIMIT 1 BY name",
        "SELECT argMax(name, opened) FROM shop GLOBAL ANY LEFT JOIN sale USING (id)",
    ],
    "redshift": [
        "SELECT city, LISTAGG(name, ',') WITHIN GROUP (ORDER BY name) FROM shop GROUP BY city",
        "SELECT name FROM shop WHERE DATEDIFF(day, opened, GETDATE()) > 3 LIMIT 5",
    ],
}
