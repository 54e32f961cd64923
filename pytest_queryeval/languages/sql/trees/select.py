"""One SELECT, clause by clause: as texts, which two queries are compared by, and as a view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from sqlglot import exp

from pytest_queryeval.languages.sql.trees.columns import Names
from pytest_queryeval.languages.sql.trees.relations import FromReader, write_joined
from pytest_queryeval.languages.sql.trees.scope import Relation, Scope
from pytest_queryeval.languages.sql.trees.texts import COMPARISON_SIGNS, MIRRORED, VALUE, Texts, short
from pytest_queryeval.languages.sql.view import (
    EMPTY_VIEW,
    NO_CONDITIONS,
    Condition,
    Conditions,
    Expression,
    Item,
    Ordering,
    Value,
    View,
)

# What is compared clause by clause; whatever else a SELECT has is compared as one text.
_READ = frozenset(
    ("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "with_", "distinct")
)

NestedView: TypeAlias = Callable[[exp.Expr, Scope], View]

_OPERATORS: dict[type[exp.Expr], str] = {
    **COMPARISON_SIGNS,
    exp.In: "in",
    exp.Like: "like",
    exp.ILike: "like",
    exp.Between: "between",
    exp.Is: "is",
}


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A query as a view, for its components, and clause by clause as texts: two queries match iff all texts are equal.

    `outputs` are the texts of its columns by their names; None if `*` hides some. `problem` says why a text could
    not be read as a whole, and `is_unread` is true where nothing of it could.
    """

    view: View = EMPTY_VIEW
    clauses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    outputs: Mapping[str, str] | None = None
    problem: str = ""
    is_unread: bool = False

    @cached_property
    def text(self) -> str:
        """Return the whole query as one text."""
        return short("; ".join(f"{name} {', '.join(texts)}" for name, texts in self.clauses.items() if texts))


