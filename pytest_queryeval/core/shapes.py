"""Shapes: what a reader of suites accepts, as JSON Schema of draft-07, the one that editors of YAML know.

A shape stands beside its reader, and `suites/editor_schema.py` composes the schemas of whole files from them. It may
accept what the reader refuses, since a schema does not see everything, but never refuses what the reader accepts: an
editor must not complain about a suite that loads. Values are those of YAML 1.2: where a reader takes the source text of
a scalar, its shape takes numbers, true, false and null as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

Shape: TypeAlias = Mapping[str, Any]
Function = TypeVar("Function", bound=Callable[..., Any])

ANYTHING: Shape = {}
NULL: Shape = {"type": "null"}
SCALAR: Shape = {"type": ["string", "number", "boolean", "null"]}
NOT_NULL: Shape = {"not": NULL}
NON_BLANK = r"\S"
TEXT: Shape = {"type": ["string", "number", "boolean"], "pattern": NON_BLANK}
# A text that is not the value yet: it names a variable of the environment.
VARIABLE: Shape = {"type": "string", "pattern": r"\$\{[A-Za-z_]"}


def shape(of: Shape | Callable[[], Shape]) -> Callable[[Function], Function]:
    """Attach a shape to a reader, which stays the plain function that it is.

    A function that returns the shape is called when that is needed, as for the names in a registry.
    """

    def attach(read: Function) -> Function:
        read.shape = of  # type: ignore[attr-defined]
        return read

    return attach


def shape_of(read: Callable[..., Any]) -> Shape:
    """Return the shape of what a reader accepts: anything where none is attached."""
    of = getattr(read, "shape", ANYTHING)
    attached: Shape = of() if callable(of) else of
    return attached


def one_of(names: Iterable[str]) -> Shape:
    """Return the shape of one of a few words."""
    return {"enum": list(names)}


def list_shape(item: Shape) -> Shape:
    """Return the shape of lists of such items."""
    return {"type": "array", "items": item}


def either(*shapes: Shape) -> Shape:
    """Return the shape of what one of these shapes accepts."""
    return {"anyOf": list(shapes)}


def mapping_shape(entries: Mapping[str, Shape], *, required: Iterable[str] = ()) -> Shape:
    """Return the shape of a mapping that has these keys at most, and the `required` ones among them."""
    mapping = {"type": "object", "properties": dict(entries), "additionalProperties": False}
    return {**mapping, "required": list(required)} if required else mapping


def described_shapes(readers: Mapping[str, Callable[..., Any]], descriptions: Mapping[str, str]) -> dict[str, Shape]:
    """Return the shapes of readers by their names, with the descriptions of those that have one."""
    return {
        name: {**({"description": descriptions[name]} if name in descriptions else {}), **shape_of(read)}
        for name, read in readers.items()
    }
