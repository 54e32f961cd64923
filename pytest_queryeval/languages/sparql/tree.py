"""The nodes of a SPARQL query: immutable values, each a distinct object within its tree; a tree as text.

Terms are texts in one spelling: variables with `?`, IRIs in angle brackets, `a` for rdf:type as a predicate. A text
declares the prefixes that it uses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import TypeAlias, TypeVar, get_args

COUNTING = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT")

_LEVELS = ("||",), ("&&",), ("=", "!=", "<", ">", "<=", ">=", "IN", "NOT IN"), ("+", "-"), ("*", "/"), ("!",)
PRECEDENCE = {operator: level for level, operators in enumerate(_LEVELS, start=1) for operator in operators}
"""How strongly operators bind, `||` least."""
_LOCAL = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_EXISTENCE = ("EXISTS", "NOT EXISTS")
_INDENT = "  "


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
    """A FILTER with its condition."""

    condition: Expr


@dataclass(frozen=True, slots=True)
class Bind:
    """A BIND of a value to a variable."""

    value: Expr
    variable: str


@dataclass(frozen=True, slots=True)
class Data:
    """Inline data: the tokens that follow VALUES."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A group after OPTIONAL or MINUS, or after GRAPH with its name; `head` are the tokens before it."""

    head: tuple[str, ...]
    group: Group


@dataclass(frozen=True, slots=True)
class Union:
    """Groups that UNION joins; a single arm is a nested group."""

    arms: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """A selected column, or a key of GROUP BY."""

    value: Expr
    alias: str = ""
    """The variable after AS, or empty."""

    @property
    def variable(self) -> str:
        """The name of the column: its alias, otherwise the variable itself."""
        return self.alias or self.value.head


@dataclass(frozen=True, slots=True)
class SortKey:
    """A key of ORDER BY."""

    is_descending: bool
    value: Expr


@dataclass(frozen=True, slots=True)
class Select:
    """A query of any form, or a subquery, by its clauses; "" or None for a clause that it lacks."""

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
        """Whether the columns are all variables of the pattern."""
        return any(item.value == ALL for item in self.items)

    @property
    def aggregates(self) -> bool:
        """Whether the rows are groups of solutions."""
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
    """Yield a node and all nodes within it, outer nodes first."""
    yield node
    for name in _FIELD_NAMES[type(node)]:
        value = getattr(node, name)
        for child in value if isinstance(value, tuple) else (value,):
            if not isinstance(child, str | bool) and child is not None:
                yield from walk(child)


def precedence(expression: Expr) -> int:
    """Return how strongly the operator of an expression binds; signs, with one operand, bind most strongly."""
    return PRECEDENCE["!"] if len(expression.arguments) == 1 else PRECEDENCE[expression.head]


def parts(expression: Expr) -> Iterator[Expr]:
    """Yield an expression and all expressions within it, outer ones first, but none in the groups of EXISTS."""
    yield expression
    for argument in expression.arguments:
        if isinstance(argument, Expr):
            yield from parts(argument)


def has_aggregate(expression: Expr) -> bool:
    """Return whether an expression contains an aggregate."""
    return any(part.head in COUNTING for part in parts(expression))


def terms(node: Node) -> Iterator[str]:
    """Yield all tokens of a node and of the nodes within it."""
    for name in _FIELD_NAMES[type(node)]:
        value = getattr(node, name)
        for child in value if isinstance(value, tuple) else (value,):
            if isinstance(child, str):
                yield child
            elif not isinstance(child, bool) and child is not None:
                yield from terms(child)


def variables(node: Node) -> dict[str, None]:
    """Return the variables of a node as keys, in the order of their first appearance."""
    return dict.fromkeys(filter(is_variable, terms(node)))


