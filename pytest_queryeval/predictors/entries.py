"""What a system says of one case in JSON: an object with `predicted`, and whatever else it tells."""

from __future__ import annotations

import json
from typing import Any

from pytest_queryeval.text.plain import one_line

PREDICTED = "predicted"
MAX_SECONDS = 1e9


class DuplicateKeyError(ValueError):
    """An object that has a key twice, of which either could be meant."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for key, value in pairs:
        if key in entries:
            raise DuplicateKeyError(f"duplicate key '{one_line(key, 40)}'")
        entries[key] = value
    return entries


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)


def parsed(text: str) -> Any:
    """The value that a text is as JSON; raises ValueError, also for a key that stands twice or too many levels."""
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def parsed_from(text: str, start: int) -> tuple[Any, int]:
    """The JSON value that begins at `start`, and where it ends; raises ValueError as `parsed` does."""
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("nested too deep") from None


def is_seconds(value: object) -> bool:
    """Whether it can be the time that an answer took."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_SECONDS


def told_prediction(text: str) -> dict[str, Any] | None:
    """The object with `predicted` that a text is as JSON, None for any other text.

    Raises `DuplicateKeyError` where such an object has a key twice.
    """
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = parsed(text)
    except DuplicateKeyError:
        if PREDICTED in json.loads(text):
            raise
        return None
    except ValueError:
        return None
    return value if isinstance(value, dict) and PREDICTED in value else None
