"""Predictions in JSON: objects with `predicted`, and whatever else a system adds."""

from __future__ import annotations

import json
from typing import TypeGuard

from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.documents.strict_json import DuplicateKeyError, StrictJson

PREDICTED = "predicted"
MAX_SECONDS = 1e9
JSON = StrictJson(allow_nan=True)  # metadata may hold NaN, as Python writes it


def is_seconds(value: object) -> TypeGuard[int | float]:
    """Return whether a value can be the seconds that an answer took."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_SECONDS


def find_prediction(text: str) -> dict[str, JsonValue] | None:
    """Return a text that is a JSON object with `predicted`; None for any other text.

    Raise `DuplicateKeyError` where such an object has a key twice.
    """
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = JSON.read(text)
    except DuplicateKeyError:
        if PREDICTED in json.loads(text):
            raise
        return None
    except ValueError:
        return None
    return value if isinstance(value, dict) and PREDICTED in value else None
