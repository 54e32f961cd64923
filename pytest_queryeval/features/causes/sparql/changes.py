"""What edits make of nodes of a SPARQL query: functions from a node to what takes its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from pytest_queryeval.languages.sparql.trees.tree import (
    Element,
    Expr,
    Group,
    Item,
    Node,
    Select,
    Triple,
    Union,
)

Make: TypeAlias = Callable[[Node], "Node | tuple[Node, ...] | None"]


def setting(gold: Node, *names: str) -> Make:
    """Return what gives a node these fields of another one."""
    values = {name: getattr(gold, name) for name in names}
    return lambda node: replace(node, **values)


def replacing_end(field: str, term: str) -> Make:
    """Return what gives a triple another subject or object."""

    def make(node: Node) -> Node:
        assert isinstance(node, Triple)
        return replace(node, subject=term) if field == "subject" else replace(node, object=term)

    return make


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
        place = next((at for at, element in enumerate(old) if not isinstance(element, Triple)), len(old))
        return Group((*old[:place], *elements, *old[place:]))

    return make


def inserting_item(item: Item, place: int) -> Make:
    """Return what adds an item to what a query returns."""

    def make(select: Node) -> Node:
        assert isinstance(select, Select)
        return replace(select, items=(*select.items[:place], item, *select.items[place:]))

    return make


def adding_key(key: Item) -> Make:
    """Return what adds a key to GROUP BY, where it is not one of them."""
    return lambda node: (
        replace(node, group=(*node.group, key)) if isinstance(node, Select) and key not in node.group else node
    )


def adding_arm(arm: Group) -> Make:
    """Return what adds an arm to a UNION."""
    return lambda union: Union((*union.arms, arm)) if isinstance(union, Union) else union


def with_operand(operand: Expr | Group) -> Make:
    """Return what adds an operand to a condition."""
    return lambda node: Expr(node.head, (*node.arguments, operand)) if isinstance(node, Expr) else node


def without_operand(operand: Expr | Group) -> Make:
    """Return what takes an operand out of a condition."""

    def make(node: Node) -> Node:
        assert isinstance(node, Expr)
        at = node.arguments.index(operand)
        arguments_left = (*node.arguments[:at], *node.arguments[at + 1 :])
        return arguments_left[0] if len(arguments_left) == 1 else Expr(node.head, arguments_left)

    return make
