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
    """Read the source text of a scalar, whatever it looks like."""
    if not isinstance(node.value, str):
        raise unexpected(node, "text", _text_hint(node))
    return node.value


@shape(TEXT)
def required_text(node: Node) -> str:
    """Read text that is neither empty nor null."""
    value = text(node)
    if node.empty or not value.strip():
        raise unexpected(node, "text")
    return value


@shape(SCALAR)
def scalar(node: Node) -> bool | int | float | str | None:
    """Read true, false, null and numbers as in JSON; anything else, and what is quoted, is text."""
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
    """Read a scalar, list or mapping, in full depth."""
    if isinstance(node.value, list):
        return [json_value(item) for item in node.value]
    if isinstance(node.value, dict):
        return {key: json_value(item) for key, item in node.value.items()}
    return scalar(node)


@shape({"type": "object"})
def json_mapping(node: Node) -> dict[str, JsonValue]:
    """Read a mapping of JSON values."""
    return {key: json_value(item) for key, item in entries(node).items()}


@shape({"type": "number"})
def number(node: Node, expected: str = "a number", hint: str = "") -> float:
    """Read a finite number; messages say what is `expected`, and end with `hint` where nothing better is known."""
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
    """Return a reader of numbers within limits of JSON Schema; `hint` returns how to write another number."""

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
    """Return a reader of integers that are not below `minimum`, and not above `maximum` if there is one."""

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
    """Read `true` or `false`, without quotes."""
    if node.plain and node.value in ("true", "false"):
        return node.value == "true"
    raise unexpected(node, "true or false", flag_hint(str(node.value)))


def flag_hint(word: str) -> str:
    """Return how to write what a word means as a flag; empty if it means neither yes nor no, as a reason does."""
    return _FLAG_HINTS.get(word.strip().lower(), "")


def reason(default: str) -> Reader[str | None]:
    """Return a reader of the reason to skip or to xfail: text, or `true` for `default`."""

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
    """Return a reader of one of a few words."""

    @shape(enum_shape(allowed))
    def read(node: Node) -> str:
        if node.value not in allowed:
            raise unexpected(node, f"{', '.join(allowed[:-1])} or {allowed[-1]}" if allowed[1:] else allowed[0])
        return text(node)

    return read


@shape({"type": "object"})
def entries(node: Node, keys: Collection[str] = ()) -> dict[str, Node]:
    """Read the entries of a mapping; a message suggests the one of its possible `keys` that stands there instead."""
    if isinstance(node.value, dict):
        return node.value
    if not node.file.is_yaml:
        raise unexpected(node, "an object")
    stated = node.value if isinstance(node.value, list) else [node]
    key = next((str(item.value) for item in stated if str(item.value) in keys), "KEY")
    raise unexpected(node, "a mapping", f": write {{{key}: VALUE}}")


@shape({"type": "array"})
def items(node: Node) -> list[Node]:
    """Read the items of a list."""
    if isinstance(node.value, list):
        return node.value
    if isinstance(node.value, dict):
        hint = ": begin each item with `- `"
    else:
        hint = ": write [] for none" if node.empty else f": write [{one_line(str(node.value), MAX_SHOWN)}]"
    raise unexpected(node, "a list", hint)


def not_empty(node: Node, example: str) -> Node:
    """Return a node; raise `CaseError` for an empty list or mapping, which would have no effect."""
    if node.value in ([], {}):
        raise node.problem(f"`{node.key}` is empty, so it has no effect: write {example}, or remove it")
    return node


@shape(SCALAR)
def whole_text(node: Node) -> str:
    """Read text that YAML has not clipped: in `customer #3` it reads `#3` as a comment."""
    if node.form == "clipped":
        raise node.problem("a `#` ends this text, as YAML reads it: quote the text, or give the comment its own line")
    return text(node)


