"""Where two JSON answers differ: missing paths, extra paths, paths with another value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias
from unicodedata import normalize

from pytest_queryeval.core.cause import MAX_EDITS, NOTHING, Cause, CauseLabel, CausingEdit
from pytest_queryeval.core.json_value import JsonAnswer, JsonValue
from pytest_queryeval.core.table import Cell, Difference, Row
from pytest_queryeval.features.json.values import canonical_text, equal, path_text
from pytest_queryeval.text.formatting import one_line_with_end, pluralize, truncate

COLUMNS = ("path", "value")
MAX_VALUE = 200  # characters
MAX_SHOWN = 40  # of a value in the summary
# Normalization of a hostile key of combining characters takes time that grows with the square of its length.
MAX_NORMALIZED = 200
# The type of a value by the first character of its canonical text; any other character begins a number.
_TYPES = {'"': "string", "{": "object", "[": "array", "t": "boolean", "f": "boolean", "n": "null"}
# A path as a linked list: the path to the container, and the last step; None for the whole document.
Path: TypeAlias = "tuple[Path, str | int] | None"


@dataclass(slots=True)
class _Differences:
    """The first differences of each type, as rows, and how many there are in all."""

    limit: int
    """The greatest number of rows of each type."""
    missing: list[Row] = field(default_factory=list)
    extra: list[Row] = field(default_factory=list)
    changed: list[tuple[Row, Row]] = field(default_factory=list)
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
            self.changed.append((_row(path, gold), _row(path, predicted)))


def difference(gold: JsonAnswer, predicted: JsonAnswer, *, limit: int) -> Difference:
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
    if (differences.missing_count, differences.extra_count, differences.changed_count) == (
        0,
        0,
        1,
    ) and differences.changed:
        ((path, gold_value), (_, predicted_value)) = differences.changed[0]
        texts = (path, gold_value, predicted_value)
        path, gold_value, predicted_value = (one_line_with_end(str(text), MAX_SHOWN) for text in texts)
        summary = f"{path}: gold {gold_value}, predicted {predicted_value}"
    if not summary and str(gold.value) != str(predicted.value):
        summary = "only the order of keys or the notation of numbers differs"
    return Difference(
        columns=COLUMNS,
        missing=tuple(differences.missing),
        extra=tuple(differences.extra),
        changed=tuple(differences.changed),
        counts=(
            differences.missing_count + differences.changed_count,
            differences.extra_count + differences.changed_count,
        ),
        summary=summary,
    )


def difference_cause(gold: JsonAnswer, predicted: JsonAnswer) -> Cause | None:
    """Return the first differences as edits: missing paths, then extra ones, then paths with another value.

    >>> difference_cause(JsonAnswer({"year": 1990}), JsonAnswer({"year": "1990"})).edits
    (CausingEdit(label='wrong-type', clause='$.year', change='"1990" → 1990'),)
    """
    differences = difference(gold, predicted, limit=MAX_EDITS)
    edits = [_edit("missing-member", path, NOTHING, value) for path, value in differences.missing]
    edits += [_edit("extra-member", path, value, NOTHING) for path, value in differences.extra]
    for (path, gold_value), (_, predicted_value) in differences.changed:
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
