"""The strict reader of JSON (RFC 8259): what programs read differently, or not at all, is an error.

Imported by child processes: it needs the standard library only.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, Never, TypeAlias, TypeVar

Pairs: TypeAlias = list[tuple[str, Any]]
T = TypeVar("T")
_SHOWN_CHARACTERS = 40


class JsonError(ValueError):
    """JSON text with a value that readers should refuse."""


class DuplicateKeyError(JsonError):
    """An object that has a key twice, of which either value could be meant."""


class TooDeepError(JsonError):
    """Values that are nested deeper than Python can read them."""


def refuse_duplicates(pairs: Pairs) -> dict[str, Any]:
    """Return an object; raise `DuplicateKeyError` if it has a key twice."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise DuplicateKeyError(f"duplicate key '{repeated}'")
    return entries


class StrictJson:
    """A reader of JSON that refuses duplicate keys, NaN, numbers beyond those of a double, and too many levels.

    `read_object` makes an object of its keys and values, which may repeat a key; None takes the last value of a key.
    `read_number` makes a number of its text. With `allow_nan` NaN, Infinity and numbers beyond those of a double are
    read as Python does.
    """

    def __init__(
        self,
        *,
        read_object: Callable[[Pairs], Any] | None = refuse_duplicates,
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
        for bytes that are not text, else `JsonError`.
        """
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text), "surrogatepass")
        return _decoded(self._decoder.decode, text)

    def read_at(self, text: str, start: int) -> tuple[Any, int]:
        """Return the value that begins at `start`, and where it ends; raise ValueError as `read` does."""
        return _decoded(self._decoder.raw_decode, text, start)


def syntax_problem(error: json.JSONDecodeError) -> str:
    """Return what is wrong with text that is not JSON, and the remedy.

    >>> try:
    ...     StrictJson().read("{'id': 1}")
    ... except json.JSONDecodeError as error:
    ...     syntax_problem(error)
    'not JSON: single quotes: write names and texts in double quotes'
    """
    before, after = error.doc[: error.pos].rstrip(), error.doc[error.pos :].lstrip()
    # Python up to 3.12 names the place of the bracket, later ones that of the comma.
    bracket = after.removeprefix(",").lstrip()[:1]
    if bracket in ("}", "]") and (before.endswith(",") or after.startswith(",")):
        problem = f"a comma before `{bracket}`: remove it"
    elif after == "," and error.msg.startswith("Extra data"):
        problem = "a comma after the end: remove it"
    elif after.startswith("'"):
        problem = "single quotes: write names and texts in double quotes"
    elif before and after.startswith(("//", "/*", "#")):
        problem = "a comment, which JSON does not have: remove it"
    elif word := _PYTHON_WORD.match(after):
        problem = f"{word[0]}: write {_PYTHON_WORDS[word[0]]}"
    elif not before:
        problem = "a value is missing" if not after else "write texts in double quotes, objects in { }"
    elif not after:
        problem = _end_problem(before)
    else:
        problem = next((words for start, words in _SYNTAX.items() if error.msg.startswith(start)), error.msg)
    return f"not JSON: {problem}"


def _end_problem(text: str) -> str:
    """Return what is missing at the end of a text that is JSON up to there."""
    closing = {"{": "}", "[": "]"}
    brackets = _BRACKET.findall(_TEXT.sub("", text))
    missing: list[str] = []
    for bracket in brackets:
        missing = [closing[bracket], *missing] if bracket in closing else missing[1:]
    if not missing or text.endswith((",", ":", "{", "[")):
        return "it ends too early: a value, a `]` or a `}` is missing"
    return f"it ends too early: add `{''.join(missing)}`"


_BRACKET = re.compile(r"[][{}]")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}
_PYTHON_WORD = re.compile(rf"(?:{'|'.join(_PYTHON_WORDS)})\b")
_LONG_NUMBER = re.compile(r'(?<![\d"])\d{4301,}')  # Python reads 4,300 digits, unless configured otherwise
# By the beginning of Python's own message.
_SYNTAX = {
    "Expecting property name": "write the name in double quotes",
    "Expecting value": "expected a value: write texts in double quotes",
    "Expecting ',' delimiter": 'a value ends before this: add a comma, or write `\\"` for a double quote within a text',
    "Expecting ':' delimiter": "add a `:` after the name",
    "Extra data": "more text after the end of the value",
    "Unterminated string": "this text has no closing double quote: add it",
    "Invalid control character": "a line break or a tab in a text: write \\n or \\t",
    "Invalid \\": "a single `\\` in a text: write `\\\\`",
}


def _decoded(decode: Callable[..., T], text: str, *arguments: Any) -> T:
    try:
        return decode(text, *arguments)
    except RecursionError:
        raise TooDeepError("nested too deeply") from None
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        number = _LONG_NUMBER.search(text)  # Python gives advice on how to read it
        if number is None or len(number[0]) <= sys.get_int_max_str_digits():
            raise JsonError("a number is too large") from None
        line = text.count("\n", 0, number.start()) + 1
        place = f" (line {line})" if "\n" in text else ""
        raise JsonError(f"a number of {len(number[0]):,} digits is too large{place}") from None


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise JsonError(f"the number {text[:_SHOWN_CHARACTERS]} is too large")
    return number


def _refuse_constant(text: str) -> Never:
    raise JsonError(f"{text} is not JSON")
