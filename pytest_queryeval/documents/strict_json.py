"""The strict reader of JSON (RFC 8259): what programs read differently, or not at all, is an error.

Imported by child processes: it needs the standard library only.
"""

from __future__ import annotations

import json
import math
import re
import sys
import unicodedata
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
    character = error.doc[error.pos : error.pos + 1]
    known = (words for behind, ahead, words in _MISTAKES if behind.search(before) and ahead.match(after))
    if bracket in ("}", "]") and (before.endswith(",") or after.startswith(",")):
        problem = f"a comma before `{bracket}`: remove it"
    elif after == "," and error.msg.startswith("Extra data"):
        problem = "a comma after the end: remove it"
    elif words := next(known, ""):
        problem = words
    elif before and after.startswith(("//", "/*", "#")):
        problem = "a comment, which JSON does not have: remove it"
    elif character and not character.isascii():
        problem = _lookalike(character)
    elif not before:
        problem = "a value is missing" if not after else "write texts in double quotes, objects in { }"
    elif not after:
        problem = _end_problem(before)
    elif bracket in ("}", "]") and error.msg.startswith("Expecting ','"):
        problem = f"`{bracket}` closes another bracket than the last open one: correct one of them"
    else:
        problem = next((words for start, words in _SYNTAX.items() if error.msg.startswith(start)), error.msg)
    return f"not JSON: {problem}"


def _lookalike(character: str) -> str:
    """Return what a character is that JSON has in texts only, and what to write."""
    name = unicodedata.name(character, "a character without a name").lower()
    instead = "a space" if character.isspace() else "a straight double quote" if "quotation" in name else "ASCII"
    return f"U+{ord(character):04X}, {name}: write {instead}"


def place_of_refusal(text: str, problem: str, max_depth: int) -> int | None:
    """Return where a text has what a message refuses, of `StrictJson` or of half a surrogate pair; None if unknown.

    The text is JSON to Python, as far as it reads it; `problem` is the message, and lists and objects may be nested
    `max_depth` times in another one.
    """
    keys: list[set[str]] = []
    for token in _TOKEN.finditer(text):
        part, refused = token[0], ""
        if part in ("{", "["):
            keys.append(set())
            refused = "nested" * (len(keys) > max_depth + 1)
        elif part in ("}", "]"):
            keys = keys[:-1]
        elif not part.startswith('"'):
            refused = f"of {len(part)} characters" if math.isinf(_as_float(part)) and part[-1].isdigit() else part
        elif _HALF_PAIR.search(part):
            refused = "surrogate"
        elif keys and token["colon"]:
            key = part[: -len(token["colon"])]
            refused = "duplicate key" * (key in keys[-1])
            keys[-1].add(key)
        if refused and refused in problem:
            return token.start()
    return None


def _as_float(number: str) -> float:
    try:
        return float(number)
    except ValueError:
        return 0.0


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
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"(?P<colon>\s*+:)?|-?\w[\w.+-]*+|[\[\]{}]', re.DOTALL)
_HALF_PAIR = re.compile(
    r"(?<!\\)(?:\\\\)*(?:[\ud800-\udfff]|\\u[dD][89abAB]\w\w(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]\w\w)\\u[dD][c-fC-F])"
)
_LONG_NUMBER = re.compile(r'(?<![\d"])\d{4301,}')  # Python reads 4,300 digits, unless configured otherwise
# By what is before and behind the place of an error.
_MISTAKES = tuple(
    (re.compile(rf"(?:{before})\Z"), re.compile(after), words)
    for before, after, words in (
        ("", "'", "single quotes: write names and texts in double quotes"),
        ("", "`", "backticks: write names and texts in double quotes"),
        ("", r'\\"', "escaped quotes: write them without the backslashes"),
        ("", r"&(?:quot|#34|#x22);", "quotes as in HTML: write double quotes"),
        ("", r"True\b", "True: write true"),
        ("", r"False\b", "False: write false"),
        ("", r"None\b", "None: write null"),
        ("", r"undefined\b", "undefined: write null, or leave the name out"),
        ("", r"\.\.\.|\u2026", "dots for what is left out: write all of it"),
        ("", r"\.\d", "a number without a digit before the point: write 0 there"),
        ("", r"\+[\d.]", "a number with a plus sign: remove it"),
        ("", r"\(", "parentheses: write a list in [ ]"),
        (r"\b0", r"[xX][\da-fA-F]", "a hexadecimal number: write it in decimal digits"),
        (r"\b0", r"\d", "a number with 0 at its beginning: remove the 0, or write a text in double quotes"),
        (r"\d", r"\.(?!\d)", "a number without a digit behind the point: add one, or remove the point"),
        (r"\b\d{4}", r"[-/]\d\d?[-/]\d", "a date or a time: write it in double quotes"),
        (r"\b\d\d?", r":\d\d|([-/.])\d\d?\1\d", "a date or a time: write it in double quotes"),
        (r"\d,", r"\d{3}\b", "a comma within a number: remove it"),
        (r'"', r"=", "write `:` after the name, not `=`"),
    )
)
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
