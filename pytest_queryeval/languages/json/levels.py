"""The level of an answer that is scored: `at` names it, as a JSONPath or a JSON pointer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from pytest_queryeval.core.errors import SettingError
from pytest_queryeval.core.json_path import compiled, kind_of, selected
from pytest_queryeval.core.json_value import JsonAnswer, JsonValue
from pytest_queryeval.core.metric import Score
from pytest_queryeval.text.plain import one_line

Object: TypeAlias = dict[str, JsonValue]
SHOWN_CHARACTERS = 80
_POINTER = re.compile(r"(?:/(?:[^/~]|~[01])*)+")
_INDEX = re.compile(r"0|[1-9][0-9]{0,15}")


def check_at(options: Mapping[str, Any]) -> None:
    """Raise `SettingError` unless `at` is a JSONPath (RFC 9535), a JSON pointer (RFC 6901), or empty."""
    at = options.get("at", "")
    if not isinstance(at, str) or (at and at[0] not in "$/"):
        raise SettingError("at", "'at' is neither a JSONPath, which begins with `$`, nor a JSON pointer, with `/`")
    if at.startswith("/") and not _POINTER.fullmatch(at):
        raise SettingError("at", f"`{at}` is no JSON pointer: `~` stands before 0 or 1 only")
    if at.startswith("$"):
        _check_path(at)


def _check_path(path: str) -> None:
    try:
        compiled(path)
    except ValueError as error:
        raise SettingError("at", str(error)) from error


def levels(gold: JsonAnswer, predicted: JsonAnswer, at: str) -> tuple[Object, Object] | Score:
    """The objects of both answers at that level, the whole answers where `at` is empty; else what the pair scores.

    That is None where gold has no object there, 0 where predicted has none; a note says why.
    """
    wanted = _level(gold.value, at)
    if isinstance(wanted, str):
        return _unscored(None, f"gold {wanted}, so there is nothing to score")
    found = _level(predicted.value, at)
    if isinstance(found, str):
        return _unscored(0.0, f"predicted {found}, which scores 0")
    return wanted, found


def _unscored(value: float | None, reason: str) -> Score:
    return Score(value=value, details={"notes": [f"similarity: {reason}"]})


def _level(document: JsonValue, at: str) -> Object | str:
    """The object there, or what is wrong with it."""
    there = f" at `{one_line(at, SHOWN_CHARACTERS)}`" if at else ""
    try:
        values = _values(document, at)
    except ValueError:  # the library follows `..` through some hundred levels only
        return f"cannot be searched{there}"
    if len(values) != 1:
        return f"has {len(values):,} values{there} and not one" if values else f"has nothing{there}"
    return values[0] if isinstance(values[0], dict) else f"is {kind_of(values[0])}{there} and no object"


def _values(document: JsonValue, at: str) -> list[JsonValue]:
    if not at:
        return [document]
    return selected(at, document) if at.startswith("$") else _pointed(document, at)


def _pointed(document: JsonValue, pointer: str) -> list[JsonValue]:
    """The value that the pointer names, if any; without the library's own additions to RFC 6901."""
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
