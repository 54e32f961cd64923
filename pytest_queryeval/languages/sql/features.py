"""What a gold query is made of: the features by which reports group cases."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import Literal, TypeAlias, get_args

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.languages.sql.published.grammar import published_view
from pytest_queryeval.languages.sql.published.tokens import UnreadableQueryError
from pytest_queryeval.languages.sql.view import View

Feature: TypeAlias = Literal["join", "aggregate", "grouping", "nesting", "set-operation", "window", "order", "distinct"]
FEATURES: tuple[Feature, ...] = get_args(Feature)
# As many as there are parts of a view, unless the published grammar has passed over some of the query.
_WORDS = re.compile(
    r"\b(?:select|distinct|join|group|order|union|intersect|except|over|(?:count|sum|avg|min|max)\s*\()", re.IGNORECASE
)


@lru_cache(maxsize=4096)
def query_features(query: str, dialect: str) -> tuple[Feature, ...]:
    """Return the features that a query has anywhere in it, in the order of FEATURES; none where it cannot be read.

    It is read as for its hardness: by the published grammar, or by sqlglot what that one does not read to the end.
    """
    try:
        parts = _parts(published_view(query))
    except UnreadableQueryError:
        parts = Counter()
    if parts.total() - parts["nesting"] == len(_WORDS.findall(query)) > 0:
        return tuple(name for name in FEATURES if parts[name])
    from pytest_queryeval.languages.sql.trees.parsing import UnreadableError
    from pytest_queryeval.languages.sql.trees.reader import read_tree

    try:
        reading = read_tree(query, dialect, Schema())
    except UnreadableError:
        return ()
    return () if reading.broken else tuple(name for name in FEATURES if name in reading.features)


def _parts(view: View) -> Counter[str]:
    """Return how often a query has each feature, and SELECT."""
    sort_keys = view.order.expressions if view.order else ()
    sides = [term.left for term in view.terms()]
    expressions = [*(item.expression for item in view.select), *sides, *view.group, *sort_keys]
    aggregates = sum(item.aggregate != "" for item in view.select) + sum(each.aggregates for each in expressions)
    found = Counter(
        {
            "select": 1,
            "join": len(view.tables) - 1,
            "aggregate": aggregates,
            "grouping": int(view.group != ()),
            "order": int(view.order is not None),
            "distinct": int(view.distinct),
        }
    )
    for nested in (*view.tables, *(value for term in view.terms() for value in term.values)):
        if isinstance(nested, View):
            found.update(_parts(nested), nesting=1)
    if view.arm is not None:
        found.update(_parts(view.arm), **{"set-operation": 1})
    return found
