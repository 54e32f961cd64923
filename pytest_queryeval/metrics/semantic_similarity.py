"""Semantic similarity (SemSS): how close the values of a JSON answer are in meaning."""

from __future__ import annotations

from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.core.metric import Score, Similarity, metric
from pytest_queryeval.languages.json.levels import levels
from pytest_queryeval.languages.json.options import EMBEDDING_MODEL, Depth, Lists, ValueText, check_options
from pytest_queryeval.languages.json.similarity import semantic


@metric(answers=JsonAnswer, check=check_options, extra="semantic", paths=frozenset({"embedding_model"}))
def semantic_similarity(
    gold: JsonAnswer,
    predicted: JsonAnswer,
    *,
    similarity: Similarity,
    at: str = "",
    depth: Depth = "top",
    lists: Lists = "index",
    value_text: ValueText = "python",
    embedding_model: str = EMBEDDING_MODEL,
) -> Score | float | None:
    """Return the mean cosine of the embeddings of gold's and predicted's values under the keys that both have.

    The mean is kept within [0, 1]; single cosines may be below 0. 0 without common keys, two empty objects included:
    what is missing and extra counts in `structural_similarity`. A value's text is what Python's `str` makes of it, or
    with `value_text` json its JSON text with sorted keys, in which equal values have equal texts.

    Only the values of the outermost object count, or of that at the level `at`, a JSONPath or a JSON pointer. None
    where gold has no object there, 0 where predicted has none, both with a note. With `depth` all, the values on all
    paths that both have and that end on at least one side are compared, an empty object or list included; with `lists`
    set those on one path are one list, each once and in one order.
    Source: SemSS (arXiv 2409.16220), with the top level and Python's texts.

    >>> def alike(model, pairs):  # stands for a model
    ...     return [float(text == other) for text, other in pairs]
    >>> semantic_similarity(JsonAnswer({"a": 1, "b": 2, "c": 3}), JsonAnswer({"a": 1, "b": 0}), similarity=alike)
    0.5
    """
    objects = levels(gold, predicted, at)
    if isinstance(objects, Score):
        return objects
    return semantic(
        *objects,
        similarity=similarity,
        depth=depth,
        lists=lists,
        value_text=value_text,
        embedding_model=embedding_model,
    )
