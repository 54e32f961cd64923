"""JSON values: whether two are equal and where they differ, the same text for equal values, the paths of a value.

The steps of a path are the keys of objects and the indexes of lists, or one step for all items of a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from json import JSONEncoder
from typing import Literal, TypeAlias
from unicodedata import normalize

from pytest_queryeval.core.case_report import NO_DIFFERENCE, ChangedRow, DifferenceReport
from pytest_queryeval.core.cause import MAX_EDITS, NOTHING, Cause, CauseLabel, CausingEdit
from pytest_queryeval.core.json_value import JsonAnswer, JsonValue
from pytest_queryeval.core.table import Cell, Row
from pytest_queryeval.text.formatting import one_line_with_end, pluralize, tell_apart, truncate, truncate_middle

# A key, an index, or None for all items of a list whose order is ignored.
Step: TypeAlias = "str | int | None"
Values: TypeAlias = Sequence[JsonValue]
Depth: TypeAlias = Literal["top", "all"]
Lists: TypeAlias = Literal["index", "set"]
MAX_PATH = 200  # characters
_CONTAINERS = (dict, list)
_SHORT_ESCAPES = ("\\b", "\\t", "\\n", "\\f", "\\r", "\\'", "\\\\")
_ESCAPES = {code: f"\\u{code:04x}" for code in range(32)}
_ESCAPES |= {ord(character): escape for character, escape in zip("\b\t\n\f\r'\\", _SHORT_ESCAPES, strict=True)}
# From this number on the text of a float has an exponent, so integers that a float can represent become floats.
_MIN_EXPONENT = 10**16
_ENCODER = JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))
COLUMNS = ("path", "value")  # of a difference
MAX_VALUE = 200  # characters
MAX_SHOWN = 40  # of a value in the summary
# Normalization of a hostile key of combining characters takes time that grows with the square of its length.
MAX_NORMALIZED = 200
# The type of a value by the first character of its canonical text; any other character begins a number.
_TYPES = {'"': "string", "{": "object", "[": "array", "t": "boolean", "f": "boolean", "n": "null"}
# A path as a linked list: the path to the container, and the last step; None for the whole document.
Path: TypeAlias = "tuple[Path, str | int] | None"


def equal(gold: JsonValue, predicted: JsonValue) -> bool:
    """Return whether both are the same JSON value: 1 is 1.0 and not true; only the order of lists counts.

    Numbers are compared exactly by value, texts by their characters.

    >>> equal({"a": 1, "b": [2]}, {"b": [2.0], "a": 1}), equal([1], [True])
    (True, False)
    """
    return gold == predicted and _same_booleans(gold, predicted)


def _same_booleans(gold: JsonValue, predicted: JsonValue) -> bool:
    """Return whether values that are equal in Python, where True is 1, have their booleans at the same places."""
    if isinstance(gold, dict) and isinstance(predicted, dict):
        return all(_same_booleans(item, predicted[key]) for key, item in gold.items())
    if isinstance(gold, list) and isinstance(predicted, list):
        return all(map(_same_booleans, gold, predicted))
    return isinstance(gold, bool) == isinstance(predicted, bool)


def canonical_text(value: JsonValue) -> str:
    """Return the value as JSON text, the same for all values that are `equal`.

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
    """Return whether a value has no paths below it: a scalar, an empty object or an empty list."""
    return not (value and isinstance(value, _CONTAINERS))


