"""What edits of a SPARQL query are made of: pairs of corresponding parts, labels, and changes of nodes."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar, cast

from pytest_queryeval.core.cause import CauseLabel, CausingEdit
from pytest_queryeval.features.causes import without
from pytest_queryeval.features.causes.sparql.alignment import Chain, turned
from pytest_queryeval.languages.sparql.tree import (
    COUNTING,
    Bind,
    Block,
    Data,
    Element,
    Expr,
    Filter,
    Group,
    Item,
    Node,
    Select,
    Triple,
    Union,
    has_aggregate,
    is_constant,
    is_variable,
    terms,
    variables,
    walk,
)
from pytest_queryeval.languages.sparql.tree_facts import query_defects

REVERSED_LIKENESS = 2.5  # the likeness of triples with subject and object exchanged
MAX_ADDED = 3  # triples that one edit adds or drops
CONNECTORS = frozenset(("&&", "||"))
UNORDERED = CONNECTORS | {"+", "*"}
_OPERATORS = frozenset(("=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "IN", "NOT IN", "EXISTS", "NOT EXISTS"))
_CLASS_STEPS = frozenset(("a", "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"))
Replacement: TypeAlias = "Node | tuple[Node, ...] | None"
Step: TypeAlias = tuple[Node, Callable[[Node], Replacement]]
"""A node of the predicted query, and the function that returns the replacement of its current form."""
N = TypeVar("N", bound=Node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A change of the predicted query, as reports show it and as steps that make it."""

    shown: CausingEdit
    size: int
    steps: tuple[Step, ...]
    dropped: int = 0
    """The number of triples that the edit drops."""


def change_step(node: N, change: Callable[[N], Replacement]) -> Step:
    """Return the step that changes a node by `change`; earlier steps must leave a node of the same type."""
    return node, cast(Callable[[Node], Replacement], change)


def replace_step(node: Node, *new: Node) -> Step:
    """Return the step that replaces a node by other nodes."""
    return node, lambda _: new[0] if len(new) == 1 else new


def drop_step(node: Node) -> Step:
    """Return the step that drops a node."""
    return node, lambda _: None


def copy_step(node: Node, gold: Node, *names: str) -> Step:
    """Return the step that copies the fields `names` of gold's node to a node."""
    return set_step(node, **{name: getattr(gold, name) for name in names})


def set_step(node: Node, **values: object) -> Step:
    """Return the step that sets fields of a node to these values."""
    return node, lambda node: replace(node, **values)


def insert_step(group: Group, elements: Sequence[Element]) -> Step:
    """Return the step that inserts elements into a group: triples after its first triples, others at its end."""

    def change(node: Group) -> Group:
        old, is_triple = node.elements, isinstance(elements[0], Triple)
        place = next((at for at, element in enumerate(old) if is_triple and not isinstance(element, Triple)), len(old))
        return Group((*old[:place], *elements, *old[place:]))

    return change_step(group, change)


def insert_item_step(select: Select, item: Item, place: int) -> Step:
    """Return the step that inserts a column into SELECT at a place."""
    return change_step(select, lambda node: replace(node, items=(*node.items[:place], item, *node.items[place:])))


def add_key_step(select: Select, key: Item) -> Step:
    """Return the step that adds a key to GROUP BY, unless it is there."""
    return change_step(select, lambda node: node if key in node.group else replace(node, group=(*node.group, key)))


def add_arm_step(union: Union, arm: Group) -> Step:
    """Return the step that adds an arm to a UNION."""
    return change_step(union, lambda node: Union((*node.arms, arm)))


def add_operand_step(condition: Expr, operand: Expr | Group) -> Step:
    """Return the step that appends an operand to a condition."""
    return change_step(condition, lambda node: Expr(node.head, (*node.arguments, operand)))


def drop_operand_step(condition: Expr, operand: Expr | Group) -> Step:
    """Return the step that drops an operand of a condition; a single remaining operand replaces the condition."""

    def change(node: Expr) -> Replacement:
        place = node.arguments.index(operand)
        operands = (*node.arguments[:place], *node.arguments[place + 1 :])
        return operands[0] if len(operands) == 1 else Expr(node.head, operands)

    return change_step(condition, change)


