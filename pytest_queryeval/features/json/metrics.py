"""Metrics of JSON answers: equality of the whole answers or path by path, and similarity by keys and by meaning.

Similarity compares two objects: the whole answers, or the objects in them that `at`, a JSONPath or a JSON pointer,
selects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from statistics import fmean
from typing import Literal, TypeAlias

from pytest_queryeval.comparison.equality import Counts
from pytest_queryeval.core.errors import SettingError
from pytest_queryeval.core.json_value import JsonAnswer, JsonValue
from pytest_queryeval.core.metric import Score, Similarity, metric
from pytest_queryeval.core.table import Policy
from pytest_queryeval.documents.json_path import compiled, json_type, selected
from pytest_queryeval.features.json.alignment import BOUNDED, Comparison, comparison
from pytest_queryeval.features.json.rules import is_number, rules_of
from pytest_queryeval.features.json.values import (
    Depth,
    Lists,
    Values,
    canonical_text,
    equal,
    is_leaf,
    values_by_path,
)
from pytest_queryeval.text.formatting import one_line

Object: TypeAlias = dict[str, JsonValue]
MAX_SHOWN = 80  # characters
_POINTER = re.compile(r"(?:/(?:[^/~]|~[01])*)+")
_INDEX = re.compile(r"0|[1-9][0-9]{0,15}")
ValueText: TypeAlias = Literal["python", "json"]
DEFAULT = Policy()
ALPHA = 0.5
BETA = 0.1
EMBEDDING_MODEL = "paraphrase-TinyBERT-L6-v2"
NEEDS: Mapping[str, tuple[str, JsonValue]] = {"lists": ("depth", "all")}  # on the top level there are only keys
_CHOICES = {"depth": ("top", "all"), "lists": ("index", "set"), "value_text": ("python", "json")}


@metric(answers=JsonAnswer)
def json_equal(gold: JsonAnswer, predicted: JsonAnswer, *, policy: Policy = DEFAULT) -> Score | float:
    """Return 1 if both answers are equal as JSON values, else 0; `policy` may let more values be equal.

    The order of keys is ignored, that of lists counts. Numbers are compared by value in any notation, so 1 equals 1.0
    and 1e0. But true is not 1, "1" is not 1, and null is not a missing key. A number with a fraction or an exponent has
    the value of the nearest double (IEEE 754). Any other number has its exact value. So 9007199254740993 differs from
    9007199254740993.0, because no double has this value. A number beyond the range of doubles, such as 1e400, is
    refused when it is read.

    >>> json_equal(JsonAnswer({"a": 1, "b": []}), JsonAnswer({"b": [], "a": 1.0}))
    1.0
    """
    rules = rules_of(policy)
    if rules.is_default or equal(gold.value, predicted.value):
        return float(equal(gold.value, predicted.value))
    found = comparison(gold, predicted, rules)
    return _bounded("json_equal", float(found.are_equal), found)


def _bounded(name: str, score: float, found: Comparison) -> Score | float:
    """Return a score, with a note if a bound on the work ended the search for a better alignment."""
    return Score(value=score, details={"notes": [f"{name}: {BOUNDED}"]}) if found.is_bounded else score


def _path_counts(gold: JsonAnswer, predicted: JsonAnswer, *, policy: Policy = DEFAULT) -> dict[str, float]:
    found = comparison(gold, predicted, rules_of(policy))
    return Counts(found.shared, found.predicted_leaves - found.shared, found.gold.leaves - found.shared).as_dict()


@metric(answers=JsonAnswer, counts=("path", _path_counts), definition=2)
def path_f1(gold: JsonAnswer, predicted: JsonAnswer, *, policy: Policy = DEFAULT) -> Score | float:
    """Return the F1 of the pairs of a path and the scalar at it, over the whole answers.

    2·common pairs / (gold's + predicted's pairs). First the elements of lists are aligned in their order so that the
    answers share most pairs; a record that is inserted costs only its own pairs. `policy` may align elements in another
    way, or allow extra keys, whose pairs do not count. Scalars are compared as in `json_equal`.

    An empty object or list counts as a scalar, so that every answer has a pair. An answer that is a scalar has one
    pair, with the empty path. The score is from 0 to 1. If lists are too long to find their best alignment, the score
    may be too low, and a note says so.

    >>> path_f1(JsonAnswer({"a": {"b": 1, "c": [2, 3]}}), JsonAnswer({"a": {"b": 1, "c": [2]}}))
    0.8
    >>> path_f1(JsonAnswer([1, 2, 3, 4]), JsonAnswer([0, 1, 2, 3]))
    0.75
    """
    found = comparison(gold, predicted, rules_of(policy))
    return _bounded("path_f1", 2 * found.shared / (found.gold.leaves + found.predicted_leaves), found)


def check_options(options: Mapping[str, JsonValue]) -> None:
    """Raise `SettingError` for the first option of these metrics that has an invalid value."""
    check_at(options)
    for name, choices in _CHOICES.items():
        if options.get(name, choices[0]) not in choices:
            raise SettingError(name, f"{name}: expected {' or '.join(choices)}, found {_shown(options[name])}")
    if not is_number(beta := options.get("beta", BETA)) or not 0 < beta <= 1:
        raise SettingError("beta", "`beta` must be a number above 0 and at most 1")
    if not is_number(alpha := options.get("alpha", ALPHA)) or not 0 <= alpha <= 1:
        raise SettingError("alpha", "`alpha` must be a number from 0 to 1")
    model = options.get("embedding_model", EMBEDDING_MODEL)
    if not isinstance(model, str) or not model.strip():
        raise SettingError("embedding_model", "`embedding_model` must be the name of a model, or a folder")


def _shown(value: JsonValue) -> str:
    return f"'{one_line(str(value), MAX_SHOWN)}'" if isinstance(value, str | int | float) else "no text"


def check_at(options: Mapping[str, JsonValue]) -> None:
    """Raise `SettingError` unless the option `at` is a JSONPath (RFC 9535), a JSON pointer (RFC 6901), or empty."""
    at = options.get("at", "")
    if not isinstance(at, str) or (at and at[0] not in "$/"):
        remedy = f": write $.{at} or /{at}" if isinstance(at, str) and at.isidentifier() else ""
        raise SettingError("at", f"at: expected a JSONPath ($…) or a JSON pointer (/…), found {_shown(at)}{remedy}")
    if at.startswith("/") and not _POINTER.fullmatch(at):
        raise SettingError("at", f"`{at}` is not a JSON pointer: `~` stands before 0 or 1 only")
    if at.startswith("$"):
        try:
            compiled(at)
        except ValueError as error:
            raise SettingError("at", str(error)) from error


def selected_objects(gold: JsonAnswer, predicted: JsonAnswer, at: str) -> tuple[Object, Object] | Score:
    """Return the objects that `at` selects in both answers; the whole answers if `at` is empty.

    If a side does not have exactly one object there, return a `Score` with the reason as a note: None if that side is
    gold, else 0.
    """
    gold_object = _selected_object(gold.value, at)
    if isinstance(gold_object, str):
        return _no_score(None, f"the gold answer {gold_object}, so there is nothing to score")
    predicted_object = _selected_object(predicted.value, at)
    if isinstance(predicted_object, str):
        return _no_score(0.0, f"the predicted answer {predicted_object}, which scores 0")
    return gold_object, predicted_object


def _no_score(value: float | None, reason: str) -> Score:
    return Score(value=value, details={"notes": [f"similarity: {reason}"]})


def _selected_object(document: JsonValue, at: str) -> Object | str:
    """Return the object that `at` selects in a document; the predicate of a message that says why there is none."""
    place_text = f" at `{one_line(at, MAX_SHOWN)}`" if at else ""
    values = [document]
    try:
        if at:
            values = selected(at, document) if at.startswith("$") else _follow_pointer(document, at)
    except ValueError:  # the library follows `..` through some hundred levels only
        return f"cannot be searched{place_text}"
    if len(values) != 1:
        return f"has {len(values):,} values{place_text} and not one" if values else f"has nothing{place_text}"
    return values[0] if isinstance(values[0], dict) else f"is {json_type(values[0])}{place_text}, not an object"


def _follow_pointer(document: JsonValue, pointer: str) -> list[JsonValue]:
    """Return the value at a JSON pointer in a list; an empty list if there is none.

    It follows RFC 6901, which the library extends.
    """
    value = document
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and _INDEX.fullmatch(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return []
    return [value]


def _structural_score(gold: Object, predicted: Object, *, beta: float, depth: Depth, lists: Lists) -> float:
    """Return StrSS: common / (gold's + beta · extra), counted in keys or paths of keys; 1 if neither side has any."""
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


def _semantic_score(
    gold: Object,
    predicted: Object,
    *,
    similarity: Similarity,
    depth: Depth,
    lists: Lists,
    value_text: ValueText,
    embedding_model: str,
) -> float:
    """Return SemSS: the mean cosine of the values' texts on common paths, limited to [0, 1]; 0 without common values.

    All texts go to `similarity` in one call, in the order of gold's keys.
    """
    pairs = [
        (_value_text(gold_values, value_text), _value_text(predicted_values, value_text))
        for gold_values, predicted_values in values_by_path(gold, predicted, depth=depth, lists=lists)
        if gold_values and predicted_values and (depth == "top" or any(map(is_leaf, (*gold_values, *predicted_values))))
    ]
    return min(max(fmean(similarity(embedding_model, pairs)), 0.0), 1.0) if pairs else 0.0


def _value_text(values: Values, value_text: ValueText) -> str:
    """Return the text of the value at a path; of several values, the text of their sorted list without repetitions.

    If some of several values are leaves, the others are left out, because they have paths of their own.
    """
    value: JsonValue = values[0]
    if len(values) > 1:
        compared_values = [candidate for candidate in values if is_leaf(candidate)] or values
        distinct_values = {canonical_text(candidate): candidate for candidate in compared_values}
        merged_values = [distinct_values[text] for text in sorted(distinct_values)]
        value = merged_values if len(merged_values) > 1 else merged_values[0]
    return str(value) if value_text == "python" else canonical_text(value)


@metric(answers=JsonAnswer, check=check_options, needs=NEEDS)
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

    |common keys| / (|gold's keys| + beta·|extra keys|), with 0 < beta ≤ 1. The score is 1 if neither side has keys.
    Only the keys of the outermost object count, or of the object that `at`, a JSONPath or a JSON pointer, selects. The
    score is None if gold has no object there, and 0 if predicted has none, both with a note. Scores are from 0 to 1.

    With `depth` all, paths count instead of keys, to objects and lists as well as to scalars. Items of lists have their
    index in the path. With `lists` set, all items of a list share one path, so that neither their order nor repeated
    items count.

    Source: StrSS (arXiv 2409.16220), with the top level and beta 0.1.

    >>> gold, predicted = JsonAnswer({"a": {"b": 1}}), JsonAnswer({"a": {"c": 1}, "d": 2})
    >>> structural_similarity(gold, predicted, beta=1)
    0.5
    >>> structural_similarity(gold, predicted, beta=1, depth="all")
    0.25
    """
    objects = selected_objects(gold, predicted, at)
    return objects if isinstance(objects, Score) else _structural_score(*objects, beta=beta, depth=depth, lists=lists)


@metric(answers=JsonAnswer, check=check_options, needs=NEEDS, extra="semantic", paths=frozenset({"embedding_model"}))
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

    The mean is limited to [0, 1]; single cosines may be below 0. The score is 0 without common keys, also for two empty
    objects. Missing and extra keys count in `structural_similarity`. The text of a value is that of Python's `str`.
    With `value_text` json it is the JSON text with sorted keys, which is the same for equal values.

    Only the values of the outermost object count, or of the object that `at`, a JSONPath or a JSON pointer, selects.
    The score is None if gold has no object there, and 0 if predicted has none, both with a note. With `depth` all,
    values are compared at each common path at which at least one side has a scalar or an empty object or list. With
    `lists` set, the values at a path are one list, without repetitions and in a fixed order.

    Source: SemSS (arXiv 2409.16220), with the top level and Python's texts.

    >>> def alike(model, pairs):  # stands for a model
    ...     return [float(left == right) for left, right in pairs]
    >>> semantic_similarity(JsonAnswer({"a": 1, "b": 2, "c": 3}), JsonAnswer({"a": 1, "b": 0}), similarity=alike)
    0.5
    """
    objects = selected_objects(gold, predicted, at)
    if isinstance(objects, Score):
        return objects
    return _semantic_score(
        *objects,
        similarity=similarity,
        depth=depth,
        lists=lists,
        value_text=value_text,
        embedding_model=embedding_model,
    )


@metric(answers=JsonAnswer, check=check_options, needs=NEEDS, extra="semantic", paths=frozenset({"embedding_model"}))
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

    StrSS is `structural_similarity`, SemSS `semantic_similarity`, with the same options. Answers without a score there,
    or with the score 0, have it here too. Two empty objects score alpha. Scores are from 0 to 1.

    Source: the overall JSON similarity score of arXiv 2409.16220, with alpha 0.5.

    >>> def alike(model, pairs):  # stands for a model
    ...     return [float(left == right) for left, right in pairs]
    >>> overall_similarity(JsonAnswer({"a": 1}), JsonAnswer({"a": 2}), similarity=alike, alpha=0.7)
    0.7
    """
    objects = selected_objects(gold, predicted, at)
    if isinstance(objects, Score):
        return objects
    structure = _structural_score(*objects, beta=beta, depth=depth, lists=lists)
    meaning = _semantic_score(
        *objects,
        similarity=similarity,
        depth=depth,
        lists=lists,
        value_text=value_text,
        embedding_model=embedding_model,
    )
    return alpha * structure + (1 - alpha) * meaning
