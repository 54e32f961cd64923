"""What edits make of the nodes of a predicted query: each function returns one that changes a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from pytest_queryeval.languages.sparql.trees.tree import Element, Expr, Group, Item, Node, Select, Triple, Union

Make: TypeAlias = Callable[[Node], "Node | tuple[Node, ...] | None"]


def setting(other: Select, *names: str) -> Make:
    """Return what gives a query these parts of another one."""
    return lambda node: replace(node, **{name: getattr(other, name) for name in names})


def replacing(new: Node | tuple[Node, ...] | None) -> Make:
    """Return what puts something else in the place of a node, or takes it away."""
    return lambda _: new


def inserting(elements: Sequence[Element]) -> Make:
    """Return what inserts triples after those that a group begins with, and other elements at its end."""

    def make(group: Node) -> Node:
        assert isinstance(group, Group)
        old = group.elements
        if not isinstance(elements[0], Triple):
            return Group((*old, *elements))
        place = next((at for at, each in enumerate(old) if not isinstance(each, Triple)), len(old))
        return Group((*old[:place], *elements, *old[place:]))

    return make


def inserting_item(item: Item, place: int) -> Make:
    """Return what adds an item to what a query returns."""

    def make(select: Node) -> Node:
        assert isinstance(select, Select)
        return replace(select, items=(*select.items[:place], item, *select.items[place:]))

    return make


def adding_arm(arm: Group) -> Make:
    """Return what adds an arm to a UNION."""
    return lambda union: Union((*union.arms, arm)) if isinstance(union, Union) else union


def setting_parts(where: slice, parts: Sequence[str | Group]) -> Make:
    """Return what replaces parts of an expression."""

    def make(node: Node) -> Node:
        assert isinstance(node, Expr)
        own = list(node.parts)
        own[where] = parts
        return Expr(tuple(own))

    return make
