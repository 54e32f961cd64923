"""What queries are made of."""

import pytest
from samples import answer, make_case, query

from pytest_queryeval.languages import features_of


@pytest.mark.parametrize(
    ("text", "features"),
    [
        ("SELECT name FROM singer", ""),
        ("SELECT name FROM singer WHERE age > 30 LIMIT 3", ""),
        ("SELECT a.x FROM a JOIN b ON a.id = b.id", "join"),
        ("SELECT a.x FROM a, b WHERE a.id = b.id", "join"),
        ("SELECT x FROM a NATURAL LEFT JOIN b", "join"),
        ("SELECT s.name FROM singer s", ""),
        ("SELECT x FROM a WHERE id IN (SELECT a_id FROM b JOIN c ON b.id = c.id)", "join nesting"),
        ("SELECT count(*) FROM a", "aggregate"),
        ("SELECT x FROM a GROUP BY x HAVING max(y) > 1", "aggregate grouping"),
        ("SELECT x FROM a GROUP BY x", "grouping"),
        ("SELECT x FROM a ORDER BY abs(sum(y))", "aggregate order"),
        ("SELECT max(x, y) FROM a", ""),  # of SQLite: the larger of two columns
        ("SELECT sum(x) FILTER (WHERE y > 1) FROM a", "aggregate"),
        ("SELECT x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.id = a.id)", "nesting"),
        ("SELECT x FROM a WHERE y = z + (SELECT max(z) FROM b)", "aggregate nesting"),
        ("SELECT x FROM (SELECT x FROM a)", "nesting"),
        ("WITH b AS (SELECT x FROM a) SELECT x FROM b", "nesting"),
        ("SELECT (SELECT max(y) FROM b) FROM a", "aggregate nesting"),
        ("SELECT x FROM a UNION SELECT x FROM b", "set-operation"),
        ("SELECT x FROM a UNION ALL SELECT x FROM b", "set-operation"),
        ("SELECT x FROM a EXCEPT SELECT x FROM b INTERSECT SELECT x FROM c", "set-operation"),
        ("SELECT x FROM (SELECT x FROM a UNION SELECT x FROM b)", "nesting set-operation"),
        ("SELECT rank() OVER (ORDER BY x) FROM a", "window"),
        ("SELECT sum(x) OVER (PARTITION BY y) FROM a", "window"),
        ("SELECT sum(x) FILTER (WHERE y) OVER w FROM a WINDOW w AS (ORDER BY z)", "window"),
        ("SELECT rank() OVER (ORDER BY sum(x)) FROM a GROUP BY y", "aggregate grouping window"),
        ("SELECT x FROM a ORDER BY row_number() OVER (PARTITION BY y)", "window order"),
        ("WITH b AS (SELECT x, lag(x) OVER (ORDER BY y) z FROM a) SELECT x FROM b", "nesting window"),
        ("SELECT x FROM a ORDER BY x", "order"),
        ("SELECT x FROM (SELECT x FROM a ORDER BY y LIMIT 1)", "nesting order"),
        ("SELECT x FROM a UNION SELECT x FROM b ORDER BY 1", "set-operation order"),
        ("SELECT group_concat(x ORDER BY y) FROM a", "aggregate"),
        ("SELECT DISTINCT x FROM a", "distinct"),
        ("SELECT count(DISTINCT x) FROM a", "aggregate distinct"),
        ("SELECT x FROM a WHERE x IS DISTINCT FROM y", ""),
        ("SELECT x FROM a WHERE y = 'select distinct count(*) from b join c order by d'", ""),
        ('SELECT "group", "order by" FROM a -- UNION SELECT', ""),
        ("VALUES (1), (2)", ""),
        ("", ""),
        ("no query", ""),
        ("DELETE FROM a", ""),
        ("SELECT x FROM a JOIN", ""),
        ("SELECT x FROM a; SELECT count(*) FROM b", ""),
        (f"SELECT {'(' * 60}1{')' * 60} FROM a GROUP BY x", ""),
        ("SELECT \ud800 FROM a ORDER BY", ""),
    ],
)
def test_the_features_of_sql(text, features):
    assert features_of(make_case(golds=(query(text),))) == tuple(features.split())


