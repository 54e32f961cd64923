"""The level of an answer that is scored: `at`, a JSONPath or a JSON pointer, selects it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from pytest_queryeval.core.errors import SettingError
from pytest_queryeval.core.json_path import compiled, kind_of, selected
from pytest_queryeval.core.json_value import JsonAnswer, JsonValue
from pytest_queryeval.core.metric import Score
from pytest_queryeval.text.truncation import one_line

Object: TypeAlias = dict[str, JsonValue]
MAX_SHOWN = 80  # characters
_POINTER = re.compile(r"(?:/(?:[^/~]|~[01])*)+")
_INDEX = re.compile(r"0|[1-9][0-9]{0,15}")


def check_at(options: Mapping[str, JsonValue]) -> None:
    """Raise `SettingError` unless `at` is a JSONPath (RFC 9535), a JSON pointer (RFC 6901), or empty."""
    at = options.get("at", "")
    if not isinstance(at, str) or (at and at[0] not in "$/"):
        raise SettingError("at", "'at' is neither a JSONPath, which begins with `$`, nor a JSON pointer, with `/`")
    if at.startswith("/") and not _POINTER.fullmatch(at):
        raise SettingError("at", f"`{at}` is no JSON pointer: `~` stands before 0 or 1 only")
    if at.startswith("$"):
        try:
            compiled(at)
        except ValueError as error:
            raise SettingError("at", str(error)) from error


def levels(gold: JsonAnswer, predicted: JsonAnswer, at: str) -> tuple[Object, Object] | Score:
    """Return the objects of both answers at a level; the whole answers if `at` is empty.

    Where one has no object there, return a `Score` with a note on the reason: None if it is gold, 0 if predicted.
    """
    gold_level = _level(gold.value, at)
    if isinstance(gold_level, str):
        return _no_score(None, f"gold {gold_level}, so there is nothing to score")
    predicted_level = _level(predicted.value, at)
    if isinstance(predicted_level, str):
        return _no_score(0.0, f"predicted {predicted_level}, which scores 0")
    return gold_level, predicted_level


def _no_score(value: float | None, reason: str) -> Score:
    return Score(value=value, details={"notes": [f"similarity: {reason}"]})


def _level(document: JsonValue, at: str) -> Object | str:
    """Return the object at a level, or the end of a message on why there is none."""
    there = f" at `{one_line(at, MAX_SHOWN)}`" if at else ""
    values = [document]
    try:
        if at:
            values = selected(at, document) if at.startswith("$") else _follow_pointer(document, at)
    except ValueError:  # the library follows `..` through some hundred levels only
        return f"cannot be searched{there}"
    if len(values) != 1:
        return f"has {len(values):,} values{there} and not one" if values else f"has nothing{there}"
    return values[0] if isinstance(values[0], dict) else f"is {kind_of(values[0])}{there} and no object"


def _follow_pointer(document: JsonValue, pointer: str) -> list[JsonValue]:
    """Return the value of a pointer, if any; without the extensions that the library has to RFC 6901."""
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
