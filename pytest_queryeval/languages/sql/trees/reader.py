"""The second reader of queries: any dialect that sqlglot parses, normalised for comparison.

Aliases are resolved, literal values are one placeholder, DISTINCT is dropped, columns that a join makes equal are one,
and lists whose order has no meaning are sorted.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.languages.sql.trees.columns import Columns
from pytest_queryeval.languages.sql.trees.parsing import TOO_DEEP, Tree
from pytest_queryeval.languages.sql.trees.scope import Relation, Scope
from pytest_queryeval.languages.sql.trees.select import Reading, SelectReader, limit, order_clauses, ordering
from pytest_queryeval.languages.sql.trees.texts import Texts
from pytest_queryeval.languages.sql.view import View

_OPERATIONS = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except"}
_READ = frozenset(("this", "expression", "distinct", "order", "limit", "offset", "with_"))
_READ_AROUND = frozenset((*_READ, "alias", "joins"))


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
        self._texts = Texts(lambda node, scope: self.read(node, scope).text)
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
        return replace(view, operation=operation, arm=arm)
    return replace(view, arm=_appended(view.arm, operation, arm))


def _ended(view: View, last: View) -> View:
    """Return the view with ORDER BY and LIMIT of the whole at its last arm, where texts have them."""
    if last.order is None and last.limit is None:
        return view
    if view.arm is not None:
        return replace(view, arm=_ended(view.arm, last))
    return replace(view, order=last.order, limit=last.limit)
