"""The scores of two objects: the agreement of their keys, and the semantic similarity of their values."""

from __future__ import annotations

from statistics import fmean

from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.metric import Similarity
from pytest_queryeval.languages.json.equality import canonical_text
from pytest_queryeval.languages.json.levels import Object
from pytest_queryeval.languages.json.options import Depth, Lists, ValueText
from pytest_queryeval.languages.json.paths import Values, is_leaf, values_by_path


def structural(gold: Object, predicted: Object, *, beta: float, depth: Depth, lists: Lists) -> float:
    """Return StrSS: common / (gold's + beta · extra) keys, or key paths; 1 where gold and predicted have none."""
    common = missing = extra = 0
    for gold_values, predicted_values in values_by_path(gold, predicted, depth=depth, lists=lists):
        if gold_values and predicted_values:
            common += 1
        elif gold_values:
            missing += 1
        else:
            extra += 1
    union = common + missing + beta * extra
    return common / union if union else 1.0


def semantic(
    gold: Object,
    predicted: Object,
    *,
    similarity: Similarity,
    depth: Depth,
    lists: Lists,
    value_text: ValueText,
    embedding_model: str,
) -> float:
    """Return SemSS: the mean cosine of the values' texts, limited to [0, 1]; 0 where there is nothing to compare.

    All texts go to `similarity` in one call, in the order of gold's keys.
    """
    pairs = [
        (_text(gold_values, value_text), _text(predicted_values, value_text))
        for gold_values, predicted_values in values_by_path(gold, predicted, depth=depth, lists=lists)
        if gold_values and predicted_values and (depth == "top" or any(map(is_leaf, (*gold_values, *predicted_values))))
    ]
    return min(max(fmean(similarity(embedding_model, pairs)), 0.0), 1.0) if pairs else 0.0


def _text(values: Values, value_text: ValueText) -> str:
    """Return the text of the value of a path, or of a list of its distinct values in a fixed order.

    Where some are leaves, the others have paths of their own and are left out.
    """
    value: JsonValue = values[0]
    if len(values) > 1:
        compared_values = [candidate for candidate in values if is_leaf(candidate)] or values
        distinct_values = {canonical_text(candidate): candidate for candidate in compared_values}
        merged_values = [distinct_values[text] for text in sorted(distinct_values)]
        value = merged_values if len(merged_values) > 1 else merged_values[0]
    return str(value) if value_text == "python" else canonical_text(value)
