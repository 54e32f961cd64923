"""JSON documents of services: strict reading, what a JSONPath (RFC 9535) selects, and their shape in messages.

Also imported by child processes.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import Any, NamedTuple

from jsonpath import JSONPath, JSONPathEnvironment
from jsonpath.exceptions import JSONPathError
from jsonpath.segments import JSONPathRecursiveDescentSegment
from jsonpath.selectors import IndexSelector, NameSelector, WildcardSelector

from pytest_queryeval.documents.strict_json import Pairs, StrictJson

_STEP = re.compile(r"\.[A-Za-z_][A-Za-z_0-9]*|\.\*|\[\*\]")
_PLAIN_PATH = re.compile(rf"\$(?:{_STEP.pattern})*")
_SCALARS = (str, int, float, type(None))
_PATHS = JSONPathEnvironment(strict=True)
DUPLICATE_MARK = "\0"  # between a name that an object repeats and the number of its occurrence
SHOWN_KEYS = 8


def selected(path: str, document: Any) -> list[Any]:
    """Return the values that a JSONPath selects in a document, in order.

    Raise ValueError if `path` is not a JSONPath.
    """
    steps = _steps(path)
    if steps is not None:
        values = [document]
        for step in steps:
            if step != "*":
                values = [value[step] for value in values if isinstance(value, dict) and step in value]
            else:
                inner = [value.values() if isinstance(value, dict) else value for value in values]
                values = [item for items in inner if not isinstance(items, _SCALARS) for item in items]
        return values
    json_path = compiled(path)
    if isinstance(document, str):  # which the library would read as JSON, and which has nothing to select in it
        return []
    try:
        return list(json_path.findall(document))
    except JSONPathError as error:
        raise ValueError(f"`{path}` cannot be followed: {error.args[0] if error.args else error}") from error


@lru_cache(maxsize=256)
def _steps(path: str) -> tuple[str, ...] | None:
    """Return the steps of a path that has only names and wildcards; None for any other path.

    Such paths are followed without the library, which takes 40 microseconds for each row.
    """
    if not _PLAIN_PATH.fullmatch(path):
        return None
    return tuple(step.strip(".[]") for step in _STEP.findall(path))


def names_one(path: str) -> bool:
    """Return whether a JSONPath selects at most one value of any document; raise ValueError if it is not a JSONPath."""
    return compiled(path).singular_query()


@lru_cache(maxsize=256)
def compiled(path: str) -> JSONPath:
    """Return the JSONPath of a text, compiled; raise ValueError if it is not a single JSONPath."""
    try:
        json_path = _PATHS.compile(path)
    except JSONPathError as error:
        raise ValueError(f"`{path}` is not a JSONPath: {error.args[0] if error.args else error}") from error
    if not isinstance(json_path, JSONPath):
        raise ValueError(f"`{path}` is several JSONPaths")
    return json_path


class Segment(NamedTuple):
    """A step of a JSONPath: the name of a key, an index, or None for any key or index.

    `descends` says that the step is taken at any depth.
    """

    step: str | int | None
    descends: bool

    def fits(self, step: str | int | None, length: int) -> bool:
        """Return whether the segment selects `step`: a key, an index, or None for all keys or indexes.

        The step is taken in a list of `length` elements or in an object.
        """
        if self.step is None:
            return True
        if isinstance(self.step, int) and isinstance(step, int):
            return step == (self.step if self.step >= 0 else length + self.step)
        return self.step == step


def segments(path: str) -> tuple[Segment, ...]:
    """Return the segments of a JSONPath of names, indexes, `*` and `..`; raise ValueError for any other text."""
    if not path.startswith("$"):
        raise ValueError(f"`{path}` is not a JSONPath: it begins with `$`")
    steps: list[Segment] = []
    for segment in compiled(path).segments:
        descends = isinstance(segment, JSONPathRecursiveDescentSegment)
        match segment.selectors:
            case (NameSelector(name=name),):
                steps.append(Segment(name, descends))
            case (IndexSelector(index=index),):
                steps.append(Segment(index, descends))
            case (WildcardSelector(),):
                steps.append(Segment(None, descends))
            case _:
                raise ValueError(f"`{path}` is not a JSONPath of names, indexes, `*` and `..`")
    return tuple(steps)


def json_type(value: Any) -> str:
    """Return the type of a JSON value in words, such as `a list of 3`."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return f"a list of {len(value):,}" if value else "an empty list"
        case _:
            return "an object" if value else "an empty object"


class DuplicateKeyObject(dict[str, Any]):
    """A JSON object that repeats a name, as a row of a table with two columns of the same name may do.

    Its keys are those of `dedupe_names`.
    """

    @property
    def duplicate_name(self) -> str:
        """The first name that the object repeats."""
        return next(name for name in self if DUPLICATE_MARK in name).partition(DUPLICATE_MARK)[0]


def read_json_with_duplicates(body: bytes) -> tuple[Any, list[DuplicateKeyObject]]:
    """Return the JSON document in `body`, and the objects in it that repeat a name.

    Raise ValueError as `StrictJson.read` does.
    """
    repeating: list[DuplicateKeyObject] = []

    def read_object(pairs: Pairs) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) == len(pairs):
            return values
        names = dedupe_names([name for name, _ in pairs])
        repeating.append(DuplicateKeyObject(zip(names, (value for _, value in pairs), strict=True)))
        return repeating[-1]

    return StrictJson(read_object=read_object).read(body), repeating


def dedupe_names(names: list[str]) -> list[str]:
    """Return the names made unique: a repetition gets DUPLICATE_MARK and the number of its occurrence appended.

    >>> [name.partition(DUPLICATE_MARK)[0] for name in dedupe_names(["id", "name", "id"])]
    ['id', 'name', 'id']
    """
    if len(set(names)) == len(names):
        return names
    counts: Counter[str] = Counter()
    unique = []
    for name in names:
        counts[name] += 1
        unique.append(name if counts[name] == 1 else f"{name}{DUPLICATE_MARK}{counts[name]}")
    return unique


def describe_document(document: Any) -> str:
    """Return in words the type of a JSON document, with the names and types of an object's first members.

    Values are never part of it.
    """
    if isinstance(document, dict) and document:
        parts = [f"{name} ({json_type(item)})" for name, item in list(document.items())[:SHOWN_KEYS]]
        return f"an object with {', '.join(parts)}{', …' if len(document) > SHOWN_KEYS else ''}"
    return json_type(document)
