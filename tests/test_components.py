"""The ten components of a pair of queries, and the published verdict."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.languages.sql.match import COMPONENTS, Component, comparable_view, exact_match, partial_match
from pytest_queryeval.languages.sql.view import EMPTY_VIEW

SHOP = Schema(
    tables={"shop": ("id", "name", "city"), "sale": ("shop_id", "price", "city")},
    foreign_keys=((("sale", "shop_id"), ("shop", "id")),),
)


def components(gold, predicted):
    return partial_match(comparable_view(gold, SHOP), comparable_view(predicted, SHOP))


def matches(gold, predicted):
    return exact_match(comparable_view(gold, SHOP), comparable_view(predicted, SHOP))


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
    ],
)
def test_a_component_counts_what_both_share(name, gold, predicted, expected):
    assert components(gold, predicted)[name] == Component(*expected)


def test_connectors_that_agree_are_one_of_one():
    both = "SELECT id FROM shop WHERE id = 1 AND id = 2 OR id = 3"

    assert components(both, "SELECT id FROM shop WHERE id = 1 OR id = 2 AND id = 3")["and_or"] == Component(1, 1, 1)
    assert components("SELECT id FROM shop", "SELECT id FROM shop")["and_or"] == Component(1, 1, 1)


def test_totals_of_other_connectors_are_swapped():
    parts = components("SELECT id FROM shop", "SELECT id FROM shop WHERE id = 1 AND id = 2 OR id = 3")

    assert parts["and_or"] == Component(2, 0, 0)


@pytest.mark.parametrize(
    ("gold", "predicted", "verdict"),
    [
        ("SELECT name, city FROM shop", "SELECT city, name FROM shop", True),
        ("SELECT price FROM shop JOIN sale ON id = shop_id", "SELECT price FROM sale JOIN shop", True),
        ("SELECT count(*) FROM shop", "SELECT count(*) FROM sale", False),
        ("SELECT count(*) FROM shop", "SELECT count(*) FROM shop AS a JOIN shop AS b", False),
        ("SELECT id FROM shop UNION SELECT price FROM sale", "SELECT id FROM shop UNION SELECT price FROM sale", True),
        ("SELECT id FROM shop UNION SELECT price FROM sale", "SELECT id FROM shop UNION SELECT id FROM shop", False),
    ],
)
def test_the_verdict_needs_all_components_and_the_tables(gold, predicted, verdict):
    assert matches(gold, predicted) is verdict


def test_queries_in_from_may_come_in_any_order():
    gold = "SELECT * FROM (SELECT id FROM shop) (SELECT price FROM sale)"
    predicted = "SELECT * FROM (SELECT price FROM sale) (SELECT id FROM shop)"

    assert matches(gold, predicted)


def test_a_prediction_that_cannot_be_read_is_scored_as_empty():
    match = partial_match(comparable_view("SELECT id FROM shop WHERE id = 1", SHOP), EMPTY_VIEW)

    assert match["select"] == Component(1, 0, 0)
    assert match["group"] == Component(0, 0, 0)
    assert match["and_or"] == Component(1, 1, 1)


def test_components_come_in_the_order_of_tables():
    assert tuple(partial_match(EMPTY_VIEW, EMPTY_VIEW)) == COMPONENTS


def test_scores_of_a_component_are_shares_of_its_totals():
    part = Component(4, 2, 1)

    assert (part.accuracy, part.recall, part.f1, part.matched) == (0.5, 0.25, pytest.approx(1 / 3), False)


def test_a_component_that_neither_query_has_agrees():
    part = Component(0, 0, 0)

    assert (part.accuracy, part.recall, part.f1, part.matched) == (1.0, 1.0, 1.0, True)


def test_a_component_that_one_query_has_scores_0():
    for part in (Component(2, 0, 0), Component(0, 2, 0)):
        assert (part.accuracy, part.recall, part.f1, part.matched) == (0.0, 0.0, 0.0, False)


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
    assert all(part.f1 == part.accuracy == part.recall == 1 for part in components(query, query).values())


@given(QUERIES, QUERIES)
def test_scores_lie_between_0_and_1(gold, predicted):
    for part in components(gold, predicted).values():
        assert 0 <= part.accuracy <= 1
        assert 0 <= part.recall <= 1
        assert 0 <= part.f1 <= 1
