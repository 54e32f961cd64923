"""The second reader of queries: any dialect that sqlglot parses, normalised for comparison.

Aliases are resolved, literal values are one placeholder, DISTINCT is dropped, columns that a join makes equal are one,
and lists whose order has no meaning are sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from sqlglot import exp

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.languages.sql.columns import Columns, Names, Relation, Scope, at_position, find_cte
from pytest_queryeval.languages.sql.parsing import TOO_DEEP, Tree
from pytest_queryeval.languages.sql.tree_texts import (
    COMPARISON_SIGNS,
    MIRRORED,
    VALUE,
    From,
    TextWriter,
    short,
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

    `outputs` are the texts of its columns by their names; None if `*` hides some. `problem` says why a text could not
    be read as a whole, and `is_unread` is true if nothing of it could.
    """

    view: View = EMPTY_VIEW
    clauses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    outputs: Mapping[str, str] | None = None
    problem: str = ""
    is_unread: bool = False

    @cached_property
    def text(self) -> str:
        """The whole query as one text; a digest if it is long."""
        return short("; ".join(f"{name} {', '.join(texts)}" for name, texts in self.clauses.items() if texts))


def read_tree(tree: Tree, schema: Schema, dialect: str) -> Reading:
    """Return the normal form of a query, or of the part of it that can be read, with the problem."""
    if tree.tree is None:
        return Reading(problem=tree.problem, is_unread=True)
    try:
        reading = TreeReader(Columns(schema.tables, dialect)).read(tree.tree, Scope())
    except RecursionError:
        return Reading(problem=TOO_DEEP, is_unread=True)
    return replace(reading, problem=tree.problem)


