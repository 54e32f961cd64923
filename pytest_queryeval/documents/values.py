"""Readers of nodes: each returns the value of a key, or raises a `CaseError` that says what is expected."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from operator import ge, gt, le, lt
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from pytest_queryeval.core.errors import CaseError, SuiteError, did_you_mean
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.shapes import (
    NULL,
    SCALAR,
    TEXT,
    described_shapes,
    either,
    enum_shape,
    list_shape,
    mapping_shape,
    shape,
    shape_of,
)
from pytest_queryeval.documents.document import Node, Problems
from pytest_queryeval.text.formatting import one_line

S = TypeVar("S")
T = TypeVar("T")
Reader: TypeAlias = Callable[[Node], T]
Readers: TypeAlias = Mapping[str, Reader[Any]]

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_LITERALS = {"": None, "null": None, "true": True, "false": False}
# Of numbers and seconds; another unit, such as `m`, may mean several things.
_UNITS = {
    "%": 0.01,
    "ms": 0.001,
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1),
    **dict.fromkeys(("min", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hour", "hours"), 3_600),
}
_COLLECTION_NAMES = {"sequence": "a list", "mapping": "a mapping"}
_ALMOST_NUMBER = re.compile(r"(?P<number>-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?) ?(?P<unit>%|[a-zA-Z]*)")
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+")
_FLAG_HINTS = {
    **dict.fromkeys(("true", "yes", "y", "on", "1"), ": write true"),
    **dict.fromkeys(("false", "no", "n", "off", "0", "none", "null", "nan", "n/a", "-"), ": write false"),
}
MAX_SHOWN = 60  # characters of a value in a message
MAX_DIGITS = 4000  # Python refuses to read longer integers
MAX_PROBLEMS = 100  # of the items of one list or mapping


@shape(SCALAR)
def text(node: Node) -> str:
    """Return the source text of a scalar, whatever it looks like; raise `CaseError` for a list or a mapping."""
    if not isinstance(node.value, str):
        raise unexpected(node, "text", _text_hint(node))
    return node.value


@shape(TEXT)
def required_text(node: Node) -> str:
    """Return the text of a scalar; raise `CaseError` if it is empty, blank or null, and for a list or a mapping."""
    value = text(node)
    if node.empty or not value.strip():
        raise unexpected(node, "text")
    return value


@shape(SCALAR)
def scalar(node: Node) -> bool | int | float | str | None:
    """Return the value of a scalar: true, false, null and numbers as in JSON; anything else, and quoted text, as text.

    Raise `CaseError` for a list, a mapping, the word None in YAML, and a number that is too large.
    """
    value = text(node)
    if not node.plain:
        return value
    if value in _LITERALS:
        return _LITERALS[value]
    if value == "None" and node.file.is_yaml:
        raise node.problem("None is a word of Python: write null, or 'None' in quotes if it is a text")
    match = _NUMBER.fullmatch(value)
    if match is None:
        return value
    is_integer = match.group(1, 2) == (None, None)
    if is_integer and len(value) <= MAX_DIGITS:
        return int(value)
    number = math.inf if is_integer else float(value)
    if math.isinf(number):
        raise node.problem(
            f"a number of {len(value)} characters is too large: write a smaller one, or a text in double quotes"
        )
    return number


def json_value(node: Node) -> JsonValue:
    """Return a scalar, a list or a mapping as a JSON value, in full depth."""
    if isinstance(node.value, list):
        return [json_value(item) for item in node.value]
    if isinstance(node.value, dict):
        return {key: json_value(item) for key, item in node.value.items()}
    return scalar(node)


@shape({"type": "object"})
def json_mapping(node: Node) -> dict[str, JsonValue]:
    """Return a mapping of JSON values; raise `CaseError` for any other node."""
    return {key: json_value(item) for key, item in entries(node).items()}


@shape({"type": "number"})
def number(node: Node, expected: str = "a number", hint: str = "") -> float:
    """Return a finite number; raise `CaseError` for any other node.

    Messages state what is `expected`, and end with `hint` unless the text suggests a better hint.
    """
    value = None if isinstance(node.value, list | dict) else scalar(node)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise unexpected(node, expected, _number_hint(node) or hint)
    try:
        return float(value)
    except OverflowError as error:
        raise node.problem(f"a number of {len(text(node))} characters is too large") from error


_LIMITS: Mapping[str, Callable[[float, float], bool]] = {
    "minimum": ge,
    "exclusiveMinimum": gt,
    "maximum": le,
    "exclusiveMaximum": lt,
}


def number_within(expected: str, hint: Callable[[float], str] = lambda _: "", **limits: float) -> Reader[float]:
    """Return a reader of numbers within `limits`, which have names of JSON Schema such as `minimum`.

    The reader raises `CaseError` for other numbers; `hint` returns the end of the message for a number.
    """

    @shape({"type": "number", **limits})
    def read(node: Node) -> float:
        value = number(node, expected, hint(math.nan))
        if not all(_LIMITS[name](value, limit) for name, limit in limits.items()):
            raise unexpected(node, expected, hint(value))
        return value

    return read


positive_number = number_within("a number above 0", lambda _: ": write a number, such as 60", exclusiveMinimum=0)


number_from_zero = number_within("a number from 0 on", minimum=0)


def whole_number(minimum: int, maximum: int | None = None) -> Reader[int]:
    """Return a reader of integers from `minimum` to `maximum`, without an upper limit if that is None.

    The reader raises `CaseError` for any other node.
    """

    def fits(value: float) -> bool:
        return minimum <= value and (maximum is None or value <= maximum) and value % 1 == 0

    @shape({"type": "integer", "minimum": minimum} | ({} if maximum is None else {"maximum": maximum}))
    def read(node: Node) -> int:
        value = None if isinstance(node.value, list | dict) else scalar(node)
        if isinstance(value, bool) or not isinstance(value, int) or not fits(value):
            expected = f"a whole number from {minimum} {'on' if maximum is None else f'to {maximum:,}'}"
            raise unexpected(node, expected, _number_hint(node, fits))
        return value

    return read


@shape({"type": "boolean"})
def flag(node: Node) -> bool:
    """Return True for `true` and False for `false`, without quotes; raise `CaseError` for any other node."""
    if node.plain and node.value in ("true", "false"):
        return node.value == "true"
    raise unexpected(node, "true or false", flag_hint(str(node.value)))


def flag_hint(word: str) -> str:
    """Return the end of a message that shows how to write a word as true or false; empty if it means neither."""
    return _FLAG_HINTS.get(word.strip().lower(), "")


def reason(default: str) -> Reader[str | None]:
    """Return a reader of a reason to skip or xfail a case: text, or `true` for `default`; None for `false` and null.

    The reader raises `CaseError` for words that mean yes or no, such as `on`.
    """

    @shape(either(NULL, TEXT))
    def read(node: Node) -> str | None:
        if node.empty or (node.plain and node.value == "false"):
            return None
        if node.plain and node.value == "true":
            return default
        if hint := flag_hint(str(node.value)):
            raise unexpected(node, "true, false or a reason", hint)
        return required_text(node)

    return read


def choice(*allowed: str) -> Reader[str]:
    """Return a reader of exactly these words, which raises `CaseError` for any other node."""

    @shape(enum_shape(allowed))
    def read(node: Node) -> str:
        if node.value not in allowed:
            raise unexpected(node, f"{', '.join(allowed[:-1])} or {allowed[-1]}" if allowed[1:] else allowed[0])
        return text(node)

    return read


@shape({"type": "object"})
def entries(node: Node, keys: Collection[str] = ()) -> dict[str, Node]:
    """Return the entries of a mapping; raise `CaseError` for any other node.

    The message shows how to write a mapping, with a word of the node that is among the possible `keys`.
    """
    if isinstance(node.value, dict):
        return node.value
    if not node.file.is_yaml:
        raise unexpected(node, "an object")
    stated = node.value if isinstance(node.value, list) else [node]
    key = next((str(item.value) for item in stated if str(item.value) in keys), "KEY")
    raise unexpected(node, "a mapping", f": write {{{key}: VALUE}}")


@shape({"type": "array"})
def items(node: Node) -> list[Node]:
    """Return the items of a list; raise `CaseError` for any other node, with how to write a list."""
    if isinstance(node.value, list):
        return node.value
    if isinstance(node.value, dict):
        hint = ": begin each item with `- `"
    else:
        hint = ": write [] for none" if node.empty else f": write [{one_line(str(node.value), MAX_SHOWN)}]"
    raise unexpected(node, "a list", hint)


def not_empty(node: Node, example: str) -> Node:
    """Return the node; raise `CaseError` for an empty list or mapping, which would have no effect.

    `example` is what the message suggests to write.
    """
    if node.value in ([], {}):
        raise node.problem(f"`{node.key}` is empty, so it has no effect: write {example}, or remove it")
    return node


@shape(SCALAR)
def whole_text(node: Node) -> str:
    """Return the text of a scalar; raise `CaseError` if YAML has cut it at a `#`, as in `customer #3`."""
    if node.form == "clipped":
        raise node.problem("a `#` ends this text, as YAML reads it: quote the text, or give the comment its own line")
    return text(node)


def json_text(node: Node) -> str:
    """Return a string of JSON; raise `CaseError` for any other node, and for a string with a NUL character."""
    if node.form != "quoted" or "\0" in str(node.value):
        raise unexpected(node, "a text")
    return str(node.value)


def time_with_zone(node: Node) -> datetime:
    """Return the time in a string of JSON, in the form of ISO 8601; raise `CaseError` for any other node.

    A time without a zone is refused, too.
    """
    try:
        time = datetime.fromisoformat(json_text(node))
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise unexpected(node, "a time with its zone, such as 2026-11-23T10:00:00Z")
    return time


def or_else(default: T, read: Reader[T]) -> Reader[T]:
    """Return a reader that returns `default` for null or nothing, and otherwise reads as `read` does."""

    @shape(lambda: either(NULL, shape_of(read)))
    def read_or_default(node: Node) -> T:
        return default if node.empty else read(node)

    return read_or_default


def list_of(read: Reader[T]) -> Reader[tuple[T, ...]]:
    """Return a reader of lists whose items are read by `read`.

    The reader raises `SuiteError` with the problems of all items.
    """

    @shape(lambda: list_shape(shape_of(read)))
    def read_list(node: Node) -> tuple[T, ...]:
        return tuple(read_each(items(node), read))

    return read_list


def read_each(values: Iterable[S], read: Callable[[S], T]) -> list[T]:
    """Return the results of `read` for all values; raise `SuiteError` with the problems of all values that fail.

    Reading stops after MAX_PROBLEMS problems: an answer with 300,000 wrong keys should not take seconds to refuse.
    """
    problems = Problems()
    results: list[T] = []
    for value in values:
        if len(problems) >= MAX_PROBLEMS:
            problems.append(CaseError(problems[-1].location, "and maybe more: reading stopped here"))
            break
        try:
            results.append(read(value))
        except (CaseError, SuiteError) as error:
            problems.keep(error)
    problems.raise_any()
    return results


def each_entry(node: Node, read: Callable[[str, Node], T], keys: Collection[str] = ()) -> dict[str, T]:
    """Return the results of `read(name, node)` for all entries of a mapping, by name.

    Raise `CaseError` if the node is no mapping, with `keys` as in `entries`, and `SuiteError` with the problems of all
    entries that fail.
    """
    nodes = entries(node, keys)
    return dict(zip(nodes, read_each(nodes.items(), lambda entry: read(*entry)), strict=True))


def known_entries(node: Node, readers: Readers) -> dict[str, Any]:
    """Return the entries of a mapping by name, each read by the reader of its name.

    Raise `SuiteError` with all problems, including names without a reader.
    """

    def read(name: str, value: Node) -> Any:
        if name not in readers:
            raise value.problem(f"unknown key '{name}'{did_you_mean(name, readers)}")
        return readers[name](value)

    return each_entry(node, read, readers)


def mapping_of(readers: Readers, descriptions: Mapping[str, str] = MappingProxyType({})) -> Reader[dict[str, Any]]:
    """Return a reader of mappings that may have only these keys, each read by the reader of its name.

    Editors show the `descriptions` of keys. The reader raises `SuiteError` with all problems.
    """

    @shape(lambda: mapping_shape(described_shapes(readers, descriptions)))
    def read_mapping(node: Node) -> dict[str, Any]:
        return known_entries(node, readers)

    return read_mapping


def entries_of(read: Reader[T], example: str = "") -> Reader[dict[str, T]]:
    """Return a reader of mappings with any keys, whose values are read by `read`.

    If there is an `example`, the reader raises `CaseError` for an empty mapping and shows the example.
    """

    @shape(
        lambda: {"type": "object", "additionalProperties": shape_of(read)} | ({"minProperties": 1} if example else {})
    )
    def read_entries(node: Node) -> dict[str, T]:
        return each_entry(not_empty(node, example) if example else node, lambda _, value: read(value))

    return read_entries


def unexpected(node: Node, expected: str, hint: str = "") -> CaseError:
    """Return, without raising it, the error for a node that is not what is `expected`.

    The message shows the content of the node. `hint` is appended for nodes of YAML files.
    """
    if node.empty and not hint:
        hint = ": write a value, or leave out the key"
    key = f"{node.key}: " if node.key else ""
    remedy = hint if node.file.is_yaml else ""
    if not isinstance(node.value, str):
        content = _COLLECTION_NAMES[node.form]
    elif node.empty or not node.value.strip():
        content = "nothing"
    else:
        content = f"{'' if node.plain else 'the text '}'{one_line(node.value, MAX_SHOWN)}'"
    return node.problem(f"{key}expected {expected}, found {content}{remedy}")


def _text_hint(node: Node) -> str:
    """Return the end of a message that shows how to write a list or a mapping as a text."""
    stated = node.value[0] if isinstance(node.value, list) and len(node.value) == 1 else node
    if isinstance(stated.value, str) and stated.value.strip():
        return f": write {one_line(stated.value, MAX_SHOWN)}"
    return ": write one text, in quotes if it begins with [ or {"


def _number_hint(node: Node, fits: Callable[[float], bool] = math.isfinite) -> str:
    """Return the end of a message that shows a number that was probably meant by `95%`, `30s`, `0,5`, `1_000` or `"5"`.

    It is empty if no number was meant, or if the number does not fit.
    """
    written = str(node.value).replace("_", "")
    written = written.replace(",", "" if _THOUSANDS.fullmatch(written) else ".")
    match = _ALMOST_NUMBER.fullmatch(written)
    value = float(match["number"]) * _UNITS.get(match["unit"].lower(), math.nan) if match else math.nan
    return f": write {value:.15g}" if fits(value) else ""
