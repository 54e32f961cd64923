"""When JSON values are equal, and one text for all values that are."""

from __future__ import annotations

from json import JSONEncoder

from pytest_queryeval.core.json_value import JsonValue

# From here on a float's shortest text has an exponent, so whole numbers that a float holds are written as floats.
_LONG = 10**16
_ENCODER = JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def equal(gold: JsonValue, predicted: JsonValue) -> bool:
    """Whether both are the same JSON value: 1 is 1.0 and not true; the order of keys is free, that of lists counts.

    Numbers are compared exactly by value, texts by their characters.

    >>> equal({"a": 1, "b": [2]}, {"b": [2.0], "a": 1}), equal([1], [True])
    (True, False)
    """
    return gold == predicted and _same_booleans(gold, predicted)


def _same_booleans(gold: JsonValue, predicted: JsonValue) -> bool:
    """Whether values that are equal to Python, to which true is 1, have their booleans at the same places."""
    if isinstance(gold, dict) and isinstance(predicted, dict):
        return all(_same_booleans(item, predicted[key]) for key, item in gold.items())
    if isinstance(gold, list) and isinstance(predicted, list):
        return all(map(_same_booleans, gold, predicted))
    return isinstance(gold, bool) == isinstance(predicted, bool)


def canonical_text(value: JsonValue) -> str:
    """The value as JSON text, the same for all values that are `equal`.

    Keys are sorted, there are no blanks, characters stand for themselves where JSON lets them.

    >>> canonical_text({"b": [1.0, None], "a": "é"})
    '{"a":"é","b":[1,null]}'
    """
    return _ENCODER.encode(_with_plain_numbers(value))


def _with_plain_numbers(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _with_plain_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_plain_numbers(item) for item in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _LONG else value
    return _plain_integer(value) if isinstance(value, int) and abs(value) >= _LONG else value


def _plain_integer(value: int) -> int | float:
    try:
        number = float(value)
    except OverflowError:
        return value
    return number if number == value else value
