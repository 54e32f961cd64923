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
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Never, TypeAlias, TypeVar

Pairs: TypeAlias = list[tuple[str, Any]]
T = TypeVar("T")
_SHOWN_CHARACTERS = 40
_SMALLER = "write a smaller one, or a text in double quotes"


class JsonError(ValueError):
    """A JSON text has a value that strict readers refuse."""


class DuplicateKeyError(JsonError):
    """An object of a JSON text has the same key twice, so that either value could be meant."""


class TooDeepError(JsonError):
    """A JSON text is nested more deeply than Python can read."""


def refuse_duplicates(pairs: Pairs) -> dict[str, Any]:
    """Return pairs of keys and values as a dict; raise `DuplicateKeyError` if a key is repeated."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise DuplicateKeyError(f"duplicate key '{repeated}': remove one")
    return entries


class StrictJson:
    """A reader of JSON that refuses duplicate keys, NaN, numbers too large for a double, and very deep nesting.

    `read_object` returns an object for its pairs of keys and values, in which a key may be repeated; with None, the
    last value of a key counts. `read_number` returns a number for its text. If `allow_nan` is true, NaN, Infinity and
    numbers too large for a double are read as Python reads them.
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
        """Return the value of a JSON text.

        Bytes may be UTF-8, UTF-16 or UTF-32, with or without a byte order mark. Raise `json.JSONDecodeError`, which
        `syntax_problem` explains, for text that is not JSON, UnicodeDecodeError for bytes that are not text, and
        `JsonError` for what this reader refuses; all are ValueErrors.
        """
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text), "surrogatepass")
        return _decoded(self._decoder.decode, text)

    def read_at(self, text: str, start: int) -> tuple[Any, int]:
        """Return the JSON value that begins at `start`, and the position behind it; raise ValueError as `read` does."""
        return _decoded(self._decoder.raw_decode, text, start)


class SyntaxProblem(NamedTuple):
    """Why a text is not JSON, with the remedy, and the line and column of the mistake, counted from 1."""

    text: str
    line: int
    column: int


def syntax_problem(error: json.JSONDecodeError) -> SyntaxProblem:
    """Return what is wrong with a text that is not JSON, in words that name the mistake and its remedy.

    >>> try:
    ...     StrictJson().read("{'id': 1}")
    ... except json.JSONDecodeError as error:
    ...     syntax_problem(error)
    SyntaxProblem(text='not JSON: single quotes: write names and texts in double quotes', line=1, column=2)
    """
    brackets = _open_brackets(error.doc[: error.pos])
    problem, place = _end_problem(error, brackets) or _mistake(error, brackets)
    return SyntaxProblem(f"not JSON: {problem}", *line_and_column(error.doc, place))


def line_and_column(text: str, place: int) -> tuple[int, int]:
    """Return the line and the column of a position in a text; the position counts from 0, line and column from 1."""
    return text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)


def places_of_refusal(text: str, problem: str, max_depth: int) -> Sequence[int]:
    """Return the positions in a JSON text of what the message `problem` refuses; empty if they are not found.

    `problem` is a message of `StrictJson`, of too deep nesting, or of half a surrogate pair. A repeated key has two
    positions. `max_depth` is the number of allowed levels of lists and objects.
    """
    keys: list[dict[str, int]] = []
    for token in _TOKEN.finditer(text):
        part, refused, place = token[0], "", token.start()
        if part in _CLOSING:
            keys.append({})
            refused = "nested" * (len(keys) > max_depth + 1)
        elif part in ("}", "]"):
            keys = keys[:-1]
        elif not part.startswith('"'):
            refused = f"of {len(part)} characters" if math.isinf(_as_float(part)) and part[-1].isdigit() else part
        elif _HALF_PAIR.search(part):
            refused = "surrogate"
        elif keys and token["colon"]:
            key = json.loads(part[: -len(token["colon"])])
            if key in keys[-1] and f"duplicate key '{key}'" in problem:
                return keys[-1][key], place
            keys[-1].setdefault(key, place)
        if refused and refused in problem:
            return (place,)
    return ()


def _as_float(number: str) -> float:
    try:
        return float(number)
    except ValueError:
        return 0.0


