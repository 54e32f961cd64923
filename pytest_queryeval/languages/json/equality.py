"""Equality of JSON values, and one text for all equal values."""

from __future__ import annotations

from contextlib import suppress
from json import JSONEncoder

from pytest_queryeval.core.json_value import JsonValue

# From here on the shortest text of a float has an exponent, so integers that a float can represent become floats.
_MIN_EXPONENT = 10**16
_ENCODER = JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def equal(gold: JsonValue, predicted: JsonValue) -> bool:
    """Return whether both are the same JSON value: 1 is 1.0 and not true; the order of lists counts, that of keys not.

    Numbers are compared exactly by value, texts by their characters.

    >>> equal({"a": 1, "b": [2]}, {"b": [2.0], "a": 1}), equal([1], [True])
    (True, False)
    """
    return gold == predicted and _same_booleans(gold, predicted)


def _same_booleans(gold: JsonValue, predicted: JsonValue) -> bool:
    """Return whether values that are equal in Python, where True is 1, have their booleans at the same places."""
    if isinstance(gold, dict) and isinstance(predicted, dict):
        return all(_same_booleans(item, predicted[key]) for key, item in gold.items())
    if isinstance(gold, list) and isinstance(predicted, list):
        return all(map(_same_booleans, gold, predicted))
    return isinstance(gold, bool) == isinstance(predicted, bool)


def canonical_text(value: JsonValue) -> str:
    """Return the value as JSON text, the same for all values that are `equal`.

    Keys are sorted, there are no spaces, and only characters that JSON forbids are escaped.

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
        return int(value) if value.is_integer() and abs(value) < _MIN_EXPONENT else value
    if isinstance(value, int) and abs(value) >= _MIN_EXPONENT:
        with suppress(OverflowError):
            return number if (number := float(value)) == value else value
    return value