def values_by_path(
    gold: JsonValue, predicted: JsonValue, *, depth: Depth = "top", lists: Lists = "index"
) -> Iterator[tuple[Values, Values]]:
    """Yield the values of gold and of predicted on each path that either has; an empty sequence for a missing path.

    With `depth="top"` paths have one step. With `lists="set"` a path may have several values, else at most one. The
    order is deterministic; on the top level it is that of gold.
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
    """Map each step that leads down from the values to the values that it reaches."""
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


def path_text(steps: Iterable[str | int]) -> str:
    r"""Return the path as a JSONPath (RFC 9535), with quotes around keys that need them, truncated in its middle.

    >>> print(path_text(["query", "a b", 0, "it's"]))
    $.query['a b'][0]['it\'s']
    """
    parts = ["$"]
    for step in steps:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        else:
            key = truncate(step, MAX_PATH)
            parts.append(f".{key}" if key.isidentifier() else f"['{key.translate(_ESCAPES)}']")
    return truncate_middle("".join(parts), MAX_PATH)


@dataclass(slots=True)
class _Differences:
    """The first differences of each type, as rows, and how many there are in all."""

    limit: int
    """The greatest number of rows of each type."""
    missing: list[Row] = field(default_factory=list)
    extra: list[Row] = field(default_factory=list)
    changed: list[ChangedRow[Row]] = field(default_factory=list)
    missing_count: int = 0
    extra_count: int = 0
    changed_count: int = 0
    respelled_count: int = 0
    """Extra keys that are missing in another Unicode normal form."""

    def add_missing(self, path: Path, value: JsonValue) -> None:
        self.missing_count += 1
        if self.missing_count <= self.limit:
            self.missing.append(_row(path, value))

    def add_extra(self, path: Path, value: JsonValue) -> None:
        self.extra_count += 1
        if self.extra_count <= self.limit:
            self.extra.append(_row(path, value))

    def add_changed(self, path: Path, gold: JsonValue, predicted: JsonValue) -> None:
        self.changed_count += 1
        if self.changed_count <= self.limit:
            self.changed.append({"gold": _row(path, gold), "predicted": _row(path, predicted)})


def difference(gold: JsonAnswer, predicted: JsonAnswer, *, limit: int) -> DifferenceReport[Row]:
    """Return how predicted differs from gold: rows of a path and the canonical text of its value.

    A value that only one side has is one row, at its own path. Items of lists are compared by index. `counts` are those
    of all rows of gold and of predicted that differ, also beyond `limit`.
    """
    differences = _Differences(limit)
    _compare(gold.value, predicted.value, None, differences)
    parts = [
        f"missing {pluralize(differences.missing_count, 'path')}" * bool(differences.missing_count),
        pluralize(differences.extra_count, "extra path") * bool(differences.extra_count),
        f"another value at {pluralize(differences.changed_count, 'path')}" * bool(differences.changed_count),
        f"{pluralize(differences.respelled_count, 'extra key')} missing in another Unicode normal form"
        * bool(differences.respelled_count),
    ]
    summary = ", ".join(filter(None, parts))
    differing = (differences.missing_count, differences.extra_count, differences.changed_count)
    if differing == (0, 0, 1) and differences.changed:
        path, gold_value = differences.changed[0]["gold"]
        values = (str(gold_value), str(differences.changed[0]["predicted"][1]))
        texts = tell_apart(*values, MAX_SHOWN) or [one_line_with_end(text, MAX_SHOWN) for text in values]
        summary = f"{one_line_with_end(str(path), MAX_SHOWN)}: gold {texts[0]}, predicted {texts[1]}"
    if not summary and str(gold.value) != str(predicted.value):
        summary = "only the order of keys or the notation of numbers differs"
    return {
        **NO_DIFFERENCE,
        "summary": summary,
        "columns": [*COLUMNS],
        "counts": {
            "missing": differences.missing_count + differences.changed_count,
            "extra": differences.extra_count + differences.changed_count,
        },
        "missing": differences.missing,
        "extra": differences.extra,
        "changed": differences.changed,
    }


def difference_cause(gold: JsonAnswer, predicted: JsonAnswer) -> Cause | None:
    """Return the first differences as edits: missing paths, then extra ones, then paths with another value.

    >>> difference_cause(JsonAnswer({"year": 1990}), JsonAnswer({"year": "1990"})).edits
    (CausingEdit(label='wrong-type', clause='$.year', change='"1990" → 1990'),)
    """
    differences = difference(gold, predicted, limit=MAX_EDITS)
    edits = [_edit("missing-member", path, NOTHING, value) for path, value in differences["missing"]]
    edits += [_edit("extra-member", path, value, NOTHING) for path, value in differences["extra"]]
    for changed in differences["changed"]:
        (path, gold_value), (_, predicted_value) = changed["gold"], changed["predicted"]
        is_other_type = _TYPES.get(str(gold_value)[:1]) != _TYPES.get(str(predicted_value)[:1])
        edits.append(_edit("wrong-type" if is_other_type else "wrong-value", path, predicted_value, gold_value))
    return Cause(edits=tuple(edits[:MAX_EDITS])) if edits else None


def _edit(label: CauseLabel, path: Cell, *change: Cell) -> CausingEdit:
    return CausingEdit(label=label, clause=str(path), change=" → ".join(map(str, change)))


def _compare(gold: JsonValue, predicted: JsonValue, path: Path, differences: _Differences) -> None:
    if isinstance(gold, dict) and isinstance(predicted, dict):
        _compare_objects(gold, predicted, path, differences)
    elif isinstance(gold, list) and isinstance(predicted, list):
        for index, (gold_item, predicted_item) in enumerate(zip(gold, predicted, strict=False)):
            _compare(gold_item, predicted_item, (path, index), differences)
        shared_length = min(len(gold), len(predicted))
        for index, value in enumerate(gold[shared_length:], start=shared_length):
            differences.add_missing((path, index), value)
        for index, value in enumerate(predicted[shared_length:], start=shared_length):
            differences.add_extra((path, index), value)
    elif not equal(gold, predicted):
        differences.add_changed(path, gold, predicted)


def _compare_objects(
    gold: dict[str, JsonValue], predicted: dict[str, JsonValue], path: Path, differences: _Differences
) -> None:
    for key, value in gold.items():
        if key in predicted:
            _compare(value, predicted[key], (path, key), differences)
        else:
            differences.add_missing((path, key), value)
    extra_keys = [key for key in predicted if key not in gold]
    for key in extra_keys:
        differences.add_extra((path, key), predicted[key])
    if extra_keys:
        missing_keys = {_normalize(key) for key in gold if key not in predicted}
        differences.respelled_count += sum(_normalize(key) in missing_keys for key in extra_keys)


def _normalize(key: str) -> str:
    return key if key.isascii() or len(key) > MAX_NORMALIZED else normalize("NFC", key)


def _row(path: Path, value: JsonValue) -> Row:
    steps: list[str | int] = []
    while path is not None:
        path, step = path
        steps.append(step)
    return path_text(reversed(steps)), truncate(canonical_text(value), MAX_VALUE)