def _end_problem(error: json.JSONDecodeError, brackets: Sequence[int]) -> tuple[str, int] | None:
    """Return what is missing at the end of a text, and a position, if the text is the beginning of JSON; else None.

    `brackets` are the positions of the brackets that are open.
    """
    text, place = error.doc, error.pos
    close = "".join(_CLOSING[text[bracket]] for bracket in reversed(brackets))
    if error.msg.startswith("Unterminated string"):
        missing = "" if text.rstrip().endswith(("]", "}")) else close
        return f'it ends within the text that begins here: close it with `"{missing}`', place
    if not brackets:
        return None
    if not text[place:].strip():
        last = text[:place].rstrip()[-1]
        if error.msg.startswith("Expecting ':'"):
            return f"it ends behind a name: write `:`, a value and `{close}`", place
        if last in (",", ":"):
            return f"it ends behind `{last}`: write the rest and `{close}`", place
        return f"it ends too early: add `{close}`", place
    cut = _CUT.search(text, max(0, len(text) - _MAX_TOKEN))
    if cut and (cut.start() < place or (cut.start() == place and error.msg.startswith(("Expecting value", "Invalid")))):
        return f"it ends within `{cut[0].rstrip()}`: write the rest of it and `{close}`", cut.start()
    return None


def _mistake(error: json.JSONDecodeError, brackets: Sequence[int]) -> tuple[str, int]:
    """Return what is wrong at the position of an error, by the text around it, and where the mistake begins.

    `brackets` are the positions of the brackets that are open.
    """
    text, place = error.doc, error.pos
    around = text[max(0, place - _MAX_TOKEN) : place]
    before, found, words = next(
        (before, found, words)
        for message, behind, ahead, words in _MISTAKES
        if error.msg.startswith(message)
        and (before := re.search(rf"(?:{behind})\Z", around))
        and (found := re.compile(ahead).match(text, place))
    )
    opened = ""
    if brackets:
        line, column = line_and_column(text, brackets[-1])
        opened = f"`{text[brackets[-1]]}` ({f'line {line}, ' * (chr(10) in text)}column {column})"
    problem = words.format(
        found=found[found.lastindex or 0],
        character=_character(found[0]),
        opened=opened,
        close=_CLOSING[text[brackets[-1]]] if brackets else "",
    )
    return problem, place - len(before[1] if before.lastindex else "")


def _character(character: str) -> str:
    """Return the code and the name of a character, and what to write instead; empty for several characters or none."""
    if len(character) != 1:
        return ""
    name = unicodedata.name(character, "a character without a name").lower()
    same = unicodedata.normalize("NFKC", character)
    if unicodedata.category(character) in ("Cc", "Cf"):
        instead = "remove it"
    elif character.isspace():
        instead = "write a space"
    elif "quotation" in name:
        instead = "write a straight double quote"
    else:
        instead = f"write `{same}`" if same.isascii() else "write texts in double quotes"
    return f"U+{ord(character):04X}, {name}: {instead}"


def _open_brackets(text: str) -> list[int]:
    """Return the positions of the brackets that a beginning of JSON text leaves open."""
    places: list[int] = []
    for token in _TOKEN.finditer(text):
        if token[0] in _CLOSING:
            places.append(token.start())
        elif token[0] in ("}", "]"):
            places = places[:-1]
    return places


