"""Writes the tree of a SPARQL query as text, with the prefixes that it uses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pytest_queryeval.languages.sparql.trees.tree import (
    PRECEDENCE,
    Bind,
    Block,
    Data,
    Expr,
    Filter,
    Group,
    Item,
    Node,
    Select,
    SortKey,
    Triple,
    Union,
    is_variable,
    precedence,
)

_LOCAL = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_EXISTENCE = ("EXISTS", "NOT EXISTS")
_INDENT = "  "


class Writer:
    """Writes nodes; `prefixes` shorten their IRIs."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._prefixes = prefixes
        self._used_prefixes: dict[str, None] = {}

    def query(self, tree: Select) -> str:
        """Return the text of a query: the prefixes that it uses, then the pattern on separate lines."""
        self._used_prefixes.clear()
        text = self.select(tree, "")
        return "".join(f"{line}\n" for line in self.declarations("PREFIX {}: <{}>")) + text

    def declarations(self, form: str) -> list[str]:
        """Return a line for each prefix that was used, in a form with places for its name and its IRI."""
        return [form.format(name, self._prefixes[name]) for name in self._used_prefixes]

    def line(self, node: Node | Iterable[Node]) -> str:
        """Return the text of nodes on one line."""
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
        """Return a term with the prefix of its IRI."""
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
        """Return the text of a query within others; all its lines but the first one begin with `indent`."""
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
        """Return the text of an argument, in parentheses where the operator around it would take only a part of it."""
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