@pytest.mark.parametrize(
    ("text", "dialect", "features"),
    [
        ("SELECT DISTINCT ON (x) y FROM a", "postgres", "distinct"),
        ("SELECT x FROM a, LATERAL (SELECT y FROM b) c", "postgres", "join nesting"),
        ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM a", "postgres", "aggregate"),
        ("SELECT string_agg(x, ',' ORDER BY y) FROM a", "postgres", "aggregate"),
        ("SELECT `group` FROM a", "mysql", ""),
        ("SELECT x FROM a QUALIFY row_number() OVER (ORDER BY y) = 1", "duckdb", "window"),
        ("SELECT first_value(x) IGNORE NULLS OVER (ORDER BY y) FROM a", "snowflake", "window"),
        ("SELECT x FROM a GROUP BY ALL", "duckdb", "grouping"),
    ],
)
def test_the_features_of_other_dialects(text, dialect, features):
    assert features_of(make_case(golds=(query(text),), dialect=dialect)) == tuple(features.split())


@pytest.mark.parametrize(
    ("text", "features"),
    [
        ("SELECT ?s WHERE { ?s ?p ?o }", ""),
        ("SELECT ?s WHERE { ?s a <http://e/C> OPTIONAL { ?s <http://e/p> ?o } }", "optional"),
        ("SELECT ?s WHERE { ?s ?p ?o FILTER(?o > 1) }", "filter"),
        ("SELECT ?s WHERE { ?s ?p ?o FILTER NOT EXISTS { ?s <http://e/a>/<http://e/b> ?x } }", "filter path"),
        ("SELECT ?s WHERE { ?s <http://e/p>* ?o }", "path"),
        ("SELECT ?s WHERE { ?s ^<http://e/p> ?o }", "path"),
        ("SELECT ?s WHERE { ?s ?p ?o BIND(4 / 2 AS ?x) }", ""),
        ("SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }", "aggregate"),
        ("SELECT ?s WHERE { ?s ?p ?o } GROUP BY ?s HAVING (COUNT(?o) > 1)", "aggregate"),
        ("SELECT ?s WHERE { { SELECT ?s (MAX(?o) AS ?m) WHERE { ?s ?p ?o } GROUP BY ?s } }", "aggregate"),
        ("SELECT ?s WHERE { { ?s a ?c } UNION { ?s ?p ?c } }", "union"),
        ("SELECT ?s WHERE { { ?s a ?c } }", ""),
        ("ASK { ?s ?p 'UNION { FILTER (COUNT(*)) }' } # OPTIONAL {}", ""),
        ("PREFIX union: <http://e/> SELECT ?filter WHERE { ?filter union:optional ?o }", ""),
        ("SELECT ?s WHERE { ?s undeclared:p ?o OPTIONAL { ?s ?p ?x } }", "optional"),
        ("SELECT ?s WHERE { ?s ?p ?o OPTIONAL {", ""),
        ("DELETE WHERE { ?s ?p ?o }", ""),
        ("", ""),
    ],
)
def test_the_features_of_sparql(text, features):
    assert features_of(make_case(kind="sparql", golds=(query(text),))) == tuple(features.split())


def test_the_features_of_a_case_are_those_of_its_first_gold():
    first, second = query("SELECT count(*) FROM a"), query("SELECT x FROM a ORDER BY x")

    assert features_of(make_case(golds=(first, second))) == ("aggregate",)


@pytest.mark.feature("json")
def test_a_stored_gold_and_kinds_without_queries_have_no_features():
    assert features_of(make_case(golds=(answer((1,)),))) == ()
    assert features_of(make_case(kind="json", golds=(query("SELECT count(*) FROM a"),))) == ()
