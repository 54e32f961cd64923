"""Edits of a predicted SPARQL query, the changes of its nodes that they consist of, and defects of what results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pytest_queryeval.core.cause import CausingEdit
from pytest_queryeval.languages.sparql.tree import (
    COUNTING,
    Bind,
    Element,
    Expr,
    Group,
    Item,
    Node,
    Select,
    Triple,
    Union,
    is_variable,
    variables,
    walk,
)
from pytest_queryeval.languages.sparql.tree_facts import lost_variables

Step: TypeAlias = tuple[Node, Callable[[Node], "Node | tuple[Node, ...] | None"]]
"""A node of the predicted query, and the function that returns what takes its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A change of the predicted query."""

    shown: CausingEdit
    size: int
    steps: tuple[Step, ...]
    dropped: int = 0
    """How many triples it drops."""


def replace_step(node: Node, *new: Node) -> Step:
    """Return the step that puts other nodes in the place of one."""
    return node, lambda _: new[0] if len(new) == 1 else new


def drop_step(node: Node) -> Step:
    """Return the step that drops a node."""
    return node, lambda _: None


def copy_step(node: Node, gold: Node, *names: str) -> Step:
    """Return the step that gives a node these fields of another one."""
    values = {name: getattr(gold, name) for name in names}
    return node, lambda node: replace(node, **values)


def replace_end_step(triple: Triple, field: str, term: str) -> Step:
    """Return the step that gives a triple another subject or object."""

    def change(node: Node) -> Node:
        assert isinstance(node, Triple)
        return replace(node, subject=term) if field == "subject" else replace(node, object=term)

    return triple, change


def insert_step(group: Group, elements: Sequence[Element]) -> Step:
    """Return the step that inserts triples after those that a group begins with, and other elements at its end."""

    def change(node: Node) -> Node:
        assert isinstance(node, Group)
        old = node.elements
        if not isinstance(elements[0], Triple):
            return Group((*old, *elements))
        place = next((at for at, element in enumerate(old) if not isinstance(element, Triple)), len(old))
        return Group((*old[:place], *elements, *old[place:]))

    return group, change


def insert_item_step(select: Select, item: Item, place: int) -> Step:
    """Return the step that adds an item to what a query returns."""

    def change(node: Node) -> Node:
        assert isinstance(node, Select)
        return replace(node, items=(*node.items[:place], item, *node.items[place:]))

    return select, change


def add_key_step(select: Select, key: Item) -> Step:
    """Return the step that adds a key to GROUP BY, where it is not one of them."""

    def change(node: Node) -> Node:
        assert isinstance(node, Select)
        return node if key in node.group else replace(node, group=(*node.group, key))

    return select, change


def add_arm_step(union: Union, arm: Group) -> Step:
    """Return the step that adds an arm to a UNION."""
    return union, lambda node: Union((*node.arms, arm)) if isinstance(node, Union) else node


def add_operand_step(condition: Expr, operand: Expr | Group) -> Step:
    """Return the step that adds an operand to a condition."""
    return condition, lambda node: Expr(node.head, (*node.arguments, operand)) if isinstance(node, Expr) else node


def drop_operand_step(condition: Expr, operand: Expr | Group) -> Step:
    """Return the step that drops an operand of a condition."""

    def change(node: Node) -> Node:
        assert isinstance(node, Expr)
        place = node.arguments.index(operand)
        operands = (*node.arguments[:place], *node.arguments[place + 1 :])
        return operands[0] if len(operands) == 1 else Expr(node.head, operands)

    return condition, change


def defects(tree: Select) -> set[str]:
    """Return why engines refuse a query, or why it is slow; the texts of equal defects are equal."""
    texts = lost_variables(tree)
    for node in walk(tree):
        if isinstance(node, Select):
            texts |= {f"column {name}" for name in _refused_columns(node)}
        elif isinstance(node, Group):
            texts |= {f"BIND {name}" for name in _bound_twice(node)}
            texts |= {f"{number} products" for number in range(2, _unconnected_parts(node) + 1)}
    return texts


def _refused_columns(select: Select) -> Iterator[str]:
    """Yield columns of the same name, and those of groups that are neither a key nor an aggregate."""
    counts = Counter(item.variable for item in select.items)
    yield from (name for name, number in counts.items() if number > 1)
    if select.aggregates:
        keys = {key.variable for key in select.group}
        for item in select.items:
            yield from _outside_aggregates(item.value) - keys


def _outside_aggregates(expression: Expr) -> set[str]:
    """Return the variables of an expression that are in no aggregate."""
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


def _unconnected_parts(group: Group) -> int:
    """Return of how many parts a group consists that have no variable in common."""
    connected: list[set[str]] = []
    for element in group.elements:
        if names := set(variables(element)):
            joined = [part for part in connected if part & names]
            connected = [part for part in connected if not part & names]
            connected.append(names.union(*joined))
    return len(connected)
