"""Spider's four levels of hardness."""

import pytest

from pytest_queryeval.metrics import METRICS


def hardness(query):
    return METRICS["exact_set_match_spider"].function(query, query).details["spider"]["hardness"]


@pytest.mark.parametrize(
    ("query", "level"),
    [
        ("SELECT name FROM shop", "easy"),
        ("SELECT name FROM shop WHERE city = 'Ulm'", "easy"),
        ("SELECT city FROM shop GROUP BY city HAVING count(*) > 3", "easy"),
        ("SELECT name, city FROM shop", "medium"),
        ("SELECT max(price), min(price) FROM sale", "medium"),
        ("SELECT name FROM shop WHERE city LIKE 'U%'", "medium"),
        ("SELECT name FROM shop WHERE city = 'Ulm' AND opened > 1990", "medium"),
        ("SELECT name FROM shop ORDER BY opened LIMIT 1", "medium"),
        ("SELECT city FROM shop GROUP BY city HAVING count(*) > 1 AND count(*) < 9 AND max(opened) > 3", "medium"),
        ("SELECT name FROM shop WHERE city = 'Ulm' OR city = 'Bonn' OR city = 'Kiel'", "hard"),
        ("SELECT name FROM shop WHERE opened > 1990 ORDER BY opened LIMIT 1", "hard"),
        ("SELECT name FROM shop WHERE id IN (SELECT shop_id FROM sale)", "hard"),
        ("SELECT name FROM shop UNION SELECT name FROM sale", "hard"),
        ("SELECT name, city, max(opened), min(id) FROM shop WHERE a = 1 AND b = 2 GROUP BY c", "hard"),
        ("SELECT name, count(*) FROM shop WHERE id IN (SELECT shop_id FROM sale)", "extra"),
        ("SELECT name FROM shop WHERE id IN (SELECT a FROM b) AND id IN (SELECT c FROM d)", "extra"),
        ("SELECT a, b FROM s JOIN t JOIN u JOIN v JOIN w", "extra"),
    ],
)
def test_a_query_has_a_level(query, level):
    assert hardness(query) == level


def test_a_set_operation_counts_but_what_is_in_its_arm_does_not():
    plain = "SELECT a FROM t UNION SELECT a FROM u"
    busy = "SELECT a FROM t UNION SELECT a FROM u WHERE b = 1 OR c = 2 ORDER BY d LIMIT 1"

    assert hardness(plain) == hardness(busy) == "hard"


def test_a_query_in_from_is_one_table():
    assert hardness("SELECT count(*) FROM (SELECT a FROM t WHERE b = 1 OR c = 2)") == "easy"


def test_a_negation_counts_as_an_aggregate():
    plain = "SELECT max(a), b FROM t WHERE c LIKE 'x'"
    negated = "SELECT max(a), b FROM t WHERE c NOT LIKE 'x'"

    assert hardness(plain) == "medium"
    assert hardness(negated) == "extra"


def test_aggregates_in_having_do_not_count_but_its_connectors_do():
    aggregated = "SELECT a FROM t WHERE b = 1 GROUP BY c HAVING max(d) > 1"
    connected = "SELECT a, b FROM t WHERE c = 1 GROUP BY d HAVING e = 1 AND f = 2 AND g = 3"

    assert hardness(aggregated) == "medium"
    assert hardness(connected) == "extra"
