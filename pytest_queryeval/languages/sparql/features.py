"""The features of a gold query, by which reports group cases."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, TypeAlias, get_args

from pytest_queryeval.languages.sparql.trees.reader import UnreadableError, read_tree
from pytest_queryeval.languages.sparql.trees.tree import Block, Filter, Select, Triple, Union, walk

Feature: TypeAlias = Literal["optional", "filter", "path", "aggregate", "union"]
FEATURES: tuple[Feature, ...] = get_args(Feature)


@lru_cache(maxsize=4096)
def query_features(query: str) -> tuple[Feature, ...]:
    """Return the features that a query has anywhere in it, in the order of FEATURES; none where it cannot be read."""
    try:
        features = set(_features(read_tree(query).tree))
    except UnreadableError:
        return ()
    return tuple(name for name in FEATURES if name in features)


def _features(tree: Select) -> Iterator[Feature]:
    for node in walk(tree):
        match node:
            case Block(head=("OPTIONAL",)):
                yield "optional"
            case Filter():
                yield "filter"
            case Union(arms=(_, _, *_)):
                yield "union"
            case Triple(path=(_, _, *_)):
                yield "path"
            case Select(aggregates=True):
                yield "aggregate"
