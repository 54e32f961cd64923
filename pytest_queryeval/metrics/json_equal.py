"""Equality of JSON values."""

from __future__ import annotations

from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.core.metric import metric
from pytest_queryeval.languages.json.equality import equal


@metric(answers=JsonAnswer)
def json_equal(gold: JsonAnswer, predicted: JsonAnswer) -> float:
    """Return 1 if both answers are equal as JSON values, else 0.

    The order of keys is ignored, that of lists counts. Numbers are equal by their values however they are written, so 1
    is 1.0 and 1e0; true is not 1, "1" is not 1, and null is not a missing key. The value of a number that is written
    with a fraction or an exponent is that of the nearest double (IEEE 754), of another one it is exact: they differ
    where no double is exact, as 9007199254740993 and 9007199254740993.0 do. A number beyond the range of doubles, such
    as 1e400, is refused when it is read.

    >>> json_equal(JsonAnswer({"a": 1, "b": []}), JsonAnswer({"b": [], "a": 1.0}))
    1.0
    """
    return float(equal(gold.value, predicted.value))