def defects(tree: Select) -> set[str]:
    """Return descriptions of why engines refuse a query, or why it is slow; equal defects have equal descriptions.

    Engines refuse columns of the same name, columns of a grouped query that are neither key nor aggregate, and a BIND
    of a variable that is named before it. A query is slow if its patterns have no variable in common.
    """
    texts = query_defects(tree)
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
    """Return the variables of an expression that are not within an aggregate; empty if the expression is one."""
    if expression.head in COUNTING:
        return set()
    inner = (_outside_aggregates(argument) for argument in expression.arguments if isinstance(argument, Expr))
    return set().union({expression.head} if is_variable(expression.head) else (), *inner)


def likeness(triple: Triple, gold: Triple) -> float:
    """Return how much two triples have in common; 0 if the triple in gold cannot be an edit of the other."""
    same_subject, same_object = triple.subject == gold.subject, triple.object == gold.object
    same_path = triple.path == gold.path
    if same_subject and same_object:
        return 3
    if (triple.subject, triple.object) == (gold.object, gold.subject):
        return REVERSED_LIKENESS if same_path else 2.2
    if same_path and (same_subject or same_object):
        return 2 + 0.1 * same_subject
    if not (same_subject or same_object):
        return 0
    has_common_step = not {*triple.path}.isdisjoint(step for step in gold.path if step == "a" or step[0] == "<")
    return 1.5 if has_common_step else 0


def oriented(chain: Chain, gold: Chain) -> Chain:
    """Return a chain in the direction in which it has more in common with gold's chain.

    A chain of a single triple is returned unchanged.
    """
    if len(chain.members) == 1:
        return chain
    directions = (chain, Chain(turned(chain.triple), chain.members))
    return max(directions, key=lambda direction: likeness(direction.triple, gold.triple))


def chain_likeness(chain: Chain, gold: Chain, *, least: float) -> float | None:
    """Return the likeness of a chain, in the better direction, and gold's chain; None if it is less than `least`."""
    score = likeness(oriented(chain, gold).triple, gold.triple)
    return score if score >= least else None


def element_likeness(element: Element, gold: Element) -> float | None:
    """Return the share of terms that two elements have in common, from 0 to 1; None if they cannot correspond.

    Triples, elements of different types, and blocks with different keywords cannot correspond.
    """
    if type(element) is not type(gold) or isinstance(element, Triple):
        return None
    if isinstance(element, Block) and isinstance(gold, Block) and element.head[0] != gold.head[0]:
        return None
    return common_share(element, gold)


def item_likeness(item: Item, gold: Item) -> float:
    """Return how alike two columns are, from 0 to 3.

    An equal name counts 2; both being expressions, or both variables, counts 1.
    """
    return 2.0 * (item.variable == gold.variable) + (bool(item.value.arguments) == bool(gold.value.arguments))


def common_share(node: Node, gold: Node) -> float:
    """Return the share of the terms of two nodes that both have, from 0 to 1."""
    node_terms, gold_terms = {*terms(node)}, {*terms(gold)}
    return len(node_terms & gold_terms) / max(len(node_terms | gold_terms), 1)


def in_order(expression: Expr) -> Expr:
    """Return an expression in which the operands of UNORDERED operators are sorted, at any depth."""
    arguments = [in_order(argument) if isinstance(argument, Expr) else argument for argument in expression.arguments]
    return Expr(expression.head, tuple(sorted(arguments, key=repr) if expression.head in UNORDERED else arguments))


def have_same_form(expression: Expr, gold: Expr) -> bool:
    """Return whether two expressions may differ in single arguments: they have equally many, and something in common.

    Both have the same operator, an equal argument, or groups as arguments. An expression and a part of it do not have
    the same form.
    """
    is_part = expression in gold.arguments or gold in expression.arguments
    if is_part or not expression.arguments or len(expression.arguments) != len(gold.arguments):
        return False
    has_common_argument = any(map(operator.eq, expression.arguments, gold.arguments))
    is_existence = isinstance(expression.arguments[0], Group) and isinstance(gold.arguments[0], Group)
    is_distinct = "DISTINCT" in (expression.head, gold.head)
    return expression.head == gold.head or (not is_distinct and (has_common_argument or is_existence))


