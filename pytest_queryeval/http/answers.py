"""JSON answers of services: read strictly, and what they look like.

Imported by child processes.
"""

from __future__ import annotations

from typing import Any

from pytest_queryeval.core.json_path import kind_of
from pytest_queryeval.documents.strict_json import Pairs, StrictJson

DUPLICATE_MARK = "\0"  # stands behind a name that comes again in one object, before the number of the time
SHOWN_KEYS = 8


class DuplicateKeyObject(dict[str, Any]):
    """An object with a name that comes more than once: rows of two columns of one name look like that."""


def read_json(body: bytes) -> tuple[Any, list[DuplicateKeyObject]]:
    """Return the document, and the objects in it that repeat a name; raise ValueError as `StrictJson.read` does."""
    repeating: list[DuplicateKeyObject] = []

    def read_object(pairs: Pairs) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        names = dedupe_names([name for name, _ in pairs])
        repeating.append(DuplicateKeyObject(zip(names, (value for _, value in pairs), strict=True)))
        return repeating[-1]

    return StrictJson(read_object=read_object).read(body), repeating


def dedupe_names(names: list[str]) -> list[str]:
    """Return the names, with a mark behind those that came before.

    >>> [name.partition(DUPLICATE_MARK)[0] for name in dedupe_names(["id", "name", "id"])]
    ['id', 'name', 'id']
    """
    if len(set(names)) == len(names):
        return names
    times: dict[str, int] = {}
    apart = []
    for name in names:
        times[name] = times.get(name, 0) + 1
        apart.append(name if times[name] == 1 else f"{name}{DUPLICATE_MARK}{times[name]}")
    return apart


def shape(document: Any) -> str:
    """Return what a document looks like from above, for messages: kinds of values, never the values."""
    if isinstance(document, dict) and document:
        parts = [f"{name} ({kind_of(item)})" for name, item in list(document.items())[:SHOWN_KEYS]]
        return f"an object with {', '.join(parts)}{', …' if len(document) > SHOWN_KEYS else ''}"
    return kind_of(document)
