"""Metrics that compare whole JSON answers: `json_equal` and `path_f1`."""

import json
from collections import Counter

import pytest
from hypothesis import given
from json_values import HOSTILE_KEYS, VALUES, nested, turned

from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.core.metric import describe_metric
from pytest_queryeval.core.table import Table
from pytest_queryeval.features.json.metrics import json_equal, path_f1
from pytest_queryeval.features.json.values import canonical_text, equal


def same(gold, predicted):
    return json_equal(JsonAnswer(gold), JsonAnswer(predicted))


def f1(gold, predicted):
    return path_f1(JsonAnswer(gold), JsonAnswer(predicted))


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [
        (json.loads("1"), json.loads("1.0")),
        (json.loads("[1e0, -0.0]"), json.loads("[1, 0]")),
        (10**20, 1e20),
        ({"a": 1, "b": {"c": [], "d": {}}}, {"b": {"d": {}, "c": []}, "a": 1}),
        (None, None),
        ({key: key for key in HOSTILE_KEYS}, {key: key for key in reversed(HOSTILE_KEYS)}),
    ],
)
def test_values_are_equal_however_they_are_written(gold, predicted):
    assert same(gold, predicted) == same(predicted, gold) == 1.0


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [
        (1, True),
        ({"a": [0]}, {"a": [False]}),
        ({"a": {"b": 1.0}}, {"a": {"b": True}}),
        (1, "1"),
        (0, None),
        (False, None),
        ("", None),
        ([], {}),
        ([1, 2], [2, 1]),
        ([1], [1, 1]),
        ({"a": None}, {}),
        (2**53 + 1, float(2**53)),
        (0.1 + 0.2, 0.3),
        ("caf\u00e9", "cafe\u0301"),
        ({"caf\u00e9": 1}, {"cafe\u0301": 1}),
    ],
)
def test_values_that_only_look_alike_differ(gold, predicted):
    assert same(gold, predicted) == same(predicted, gold) == 0.0


@given(VALUES, VALUES)
def test_equality_is_symmetric_and_free_of_the_order_of_keys(gold, predicted):
    assert same(gold, predicted) == same(predicted, gold) == same(turned(gold), predicted)
    assert same(gold, turned(gold)) == 1.0


@given(VALUES, VALUES)
def test_equal_values_and_only_these_have_one_canonical_text(gold, predicted):
    assert equal(gold, predicted) == (canonical_text(gold) == canonical_text(predicted))
    assert equal(json.loads(canonical_text(gold)), gold)


def test_canonical_text_has_sorted_keys_no_blanks_and_characters_as_they_are():
    assert canonical_text({"é": [1.0, 1.5, True, None], "a": "\n\u2028"}) == '{"a":"\\n\u2028","é":[1,1.5,true,null]}'


@pytest.mark.parametrize(
    ("number", "other"), [(12, 12.0), (-(2**53), -(2.0**53)), (10**16, 1e16), (10**22, 1e22), (0, -0.0)]
)
def test_a_number_has_one_text_however_python_holds_it(number, other):
    assert canonical_text(number) == canonical_text(other)


@pytest.mark.parametrize(("number", "other"), [(2**53 + 1, 2.0**53), (10**16 + 1, 1e16), (10**400, 10**400 + 1)])
def test_numbers_that_a_float_cannot_tell_apart_have_texts_of_their_own(number, other):
    assert canonical_text(number) != canonical_text(other)


def test_half_the_scalars_at_their_paths_are_half_the_score():
    gold = {"a": 1, "b": {"c": "x", "d": [True, None]}}

    assert f1(gold, {"a": 1, "b": {"c": "y", "d": [1, None]}}) == 0.5
    assert f1(gold, {"a": 1}) == pytest.approx(2 * 1 / (4 + 1))
    assert f1(gold, {"x": gold}) == 0.0


def test_items_of_lists_are_told_by_their_index():
    assert f1([1, 2, 3], [1, 2]) == 0.8
    assert f1([1, 2, 3], [2, 3, 1]) == 0.0
    assert f1({"0": 1}, [1]) == 0.0


def test_empty_objects_and_lists_count_as_scalars():
    assert f1({}, {}) == f1([], []) == 1.0
    assert f1({}, []) == f1({}, {"a": 1}) == f1({"a": {}}, {"a": None}) == 0.0
    assert f1({"a": {}, "b": 1}, {"a": {}, "b": 2}) == 0.5


def test_an_answer_that_is_a_scalar_has_the_empty_path():
    assert f1(1, 1.0) == 1.0
    assert f1(1, True) == f1("", None) == f1(1, [1]) == 0.0


def pairs_of(value, path=()):
    """Every leaf with its path, the long way."""
    if value and isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [pair for step, item in items for pair in pairs_of(item, (*path, step))]
    return [(path, canonical_text(value))]


@given(VALUES, VALUES)
def test_path_f1_is_the_f1_of_the_multisets_of_pairs(gold, predicted):
    expected, pairs = Counter(pairs_of(gold)), Counter(pairs_of(predicted))

    assert f1(gold, predicted) == 2 * (expected & pairs).total() / (expected.total() + pairs.total())
    assert f1(gold, predicted) == f1(predicted, gold)
    assert f1(gold, turned(gold)) == 1.0


def test_answers_as_deep_as_a_reader_lets_pass_are_compared():
    gold, second = nested(100, 1), nested(100, 2)

    assert same(gold, nested(100, 1.0)) == f1(gold, nested(100, 1.0)) == 1.0
    assert same(gold, second) == f1(gold, second) == 0.0


@pytest.mark.parametrize("score", [json_equal, path_f1])
def test_both_are_for_the_kind_json_only_and_have_no_options(score):
    described = describe_metric(score)

    assert described.applies_to("json", JsonAnswer)
    assert not described.applies_to("sql", Table)
    assert described.options == frozenset()
