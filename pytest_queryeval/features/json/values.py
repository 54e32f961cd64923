"""JSON values: equality, a canonical text, and the values at each path.

The steps of a path are keys of objects and indexes of lists, or one step for all items of a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from json import JSONEncoder
from typing import Literal, TypeAlias

from pytest_queryeval.core.json_value import JsonValue

# A key, an index, or None for all items of a list whose order is ignored.
Step: TypeAlias = "str | int | None"
Values: TypeAlias = Sequence[JsonValue]
Depth: TypeAlias = Literal["top", "all"]
Lists: TypeAlias = Literal["index", "set"]
_CONTAINERS = (dict, list)
# From this number on the text of a float has an exponent, so integers that a float can represent become floats.
_MIN_EXPONENT = 10**16
_ENCODER = JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def equal(gold: JsonValue, predicted: JsonValue) -> bool:
    """Return whether both are the same JSON value: 1 equals 1.0 and not true; the order of keys is ignored.

    Numbers are compared exactly by value, texts by their characters, and lists in order.

    >>> equal({"a": 1, "b": [2]}, {"b": [2.0], "a": 1}), equal([1], [True])
    (True, False)
    """
    return gold == predicted and _same_booleans(gold, predicted)


def _same_booleans(gold: JsonValue, predicted: JsonValue) -> bool:
    """Return whether values that are equal in Python, where True is 1, have booleans at the same places."""
    if isinstance(gold, dict) and isinstance(predicted, dict):
        return all(_same_booleans(item, predicted[key]) for key, item in gold.items())
    if isinstance(gold, list) and isinstance(predicted, list):
        return all(map(_same_booleans, gold, predicted))
    return isinstance(gold, bool) == isinstance(predicted, bool)


def canonical_text(value: JsonValue) -> str:
    """Return a value as JSON text that is the same for all `equal` values.

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


def is_leaf(value: JsonValue) -> bool:
    """Return whether a value is a scalar, an empty object or an empty list."""
    return not (value and isinstance(value, _CONTAINERS))


def values_by_path(
    gold: JsonValue, predicted: JsonValue, *, depth: Depth = "top", lists: Lists = "index"
) -> Iterator[tuple[Values, Values]]:
    """Yield for each path of gold or predicted the values of both; an empty sequence for a side without the path.

    With `depth="top"` paths have one step. With `lists="set"` a path may have several values, else at most one. The
    order is deterministic, and at the top level that of gold.
    """
    pending_pairs: list[tuple[Values, Values]] = [((gold,), (predicted,))]
    while pending_pairs:
        gold_children, predicted_children = (_children(values, lists) for values in pending_pairs.pop())
        pairs: Iterable[tuple[Values, Values]] = chain(
            ((values, predicted_children.get(step, ())) for step, values in gold_children.items()),
            (((), values) for step, values in predicted_children.items() if step not in gold_children),
        )
        for pair in pairs:
            yield pair
            if depth == "all" and not (all(map(is_leaf, pair[0])) and all(map(is_leaf, pair[1]))):
                pending_pairs.append(pair)


def _children(values: Values, lists: Lists) -> Mapping[Step, Values]:
    """Return the values one step below the given values, by step."""
    if len(values) == 1:
        return _children_of_one(values[0], lists)
    children: dict[Step, list[JsonValue]] = {}
    for value in values:
        for step, items in _children_of_one(value, lists).items():
            children.setdefault(step, []).extend(items)
    return children


def _children_of_one(value: JsonValue, lists: Lists) -> Mapping[Step, Values]:
    if isinstance(value, dict):
        return {key: (item,) for key, item in value.items()}
    if not isinstance(value, list) or not value:
        return {}
    return {None: value} if lists == "set" else {index: (item,) for index, item in enumerate(value)}
