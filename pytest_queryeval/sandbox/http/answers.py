"""JSON answers of services: strict reading, and descriptions of their shape. Imported by child processes."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pytest_queryeval.core.json_path import json_type
from pytest_queryeval.documents.strict_json import Pairs, StrictJson

DUPLICATE_MARK = "\0"  # between a name that an object repeats and the number of its occurrence
SHOWN_KEYS = 8


class DuplicateKeyObject(dict[str, Any]):
    """An object that repeats a name, as the rows of a table with two columns of one name do; see `dedupe_names`."""

    @property
    def duplicate_name(self) -> str:
        """The first name that is repeated."""
        return next(name for name in self if DUPLICATE_MARK in name).partition(DUPLICATE_MARK)[0]


def read_json(body: bytes) -> tuple[Any, list[DuplicateKeyObject]]:
    """Return the document, and the objects in it that repeat a name; raise ValueError as `StrictJson.read` does."""
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
    """Return the names, with a mark and a number behind those that occurred before.

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


def shape(document: Any) -> str:
    """Return the kind of a document for messages, and the names and kinds of its members, never their values."""
    if isinstance(document, dict) and document:
        parts = [f"{name} ({json_type(item)})" for name, item in list(document.items())[:SHOWN_KEYS]]
        return f"an object with {', '.join(parts)}{', …' if len(document) > SHOWN_KEYS else ''}"
    return json_type(document)
