"""What a gold query is made of: the features by which reports group cases."""

from __future__ import annotations

import re
from collections import Counter
from typing import Literal, TypeAlias, get_args

from pytest_queryeval.languages.sql.view import View

Feature: TypeAlias = Literal["join", "aggregate", "grouping", "nesting", "set-operation", "window", "order", "distinct"]
FEATURES: tuple[Feature, ...] = get_args(Feature)
# Of each part of a view.
_WORDS = re.compile(
    r"\b(?:select|distinct|join|group|order|union|intersect|except|over|(?:count|sum|avg|min|max)\s*\()", re.IGNORECASE
)


def view_features(view: View, text: str) -> frozenset[str] | None:
    """Return the features of a query from its view; None where the published grammar has passed over some of its text.

    Then the view has fewer parts than the text has words for them.
    """
    parts = _parts(view)
    is_complete = parts.total() - parts["nesting"] == len(_WORDS.findall(text)) > 0
    return frozenset(name for name in parts if parts[name]) if is_complete else None


def _parts(view: View) -> Counter[str]:
    """Return how often a query has each feature, and SELECT."""
    sort_keys = view.order.expressions if view.order else ()
    sides = [term.left for term in view.terms()]
    expressions = [*(item.expression for item in view.select), *sides, *view.group, *sort_keys]
    aggregates = sum(item.aggregate != "" for item in view.select) + sum(
        expression.aggregates for expression in expressions
    )
    parts = Counter(
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
            parts.update(_parts(nested), nesting=1)
    if view.arm is not None:
        parts.update(_parts(view.arm), **{"set-operation": 1})
    return parts
