"""What programs read differently, or not at all, is not JSON."""

import json
import math

import pytest
from hypothesis import given
from trees import trees

from pytest_queryeval.documents.strict_json import DuplicateKeyError, JsonError, StrictJson, TooDeepError

NUMBERS = '{"n": NaN, "i": Infinity, "l": 1e999}'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1, "b": 2, "a": 3}', "duplicate key 'a'"),
        ("[NaN]", "NaN is not JSON"),
        ("[-Infinity]", "-Infinity is not JSON"),
        ("[-1e999]", "the number -1e999 is too large"),
        (f"1{'0' * 100}e999", f"the number 1{'0' * 39} is too large"),
        ("[" * 100_000, "nested too deeply"),
        (f"[{'9' * 100_000}]", "a number of 100,000 digits is too large"),
        (f'{{"a": 1,\n"b": -{"9" * 5_000}}}', "a number of 5,000 digits is too large (line 2)"),
    ],
)
def test_json_that_no_reader_should_accept_is_refused(text, problem):
    for data in (text, text.encode("utf-16")):
        with pytest.raises(JsonError) as raised:
            StrictJson().read(data)
        assert str(raised.value) == problem
    with pytest.raises(JsonError):
        StrictJson().read_at(text, 0)


def test_a_long_number_is_no_advice_to_change_python():
    text = json.dumps(["5" * 9_000]).replace("]", f", {'7' * 6_000}]")

    with pytest.raises(JsonError, match=r"^a number of 6,000 digits is too large$"):
        StrictJson().read(text)


def test_errors_tell_their_kind():
    with pytest.raises(DuplicateKeyError):
        StrictJson().read('{"a": 1, "a": 1}')
    with pytest.raises(TooDeepError):
        StrictJson().read("[" * 100_000)


def test_text_that_is_not_json_has_its_place():
    with pytest.raises(json.JSONDecodeError) as raised:
        StrictJson().read('{\n "a" 1}')

    assert (raised.value.lineno, raised.value.colno) == (2, 6)


def test_a_value_can_be_read_from_a_place_of_a_text():
    assert StrictJson().read_at('x [1, 2] ["a"', 2) == ([1, 2], 8)


def test_numbers_that_json_does_not_have_can_be_allowed():
    actual = StrictJson(allow_nan=True).read(NUMBERS)

    assert math.isnan(actual["n"])
    assert (actual["i"], actual["l"]) == (math.inf, math.inf)


def test_numbers_and_objects_can_be_read_in_another_way():
    reader = StrictJson(read_object=list, read_number=str)

    assert reader.read('{"a": 1.10, "a": 2}') == [("a", "1.10"), ("a", "2")]


@given(trees)
def test_json_is_read_as_it_was_written(tree):
    assert StrictJson().read(json.dumps(tree)) == tree
