"""Where two JSON answers differ, as failures and reports show it."""

import json

import pytest
from hypothesis import given
from json_values import COMPOSED, DECOMPOSED, HOSTILE_KEYS, VALUES, nested, turned

from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.core.table import Difference
from pytest_queryeval.documents.json_path import selected
from pytest_queryeval.features.json.values import difference, equal, path_text


def differing(gold, predicted, limit=20):
    return difference(JsonAnswer(gold), JsonAnswer(predicted), limit=limit)


def test_missing_extra_and_changed_paths_are_told_apart():
    gold = {"query": {"a b": [1, 2], "c": "x"}, "d": None}
    predicted = {"query": {"a b": [1, "2"], "e": 1.5}, "d": None}

    difference = differing(gold, predicted)

    assert difference == Difference(
        columns=("path", "value"),
        missing=(("$.query.c", '"x"'),),
        extra=(("$.query.e", "1.5"),),
        changed=((("$.query['a b'][1]", "2"), ("$.query['a b'][1]", '"2"')),),
        counts=(2, 2),
        summary="missing 1 path, 1 extra path, another value at 1 path",
    )


def test_a_missing_branch_is_one_row_at_its_top():
    difference = differing({"a": {"z": {"y": 1.0, "x": [True]}}, "b": 1}, {"b": 1})

    assert difference.missing == (("$.a", '{"z":{"x":[true],"y":1}}'),)
    assert differing({"b": 1}, {"b": 1, "a": []}).extra == (("$.a", "[]"),)


def test_items_that_one_list_has_more_are_missing_or_extra():
    assert differing([1, 2, [3]], [1]).missing == (("$[1]", "2"), ("$[2]", "[3]"))
    assert differing({"a": [[], [0]]}, {"a": [[5], [0, 6]]}).extra == (("$.a[0][0]", "5"), ("$.a[1][1]", "6"))


@pytest.mark.parametrize(
    ("gold", "predicted"), [({"a": 1}, [1]), ([], {}), (1, True), ("1", 1), (None, {}), ({}, "x"), (0.5, 0.25)]
)
def test_values_of_different_sorts_are_one_changed_row(gold, predicted):
    def text(value):
        return json.dumps(value, separators=(",", ":"))

    difference = differing({"k": gold}, {"k": predicted})

    assert difference.changed == ((("$.k", text(gold)), ("$.k", text(predicted))),)
    assert (difference.missing, difference.extra, difference.counts) == ((), (), (1, 1))
    assert differing(gold, predicted).changed == ((("$", text(gold)), ("$", text(predicted))),)


def test_at_most_so_many_rows_of_each_sort_and_all_are_counted():
    gold = {"lost": list(range(50)), **{f"c{number}": 0 for number in range(2_000)}}
    predicted = {"lost": [], **{f"c{number}": 1 for number in range(2_000)}, **{f"x{number}": 1 for number in range(9)}}

    difference, hidden = differing(gold, predicted, limit=3), differing(gold, predicted, limit=0)

    assert [row[0] for row in difference.missing] == ["$.lost[0]", "$.lost[1]", "$.lost[2]"]
    assert [row[0] for row in difference.extra] == ["$.x0", "$.x1", "$.x2"]
    assert [gold_row[0] for gold_row, _ in difference.changed] == ["$.c0", "$.c1", "$.c2"]
    assert difference.counts == (2_050, 2_009)
    assert difference.summary == ("missing 50 paths, 9 extra paths, another value at 2,000 paths")
    assert (hidden.missing, hidden.extra, hidden.changed) == ((), (), ())
    assert (hidden.counts, hidden.summary) == (difference.counts, difference.summary)


def test_equal_answers_have_no_rows_and_the_summary_says_why():
    same = differing({"a": [1]}, {"a": [1]})
    spelled = differing({"a": 1, "b": 2}, {"b": 2.0, "a": 1})

    assert (same.missing, same.extra, same.changed, same.counts) == ((), (), (), (0, 0))
    assert same.summary == ""
    assert spelled.summary == "only the order of keys or the notation of numbers differs"


