"""Edits of a predicted SPARQL query, the changes of its nodes that they consist of, and defects of what results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar, cast

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

Replacement: TypeAlias = "Node | tuple[Node, ...] | None"
Step: TypeAlias = tuple[Node, Callable[[Node], Replacement]]
"""A node of the predicted query, and the function that returns what takes its place."""
N = TypeVar("N", bound=Node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A change of the predicted query."""

    shown: CausingEdit
    size: int
    steps: tuple[Step, ...]
    dropped: int = 0
    """How many triples it drops."""


def change_step(node: N, change: Callable[[N], Replacement]) -> Step:
    """Return the step that changes a node; the steps before it leave a node of the same type."""
    return node, cast(Callable[[Node], Replacement], change)


def replace_step(node: Node, *new: Node) -> Step:
    """Return the step that puts other nodes in the place of one."""
    return node, lambda _: new[0] if len(new) == 1 else new


def drop_step(node: Node) -> Step:
    """Return the step that drops a node."""
    return node, lambda _: None


def copy_step(node: Node, gold: Node, *names: str) -> Step:
    """Return the step that gives a node these fields of another one."""
    return set_step(node, **{name: getattr(gold, name) for name in names})


def set_step(node: Node, **values: object) -> Step:
    """Return the step that gives a node other values of its fields."""
    return node, lambda node: replace(node, **values)


def insert_step(group: Group, elements: Sequence[Element]) -> Step:
    """Return the step that inserts triples after those that a group begins with, and other elements at its end."""

    def change(node: Group) -> Group:
        old, is_triple = node.elements, isinstance(elements[0], Triple)
        place = next((at for at, element in enumerate(old) if is_triple and not isinstance(element, Triple)), len(old))
        return Group((*old[:place], *elements, *old[place:]))

    return change_step(group, change)


def insert_item_step(select: Select, item: Item, place: int) -> Step:
    """Return the step that adds an item to what a query returns."""
    return change_step(select, lambda node: replace(node, items=(*node.items[:place], item, *node.items[place:])))


def add_key_step(select: Select, key: Item) -> Step:
    """Return the step that adds a key to GROUP BY, where it is not one of them."""
    return change_step(select, lambda node: node if key in node.group else replace(node, group=(*node.group, key)))


def add_arm_step(union: Union, arm: Group) -> Step:
    """Return the step that adds an arm to a UNION."""
    return change_step(union, lambda node: Union((*node.arms, arm)))


def add_operand_step(condition: Expr, operand: Expr | Group) -> Step:
    """Return the step that adds an operand to a condition."""
    return change_step(condition, lambda node: Expr(node.head, (*node.arguments, operand)))


def drop_operand_step(condition: Expr, operand: Expr | Group) -> Step:
    """Return the step that drops an operand of a condition."""

    def change(node: Expr) -> Replacement:
        place = node.arguments.index(operand)
        operands = (*node.arguments[:place], *node.arguments[place + 1 :])
        return operands[0] if len(operands) == 1 else Expr(node.head, operands)

    return change_step(condition, change)


def defects(tree: Select) -> set[str]:
    """Return why engines refuse a query, or why it is slow; the texts of equal defects are equal.

    Engines refuse columns of the same name, those of groups that are neither a key nor an aggregate, and a BIND of a
    variable that a pattern before it names.
    """
    texts = lost_variables(tree)
    for node in walk(tree):
        if isinstance(node, Select):
            counts = Counter(item.variable for item in node.items)
            refused = {name for name, number in counts.items() if number > 1}
            if node.aggregates:
                keys = {key.variable for key in node.group}
                refused.update(*(_outside_aggregates(item.value) - keys for item in node.items))
            texts |= {f"column {name}" for name in refused}
        elif isinstance(node, Group):
            names: set[str] = set()
            parts: list[set[str]] = []  # the variables of parts that have none in common
            for element in node.elements:
                if isinstance(element, Bind) and element.variable in names:
                    texts.add(f"BIND {element.variable}")
                if element_names := {*variables(element)}:
                    names |= element_names
                    joined = [part for part in parts if part & element_names]
                    parts = [part for part in parts if not part & element_names]
                    parts.append(element_names.union(*joined))
            texts |= {f"{number} products" for number in range(2, len(parts) + 1)}
    return texts


def _outside_aggregates(expression: Expr) -> set[str]:
    """Return the variables of an expression that are in no aggregate."""
    if expression.head in COUNTING:
        return set()
    inner = (_outside_aggregates(argument) for argument in expression.arguments if isinstance(argument, Expr))
    return set().union({expression.head} if is_variable(expression.head) else (), *inner)
