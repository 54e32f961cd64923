"""The ten components of a pair of queries, and the published verdict."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.metrics import METRICS

SHOP = Schema(
    tables={"shop": ("id", "name", "city"), "sale": ("shop_id", "price", "city")},
    foreign_keys=((("sale", "shop_id"), ("shop", "id")),),
)


def score(gold, predicted):
    return METRICS["exact_set_match_spider"].function(gold, predicted, schema=SHOP)


def components(gold, predicted):
    """Gold's items, predicted's items and those that both share, of each component."""
    return score(gold, predicted).details["spider"]["components"]


def matches(gold, predicted):
    return score(gold, predicted).value == 1.0


CONNECTED = "SELECT id FROM shop WHERE id = 1 AND id = 2 OR id = 3"


@pytest.mark.parametrize(
    ("name", "gold", "predicted", "expected"),
    [
        ("select", "SELECT name, city FROM shop", "SELECT city FROM shop", (2, 1, 1)),
        ("select", "SELECT name, name FROM shop", "SELECT name FROM shop", (2, 1, 1)),
        ("select", "SELECT max(price) FROM sale", "SELECT min(price) FROM sale", (1, 1, 0)),
        ("select_no_agg", "SELECT max(price) FROM sale", "SELECT min(price) FROM sale", (1, 1, 1)),
        ("where", "SELECT id FROM shop WHERE id > 3", "SELECT id FROM shop WHERE id < 3", (1, 1, 0)),
        ("where_no_op", "SELECT id FROM shop WHERE id > 3", "SELECT id FROM shop WHERE id < 3", (1, 1, 1)),
        ("where", "SELECT id FROM shop WHERE id = 3", "SELECT id FROM shop", (1, 0, 0)),
        (
            "group_no_having",
            "SELECT price FROM shop JOIN sale GROUP BY shop.city",
            "SELECT price FROM shop JOIN sale GROUP BY sale.city",
            (1, 1, 1),
        ),
        (
            "group",
            "SELECT price FROM shop JOIN sale GROUP BY shop.city",
            "SELECT price FROM shop JOIN sale GROUP BY sale.city",
            (1, 1, 0),
        ),
        (
            "group",
            "SELECT city FROM shop GROUP BY city, name",
            "SELECT city FROM shop GROUP BY city, name HAVING count(*) > 1",
            (1, 1, 0),
        ),
        ("order", "SELECT id FROM shop ORDER BY id", "SELECT id FROM shop ORDER BY id ASC", (1, 1, 1)),
        ("order", "SELECT id FROM shop ORDER BY id LIMIT 1", "SELECT id FROM shop ORDER BY id", (1, 1, 0)),
        ("order", "SELECT id FROM shop ORDER BY id LIMIT 1", "SELECT id FROM shop ORDER BY id LIMIT 7", (1, 1, 1)),
        ("order", "SELECT id FROM shop", "SELECT id FROM shop ORDER BY id", (0, 1, 0)),
        ("iuen", "SELECT id FROM shop", "SELECT id FROM shop UNION SELECT price FROM sale", (0, 1, 0)),
        (
            "iuen",
            "SELECT id FROM shop UNION SELECT price FROM sale",
            "SELECT id FROM shop EXCEPT SELECT price FROM sale",
            (1, 1, 0),
        ),
        (
            "keywords",
            "SELECT id FROM shop WHERE name NOT LIKE 'a' OR id IN (SELECT shop_id FROM sale)",
            "SELECT id FROM shop ORDER BY id LIMIT 3",
            (5, 3, 0),
        ),
        # Connectors that agree are one of one; the totals of others are swapped.
        ("and_or", CONNECTED, "SELECT id FROM shop WHERE id = 1 OR id = 2 AND id = 3", (1, 1, 1)),
        ("and_or", "SELECT id FROM shop", "SELECT id FROM shop", (1, 1, 1)),
        ("and_or", "SELECT id FROM shop", CONNECTED, (2, 0, 0)),
    ],
)
def test_a_component_counts_what_both_share(name, gold, predicted, expected):
    assert components(gold, predicted)[name] == [*expected]


@pytest.mark.parametrize(
    ("gold", "predicted", "verdict"),
    [
        ("SELECT name, city FROM shop", "SELECT city, name FROM shop", True),
        ("SELECT price FROM shop JOIN sale ON id = shop_id", "SELECT price FROM sale JOIN shop", True),
        ("SELECT count(*) FROM shop", "SELECT count(*) FROM sale", False),
        ("SELECT count(*) FROM shop", "SELECT count(*) FROM shop AS a JOIN shop AS b", False),
        ("SELECT id FROM shop UNION SELECT price FROM sale", "SELECT id FROM shop UNION SELECT price FROM sale", True),
        ("SELECT id FROM shop UNION SELECT price FROM sale", "SELECT id FROM shop UNION SELECT id FROM shop", False),
        (
            "SELECT * FROM (SELECT id FROM shop) (SELECT price FROM sale)",
            "SELECT * FROM (SELECT price FROM sale) (SELECT id FROM shop)",
            True,
        ),
    ],
)
def test_the_verdict_needs_all_components_and_the_tables(gold, predicted, verdict):
    assert matches(gold, predicted) is verdict


def test_a_prediction_that_cannot_be_read_is_scored_as_empty_with_the_reason():
    spider = score("SELECT id FROM shop WHERE id = 1", "SELECT id AS n FROM shop").details["spider"]

    assert (spider["exact"], spider["rejected"]) == (False, "no column 'as'")
    assert spider["components"]["select"] == [1, 0, 0]
    assert spider["components"]["group"] == [0, 0, 0]
    assert spider["components"]["and_or"] == [1, 1, 1]


def test_a_gold_that_cannot_be_read_has_no_score_and_a_note():
    unread = score("SELECT id AS n FROM shop", "SELECT id FROM shop")

    assert unread.value is None
    assert unread.details["notes"] == ["the published grammar does not read the gold query: no column 'as'"]


def test_a_match_has_its_hardness_and_no_rejection():
    spider = score("SELECT name FROM shop WHERE id = 1", "SELECT name FROM shop WHERE id = 7").details["spider"]

    assert (spider["exact"], spider["hardness"]) == (True, "easy")
    assert "rejected" not in spider


CLAUSES = st.tuples(
    st.sampled_from(["name", "name, city", "max(id)", "count(DISTINCT city)", "*"]),
    st.sampled_from(["", " WHERE id = 3", " WHERE id > 3 OR name LIKE 'x'", " WHERE id IN (SELECT shop_id FROM sale)"]),
    st.sampled_from(["", " GROUP BY city", " GROUP BY city, name HAVING count(*) > 2"]),
    st.sampled_from(["", " ORDER BY name DESC", " ORDER BY name, id LIMIT 3"]),
    st.sampled_from(["", " UNION SELECT price FROM sale", " EXCEPT SELECT id FROM shop WHERE id = 1"]),
)
QUERIES = CLAUSES.map(lambda parts: "SELECT {} FROM shop{}{}{}{}".format(*parts))


@given(QUERIES)
def test_a_query_matches_itself_in_every_component(query):
    assert matches(query, query)
    assert all(gold == predicted == shared for gold, predicted, shared in components(query, query).values())


@given(QUERIES, QUERIES)
def test_no_component_shares_more_than_both_have(gold, predicted):
    for totals in components(gold, predicted).values():
        assert 0 <= totals[2] <= min(totals[:2])
