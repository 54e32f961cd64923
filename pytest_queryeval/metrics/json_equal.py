"""Whether two answers are the same JSON value."""

from __future__ import annotations

from pytest_queryeval.json.equality import equal
from pytest_queryeval.json_value import JsonAnswer
from pytest_queryeval.metric import metric


@metric(kinds=frozenset({"json"}))
def json_equal(gold: JsonAnswer, predicted: JsonAnswer) -> float:
    """1 if both answers are equal as JSON values, else 0.

    The order of keys is ignored, that of lists counts. Numbers are equal by their exact values however they are
    written, so 1 is 1.0 and 1e0; true is not 1, "1" is not 1, and null is not a missing key.

    >>> json_equal(JsonAnswer({"a": 1, "b": []}), JsonAnswer({"b": [], "a": 1.0}))
    1.0
    """
    return float(equal(gold.value, predicted.value))
