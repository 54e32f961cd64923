"""What is written holds no secret that this process knows of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_queryeval.redaction import redacted


def without_secrets(value: Any) -> Any:
    """A JSON value whose texts, keys and numbers are as `redacted` leaves them: the same one if nothing is hidden."""
    # One look at all texts together costs much less than a look at each; nearly always nothing is found.
    together = "\n".join(_texts(value))
    return value if redacted(together) == together else _cleaned(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        return {redacted(key): _cleaned(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if value is None or isinstance(value, bool):
        return value
    text = redacted(str(value))
    return value if text == str(value) else text