_CLOSING = {"{": "}", "[": "]"}
_MAX_TOKEN = 60  # characters before a place that tell what is wrong there
_CUT = re.compile(r"[-+.\\\w]+\s*\Z")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"(?P<colon>\s*+:)?|-?\w[\w.+-]*+|[\[\]{}]', re.DOTALL)
_HALF_PAIR = re.compile(
    r"(?<!\\)(?:\\\\)*(?:[\ud800-\udfff]|\\u[dD][89abAB]\w\w(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]\w\w)\\u[dD][c-fC-F])"
)
_LONG_NUMBER = re.compile(r'(?<![\d"])\d{4301,}')  # Python reads 4,300 digits, unless configured otherwise
_WITHOUT_QUOTES = "write the number alone, or a text in double quotes"
_NO_QUOTES = "`{found}` without quotes: write texts in double quotes"
_OPEN_TEXT = 'a text is still open here: close it before this, or write `\\"` for a quote within it'
_INNER_QUOTE = 'a double quote within a text: write `\\"`'
# By the beginning of Python's message, and by what is before and behind its place: what is wrong there, or at the group
# of what is before it.
# The patterns are compiled on use, because most runs meet no mistake.
_MISTAKES = (
    ("Invalid \\u", r"(\\?)", "", "an escape without its four digits: write these, or `\\\\` for a single `\\`"),
    ("Invalid \\", "", r"\\'", "`\\'` in a text: write `'`"),
    ("Invalid \\", "", "", "a single `\\` in a text: write `\\\\`"),
    ("Invalid control", "", r"\r?\n", "a line break within a text: write `\\n`, or close the text before it"),
    ("Invalid control", "", r"\t", "a tab within a text: write `\\t`"),
    ("Invalid control", "", r"[\0-\x1f]", "{character}"),
    ("Extra data", r"[\]}\"\w]\s*", r",\s*\Z", "a comma after the end: remove it"),
    ("Extra data", r'("(?:[^"\\]|\\.)*"\s*)', ":", "a name outside of an object: put the object in {{ }}"),
    ("Extra data", "", r"[}\]]", "one `{found}` too many: remove it"),
    ("", r"(,\s*)", r"[}\]]", "a comma before `{found}`: remove it"),
    ("", r"(:\s*)", r"[,}\]]", "no value behind `:`: write one, or null"),
    ("", "", r",\s*([}\]])", "a comma before `{found}`: remove it"),
    ("Expecting value", r":\s*", ":", "two colons: remove one"),
    ("Expecting value", "", r"(#(?:[\da-fA-F]{3}|[\da-fA-F]{6,8}))\b", _NO_QUOTES),
    ("", r"[\[{,]\s*", ",", "a comma without a value before it: remove it"),
    ("", "", r"//|/\*|#", "a comment, which JSON does not have: remove it"),
    ("", "", "'", "single quotes: write names and texts in double quotes"),
    ("", "", "`", "backticks: write names and texts in double quotes"),
    ("", "", r'\\"', "escaped quotes: write them without the backslashes"),
    ("", "", r"\\[nrt]|\\", "`{found}` outside of a text: remove it"),
    ("", "", r"&(?:quot|#34|#x22);", "quotes as in HTML: write double quotes"),
    ("Expecting value", "", r"(?:True|TRUE)\b", "{found}: write true"),
    ("Expecting value", "", r"(?:False|FALSE)\b", "{found}: write false"),
    ("Expecting value", "", r"(?:None|NULL|Null|nil|nan|NAN|N/A|n/a|-?[iI]nf)\b", "{found}: write null"),
    ("Expecting value", "", r"(?:[Yy]es|[Nn]o)\b", "{found}: write true or false, or a text in double quotes"),
    ("Expecting value", "", r"undefined\b", "undefined: write null, or leave the name out"),
    ("", "", r"\.\.\.|\u2026", "dots for what is left out: write all of it"),
    ("Expecting value", "", r"-?\.\d", "a number without a digit before the point: write 0 there"),
    ("Expecting value", "", r"\+[\d.]", "a number with a plus sign: remove it"),
    ("Expecting value", "", r"[$€£¥] ?\d", f"an amount with a currency sign: {_WITHOUT_QUOTES}"),
    ("Expecting value", "", r"""([bfruBFRU]{1,2})["']""", "`{found}` before a text: remove it"),
    ("Expecting value", "", r"((?:new )?[A-Za-z_][\w.]*)\(", "a call of `{found}`: write its value"),
    ("Expecting value", "", r"\(", "parentheses: write a list in [ ]"),
    ("Expecting value", r"\A\s*", "<", "XML or HTML: write JSON"),
    ("Expecting value", "", r"<[^<>\n]{1,40}>", "a placeholder, {found}: write its value"),
    (
        "",
        r"(-?\b0)",
        r"[xX][\da-fA-F]|[oO][0-7]|[bB][01]",
        "a number that is not decimal: write it in decimal digits",
    ),
    ("", r"(-?\b0)", r"\d", "a number with 0 at its beginning: remove the 0, or write a text in double quotes"),
    ("", r"(-?\b\d+)", r"\.(?!\d)", "a number without a digit behind the point: add one, or remove the point"),
    ("", r"(-?\b\d+)", r"_\d", "a number with underscores: remove them"),
    ("", r"(\b\d{4})", r"[-/]\d\d?[-/]\d", "a date or a time: write it in double quotes"),
    ("", r"(\b\d\d?)", r":\d\d|([-/])\d\d?\1\d", "a date or a time: write it in double quotes"),
    ("", r"(-?\b\d+\.\d+)", r"\.\d", "a number with two points: write it in double quotes"),
    ("", r"\d(,)", r"\d{3}\b", "a comma within a number: remove it"),
    ("Expecting property", r"\d(,)", r"\d", "a comma within a number: write a point"),
    ("", r"(\b\d{1,3} )", r"\d{3}\b", "a blank within a number or between two: remove it, or add a comma"),
    ("", r"(-?\b[\d.]+)", r"[eE][+-]?(?!\d)", "an exponent without digits: add them, or remove it"),
    ("Expecting ','", r"(-?\b[\d.]+)", r":\d", "a number with a colon: write it in double quotes"),
    ("", r"(-?\b[\d.]+ ?)", r"[-+*/]", "a calculation or a range: write its value"),
    (
        "",
        r"(-?\b[\d.]+ ?)",
        r"(?!(?:true|false|null)\b)(?:%|[^\W\d_]|[°€$£¥])",
        f"a number with a unit: {_WITHOUT_QUOTES}",
    ),
    ("Expecting ','", r"(\b\d[\w.+-]*)", r"[-\w]", "a number with more behind it: write a text in double quotes"),
    ("", r'"\s*', r"\+", "texts joined by `+`: write one text"),
    ("", r'("")', '"', "three double quotes: write one, and `\\n` for a line break"),
    ("Expecting", r'[,:{\[] ?(")', r"[^\W\d]", _OPEN_TEXT),
    ("Expecting", r'(")', r'[^\s"\[\]{},:;=]|"(?=\s*[,\]}:])', _INNER_QUOTE),
    ("Expecting", r'(") +', r"(?!(?:true|false|null)\b)[^\W\d]", _INNER_QUOTE),
    ("Extra data", "", "", "more text after the end of the value: remove it"),
    ("Expecting ':'", "", r"=>?", "write `:` after the name, not `{found}`"),
    ("Expecting ':'", "", r"[,}\]]", "a name without a value: write `:` and the value, or a list in [ ]"),
    ("Expecting ':'", "", "", "add a `:` after the name"),
    (
        "Expecting ','",
        r'"\s+',
        r'"[^"\n]*"\s*\}',
        "two texts for one name: join them, or write a comma, a name and `:` between",
    ),
    ("Expecting ','", "", ":", "a `:` behind a value: write names and values in {{ }}, with commas between"),
    ("Expecting ','", "", r'["{\[\d]|-\d|(?:true|false|null)\b', "a comma is missing before this: add it"),
    ("Expecting ','", "", ";", "`;` between values: write a comma"),
    ("", r"[\[{]\s*", r"\{", "two brackets for one object: write one, or the value of a placeholder"),
    ("", "", r"[^\x00-\x7f\w]|[\uff01-\uff5e]", "{character}"),
    ("Expecting property", "", r"[\w$]", "a name without quotes: write it in double quotes"),
    ("Expecting value", r"\A\s*", r"\Z", "a value is missing"),
    (
        "Expecting value",
        r"\A\s*",
        r"([^\W\d][\w-]*)\s*\Z",
        _NO_QUOTES,
    ),
    ("Expecting value", r"\A\s*", "", "write texts in double quotes, objects in {{ }}"),
    ("Expecting value", "", r"[^\W\d][\w$.@/-]*", _NO_QUOTES),
    ("", "", r"[}\]]", "`{found}` does not close {opened}: write `{close}` before it or instead"),
    ("Expecting ','", "", "", "{opened} is still open: add a comma or `{close}` before this"),
    ("Expecting property", "", "", "write the name in double quotes"),
    ("", "", "", "expected a value: write texts in double quotes"),
)


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
            raise JsonError(f"a number is too large: {_SMALLER}") from None
        place = f" (line {line_and_column(text, number.start())[0]})" if "\n" in text else ""
        raise JsonError(f"a number of {len(number[0]):,} digits is too large: {_SMALLER}{place}") from None


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise JsonError(f"the number {text[:_SHOWN_CHARACTERS]} is too large: {_SMALLER}")
    return number


def _refuse_constant(text: str) -> Never:
    raise JsonError(f"{text} is not JSON: write null")
