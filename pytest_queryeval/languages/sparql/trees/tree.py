"""The nodes of a SPARQL query: immutable values, each a distinct object within its tree.

Terms are texts in one spelling: variables with `?`, IRIs in angle brackets, `a` for rdf:type as a predicate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import TypeAlias, TypeVar, get_args

COUNTING = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT")

_LEVELS = ("||",), ("&&",), ("=", "!=", "<", ">", "<=", ">=", "IN", "NOT IN"), ("+", "-"), ("*", "/"), ("!",)
PRECEDENCE = {operator: level for level, operators in enumerate(_LEVELS, start=1) for operator in operators}
"""How strongly operators bind, `||` least."""


@dataclass(frozen=True, slots=True)
class Expr:
    """An expression: a term, or an operator or function with its arguments."""

    head: str
    """A term, an operator such as `&&` or `NOT IN`, or the name of a function; `CALL` of one that has an IRI."""
    arguments: tuple[Expr | Group, ...] = ()
    """Empty for a term.

    `&&` and `||` have all operands that they join. DISTINCT is an expression around the first argument of an aggregate,
    SEPARATOR one around a text. The function of `CALL` is its first argument, the group of EXISTS its only one.
    """


@dataclass(frozen=True, slots=True)
class Triple:
    """A triple pattern, or a path from a subject to an object."""

    subject: str
    path: tuple[str, ...]
    object: str


@dataclass(frozen=True, slots=True)
class Filter:
    """A FILTER."""

    condition: Expr


@dataclass(frozen=True, slots=True)
class Bind:
    """A BIND."""

    value: Expr
    variable: str


@dataclass(frozen=True, slots=True)
class Data:
    """The tokens that follow VALUES."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A group after OPTIONAL, MINUS or GRAPH with its name."""

    head: tuple[str, ...]
    group: Group


@dataclass(frozen=True, slots=True)
class Union:
    """Groups that UNION joins; a single arm is a nested group."""

    arms: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """A selected column or a key of GROUP BY."""

    value: Expr
    alias: str = ""
    """The variable after AS, or empty."""

    @property
    def variable(self) -> str:
        """Return the name of the column."""
        return self.alias or self.value.head


@dataclass(frozen=True, slots=True)
class SortKey:
    """A key of ORDER BY."""

    is_descending: bool
    value: Expr


@dataclass(frozen=True, slots=True)
class Select:
    """A query of any form, or a subquery."""

    form: str
    modifier: str
    items: tuple[Item, ...]
    template: Group | None
    dataset: tuple[str, ...]
    where: Group | None
    group: tuple[Item, ...]
    having: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    limit: str
    offset: str
    values: Data | None

    @property
    def selects_all(self) -> bool:
        """Return whether its columns are all variables of its pattern."""
        return any(item.value == ALL for item in self.items)

    @property
    def aggregates(self) -> bool:
        """Return whether its rows are groups of solutions."""
        expressions = [*(item.value for item in self.items), *self.having, *(key.value for key in self.order)]
        return bool(self.group) or any(map(has_aggregate, expressions))


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """A group graph pattern; equal to a group with the same elements in any order."""

    elements: tuple[Element, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and Counter(self.elements) == Counter(other.elements)

    def __hash__(self) -> int:
        return hash(frozenset(self.elements))


ALL = Expr("*")
Element: TypeAlias = Triple | Filter | Bind | Data | Block | Union | Select
Node: TypeAlias = Element | Group | Expr | Item | SortKey
_FIELD_NAMES: dict[type, tuple[str, ...]] = {
    node_type: tuple(field.name for field in fields(node_type)) for node_type in get_args(Node)
}
# Takes a node before and after the changes within it; returns its replacement: a node, several nodes, or none.
Change: TypeAlias = Callable[[Node, Node], "Node | tuple[Node, ...] | None"]
N = TypeVar("N", bound=Node)


def is_variable(term: str) -> bool:
    """Return whether a term is a variable, and not the `?` of a path."""
    return term.startswith("?") and len(term) > 1


def is_constant(term: str) -> bool:
    """Return whether a token is an IRI or a literal."""
    return term[0] in "<\"'0123456789" or term in ("true", "false") or (term[0] in "+-." and len(term) > 1)


def is_number(term: str) -> bool:
    """Return whether a token is a number."""
    return term[-1].isdigit() and term[0] in "+-.0123456789"


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes within it, outer ones first."""
    yield node
    for name in _FIELD_NAMES[type(node)]:
        value = getattr(node, name)
        for child in value if isinstance(value, tuple) else (value,):
            if not isinstance(child, str | bool) and child is not None:
                yield from walk(child)


def precedence(expression: Expr) -> int:
    """Return how strongly the operator of an expression binds; most strongly where it is a sign."""
    return PRECEDENCE["!"] if len(expression.arguments) == 1 else PRECEDENCE[expression.head]


def parts(expression: Expr) -> Iterator[Expr]:
    """Yield an expression and all within it, outer ones first, but none in the groups of EXISTS."""
    yield expression
    for argument in expression.arguments:
        if isinstance(argument, Expr):
            yield from parts(argument)


def has_aggregate(expression: Expr) -> bool:
    """Return whether an expression has an aggregate."""
    return any(part.head in COUNTING for part in parts(expression))


def terms(node: Node) -> Iterator[str]:
    """Yield all tokens of a node."""
    for name in _FIELD_NAMES[type(node)]:
        value = getattr(node, name)
        for child in value if isinstance(value, tuple) else (value,):
            if isinstance(child, str):
                yield child
            elif not isinstance(child, bool) and child is not None:
                yield from terms(child)


def variables(node: Node) -> dict[str, None]:
    """Return the variables of a node in the order of their first appearance."""
    return dict.fromkeys(filter(is_variable, terms(node)))


def changed(node: N, change: Change) -> N | None:
    """Return a copy of a tree with a change applied to each node, inner ones first; None if the root is dropped.

    A node that loses a required part is dropped, too.
    """
    copy = _changed(node, change)
    return copy if isinstance(copy, type(node)) else None


def _changed(node: Node, change: Change) -> Node | tuple[Node, ...] | None:
    values: dict[str, object] = {}
    for name in _FIELD_NAMES[type(node)]:
        value = getattr(node, name)
        if isinstance(value, tuple):
            children: list[object] = []
            for child in value:
                new_child = child if isinstance(child, str) else _changed(child, change)
                children += new_child if isinstance(new_child, tuple) else () if new_child is None else (new_child,)
            if len(children) != len(value) or any(a is not b for a, b in zip(children, value, strict=True)):
                values[name] = tuple(children)
        elif isinstance(value, str | bool) or value is None:
            continue
        else:
            new_child = _changed(value, change)
            if not isinstance(new_child, type(value)):
                return None
            if new_child is not value:
                values[name] = new_child
    return change(node, replace(node, **values) if values else node)  # type: ignore[arg-type]


def renamed(node: N, names: Callable[[str], str]) -> N:
    """Return a copy of a tree with other tokens."""

    def change(_: Node, node_copy: Node) -> Node:
        values: dict[str, object] = {}
        for name in _FIELD_NAMES[type(node_copy)]:
            value = getattr(node_copy, name)
            if isinstance(value, str):
                values[name] = names(value)
            elif isinstance(value, tuple):
                values[name] = tuple(names(token) if isinstance(token, str) else token for token in value)
        return replace(node_copy, **values)  # type: ignore[arg-type]

    copy = changed(node, change)
    assert copy is not None
    return copy
