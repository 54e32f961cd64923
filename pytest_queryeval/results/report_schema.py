"""Checks values by the types of `core.report` and `core.case_report`, and makes the JSON Schema of a report.

Imported on first use: msgspec takes some milliseconds to import, and most runs read no report.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain, pairwise
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec
from msgspec import Meta

from pytest_queryeval.core import case_report, report
from pytest_queryeval.core.shapes import Shape


def _with_all_names(names: Any, type_: str) -> Any:
    """Return the type of an object that has exactly the names of a Literal as keys."""
    keys = get_args(names)
    name_schema = {"propertyNames": {"enum": [*keys]}}
    return Annotated[dict[names, type_], Meta(min_length=len(keys), extra_json_schema=name_schema)]  # type: ignore[valid-type]


# What these names mean in the annotations of `core.report` when msgspec reads them: types with limits of their values.
# Numbers are so small that their squares do not overflow.
_MEANINGS: Mapping[str, Any] = {
    "int": Annotated[int, Meta(ge=0, le=2**63 - 1)],
    "float": Annotated[float, Meta(gt=-1e150, lt=1e150)],
    "JsonValue": Any,
    "Row": list[Any],
    "AnyRow": list[Any],
    "Time": Annotated[str, Meta(extra_json_schema={"format": "date-time"})],
    "Interval": Annotated["list[float]", Meta(min_length=2, max_length=2)],
    "PartCounts": Annotated["list[int]", Meta(min_length=3, max_length=3)],
    "ComponentCounts": _with_all_names(case_report.ComponentName, "PartCounts"),
    "SpiderTable": _with_all_names(report.LevelName, "SpiderLevel"),
    "Edits": Annotated["list[CausingEditReport]", Meta(min_length=1)],  # noqa: F821
    "Cases": "list[CaseReport] | CasesFile",
}
_WORDS = {
    "object": "an object",
    "array": "a list",
    "str": "a text",
    "float": "a number",
    "int": "a whole number",
    "bool": "true or false",
    "null": "null",
}


@cache
def checked_types() -> Mapping[str, Any]:
    """Return the TypedDicts of `core.report` and `core.case_report` by name, with limits on their values."""
    originals = {name: type_ for name, type_ in {**vars(case_report), **vars(report)}.items() if is_typeddict(type_)}
    types: dict[str, Any] = {name: TypedDict(name, {}) for name in originals}  # type: ignore[operator]
    for name, original in originals.items():
        types[name].__class_getitem__ = lambda _, type_=types[name]: type_  # one meaning for all rows
        hints = get_type_hints(original, localns={**_MEANINGS, **types}, include_extras=True)
        optional = {key: get_args(hint)[0] for key, hint in hints.items() if get_origin(hint) is NotRequired}
        types[name].__doc__ = original.__doc__
        types[name].__annotations__ = hints | optional
        types[name].__required_keys__ = original.__required_keys__ - optional.keys()
    return types


def problem_in(value: object, type_: Any) -> str:
    """Return the place of the first value that is not of its type, and what was expected; empty if all fit.

    The type is a TypedDict, or the name of a type of `core.report`. Raises ValueError for half of a surrogate pair in a
    key of the type, or in a text that has to be one of several.

    Exceptions of signal handlers are not lost: msgspec runs no Python code while it checks a value.

    >>> problem_in({"sources": ["inline", 5]}, "PredictorReport")
    'sources[1]: expected a text'
    """
    type_ = checked_types()[type_] if isinstance(type_, str) else type_
    try:
        msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        place, expectation = _explain(error, value, type_)
        return f"{place.removeprefix('.')}: {expectation}".removeprefix(": ")
    return ""


def _explain(error: msgspec.ValidationError, value: object, type_: Any) -> tuple[str, str]:
    """Return the place within a value that an error of msgspec is about, and what was expected there.

    msgspec names places, but not the keys of a dictionary whose keys are not fixed.
    """
    for step, item, item_type in _items(value, type_):
        try:
            msgspec.convert(item, item_type)
        except msgspec.ValidationError as item_error:
            place, expectation = _explain(item_error, item, item_type)
            return f"{step}{place}", expectation
    return "", _expectation(str(error), type_)


def _items(value: object, type_: Any) -> Iterator[tuple[str, object, Any]]:
    """Yield the items of a list or an object, with the step that leads to an item and the type that it should have."""
    for option in _options(type_):
        match value:
            case dict() if is_typeddict(option):
                types = get_type_hints(option, include_extras=True)
                yield from ((f".{name}", item, types[name]) for name, item in value.items() if name in types)
            case dict() if get_origin(option) is dict:
                yield from ((f".{name}", item, get_args(option)[1]) for name, item in value.items())
            case list() if get_origin(option) is list:
                yield from ((f"[{number}]", item, get_args(option)[0]) for number, item in enumerate(value))


def _options(type_: Any) -> list[Any]:
    """Return the members of a union, or the type itself, without annotations."""
    origin, arguments = get_origin(type_), get_args(type_)
    if origin in (Union, UnionType):
        return [option for member in arguments for option in _options(member)]
    return _options(arguments[0]) if origin is Annotated else [type_]


def _expectation(message: str, type_: Any) -> str:
    """Return what was expected, from the message of msgspec about a value that is not of the type."""
    if message.startswith("Invalid enum value"):
        literals = [member for option in _options(type_) for member in (option, *get_args(option))]
        names = [str(name) for member in literals if get_origin(member) is Literal for name in get_args(member)]
        return f"expected one of {', '.join(names)}"
    if missing := re.match("Object missing required field `(.*?)`", message):
        return f"'{missing[1]}' is missing"
    if expected := re.match("Expected `(.*?)`([^,]*)", message):
        return f"expected {' or '.join(_WORDS[name] for name in expected[1].split(' | '))}{expected[2]}"
    return message


def report_schema() -> Shape:
    """Return the JSON Schema (draft 2020-12) of report.json; the docstrings of `core.report` are its descriptions."""
    schema = msgspec.json.schema(checked_types()["Report"])
    for name, descriptions in _field_descriptions().items():
        if name in schema["$defs"]:
            properties = schema["$defs"][name]["properties"]
            schema["$defs"][name]["properties"] = {
                field: text | properties[field] for field, text in descriptions.items()
            }
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "report.json of pytest-queryeval"}
    return head | schema


def _field_descriptions() -> dict[str, dict[str, dict[str, str]]]:
    """Return by class the fields of `core.report` and `core.case_report`, with the docstring below a field."""
    descriptions: dict[str, dict[str, dict[str, str]]] = {}
    modules = (ast.parse(inspect.getsource(module)) for module in (case_report, report))
    for node in chain.from_iterable(module.body for module in modules):
        if isinstance(node, ast.ClassDef):
            bases = [descriptions.get(ast.unparse(base), {}) for base in node.bases]
            fields = descriptions[node.name] = dict(chain.from_iterable(map(dict.items, bases)))
            for statement, following in pairwise((*node.body, ast.Pass())):
                if isinstance(statement, ast.AnnAssign):
                    text = ast.literal_eval(following.value) if isinstance(following, ast.Expr) else ""
                    fields[ast.unparse(statement.target)] = {"description": text} if text else {}
    return descriptions
