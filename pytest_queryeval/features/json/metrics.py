"""Equality of JSON answers, of the whole and path by path."""

from __future__ import annotations

from pytest_queryeval.comparison.counts import Counts
from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.core.metric import metric
from pytest_queryeval.features.json.values import equal, equal_leaves, leaves


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


def _counts(gold: JsonAnswer, predicted: JsonAnswer) -> dict[str, float]:
    common = equal_leaves(gold.value, predicted.value)
    return Counts(common, leaves(predicted.value) - common, leaves(gold.value) - common).as_dict()


@metric(answers=JsonAnswer, counts=("path", _counts))
def path_f1(gold: JsonAnswer, predicted: JsonAnswer) -> float:
    """Return the F1 of the pairs of a path and its scalar, over the whole answers.

    2·common pairs / (gold's + predicted's pairs). Items of lists have their index in the path, scalars are compared as
    in `json_equal`. An empty object or list counts as a scalar, so that every answer has a pair; an answer that is a
    scalar itself has one, with the empty path. In [0, 1].

    >>> path_f1(JsonAnswer({"a": {"b": 1, "c": [2, 3]}}), JsonAnswer({"a": {"b": 1, "c": [2]}}))
    0.8
    """
    return 2 * equal_leaves(gold.value, predicted.value) / (leaves(gold.value) + leaves(predicted.value))