class SelectReader:
    """Reader of one SELECT; `read` reads the queries within it, and `relation` those in its FROM."""

    def __init__(
        self,
        names: Names,
        scope: Scope,
        texts: Texts,
        read: Callable[[exp.Expr, Scope], Reading],
        relation: Callable[[exp.Expr], Relation],
    ) -> None:
        self._names = names
        self._node = names.select
        self._scope = scope
        self._texts = texts
        self._read = read
        self._from = FromReader(names, scope, texts, relation).read()

    def reading(self) -> Reading:
        """Read the whole of it, with the numbering of repeated tables that has the smallest text."""
        readings = [self._reading(scope) for scope in self._scope.numberings()]
        return readings[0] if len(readings) == 1 else min(readings, key=lambda reading: str(reading.clauses))

    def _reading(self, scope: Scope) -> Reading:
        node, texts = self._node, self._texts

        def view_of(condition: exp.Expr | None) -> Conditions:
            return conditions(condition, texts, scope, lambda nested, inner: self._read(nested, inner).view)

        # WHERE and the list come first: the aliases of the list apply to what is read after them.
        joined = write_joined(self._from, scope, texts)
        where = node.args.get("where")
        where_view = view_of(where.this if where else None)
        on = [view_of(condition) for condition in self._from.on]
        selected = [texts.of(item, scope) for item in node.expressions]
        items_and_texts = list(zip(node.expressions, selected, strict=True))
        items = [self._item(item, text, scope) for item, text in items_and_texts]
        scope.aliases = {item.alias.lower(): text for item, text in items_and_texts if isinstance(item, exp.Alias)}

        # Lists whose order has no meaning are sorted.
        group = node.args.get("group")
        keys = _expressions(group.expressions if group else (), node, texts, scope)
        having = node.args.get("having")
        having_view = view_of(having.this if having else None)
        having_texts = sorted(texts.parts(having.this, scope)) if having else []
        view = View(
            select=tuple(item for _, item in sorted(zip(selected, items, strict=True), key=lambda pair: pair[0])),
            tables=joined.tables,
            on=_joined_by_and(on),
            where=where_view,
            group=tuple(sorted(keys, key=lambda key: str(key.key))),
            having=having_view,
            order=ordering(node, texts, scope),
            limit=limit(node),
        )
        distinct = node.args.get("distinct")  # only DISTINCT ON is compared
        distinct_on = distinct.args.get("on") if isinstance(distinct, exp.Distinct) else None
        other_clauses = [f"distinct on {texts.of(distinct_on, scope)}"] if distinct_on else []
        other_clauses += texts.arguments(node, scope, without=_READ)
        if group is not None:
            other_clauses += texts.arguments(group, scope, without=frozenset(("expressions",)))
        clauses = {
            "select": tuple(
                sorted(column for item, text in items_and_texts for column in self._columns(item, text, scope))
            ),
            "from": joined.tables,
            "join": joined.joins,
            "where": joined.filters,
            "group": tuple(str(key.key) for key in view.group),
            "having": tuple(having_texts),
            **order_clauses(view),
            "other": tuple(other_clauses),
        }
        has_star = any(item.is_star for item in node.expressions)
        outputs = None if has_star else {item.alias_or_name.lower(): short(text) for item, text in items_and_texts}
        return Reading(view=view, clauses=clauses, outputs=outputs)

    def _columns(self, item: exp.Expr, text: str, scope: Scope) -> Sequence[str]:
        """Return the columns of an item of the list: for `*` those of a single item of FROM where they are known."""
        if text != "*" or not item.is_star or len(self._names.sources) != 1:
            return (text,)
        ((alias, source),) = self._names.sources.items()
        return (text,) if source.columns is None else [scope.column(alias, name) for name in source.columns]

    def _item(self, node: exp.Expr, text: str, scope: Scope) -> Item:
        inner = node.unalias().unnest()
        argument = inner.this if isinstance(inner, exp.AggFunc) else None
        if not isinstance(argument, exp.Expr):
            return Item("", expression(inner, text))
        if isinstance(argument, exp.Distinct) and len(argument.expressions) == 1:
            argument = argument.expressions[0]
        if isinstance(inner, exp.Count) and isinstance(argument, exp.Literal):
            argument = exp.Star()
        return Item(inner.key, expression(argument, self._texts.of(argument, scope)))


def ordering(node: exp.Query, texts: Texts, scope: Scope) -> Ordering | None:
    """Return ORDER BY; its names refer to aliases of the list first, then to columns."""
    clause = node.args.get("order")
    if clause is None:
        return None
    scope.aliases_first = True
    directions = []
    for key in clause.expressions:
        descending, first = bool(key.args.get("desc")), key.args.get("nulls_first")
        direction = "desc" if descending else "asc"
        if first is not None and bool(first) == descending:  # not where NULL as the smallest value would be
            direction += " nulls first" if first else " nulls last"
        directions.append(direction)
    keys = [key.this if isinstance(key, exp.Ordered) else key for key in clause.expressions]
    expressions = tuple(_expressions(keys, node, texts, scope))
    return Ordering(directions[0] if len(set(directions)) == 1 else ", ".join(directions), expressions)


def order_clauses(view: View) -> dict[str, tuple[str, ...]]:
    """Return ORDER BY with its directions, and whether there is a LIMIT, as texts."""
    order = view.order
    texts = (str(order.direction), *(str(key.key) for key in order.expressions)) if order else ()
    return {"order": texts, "limit": (str(view.limit),) if view.limit else ()}


def limit(node: exp.Expr) -> str | None:
    """Return the keywords of LIMIT and OFFSET, without their numbers."""
    words = [name for name in ("limit", "offset") if node.args.get(name) is not None]
    return " ".join(words) or None


def _expressions(keys: Iterable[exp.Expr], node: exp.Query, texts: Texts, scope: Scope) -> list[Expression]:
    """Return the keys of GROUP BY or ORDER BY."""
    items = [at_position(key, node) for key in keys]
    return [expression(item, texts.of(item, scope)) for item in items]


