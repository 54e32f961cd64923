"""Whether a query that edits make is worth running."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pytest_queryeval.languages.sparql.trees.facts import lost_variables
from pytest_queryeval.languages.sparql.trees.tree import (
    COUNTING,
    Bind,
    Expr,
    Group,
    Select,
    is_variable,
    variables,
    walk,
)


def defects(tree: Select) -> set[str]:
    """Return why engines refuse a query, or why it is slow: in words that are equal where the defects are."""
    names = lost_variables(tree)
    for node in walk(tree):
        if isinstance(node, Select):
            names |= {f"column {name}" for name in _refused_columns(node)}
        elif isinstance(node, Group):
            names |= {f"BIND {name}" for name in _bound_twice(node)}
            names |= {f"{number} products" for number in range(2, _unconnected(node) + 1)}
    return names


def _refused_columns(select: Select) -> Iterator[str]:
    """Yield columns of the same name, and those of groups that are neither a key nor an aggregate."""
    counts = Counter(item.variable for item in select.items)
    yield from (name for name, number in counts.items() if number > 1)
    if select.aggregates:
        keys = {key.variable for key in select.group}
        for item in select.items:
            yield from _outside_aggregates(item.value) - keys


def _outside_aggregates(expression: Expr) -> set[str]:
    if expression.head in COUNTING:
        return set()
    inner = (_outside_aggregates(argument) for argument in expression.arguments if isinstance(argument, Expr))
    return set().union({expression.head} if is_variable(expression.head) else (), *inner)


def _bound_twice(group: Group) -> Iterator[str]:
    """Yield the variables that a BIND names although a pattern before it does."""
    names: set[str] = set()
    for element in group.elements:
        if isinstance(element, Bind) and element.variable in names:
            yield element.variable
        names |= set(variables(element))


def _unconnected(group: Group) -> int:
    connected: list[set[str]] = []
    for element in group.elements:
        if names := set(variables(element)):
            joined = [part for part in connected if part & names]
            connected = [part for part in connected if not part & names]
            connected.append(names.union(*joined))
    return len(connected)
