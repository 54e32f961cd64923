"""A pair under Spider's published evaluation, as details and as a row of its table."""

import pytest

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.languages.sql.match import COMPONENTS, Component, match_as_published, scored_pair
from pytest_queryeval.languages.sql.spider_grammar import UnreadableQueryError

SHOP = Schema(tables={"shop": ("id", "name", "city")})
GOLD = "SELECT name FROM shop WHERE id = 1"


def test_a_match_has_hardness_verdict_and_all_components():
    match = match_as_published(GOLD, "SELECT name FROM shop WHERE id = 7", SHOP)

    assert (match.exact, match.hardness, match.rejected) == (True, "easy", "")
    assert list(match.components) == list(COMPONENTS)
    assert match.components["where"] == Component(1, 1, 1)


def test_a_prediction_outside_of_the_grammar_is_rejected_with_a_reason():
    match = match_as_published(GOLD, "SELECT name AS n FROM shop WHERE id = 1", SHOP)

    assert not match.exact
    assert match.rejected == "no column 'as'"
    assert match.components["select"] == Component(1, 0, 0)


def test_a_gold_outside_of_the_grammar_has_no_match():
    with pytest.raises(UnreadableQueryError, match="no column 'as'"):
        match_as_published("SELECT name AS n FROM shop", "SELECT name FROM shop", SHOP)


def test_a_pair_comes_back_from_its_details_as_it_was():
    match = match_as_published(GOLD, "SELECT city FROM shop", SHOP)

    pair = scored_pair(match.to_json(), 0.0)

    assert (pair.hardness, pair.exact, pair.execution) == ("easy", False, 0.0)
    assert pair.components == match.components


def test_details_name_a_rejection_only_where_there_is_one():
    assert "rejected" not in match_as_published(GOLD, GOLD, SHOP).to_json()
    assert match_as_published(GOLD, "nothing", SHOP).to_json()["rejected"]
