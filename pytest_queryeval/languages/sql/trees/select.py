"""One SELECT, clause by clause."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from pytest_queryeval.languages.sql.trees.conditions import conditions, expression
from pytest_queryeval.languages.sql.trees.normal_form import Reading, short
from pytest_queryeval.languages.sql.trees.relations import FromReader, Joined, joined
from pytest_queryeval.languages.sql.trees.scope import Relation, Scope
from pytest_queryeval.languages.sql.trees.texts import Texts
from pytest_queryeval.languages.sql.view import Conditions, Expression, Item, Ordering, View

# What is compared clause by clause; whatever else a SELECT has is compared as one text.
_READ = frozenset(
    ("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "with_", "distinct")
)


class SelectReader:
    """Reads one SELECT; `read` reads the queries within it, and `relation` those in its FROM."""

    def __init__(
        self,
        node: exp.Select,
        scope: Scope,
        texts: Texts,
        read: Callable[[exp.Expr, Scope], Reading],
        relation: Callable[[exp.Expr], Relation],
    ) -> None:
        self._node = node
        self._scope = scope
        self._texts = texts
        self._read = read
        self._from = FromReader(scope, texts, relation).read(node)

    def reading(self) -> Reading:
        """The whole of it, with the numbering of repeated tables that has the least text."""
        readings = [self._reading(scope) for scope in self._scope.numberings()]
        return readings[0] if len(readings) == 1 else min(readings, key=lambda reading: str(reading.clauses))

    def _reading(self, scope: Scope) -> Reading:
        """WHERE and the list come first: the aliases of the list hold for what is read after them."""
        found = joined(self._from, scope, self._texts)
        where = self._conditions("where", scope)
        on = [self._view_of(condition, scope) for condition in self._from.on]
        selected = [self._texts.of(item, scope) for item in self._node.expressions]
        items = [self._item(item, scope) for item in self._node.expressions]
        named = zip(self._node.expressions, selected, strict=True)
        scope.aliases = {item.alias.lower(): text for item, text in named if isinstance(item, exp.Alias)}
        view = View(
            select=tuple(item for _, item in sorted(zip(selected, items, strict=True), key=lambda pair: pair[0])),
            tables=found.tables,
            on=_together(on),
            where=where,
            group=self._group(scope),
            having=self._conditions("having", scope),
            limit=limit(self._node),
        )
        return self._compared(view, found, selected, scope)

    def _compared(self, view: View, found: Joined, selected: Sequence[str], scope: Scope) -> Reading:
        """The view with its ORDER BY, and all clauses as texts."""
        having = self._having(scope)
        view = replace(view, order=ordering(self._node, self._texts, scope))
        columns = [
            text for item in zip(self._node.expressions, selected, strict=True) for text in _columns(*item, scope)
        ]
        clauses = {
            "select": tuple(sorted(columns)),
            "from": found.tables,
            "join": found.joins,
            "where": found.filters,
            "group": tuple(str(key.key) for key in view.group),
            "having": having,
            **order_clauses(view),
            "other": (*self._distinct_on(scope), *self._texts.others(self._node, scope, without=_READ)),
        }
        if (group := self._node.args.get("group")) is not None:
            clauses["other"] += self._texts.others(group, scope, without=frozenset(("expressions",)))
        return Reading(view=view, clauses=clauses, outputs=self._outputs(selected))

    def _item(self, node: exp.Expr, scope: Scope) -> Item:
        inner = node.unalias().unnest()
        argument = inner.this if isinstance(inner, exp.AggFunc) else None
        if not isinstance(argument, exp.Expr):
            return Item("", expression(inner, self._texts, scope))
        if isinstance(argument, exp.Distinct) and len(argument.expressions) == 1:
            argument = argument.expressions[0]
        if isinstance(inner, exp.Count) and isinstance(argument, exp.Literal):
            argument = exp.Star()
        return Item(inner.key, expression(argument, self._texts, scope))

    def _conditions(self, clause: str, scope: Scope) -> Conditions:
        found = self._node.args.get(clause)
        return self._view_of(found.this if found else None, scope)

    def _view_of(self, condition: exp.Expr | None, scope: Scope) -> Conditions:
        return conditions(condition, self._texts, scope, lambda node, inner: self._read(node, inner).view)

    def _group(self, scope: Scope) -> tuple[Expression, ...]:
        """GROUP BY, with positions as what they stand for; sorted, as their order means nothing."""
        clause = self._node.args.get("group")
        keys = [at_position(key, self._node) for key in clause.expressions] if clause else []
        return tuple(sorted((expression(key, self._texts, scope) for key in keys), key=lambda key: str(key.key)))

    def _having(self, scope: Scope) -> tuple[str, ...]:
        clause = self._node.args.get("having")
        return tuple(sorted(self._texts.parts(clause.this, scope))) if clause else ()

    def _distinct_on(self, scope: Scope) -> tuple[str, ...]:
        """DISTINCT itself is not compared."""
        distinct = self._node.args.get("distinct")
        on = distinct.args.get("on") if isinstance(distinct, exp.Distinct) else None
        return (f"distinct on {self._texts.of(on, scope)}",) if on else ()

    def _outputs(self, selected: Sequence[str]) -> dict[str, str] | None:
        if any(item.is_star for item in self._node.expressions):
            return None
        named = zip(self._node.expressions, selected, strict=True)
        return {item.alias_or_name.lower(): short(text) for item, text in named}


def _columns(item: exp.Expr, text: str, scope: Scope) -> Sequence[str]:
    """The columns of an item of the list: all of the only relation there is where it is `*` and they are known."""
    if text != "*" or not item.is_star or len(scope.relations) != 1:
        return (text,)
    ((alias, relation),) = scope.relations.items()
    return (text,) if relation.columns is None else [scope.column(alias, name) for name in relation.columns]


def ordering(node: exp.Query, texts: Texts, scope: Scope) -> Ordering | None:
    """ORDER BY; its names mean aliases of the list first, then columns."""
    clause = node.args.get("order")
    if clause is None:
        return None
    scope.aliases_first = True
    keys = [key if isinstance(key, exp.Ordered) else exp.Ordered(this=key) for key in clause.expressions]
    directions = [_direction(key) for key in keys]
    expressions = tuple(expression(at_position(key.this, node), texts, scope) for key in keys)
    return Ordering(directions[0] if len(set(directions)) == 1 else ", ".join(directions), expressions)


def _direction(key: exp.Ordered) -> str:
    """`asc` or `desc`, and where NULL stands if that is not where NULL as the least value would."""
    descending, first = bool(key.args.get("desc")), key.args.get("nulls_first")
    moved = first is not None and bool(first) == descending
    return f"{'desc' if descending else 'asc'}{(' nulls first' if first else ' nulls last') if moved else ''}"


def order_clauses(view: View) -> dict[str, tuple[str, ...]]:
    """ORDER BY with its directions, and whether there is a LIMIT, as texts."""
    order = view.order
    texts = (str(order.direction), *(str(key.key) for key in order.expressions)) if order else ()
    return {"order": texts, "limit": (str(view.limit),) if view.limit else ()}


def limit(node: exp.Expr) -> str | None:
    """The words of LIMIT and OFFSET, without their numbers."""
    words = [name for name in ("limit", "offset") if node.args.get(name) is not None]
    return " ".join(words) or None


def at_position(key: exp.Expr, node: exp.Query) -> exp.Expr:
    """The item of the list that a number stands for; the key itself where it is none."""
    if not isinstance(key, exp.Literal) or key.is_string or not key.name.isdecimal() or len(key.name) > 4:
        return key
    place = int(key.name) - 1
    return node.selects[place] if 0 <= place < len(node.selects) else key


def _together(parts: Sequence[Conditions]) -> Conditions:
    """The conditions of all joins; published readers put `and` between them."""
    terms = tuple(term for part in parts for term in part.terms)
    connectors = tuple(word for part in parts for word in part.connectors)
    return Conditions(terms, (*connectors, *("and",) * max(len([part for part in parts if part.terms]) - 1, 0)))
