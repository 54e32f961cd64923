"""Overall similarity of JSON answers: their keys and the meaning of their values in one number."""

from __future__ import annotations

from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.core.metric import Score, Similarity, metric
from pytest_queryeval.languages.json.levels import levels
from pytest_queryeval.languages.json.options import ALPHA, BETA, EMBEDDING_MODEL, Depth, Lists, ValueText, check_options
from pytest_queryeval.languages.json.similarity import semantic, structural


@metric(answers=JsonAnswer, check=check_options, extra="semantic", paths=frozenset({"embedding_model"}))
def overall_similarity(
    gold: JsonAnswer,
    predicted: JsonAnswer,
    *,
    similarity: Similarity,
    alpha: float = ALPHA,
    beta: float = BETA,
    at: str = "",
    depth: Depth = "top",
    lists: Lists = "index",
    value_text: ValueText = "python",
    embedding_model: str = EMBEDDING_MODEL,
) -> Score | float | None:
    """Return alpha·StrSS + (1 - alpha)·SemSS, with 0 ≤ alpha ≤ 1.

    The options are those of `structural_similarity` and `semantic_similarity`, and so are the answers that have no
    score or score 0. Two empty objects score alpha. In [0, 1].
    Source: the overall JSON similarity score of arXiv 2409.16220, with alpha 0.5.

    >>> def alike(model, pairs):  # stands for a model
    ...     return [float(text == other) for text, other in pairs]
    >>> overall_similarity(JsonAnswer({"a": 1}), JsonAnswer({"a": 2}), similarity=alike, alpha=0.7)
    0.7
    """
    objects = levels(gold, predicted, at)
    if isinstance(objects, Score):
        return objects
    keys = structural(*objects, beta=beta, depth=depth, lists=lists)
    meaning = semantic(
        *objects,
        similarity=similarity,
        depth=depth,
        lists=lists,
        value_text=value_text,
        embedding_model=embedding_model,
    )
    return alpha * keys + (1 - alpha) * meaning