def components(elements: Sequence[Element], outside: set[str]) -> list[tuple[Element, ...]]:
    """Return elements grouped by the variables that they share, except variables in `outside`.

    Triples come first in a group. Groups of more than MAX_ADDED elements are left out.
    """
    groups: list[list[Element]] = []
    for element in elements:
        inner_names = set(variables(element)) - outside
        joined = [group for group in groups if any(inner_names & set(variables(member)) for member in group)]
        groups = without(groups, joined)
        groups.append([*(member for group in joined for member in group), element])
    ordered = [tuple(sorted(group, key=lambda element: not isinstance(element, Triple))) for group in groups]
    return [group for group in ordered if len(group) <= MAX_ADDED]


def label_of_element(element: Element, *, is_missing: bool) -> tuple[CauseLabel, str]:
    """Return the label and the clause of an edit that adds a missing element, or drops an extra element."""
    match element:
        case Filter() | Data():
            return ("missing-condition" if is_missing else "extra-condition"), "FILTER"
        case Bind():
            return "wrong-expression", "BIND"
        case Select():
            return "nesting", "WHERE"
        case Union(arms):
            is_nested = any(isinstance(arm_element, Select) for arm in arms for arm_element in arm.elements)
            return ("nesting" if is_nested else "set-operation"), "WHERE"
        case Block(("MINUS",)):
            return "set-operation", "WHERE"
        case _:
            return ("missing-pattern" if is_missing else "extra-pattern"), "WHERE"


def label_of_paths(old: Sequence[str], new: Sequence[str]) -> CauseLabel:
    """Return the label of another path: 'wrong-path' if only operators or steps differ, else 'wrong-predicate'."""
    predicates, new_predicates = ({step for step in path if step == "a" or step[0] == "<"} for path in (old, new))
    has_same_predicates = predicates <= new_predicates or new_predicates <= predicates
    return "wrong-path" if has_same_predicates and predicates and new_predicates else "wrong-predicate"


def label_of_ends(path: tuple[str, ...], old: str, new: str) -> CauseLabel:
    """Return the label of replacing a subject or object, `old` by `new`, at the end of a path.

    It is 'wrong-join-condition' for two variables, 'wrong-class' for two classes, else that of two constants.
    """
    if is_variable(old) and is_variable(new):
        return "wrong-join-condition"
    if not _CLASS_STEPS.isdisjoint(path) and old.startswith("<") and new.startswith("<"):
        return "wrong-class"
    return label_of_values(old, new)


def label_of_values(old: str, new: str) -> CauseLabel:
    """Return the label of replacing a constant: 'value-case' if only letter case differs, else 'wrong-value'."""
    is_text = old.startswith('"') and new.startswith('"')
    return "value-case" if is_text and old.casefold() == new.casefold() else "wrong-value"


def label_of_heads(old: str, new: str, otherwise: CauseLabel) -> CauseLabel:
    """Return the label of replacing an operator, function or term; `otherwise` if it has no label of its own."""
    if old in CONNECTORS and new in CONNECTORS:
        return "wrong-connector"
    if old in _OPERATORS and new in _OPERATORS:
        return "wrong-operator"
    if old in COUNTING and new in COUNTING:
        return "wrong-aggregate"
    if is_constant(old) and is_constant(new):
        return label_of_values(old, new)
    return "wrong-column" if otherwise == "wrong-expression" and is_variable(old) and is_variable(new) else otherwise


def label_of_expressions(old: Expr, new: Expr, otherwise: CauseLabel) -> CauseLabel:
    """Return the label of replacing an expression: a NOT, an aggregate, or `otherwise`."""
    if Expr("!", (old,)) == new or Expr("!", (new,)) == old:
        return "wrong-operator"
    if has_aggregate(old) != has_aggregate(new) and otherwise == "wrong-expression":
        return "wrong-aggregate"
    return otherwise


def label_of_distinct(argument: Expr, gold: Expr) -> CauseLabel | None:
    """Return the label of a DISTINCT that only one of two arguments of an aggregate has; else None."""
    if gold == Expr("DISTINCT", (argument,)):
        return "missing-distinct"
    return "extra-distinct" if argument == Expr("DISTINCT", (gold,)) else None
