"""The second reader of queries: any dialect that sqlglot parses, normalised for comparison.

Aliases are resolved, literal values are one placeholder, DISTINCT is dropped, columns that a join makes equal are one,
and lists whose order has no meaning are sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from sqlglot import exp

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.languages.sql.columns import Columns, Names, Relation, Scope
from pytest_queryeval.languages.sql.parsing import TOO_DEEP, Tree
from pytest_queryeval.languages.sql.tree_texts import (
    COMPARISON_SIGNS,
    MIRRORED,
    VALUE,
    FromReader,
    TextWriter,
    short,
    write_joined,
)
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
_COMPARED_CLAUSES = frozenset(
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
_OPERATIONS = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except"}
_READ = frozenset(("this", "expression", "distinct", "order", "limit", "offset", "with_"))
_READ_AROUND = frozenset((*_READ, "alias", "joins"))


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
        texts: TextWriter,
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
        other_clauses += texts.arguments(node, scope, without=_COMPARED_CLAUSES)
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


def ordering(node: exp.Query, texts: TextWriter, scope: Scope) -> Ordering | None:
    """Return ORDER BY; a key that is a name refers to an alias of the list first, then to a column."""
    clause = node.args.get("order")
    if clause is None:
        return None
    directions = []
    for key in clause.expressions:
        descending, first = bool(key.args.get("desc")), key.args.get("nulls_first")
        direction = "desc" if descending else "asc"
        if first is not None and bool(first) == descending:  # not where NULL as the smallest value would be
            direction += " nulls first" if first else " nulls last"
        directions.append(direction)

    def key_of(ordered: exp.Expr) -> Expression:
        key = ordered.this if isinstance(ordered, exp.Ordered) else ordered
        name = key.unnest()
        if isinstance(name, exp.Column) and not name.table and (alias := scope.aliases.get(name.name.lower())):
            return expression(name, alias)
        (read_key,) = _expressions([key], node, texts, scope)
        return read_key

    expressions = tuple(map(key_of, clause.expressions))
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


def _expressions(keys: Iterable[exp.Expr], node: exp.Query, texts: TextWriter, scope: Scope) -> list[Expression]:
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


def conditions(node: exp.Expr | None, texts: TextWriter, scope: Scope, nested: NestedView) -> Conditions:
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


def _condition(node: exp.Expr, texts: TextWriter, scope: Scope, nested: NestedView, *, negated: bool) -> Condition:
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


def read_tree(tree: Tree, schema: Schema, dialect: str) -> Reading:
    """Return the normal form of a query, or of what can be read of it."""
    if tree.tree is None:
        return Reading(problem=tree.problem, is_unread=True)
    try:
        reading = TreeReader(Columns(schema.tables, dialect)).read(tree.tree, Scope())
    except RecursionError:
        return Reading(problem=TOO_DEEP, is_unread=True)
    return replace(reading, problem=tree.problem)


class TreeReader:
    """Reader of trees of queries, and of the queries within them."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._texts = TextWriter(lambda node, scope: self.read(node, scope).text)
        # Conditions read nested queries twice; the scope is kept, so that no other one gets its id.
        self._readings: dict[tuple[int, int], tuple[Scope, Reading]] = {}

    def read(self, node: exp.Expr, outer: Scope) -> Reading:
        """Read a query; names in it may refer to relations of `outer`."""
        key = (id(node), id(outer))
        if key in self._readings:
            return self._readings[key][1]
        outer_scope = self._with_queries(node, outer)
        match node:
            case exp.SetOperation():
                reading = self._operation(node, outer_scope)
            case exp.Select():
                names = self._columns.names(node)
                reader = SelectReader(
                    names,
                    outer_scope.within(names),
                    self._texts,
                    self.read,
                    lambda query: self._relation(query, outer_scope),
                )
                reading = reader.reading()
            case exp.Subquery():
                reading = self._enclosed(node, outer_scope)
            case _:
                clauses = {node.key: self._texts.arguments(node, outer_scope, without=frozenset())}
                reading = Reading(view=View(), clauses=clauses)
        self._readings[key] = outer, reading
        return reading

    def _with_queries(self, node: exp.Expr, outer: Scope) -> Scope:
        """Return a scope with the queries of WITH; within itself, a recursive one is called `itself`."""
        clause = node.args.get("with_")
        if clause is None:
            return outer
        scope = outer.within()
        for cte in clause.expressions:
            name = cte.alias.lower()
            if clause.args.get("recursive"):
                scope.queries[name] = Relation("itself")
            scope.queries[name] = self._relation(cte, scope)
        return scope

    def _relation(self, node: exp.Expr, scope: Scope) -> Relation:
        """Return a query in FROM or WITH, whose columns may be renamed after its alias."""
        reading = self.read(node.this, scope)
        outputs, names = reading.outputs, node.alias_column_names
        if names and outputs is not None:
            outputs = dict(zip((name.lower() for name in names), outputs.values(), strict=False))
        clause_texts = (
            self._texts.arguments(node, scope, without=_READ_AROUND) if isinstance(node, exp.Subquery) else ()
        )
        return Relation(" ".join([f"({reading.text})", *clause_texts]), outputs)

    def _enclosed(self, node: exp.Subquery, scope: Scope) -> Reading:
        """Read a query in parentheses, which ORDER BY and LIMIT may follow."""
        inner = self.read(node.this, scope)
        outer_scope = Scope(scope, aliases=dict(inner.outputs or {}))
        last = View(order=ordering(node, self._texts, outer_scope), limit=limit(node))
        if last.order is None and last.limit is None:
            return inner
        clauses = dict(inner.clauses)
        if clauses.get("order") or clauses.get("limit"):
            clauses = {"query": (inner.text,)}
        return replace(inner, view=_ended(inner.view, last), clauses=clauses | order_clauses(last))

    def _operation(self, node: exp.SetOperation, scope: Scope) -> Reading:
        """Read a set operation; the arms are sorted where their order has no meaning, those of a chain together."""
        word = _OPERATIONS.get(type(node), node.key)
        label = f"{word} all" if node.args.get("distinct") is False else word
        left, right = self.read(node.this, scope), self.read(node.expression, scope)
        texts = [*_arms(left, label), *(_arms(right, label) if word != "except" else [right.text])]
        inner = Scope(scope, aliases=dict(left.outputs or {}))
        view = _appended(left.view, word, right.view)
        last = View(order=ordering(node, self._texts, inner), limit=limit(node))
        clauses = {
            label: tuple(texts if word == "except" else sorted(texts)),
            **order_clauses(last),
            "other": self._texts.arguments(node, inner, without=_READ),
        }
        return Reading(view=_ended(view, last), clauses=clauses, outputs=left.outputs)


def _arms(reading: Reading, label: str) -> list[str]:
    """Return the arms of a set operation of the same kind without other clauses; else the query as one arm."""
    if any(texts for name, texts in reading.clauses.items() if name != label):
        return [reading.text]
    return list(reading.clauses.get(label, (reading.text,)))


def _appended(view: View, operation: str, arm: View) -> View:
    """Return the view with one more set operation at its end: chains nest to the right."""
    if view.arm is None:
        return view._replace(operation=operation, arm=arm)
    return view._replace(arm=_appended(view.arm, operation, arm))


def _ended(view: View, last: View) -> View:
    """Return the view with ORDER BY and LIMIT of the whole at its last arm, where texts have them."""
    if last.order is None and last.limit is None:
        return view
    if view.arm is not None:
        return view._replace(arm=_ended(view.arm, last))
    return view._replace(order=last.order, limit=last.limit)