def changed(node: N, change: Change) -> N | None:
    """Return a copy of a tree with a change applied to each node, inner nodes first; None if the root is dropped.

    A node that loses a required part is dropped, too. Unchanged nodes are shared with the tree.
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
    """Return a copy of a tree in which `names` replaces each token; also tokens that are no variables."""

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


class Writer:
    """Writes nodes as text; `prefixes` shorten their IRIs."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._prefixes = prefixes
        self._used_prefixes: dict[str, None] = {}

    def query(self, tree: Select) -> str:
        """Return the text of a query: declarations of the prefixes that it uses, then the query on several lines."""
        self._used_prefixes.clear()
        text = self.select(tree, "")
        return "".join(f"{line}\n" for line in self.declarations("PREFIX {}: <{}>")) + text

    def declarations(self, form: str) -> list[str]:
        """Return a line for each prefix that was used; `form` has places for its name and its IRI."""
        return [form.format(name, self._prefixes[name]) for name in self._used_prefixes]

    def line(self, node: Node | Iterable[Node]) -> str:
        """Return the text of one node, or of several, on one line with single blanks."""
        if isinstance(node, Iterable):
            return " ".join(map(self.line, node))
        match node:
            case Select():
                text = self.select(node, "")
            case Group():
                text = self._group(node, "")
            case Expr():
                text = self._expression(node)
            case Item():
                text = self._item(node)
            case SortKey():
                text = self._sort_key(node)
            case _:
                text = self._element(node, "").removesuffix(" .")
        return " ".join(text.split())

    def term(self, term: str) -> str:
        """Return the text of a term, with a prefix instead of the start of its IRI if there is one."""
        literal, between, datatype = term.rpartition("^^") if term.startswith('"') else ("", "", term)
        if not datatype.startswith("<"):
            return term
        iri = datatype[1:-1]
        for name, start in self._prefixes.items():
            if start and iri.startswith(start) and _LOCAL.fullmatch(iri, len(start)):
                self._used_prefixes[name] = None
                return f"{literal}{between}{name}:{iri[len(start) :]}"
        return term

    def path(self, path: Iterable[str]) -> str:
        """Return the text of a path."""
        return "".join(map(self.term, path))

    def select(self, tree: Select, indent: str) -> str:
        """Return the text of a query without declarations; all its lines but the first begin with `indent`."""
        head = [tree.form, tree.modifier, *map(self._item, tree.items)]
        if tree.template is not None:
            head.append(self._group(tree.template, indent))
        text = " ".join(filter(None, head))
        if tree.dataset:
            text += " " + " ".join(map(self.term, tree.dataset))
        if tree.where is not None:
            text += f" WHERE {self._group(tree.where, indent)}"
        clauses = []
        if tree.group:
            clauses.append("GROUP BY " + " ".join(map(self._item, tree.group)))
        if tree.having:
            clauses.append("HAVING " + " ".join(f"({self._expression(condition)})" for condition in tree.having))
        if tree.order:
            clauses.append("ORDER BY " + " ".join(map(self._sort_key, tree.order)))
        if tree.limit:
            clauses.append(f"LIMIT {tree.limit}")
        if tree.offset:
            clauses.append(f"OFFSET {tree.offset}")
        if tree.values is not None:
            clauses.append(self._element(tree.values, indent))
        return "".join([text, *(f"\n{indent}{clause}" for clause in clauses)])

    def _group(self, group: Group, indent: str) -> str:
        if not group.elements:
            return "{ }"
        within = indent + _INDENT
        lines = (f"{within}{self._element(element, within)}\n" for element in group.elements)
        return "{\n" + "".join(lines) + indent + "}"

    def _element(self, element: Node, indent: str) -> str:
        match element:
            case Triple(subject, path, object_):
                return f"{self.term(subject)} {self.path(path)} {self.term(object_)} ."
            case Filter(condition):
                text = self._expression(condition, indent)
                return f"FILTER {text}" if condition.head in _EXISTENCE else f"FILTER ({text})"
            case Bind(value, variable):
                return f"BIND ({self._expression(value, indent)} AS {variable})"
            case Data(parts):
                return "VALUES " + " ".join(map(self.term, parts))
            case Block(head, group):
                return f"{' '.join(map(self.term, head))} {self._group(group, indent)}"
            case Union(arms):
                return " UNION ".join(self._group(arm, indent) for arm in arms)
            case Select():
                return self.select(element, indent)
        raise TypeError(element)

    def _expression(self, expression: Expr, indent: str = "") -> str:
        head, arguments = expression.head, expression.arguments
        group = next((argument for argument in arguments if isinstance(argument, Group)), None)
        if group is not None:
            return f"{head} {self._group(group, indent)}"
        texts = [self._argument(expression, argument, indent) for argument in arguments if isinstance(argument, Expr)]
        if not texts:
            return f"{head}()" if head.isupper() and head.isidentifier() else self.term(head)
        match head:
            case "DISTINCT":
                return f"DISTINCT {texts[0]}"
            case "SEPARATOR":
                return f"SEPARATOR = {texts[0]}"
            case "CALL":
                return f"{texts[0]}({', '.join(texts[1:])})"
            case "IN" | "NOT IN":
                return f"{texts[0]} {head} ({', '.join(texts[1:])})"
            case _ if head not in PRECEDENCE:
                ends_with_separator = len(texts) > 1 and arguments[-1].head == "SEPARATOR"  # type: ignore[union-attr]
                return f"{head}({('; ' if ends_with_separator else ', ').join(texts)})"
            case _:
                return f" {head} ".join(texts) if len(texts) > 1 else f"{head}{texts[0]}"

    def _argument(self, expression: Expr, argument: Expr, indent: str) -> str:
        """Return the text of an argument, in parentheses if the operator around it would take only a part of it."""
        text = self._expression(argument, indent)
        if not argument.arguments or argument.head not in PRECEDENCE or expression.head not in PRECEDENCE:
            return text
        level, outer_level = precedence(argument), precedence(expression)
        is_left = argument is expression.arguments[0] and expression.head in ("+", "-", "*", "/")
        return f"({text})" if level < outer_level or (level == outer_level and not is_left) else text

    def _item(self, item: Item) -> str:
        value = self._expression(item.value)
        if item.alias:
            return f"({value} AS {item.alias})"
        return f"({value})" if item.value.arguments else value

    def _sort_key(self, key: SortKey) -> str:
        value = self._expression(key.value)
        if key.is_descending:
            return f"DESC({value})"
        return value if is_variable(key.value.head) else f"ASC({value})"
