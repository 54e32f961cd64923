"""Where two JSON answers differ: paths that are missing, paths that are extra, paths with another value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias
from unicodedata import normalize

from pytest_queryeval.comparison.difference import Difference
from pytest_queryeval.core.json_value import JsonAnswer, JsonValue
from pytest_queryeval.core.table import Row
from pytest_queryeval.languages.json.equality import canonical_text, equal
from pytest_queryeval.languages.json.paths import path_text
from pytest_queryeval.text.plain import shortened

COLUMNS = ("path", "value")
VALUE_CHARACTERS = 200
# A hostile key of combining characters takes time that grows with the square of its length.
NORMALIZED_CHARACTERS = 200
# The way to a value: its last step, and the way to what holds it.
Way: TypeAlias = "tuple[Way, str | int] | None"


@dataclass(slots=True)
class _Found:
    """At most `limit` rows of each sort, and how many there are; `respelled` counts keys in another Unicode form."""

    limit: int
    missing: list[Row] = field(default_factory=list)
    extra: list[Row] = field(default_factory=list)
    changed: list[tuple[Row, Row]] = field(default_factory=list)
    lost: int = 0
    added: int = 0
    altered: int = 0
    respelled: int = 0

    def lose(self, way: Way, value: JsonValue) -> None:
        self.lost += 1
        if self.lost <= self.limit:
            self.missing.append(_row(way, value))

    def add(self, way: Way, value: JsonValue) -> None:
        self.added += 1
        if self.added <= self.limit:
            self.extra.append(_row(way, value))

    def alter(self, way: Way, gold: JsonValue, predicted: JsonValue) -> None:
        self.altered += 1
        if self.altered <= self.limit:
            self.changed.append((_row(way, gold), _row(way, predicted)))


def difference(gold: JsonAnswer, predicted: JsonAnswer, *, limit: int) -> Difference:
    """How predicted differs from gold: rows of a path and the canonical text of what stands there.

    What only one side has is one row, at the path where it begins. Items of lists are compared by index. `counts` are
    of all rows of gold and of predicted that differ.
    """
    found = _Found(limit)
    _compare(gold.value, predicted.value, None, found)
    return Difference(
        columns=COLUMNS,
        missing=tuple(found.missing),
        extra=tuple(found.extra),
        changed=tuple(found.changed),
        counts=(found.lost + found.altered, found.added + found.altered),
        summary=_summary(found) or _same(gold.value, predicted.value),
    )


def _compare(gold: JsonValue, predicted: JsonValue, way: Way, found: _Found) -> None:
    if isinstance(gold, dict) and isinstance(predicted, dict):
        _compare_keys(gold, predicted, way, found)
    elif isinstance(gold, list) and isinstance(predicted, list):
        _compare_items(gold, predicted, way, found)
    elif not equal(gold, predicted):
        found.alter(way, gold, predicted)


def _compare_keys(gold: dict[str, JsonValue], predicted: dict[str, JsonValue], way: Way, found: _Found) -> None:
    for key, value in gold.items():
        if key in predicted:
            _compare(value, predicted[key], (way, key), found)
        else:
            found.lose((way, key), value)
    extra = [key for key in predicted if key not in gold]
    for key in extra:
        found.add((way, key), predicted[key])
    if extra:
        missing = {_composed(key) for key in gold if key not in predicted}
        found.respelled += sum(_composed(key) in missing for key in extra)


def _compare_items(gold: list[JsonValue], predicted: list[JsonValue], way: Way, found: _Found) -> None:
    for index, (value, other) in enumerate(zip(gold, predicted, strict=False)):
        _compare(value, other, (way, index), found)
    shared = min(len(gold), len(predicted))
    for index, value in enumerate(gold[shared:], start=shared):
        found.lose((way, index), value)
    for index, value in enumerate(predicted[shared:], start=shared):
        found.add((way, index), value)


def _composed(key: str) -> str:
    return key if key.isascii() or len(key) > NORMALIZED_CHARACTERS else normalize("NFC", key)


def _row(way: Way, value: JsonValue) -> Row:
    return path_text(reversed(list(_steps(way)))), shortened(canonical_text(value), VALUE_CHARACTERS)


def _steps(way: Way) -> Iterator[str | int]:
    while way is not None:
        way, step = way
        yield step


def _summary(found: _Found) -> str:
    parts = (
        (found.lost, "of gold's paths are not in predicted"),
        (found.added, "of predicted's are not in gold"),
        (found.altered, "have another value"),
        (found.respelled, "of the extra keys are missing ones in another Unicode normal form"),
    )
    return ", ".join(f"{number:,} {text}" for number, text in parts if number)


def _same(gold: JsonValue, predicted: JsonValue) -> str:
    if str(gold) == str(predicted):
        return "the same value"
    return "the same value: only the order of keys or the spelling of numbers differs"
