"""The strict reader of JSON (RFC 8259): what programs read differently, or not at all, is an error.

Imported by child processes: it needs the standard library only.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from typing import Any, Never, TypeAlias, TypeVar

Pairs: TypeAlias = list[tuple[str, Any]]
T = TypeVar("T")
_SHOWN_CHARACTERS = 40


class JsonError(ValueError):
    """Text that has the form of JSON, and that no reader should accept."""


class DuplicateKeyError(JsonError):
    """An object that has a key twice, of which either value could be meant."""


class TooDeepError(JsonError):
    """Values that are nested deeper than Python can read them."""


def refuse_duplicates(pairs: Pairs) -> dict[str, Any]:
    """Return an object; raise `DuplicateKeyError` where it has a key twice."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise DuplicateKeyError(f"duplicate key '{repeated}'")
    return entries


class StrictJson:
    """A reader of JSON that refuses duplicate keys, NaN, numbers beyond those of a double, and too many levels.

    `read_object` makes an object of its keys and values, which may repeat a key. `read_number` makes a number of its
    text. With `allow_nan` NaN, Infinity and numbers beyond those of a double are read as Python does.
    """

    def __init__(
        self,
        *,
        read_object: Callable[[Pairs], Any] = refuse_duplicates,
        read_number: Callable[[str], Any] | None = None,
        allow_nan: bool = False,
    ) -> None:
        self._decoder = json.JSONDecoder(
            object_pairs_hook=read_object,
            parse_int=read_number,
            parse_float=read_number or (None if allow_nan else _finite),
            parse_constant=None if allow_nan else _refuse_constant,
        )

    def read(self, text: str | bytes) -> Any:
        """Return the value that a text is; bytes may be UTF-8, UTF-16 or UTF-32, with or without a byte order mark.

        Raise ValueError: `json.JSONDecodeError`, which knows the place, for text that is not JSON, UnicodeDecodeError
        for bytes that are no text, else `JsonError`.
        """
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text), "surrogatepass")
        return _decoded(self._decoder.decode, text)

    def read_at(self, text: str, start: int) -> tuple[Any, int]:
        """Return the value that begins at `start`, and where it ends; raise ValueError as `read` does."""
        return _decoded(self._decoder.raw_decode, text, start)


def _decoded(decode: Callable[..., T], *arguments: Any) -> T:
    try:
        return decode(*arguments)
    except RecursionError:
        raise TooDeepError("nested too deep") from None


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise JsonError(f"the number {text[:_SHOWN_CHARACTERS]} is too large")
    return number


def _refuse_constant(text: str) -> Never:
    raise JsonError(f"{text} is not JSON")