@pytest.mark.parametrize("limit", [0, 5])
def test_keys_that_differ_only_by_their_unicode_form_are_said_to(limit):
    message = "1 extra key missing in another Unicode normal form"

    assert message in differing({"x": {COMPOSED: 1}}, {"x": {DECOMPOSED: 1}}, limit).summary
    assert message in differing({DECOMPOSED: 1, "b": 2}, {COMPOSED: 1, "c": 2}, limit).summary
    assert "Unicode" not in differing({"x": {COMPOSED: 1}, "y": {}}, {"x": {}, "y": {DECOMPOSED: 1}}, limit).summary
    assert "Unicode" not in differing({"a": 1}, {"b": 1}, limit).summary
    assert "Unicode" not in differing({COMPOSED: 1, DECOMPOSED: 1}, {COMPOSED: 1, "b": 1}, limit).summary


def test_a_key_of_endless_combining_characters_takes_no_endless_time():
    marks = "e" + "\u0301\u0323" * 500_000

    assert differing({marks: 1}, {marks + "x": 1}).counts == (1, 1)


def test_long_values_and_paths_are_cut():
    ((path, value),) = differing({"a": 1}, {"a": 1, "k" * 9_999: {"b": "v" * 9_999}}).extra
    (((deep, _), _),) = differing(nested(100, 1), nested(100, 2)).changed

    assert len(path) <= 200
    assert len(value) == 200
    assert value.startswith('{"b":"vvv')
    assert value.endswith("…")
    assert len(deep) <= 200


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([], "$"),
        (["query", "a b", 0], "$.query['a b'][0]"),
        ([0, 12], "$[0][12]"),
        (["0", "_x", "été", "a-b"], "$['0']._x.été['a-b']"),
        (["", "it's", "a\\b", "$.a[0]"], r"$['']['it\'s']['a\\b']['$.a[0]']"),
        (["\x00\n\x1b"], r"$['\u0000\n\u001b']"),
    ],
)
def test_a_path_is_written_as_jsonpath_with_quotes_where_they_are_needed(steps, text):
    assert path_text(steps) == text


# The library refuses escapes of control characters, which RFC 9535 has.
@pytest.mark.parametrize("key", [key for key in HOSTILE_KEYS if len(key) < 100 and "\0" not in key])
def test_a_path_that_is_shown_selects_what_it_stands_for(key):
    document = {"a": [{key: "here", "x": 0}], "x": 1}

    ((path, value),) = differing(document, {"a": [{"x": 0}], "x": 1}).missing

    assert selected(path, document) == ["here"]
    assert value == '"here"'


def test_a_single_value_that_differs_is_said_with_its_path():
    assert differing({"a": [1, {"b": "x"}]}, {"a": [1, {"b": "\x1b" * 99}]}).summary.startswith(
        '$.a[1].b: gold "x", predicted "'
    )
    assert differing({"a": 1}, {"a": 2}, 0).summary == "another value at 1 path"


NOTATION = "only the order of keys or the notation of numbers differs"


@given(VALUES, VALUES)
def test_there_is_a_difference_exactly_where_the_values_are_not_equal(gold, predicted):
    difference = differing(gold, predicted)

    assert (difference.counts == (0, 0)) == equal(gold, predicted) == (difference.summary in ("", NOTATION))
    assert differing(gold, turned(gold)).counts == (0, 0)


@given(VALUES, VALUES)
def test_gold_and_predicted_may_change_places(gold, predicted):
    there, back = differing(gold, predicted), differing(predicted, gold)

    assert sorted(there.missing) == sorted(back.extra)
    assert sorted(there.extra) == sorted(back.missing)
    assert {(b, a) for a, b in there.changed} == set(back.changed)
