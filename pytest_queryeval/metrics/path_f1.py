"""Path F1: how many scalars of a JSON answer are right, each at its path."""

from __future__ import annotations

from pytest_queryeval.comparison.counts import Counts
from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.core.metric import metric
from pytest_queryeval.languages.json.paths import equal_leaves, leaves


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