def json_text(node: Node) -> str:
    """Read a string of JSON."""
    if node.form != "quoted" or "\0" in str(node.value):
        raise unexpected(node, "a text")
    return str(node.value)


def time_with_zone(node: Node) -> datetime:
    """Read a time as a string of JSON in the form of ISO 8601."""
    try:
        time = datetime.fromisoformat(json_text(node))
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise unexpected(node, "a time with its zone, such as 2026-11-23T10:00:00Z")
    return time


def or_else(default: T, read: Reader[T]) -> Reader[T]:
    """Return a reader that reads null and nothing as `default`."""

    @shape(lambda: either(NULL, shape_of(read)))
    def read_or_default(node: Node) -> T:
        return default if node.empty else read(node)

    return read_or_default


def list_of(read: Reader[T]) -> Reader[tuple[T, ...]]:
    """Return a reader of lists, each item read by `read`."""

    @shape(lambda: list_shape(shape_of(read)))
    def read_list(node: Node) -> tuple[T, ...]:
        return tuple(read_each(items(node), read))

    return read_list


def read_each(values: Iterable[S], read: Callable[[S], T]) -> list[T]:
    """Read all values; raise `SuiteError` with the problems of those that fail.

    After MAX_PROBLEMS nothing more is read: an answer with 300,000 wrong keys should not take seconds to refuse.
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
    """Read all entries of a mapping with their names; raise `SuiteError` with the problems of those that fail."""
    nodes = entries(node, keys)
    return dict(zip(nodes, read_each(nodes.items(), lambda entry: read(*entry)), strict=True))


def known_entries(node: Node, readers: Readers) -> dict[str, Any]:
    """Read a mapping that may only have these keys, each by its own reader."""

    def read(name: str, value: Node) -> Any:
        if name not in readers:
            raise value.problem(f"unknown key '{name}'{did_you_mean(name, readers)}")
        return readers[name](value)

    return each_entry(node, read, readers)


def mapping_of(readers: Readers, descriptions: Mapping[str, str] = MappingProxyType({})) -> Reader[dict[str, Any]]:
    """Return a reader of mappings that may only have these keys, each read by its own reader.

    Editors show the `descriptions` of keys.
    """

    @shape(lambda: mapping_shape(described_shapes(readers, descriptions)))
    def read_mapping(node: Node) -> dict[str, Any]:
        return known_entries(node, readers)

    return read_mapping


def entries_of(read: Reader[T], example: str = "") -> Reader[dict[str, T]]:
    """Return a reader of mappings whose values are all read by `read`; with an example, an empty one is refused."""

    @shape(
        lambda: {"type": "object", "additionalProperties": shape_of(read)} | ({"minProperties": 1} if example else {})
    )
    def read_entries(node: Node) -> dict[str, T]:
        return each_entry(not_empty(node, example) if example else node, lambda _, value: read(value))

    return read_entries


def unexpected(node: Node, expected: str, hint: str = "") -> CaseError:
    """Return the error of a node that is not what is wanted; `hint` says how to write that in YAML."""
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
    """Return how to write as text what is a list or a mapping: its only item, else something in quotes."""
    stated = node.value[0] if isinstance(node.value, list) and len(node.value) == 1 else node
    if isinstance(stated.value, str) and stated.value.strip():
        return f": write {one_line(stated.value, MAX_SHOWN)}"
    return ": write one text, in quotes if it begins with [ or {"


def _number_hint(node: Node, fits: Callable[[float], bool] = math.isfinite) -> str:
    """Return how to write what was likely meant as a number: `95%`, `30s`, `0,5`, `1_000`, `"5"` are texts in YAML."""
    written = str(node.value).replace("_", "")
    written = written.replace(",", "" if _THOUSANDS.fullmatch(written) else ".")
    match = _ALMOST_NUMBER.fullmatch(written)
    value = float(match["number"]) / (100 if match["unit"] == "%" else 1) if match else math.nan
    return f": write {value:.15g}" if fits(value) else ""