def at_position(key: exp.Expr, node: exp.Query) -> exp.Expr:
    """Return the item of the list at the position that a key gives; the key itself where it is not a position."""
    if not isinstance(key, exp.Literal) or key.is_string or not key.name.isdecimal() or len(key.name) > 4:
        return key
    place = int(key.name) - 1
    return node.selects[place] if 0 <= place < len(node.selects) else key


def _joined_by_and(parts: Sequence[Conditions]) -> Conditions:
    """Return the conditions of all joins; published readers put `and` between them."""
    terms = tuple(term for part in parts for term in part.terms)
    connectors = tuple(word for part in parts for word in part.connectors)
    return Conditions(terms, (*connectors, *("and",) * max(len([part for part in parts if part.terms]) - 1, 0)))


def conditions(node: exp.Expr | None, texts: Texts, scope: Scope, nested: NestedView) -> Conditions:
    """Return the conditions of a clause, sorted, as their order has no meaning."""
    if node is None:
        return NO_CONDITIONS
    leaves = list(_leaves(node, negated=False))
    # By their texts, which hold those of nested queries too.
    ordered = sorted(leaves, key=lambda leaf: texts.of(leaf[0], scope)) if len(leaves) > 1 else leaves
    terms = [_condition(leaf, texts, scope, nested, negated=negated) for leaf, negated, _ in ordered]
    return Conditions(tuple(terms), tuple(sorted(word for _, _, word in leaves[1:])))


def expression(node: exp.Expr, text: str) -> Expression:
    """Return what is selected, compared, grouped or sorted by; with the name alone where it is a column."""
    if isinstance(node.unnest(), exp.Column):
        return Expression(text, text.rpartition(".")[2])
    return Expression(text, aggregates=sum(1 for _ in node.find_all(exp.AggFunc)))


def _leaves(node: exp.Expr, *, negated: bool, word: str = "and") -> Iterator[tuple[exp.Expr, bool, str]]:
    """Yield single conditions, whether NOT is around them, and the connector before them."""
    if isinstance(node, exp.Paren | exp.Not):
        yield from _leaves(node.this, negated=negated != isinstance(node, exp.Not), word=word)
    elif isinstance(node, exp.And | exp.Or):
        for number, part in enumerate(node.flatten()):
            yield from _leaves(part, negated=negated, word=node.key if number else word)
    else:
        yield node, negated != bool(node.args.get("negate")), word


def _condition(node: exp.Expr, texts: Texts, scope: Scope, nested: NestedView, *, negated: bool) -> Condition:
    if isinstance(node, exp.Exists):
        return Condition(negated, "exists", Expression("exists"), (nested(node.this, scope),))
    operator = _OPERATORS.get(type(node))
    if operator is None:
        return Condition(negated, node.key, expression(node, texts.of(node, scope)))
    if operator == "is" and negated:  # IS NOT NULL is one operator, and no NOT
        operator, negated = "is not", False
    arguments = [node.args.get(name) for name in ("expression", "query", "low", "high")]
    sides = [node.this, *(side for side in (*arguments, *node.expressions[:1]) if side is not None)]
    written = [(side, texts.of(side, scope)) for side in sides]
    if operator in MIRRORED and _rank(*written[0]) > _rank(*written[1]):
        written, operator = written[::-1], MIRRORED[operator]
    left, *values = written
    return Condition(
        negated, operator, expression(*left), tuple(_value(*value, scope=scope, nested=nested) for value in values)
    )


def _rank(node: exp.Expr, text: str) -> tuple[int, str]:
    """Return the sort key of a side of a comparison: columns by their texts, then queries, then values."""
    return (2 if text == VALUE else int(isinstance(node.unnest(), exp.Query)), text)


def _value(node: exp.Expr, text: str, *, scope: Scope, nested: NestedView) -> Value:
    """Return a nested query, the text of an expression, or None for a literal value."""
    inner = node.this if isinstance(node, exp.All | exp.Any) else node
    if isinstance(inner.unnest(), exp.Query):
        return nested(inner, scope)
    return None if text == VALUE else text