class TreeReader:
    """Reads trees of queries, and of the queries within them, in normal form."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._texts = TextWriter(lambda node, scope: self.read(node, scope).text)
        # Conditions read nested queries twice; the scope is kept, so that no other one gets its id.
        self._readings: dict[tuple[int, int], tuple[Scope, Reading]] = {}
        self._common: dict[int, Relation] = {}  # the queries of WITH

    def read(self, node: exp.Expr, outer: Scope) -> Reading:
        """Return the normal form of a query; names in it may refer to relations of `outer`.

        Kept for each node and scope.
        """
        key = (id(node), id(outer))
        if key in self._readings:
            return self._readings[key][1]
        clause = node.args.get("with_") or exp.With()
        for cte in clause.expressions:
            if clause.args.get("recursive"):
                self._common[id(cte)] = Relation("itself")
            self._common[id(cte)] = self._relation(cte, outer)
        match node:
            case exp.SetOperation():
                reading = self._operation(node, outer)
            case exp.Select():
                reading = self._select(node, outer)
            case exp.Subquery():
                reading = self._enclosed(node, outer)
            case _:
                clauses = {node.key: self._texts.arguments(node, outer, without=frozenset())}
                reading = Reading(view=View(), clauses=clauses)
        self._readings[key] = outer, reading
        return reading

    def _select(self, node: exp.Select, outer: Scope) -> Reading:
        """Return the normal form of a SELECT, with the numbering of repeated tables that has the smallest text."""
        names = self._columns.names(node)
        scope = Scope(outer, names, budget=outer.budget)
        from_ = From(names, scope, self._texts, lambda item: self._query_relation(item, outer))
        readings = [self._numbered_select(names, from_, numbered) for numbered in scope.numberings()]
        return readings[0] if len(readings) == 1 else min(readings, key=lambda reading: str(reading.clauses))

    def _numbered_select(self, names: Names, from_: From, scope: Scope) -> Reading:
        node, texts = names.select, self._texts
        # WHERE and the list come first: the aliases of the list apply to what is read after them.
        tables, joins, filters = from_.write(scope)
        where = self._conditions(node.args.get("where"), scope)
        on = [self._conditions(condition, scope) for condition in from_.on]
        selected = [texts.of(item, scope) for item in node.expressions]
        items_and_texts = list(zip(node.expressions, selected, strict=True))
        items = [self._item(item, text, scope) for item, text in items_and_texts]
        scope.aliases = {item.alias.lower(): text for item, text in items_and_texts if isinstance(item, exp.Alias)}

        # Lists whose order has no meaning are sorted.
        group = node.args.get("group")
        keys = self._expressions(group.expressions if group else (), node, scope)
        having = node.args.get("having")
        view = View(
            select=tuple(item for _, item in sorted(zip(selected, items, strict=True), key=lambda pair: pair[0])),
            tables=tables,
            on=_joined_by_and(on),
            where=where,
            group=tuple(sorted(keys, key=lambda key: str(key.key))),
            having=self._conditions(having, scope),
            order=self._ordering(node, scope),
            limit=limit(node),
        )
        distinct = node.args.get("distinct")  # only DISTINCT ON is compared
        distinct_on = distinct.args.get("on") if isinstance(distinct, exp.Distinct) else None
        other_clauses = [f"distinct on {texts.of(distinct_on, scope)}"] if distinct_on else []
        other_clauses += texts.arguments(node, scope, without=_COMPARED_CLAUSES)
        if group is not None:
            other_clauses += texts.arguments(group, scope, without=frozenset(("expressions",)))
        columns = [column for item, text in items_and_texts for column in _columns_of(item, text, names, scope)]
        clauses = {
            "select": tuple(sorted(columns)),
            "from": tables,
            "join": joins,
            "where": filters,
            "group": tuple(str(key.key) for key in view.group),
            "having": tuple(sorted(texts.parts(having.this, scope))) if having else (),
            **order_clauses(view),
            "other": tuple(other_clauses),
        }
        has_star = any(item.is_star for item in node.expressions)
        outputs = None if has_star else {item.alias_or_name.lower(): short(text) for item, text in items_and_texts}
        return Reading(view=view, clauses=clauses, outputs=outputs)

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

    def _expressions(self, keys: Iterable[exp.Expr], node: exp.Query, scope: Scope) -> list[Expression]:
        """Return the keys of GROUP BY or ORDER BY; positions are replaced by the selected expressions."""
        items = [at_position(key, node) for key in keys]
        return [expression(item, self._texts.of(item, scope)) for item in items]

    def _ordering(self, node: exp.Query, scope: Scope) -> Ordering | None:
        """Return ORDER BY; None without it.

        A key that is a name refers to an alias of the list first, then to a column. Directions that are the same for
        all keys are written once, and NULLS FIRST or LAST only if it is not the default.
        """
        clause = node.args.get("order")
        if clause is None:
            return None
        directions = []
        expressions = []
        for ordered in clause.expressions:
            descending, first = bool(ordered.args.get("desc")), ordered.args.get("nulls_first")
            direction = "desc" if descending else "asc"
            if first is not None and bool(first) == descending:  # not where NULL as the smallest value would be
                direction += " nulls first" if first else " nulls last"
            directions.append(direction)
            name = ordered.this.unnest()
            if isinstance(name, exp.Column) and not name.table and (alias := scope.aliases.get(name.name.lower())):
                expressions.append(expression(name, alias))
            else:
                expressions += self._expressions([ordered.this], node, scope)
        return Ordering(directions[0] if len(set(directions)) == 1 else ", ".join(directions), tuple(expressions))

    def _conditions(self, clause: exp.Expr | None, scope: Scope) -> Conditions:
        """Return the conditions of WHERE, HAVING or ON, sorted, because their order has no meaning."""
        if clause is None:
            return NO_CONDITIONS
        leaves = list(
            _single_conditions(clause.this if isinstance(clause, exp.Where | exp.Having) else clause, negated=False)
        )
        # By their texts, which hold those of nested queries too.
        ordered = sorted(leaves, key=lambda leaf: self._texts.of(leaf[0], scope)) if len(leaves) > 1 else leaves
        terms = [self._condition(leaf, scope, negated=negated) for leaf, negated, _ in ordered]
        return Conditions(tuple(terms), tuple(sorted(word for _, _, word in leaves[1:])))

    def _condition(self, node: exp.Expr, scope: Scope, *, negated: bool) -> Condition:
        if isinstance(node, exp.Exists):
            return Condition(negated, "exists", Expression("exists"), (self.read(node.this, scope).view,))
        operator = _OPERATORS.get(type(node))
        if operator is None:
            return Condition(negated, node.key, expression(node, self._texts.of(node, scope)))
        if operator == "is" and negated:  # IS NOT NULL is one operator, and no NOT
            operator, negated = "is not", False
        arguments = [node.args.get(name) for name in ("expression", "query", "low", "high")]
        sides = [node.this, *(side for side in (*arguments, *node.expressions[:1]) if side is not None)]
        written = [(side, self._texts.of(side, scope)) for side in sides]
        if operator in MIRRORED and _side_rank(*written[0]) > _side_rank(*written[1]):
            written, operator = written[::-1], MIRRORED[operator]
        left, *values = written
        return Condition(
            negated,
            operator,
            expression(*left),
            tuple(self._compared_value(value, text, scope) for value, text in values),
        )

    def _compared_value(self, node: exp.Expr, text: str, scope: Scope) -> Value:
        """Return the view of a nested query, the text of an expression, or None for a literal value."""
        inner = node.this if isinstance(node, exp.All | exp.Any) else node
        if isinstance(inner.unnest(), exp.Query):
            return self.read(inner, scope).view
        return None if text == VALUE else text

    def _query_relation(self, item: exp.Expr, outer: Scope) -> Relation | None:
        """Return the relation of an item of FROM that is a nested query, or a query of WITH.

        None for any other item.
        """
        if isinstance(item, exp.Subquery):
            return self._relation(item, outer)
        return self._common.get(id(find_cte(item)))

    def _relation(self, node: exp.Expr, scope: Scope) -> Relation:
        """Return the relation of a query in FROM or WITH, whose columns may be renamed after its alias."""
        reading = self.read(node.this, scope)
        outputs, names = reading.outputs, node.alias_column_names
        if names and outputs is not None:
            outputs = dict(zip((name.lower() for name in names), outputs.values(), strict=False))
        clause_texts = (
            self._texts.arguments(node, scope, without=_READ_AROUND) if isinstance(node, exp.Subquery) else ()
        )
        return Relation(" ".join([f"({reading.text})", *clause_texts]), outputs)

    def _enclosed(self, node: exp.Subquery, scope: Scope) -> Reading:
        """Return the normal form of a query in parentheses, which ORDER BY and LIMIT may follow."""
        inner = self.read(node.this, scope)
        outer_scope = Scope(scope, aliases=dict(inner.outputs or {}))
        last = View(order=self._ordering(node, outer_scope), limit=limit(node))
        if last.order is None and last.limit is None:
            return inner
        clauses = dict(inner.clauses)
        if clauses.get("order") or clauses.get("limit"):
            clauses = {"query": (inner.text,)}
        return replace(inner, view=_with_last_clauses(inner.view, last), clauses=clauses | order_clauses(last))

    def _operation(self, node: exp.SetOperation, scope: Scope) -> Reading:
        """Return the normal form of a set operation.

        Arms are sorted if their order has no meaning, in a chain together.
        """
        word = _OPERATIONS.get(type(node), node.key)
        label = f"{word} all" if node.args.get("distinct") is False else word
        left, right = self.read(node.this, scope), self.read(node.expression, scope)
        texts = [*_arms(left, label), *(_arms(right, label) if word != "except" else [right.text])]
        inner = Scope(scope, aliases=dict(left.outputs or {}))
        view = _with_last_arm(left.view, word, right.view)
        last = View(order=self._ordering(node, inner), limit=limit(node))
        clauses = {
            label: tuple(texts if word == "except" else sorted(texts)),
            **order_clauses(last),
            "other": self._texts.arguments(node, inner, without=_READ),
        }
        return Reading(view=_with_last_clauses(view, last), clauses=clauses, outputs=left.outputs)


def _columns_of(item: exp.Expr, text: str, names: Names, scope: Scope) -> Sequence[str]:
    """Return the texts of the columns of a selected item; for `*` those of the only item of FROM, if they are known."""
    if text != "*" or not item.is_star or len(names.sources) != 1:
        return (text,)
    ((alias, source),) = names.sources.items()
    return (text,) if source.columns is None else [scope.column(alias, name) for name in source.columns]


def order_clauses(view: View) -> dict[str, tuple[str, ...]]:
    """Return ORDER BY with its directions, and the presence of LIMIT and OFFSET, as texts."""
    order = view.order
    texts = (str(order.direction), *(str(key.key) for key in order.expressions)) if order else ()
    return {"order": texts, "limit": (str(view.limit),) if view.limit else ()}


def limit(node: exp.Expr) -> str | None:
    """Return the words "limit" and "offset" that a query has, without their numbers; None if it has none."""
    words = [name for name in ("limit", "offset") if node.args.get(name) is not None]
    return " ".join(words) or None


def _joined_by_and(parts: Sequence[Conditions]) -> Conditions:
    """Return the conditions of all joins; published readers put `and` between joins."""
    terms = tuple(term for part in parts for term in part.terms)
    connectors = tuple(word for part in parts for word in part.connectors)
    return Conditions(terms, (*connectors, *("and",) * max(len([part for part in parts if part.terms]) - 1, 0)))


def expression(node: exp.Expr, text: str) -> Expression:
    """Return an expression that is selected, compared, grouped or sorted by; for a column with its name alone."""
    if isinstance(node.unnest(), exp.Column):
        return Expression(text, text.rpartition(".")[2])
    return Expression(text, aggregates=sum(1 for _ in node.find_all(exp.AggFunc)))


def _single_conditions(node: exp.Expr, *, negated: bool, word: str = "and") -> Iterator[tuple[exp.Expr, bool, str]]:
    """Yield the conditions that AND and OR connect, whether NOT is around them, and the connector before them.

    Parentheses are ignored, so that the list is flat. `word` is the connector before the first condition.
    """
    if isinstance(node, exp.Paren | exp.Not):
        yield from _single_conditions(node.this, negated=negated != isinstance(node, exp.Not), word=word)
    elif isinstance(node, exp.And | exp.Or):
        for number, part in enumerate(node.flatten()):
            yield from _single_conditions(part, negated=negated, word=node.key if number else word)
    else:
        yield node, negated != bool(node.args.get("negate")), word


def _side_rank(node: exp.Expr, text: str) -> tuple[int, str]:
    """Return the sort key of a side of a comparison: columns by their texts, then queries, then values."""
    return (2 if text == VALUE else int(isinstance(node.unnest(), exp.Query)), text)


def _arms(reading: Reading, label: str) -> list[str]:
    """Return the arms of a set operation of the same kind without other clauses; else the query as one arm."""
    if any(texts for name, texts in reading.clauses.items() if name != label):
        return [reading.text]
    return list(reading.clauses.get(label, (reading.text,)))


def _with_last_arm(view: View, operation: str, arm: View) -> View:
    """Return the view with another set operation at its end: chains nest to the right."""
    if view.arm is None:
        return replace(view, operation=operation, arm=arm)
    return replace(view, arm=_with_last_arm(view.arm, operation, arm))


def _with_last_clauses(view: View, last: View) -> View:
    """Return the view with ORDER BY and LIMIT of the whole at its last arm, where texts have them."""
    if last.order is None and last.limit is None:
        return view
    if view.arm is not None:
        return replace(view, arm=_with_last_clauses(view.arm, last))
    return replace(view, order=last.order, limit=last.limit)
