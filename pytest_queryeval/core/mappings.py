"""Mappings with some of the entries of another, and mappings of values by their keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def excluding(values: Mapping[K, V], names: Container[object]) -> dict[K, V]:
    """Return the entries of `values` whose keys are not among `names`."""
    return {name: value for name, value in values.items() if name not in names}


def including(values: Mapping[K, V], names: Container[object]) -> dict[K, V]:
    """Return the entries of `values` whose keys are among `names`, in the order of `values`."""
    return {name: value for name, value in values.items() if name in names}


def not_none(values: Mapping[K, V | None]) -> dict[K, V]:
    """Return the entries whose value is not None."""
    return {name: value for name, value in values.items() if value is not None}


def grouped(pairs: Iterable[tuple[K, V]]) -> defaultdict[K, list[V]]:
    """Return a list of the values for each key, in order; the result makes an empty list for a missing key.

    >>> dict(grouped([("a", 1), ("b", 2), ("a", 3)]))
    {'a': [1, 3], 'b': [2]}
    """
    groups: defaultdict[K, list[V]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups
