"""Structural similarity (StrSS): how many keys of a JSON answer are right."""

from __future__ import annotations

from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.core.metric import Score, metric
from pytest_queryeval.languages.json.levels import levels
from pytest_queryeval.languages.json.options import BETA, Depth, Lists, check_options
from pytest_queryeval.languages.json.similarity import structural


@metric(answers=JsonAnswer, check=check_options)
def structural_similarity(
    gold: JsonAnswer,
    predicted: JsonAnswer,
    *,
    beta: float = BETA,
    at: str = "",
    depth: Depth = "top",
    lists: Lists = "index",
) -> Score | float | None:
    """Return the share of gold's keys that predicted has, less a little for extra keys; values do not count.

    |common keys| / (|gold's keys| + beta·|extra keys|), with 0 < beta ≤ 1; 1 where the denominator is 0, which is where
    neither has keys. Only the keys of the outermost object count, or of that at the level `at`, a JSONPath or a JSON
    pointer. None where gold has no object there, 0 where predicted has none, both with a note. In [0, 1].

    With `depth` all, the paths below count instead, to objects and lists as well as to scalars. Items of lists have
    their index in the path; with `lists` set all items of a list share one path, so that neither their order nor how
    many alike there are counts.
    Source: StrSS (arXiv 2409.16220), with the top level and beta 0.1.

    >>> gold, predicted = JsonAnswer({"a": {"b": 1}}), JsonAnswer({"a": {"c": 1}, "d": 2})
    >>> structural_similarity(gold, predicted, beta=1)
    0.5
    >>> structural_similarity(gold, predicted, beta=1, depth="all")
    0.25
    """
    objects = levels(gold, predicted, at)
    return objects if isinstance(objects, Score) else structural(*objects, beta=beta, depth=depth, lists=lists)
