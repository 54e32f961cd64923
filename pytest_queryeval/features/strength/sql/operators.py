"""Operators: functions from a SELECT, or a query, to the edits that people and models make by mistake.

The operators of conditions come first (comparisons, values, connectors, patterns, dropped conditions), then operators
of clauses (columns, aggregates, DISTINCT, joins, grouping, order, limits, set operations). No operator changes the
tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple, TypeAlias

from sqlglot import Dialect, exp

from pytest_queryeval.core.db_schema import TableDefinition, Tables
from pytest_queryeval.features.strength import numbers_beside
from pytest_queryeval.languages.sql.columns import Columns, Names, at_position, find_cte

NodeType: TypeAlias = type[exp.Expr]  # of nodes
COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)

_BOUNDARIES: dict[NodeType, NodeType] = {exp.GT: exp.GTE, exp.GTE: exp.GT, exp.LT: exp.LTE, exp.LTE: exp.LT}
# In the order of COMPARISONS: =, <>, >, >=, <, <=.
_FLIPPED: dict[NodeType, NodeType] = dict(
    zip(COMPARISONS, (exp.NEQ, exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE), strict=True)
)
_AGGREGATES: dict[NodeType, NodeType] = {exp.Min: exp.Max, exp.Max: exp.Min, exp.Sum: exp.Avg, exp.Avg: exp.Sum}
_SWAPPED: dict[NodeType, NodeType] = {exp.Add: exp.Sub, exp.Sub: exp.Add, exp.Mul: exp.Div, exp.Div: exp.Mul}
_SET_OPERATIONS: dict[NodeType, tuple[NodeType, ...]] = {
    exp.Union: (exp.Intersect,),
    exp.Intersect: (exp.Union, exp.Except),
    exp.Except: (exp.Intersect, exp.Union),
}


class Mutation(NamedTuple):
    """An edit of a tree: `new` replaces `node`; if `new` is None, `node` is removed.

    `operator` names the type of change. `change` describes the edit if the texts of both nodes would be too long.
    """

    node: exp.Expr
    new: exp.Expr | None
    operator: str
    change: str = ""


class Site(NamedTuple):
    """A SELECT to change, with the tables of the source and the columns to which names refer."""

    select: exp.Select
    tables: Tables
    columns: Columns
    dialect: str

    @property
    def names(self) -> Names:
        """The tables and aliases to which names in the SELECT refer."""
        return self.columns.names(self.select)

    @property
    def conditions(self) -> Iterator[exp.Expr]:
        """All nodes of the conditions of ON, WHERE and HAVING; of nested queries only their root."""
        return chain.from_iterable(map(own_nodes, self.clauses))

    @property
    def clauses(self) -> Iterator[exp.Expr]:
        """The conditions of ON, WHERE and HAVING."""
        for join in self.select.args.get("joins") or ():
            if (on := join.args.get("on")) is not None:
                yield on
        for name in ("where", "having"):
            if (clause := self.select.args.get(name)) is not None:
                yield clause.this

    def table(self, alias: str) -> TableDefinition | None:
        """Return the table of an alias in FROM; None for nested queries, queries of WITH and unknown tables.

        `alias` is in lower case; raise `KeyError` if FROM has no such alias.
        """
        node = self.names.sources[alias].node
        is_table = isinstance(node, exp.Table) and find_cte(node) is None
        return self.tables.get(node.name.lower()) if is_table else None


def comparisons(site: Site) -> Iterator[Mutation]:
    """Yield edits that include or exclude the boundary of a comparison, or flip it; equalities of joins are kept."""
    for node in site.conditions:
        if type(node) in _BOUNDARIES:
            yield Mutation(node, of_type(node, _BOUNDARIES[type(node)]), "comparison-boundary")
        joins = isinstance(node, exp.EQ) and isinstance(node.find_ancestor(exp.Join, exp.Query), exp.Join)
        if type(node) in _FLIPPED and not joins:
            yield Mutation(node, of_type(node, _FLIPPED[type(node)]), "comparison-flip")


def values(site: Site) -> Iterator[Mutation]:
    """Yield edits that change a number by one, also a whole number in a text."""
    for node in site.conditions:
        if isinstance(node, COMPARISONS) and isinstance(node.expression, exp.Literal):
            for new in _neighbouring_literals(node.expression):
                yield Mutation(node, replaced(node, expression=new), "value")
        elif isinstance(node, exp.Between | exp.In):
            operands = [node.args.get("low"), node.args.get("high"), *node.expressions]
            for literal in operands:
                for new in _neighbouring_literals(literal) if isinstance(literal, exp.Literal) else ():
                    yield Mutation(literal, new, "value")


def connectors(site: Site) -> Iterator[Mutation]:
    """Yield edits that exchange AND and OR in conditions, or keep only one of the two conditions that they join."""
    for clause in site.clauses:
        for node in own_nodes(clause):
            if not isinstance(node, exp.And | exp.Or):
                continue
            sides = [side.copy() for side in (node.this, node.expression)]
            if isinstance(node, exp.And):
                new: exp.Expr = exp.Or(this=sides[0], expression=sides[1])
                new = exp.Paren(this=new) if isinstance(node.parent, exp.And | exp.Not) else new
            else:
                sides = [exp.Paren(this=side) if isinstance(side, exp.Or) else side for side in sides]
                new = exp.And(this=sides[0], expression=sides[1])
            yield Mutation(node, new, "connector")
            for kept_condition, dropped in ((node.this, node.expression), (node.expression, node.this)):
                if isinstance(dropped, exp.And | exp.Or):  # its own conditions are left out one by one
                    continue
                change = f"{type(node).__name__.upper()} {dropped.sql(dialect=site.dialect)} dropped"
                yield Mutation(node, kept_condition.copy(), "condition-dropped", change)


def dropped_clauses(site: Site) -> Iterator[Mutation]:
    """Yield edits that leave out WHERE, HAVING or a NOT, or that add NOT to IN, LIKE and EXISTS.

    NOT of IS NULL is kept.
    """
    for name in ("where", "having"):
        clause = site.select.args.get(name)
        if clause is not None:
            yield Mutation(clause, None, f"{name}-dropped")
    for node in site.conditions:
        if isinstance(node, exp.Not) and not isinstance(node.this.unnest(), exp.Is):
            yield Mutation(node, node.this.copy(), "not-dropped")
        elif node.args.get("negate"):
            yield Mutation(node, replaced(node, negate=None), "not-dropped")
        elif isinstance(node, exp.In | exp.Like | exp.Exists) and not isinstance(node.parent, exp.Not):
            yield Mutation(node, exp.Not(this=node.copy()), "not-added")


def null_tests(site: Site) -> Iterator[Mutation]:
    """Yield edits that exchange IS NULL and IS NOT NULL."""
    for node in site.conditions:
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            is_negated = isinstance(node.parent, exp.Not)
            new = node.copy() if is_negated else exp.Not(this=node.copy())
            yield Mutation(node.parent if is_negated and node.parent is not None else node, new, "null-test")


def ranges(site: Site) -> Iterator[Mutation]:
    """Yield two edits for each BETWEEN without NOT: by `>` its lower bound, by `<` its upper bound is excluded."""
    for node in site.conditions:
        if not isinstance(node, exp.Between) or isinstance(node.parent, exp.Not) or node.args.get("negate"):
            continue
        value, low, high = (node.args[name] for name in ("this", "low", "high"))
        for low_type, high_type in ((exp.GT, exp.LTE), (exp.GTE, exp.LT)):
            both_bounds = exp.And(
                this=low_type(this=value.copy(), expression=low.copy()),
                expression=high_type(this=value.copy(), expression=high.copy()),
            )
            yield Mutation(node, exp.Paren(this=both_bounds), "between")


def patterns(site: Site) -> Iterator[Mutation]:
    """Yield edits that remove or add `%` at the start or the end of a pattern of LIKE."""
    for node in site.conditions:
        pattern = node.expression if isinstance(node, exp.Like | exp.ILike) else None
        if not isinstance(pattern, exp.Literal) or not pattern.name.strip("%"):
            continue
        text = pattern.name
        start = text.removeprefix("%") if text.startswith("%") else f"%{text}"
        end = text.removesuffix("%") if text.endswith("%") else f"{text}%"
        for changed in (start, end):
            yield Mutation(pattern, exp.Literal.string(changed), "like")


def _neighbouring_literals(literal: exp.Literal) -> Iterator[exp.Expr]:
    """Yield literals one above and one below a number or a text of a whole number; nothing for other texts."""
    text = literal.name
    is_whole = text.isascii() and text.isdigit() and len(text) < 16 and not text.startswith("0")
    for number in numbers_beside(text) if is_whole or not literal.is_string else ():
        yield exp.Literal.string(number) if literal.is_string else exp.Literal.number(number)


def distinct(site: Site) -> Iterator[Mutation]:
    """Yield an edit that drops or adds DISTINCT; none for DISTINCT ON."""
    select = site.select
    if select.args.get("distinct") is None:
        yield Mutation(select, replaced(select, distinct=exp.Distinct()), "distinct", "DISTINCT added")
    elif not select.args["distinct"].args.get("on"):
        yield Mutation(select, replaced(select, distinct=None), "distinct", "DISTINCT dropped")


def counts(site: Site) -> Iterator[Mutation]:
    """Yield edits that exchange COUNT(*), COUNT(column) and COUNT(DISTINCT column).

    For COUNT(*), the column is the first that may be NULL. Other arguments are not changed.
    """
    for node in _clause_parts(site):
        if not isinstance(node, exp.Count):
            continue
        inner = node.this
        is_distinct = isinstance(inner, exp.Distinct) and len(inner.expressions) == 1
        argument = inner.expressions[0] if is_distinct else inner
        column = _column_to_count(site) if isinstance(argument, exp.Star) else argument
        if not isinstance(column, exp.Column):
            continue
        arguments_by_kind: dict[str, exp.Expr] = {
            "rows": exp.Star(),
            "values": column.copy(),
            "different": exp.Distinct(expressions=[column.copy()]),
        }
        kind = "rows" if isinstance(argument, exp.Star) else "different" if is_distinct else "values"
        for name, new in arguments_by_kind.items():
            if name != kind:
                yield Mutation(node, replaced(node, this=new), "count")


def aggregates(site: Site) -> Iterator[Mutation]:
    """Yield edits that exchange MIN and MAX, or SUM and AVG, except in window functions."""
    for node in _clause_parts(site):
        if type(node) in _AGGREGATES and not isinstance(node.parent, exp.Window) and not node.args.get("expressions"):
            yield Mutation(node, of_type(node, _AGGREGATES[type(node)]), "aggregate")


def joins(site: Site) -> Iterator[Mutation]:
    """Yield edits that exchange inner and left joins with ON or USING; other joins are not changed."""
    for join in site.select.args.get("joins") or ():
        if join.args.get("kind") == "CROSS" or not (join.args.get("on") or join.args.get("using")):
            continue
        if join.side not in ("", "LEFT") or join.args.get("method"):
            continue
        table = join.this.sql(dialect=site.dialect)
        names = [f"LEFT JOIN {table}", f"JOIN {table}"]
        new = replaced(join, side=None if join.side else "LEFT", kind=None)
        yield Mutation(join, new, "join-type", " → ".join(names if join.side else names[::-1]))


def orders(site: Site) -> Iterator[Mutation]:
    """Yield edits that change the ORDER BY of a SELECT."""
    yield from _reordered(site.select, site)


def set_orders(query: exp.Expr, site: Site) -> Iterator[Mutation]:
    """Yield edits that change the ORDER BY of a set operation."""
    if isinstance(query, exp.SetOperation):
        yield from _reordered(query, site)


def _reordered(query: exp.Expr, site: Site) -> Iterator[Mutation]:
    """Yield edits that change the direction of a sort key, or leave out one or all sort keys."""
    order = query.args.get("order")
    if order is None:
        return
    yield Mutation(order, None, "order-dropped")
    for key in order.expressions:
        yield Mutation(key, _opposite_direction(key, site), "order-direction")
        if len(order.expressions) > 1:
            yield Mutation(key, None, "order-key-dropped")


def limits(query: exp.Expr, site: Site) -> Iterator[Mutation]:
    """Yield edits that change LIMIT by one, but not to 0, or leave it out.

    There are none for a LIMIT of 0 or of an expression, in EXISTS, and in SQLite for a query that is used as a value.
    """
    limit = query.args.get("limit") or exp.Limit()
    number = limit.expression
    if not isinstance(number, exp.Literal) or not number.name.isdigit() or not (size := int(number.name)):
        return
    # SQLite takes the first row of a query that is used as a value.
    is_value = isinstance(query.parent, exp.Subquery) and isinstance(query.parent.parent, exp.Binary)
    if isinstance(query.parent, exp.Exists) or (is_value and site.dialect == "sqlite"):
        return
    for changed_size in (size + 1, size - 1):
        if changed_size:
            change = f"LIMIT {size} → LIMIT {changed_size}"
            yield Mutation(number, exp.Literal.number(str(changed_size)), "limit", change)
    yield Mutation(limit, None, "limit")


def groups(site: Site) -> Iterator[Mutation]:
    """Yield edits that leave out a key of GROUP BY, or add a selected column.

    None for ROLLUP, CUBE and GROUPING SETS.
    """
    group = site.select.args.get("group")
    if group is None or any(group.args.get(name) for name in ("cube", "rollup", "grouping_sets", "totals", "all")):
        return
    for key in group.expressions:
        if len(group.expressions) > 1:
            yield Mutation(key, None, "grouping", f"GROUP BY {key.sql(dialect=site.dialect)} dropped")
        else:
            yield Mutation(group, None, "grouping")
    keys = [_grouping_expression(key, site) for key in group.expressions]
    for item in site.select.selects:
        column = item.unalias()
        if isinstance(column, exp.Column) and not column.is_star and column not in keys:
            new = replaced(group, expressions=[*(key.copy() for key in group.expressions), column.copy()])
            yield Mutation(group, new, "grouping", f"GROUP BY {column.sql(dialect=site.dialect)} added")


def _grouping_expression(key: exp.Expr, site: Site) -> exp.Expr:
    """Return the selected expression that a key of GROUP BY names by alias or place, else the key itself."""
    if isinstance(key, exp.Column):
        return site.names.aliased(key) or key
    return at_position(key, site.select).unalias()


def columns(site: Site) -> Iterator[Mutation]:
    """Yield edits that replace a column by the next column of its table with a similar type, in all clauses.

    Columns of queries around the SELECT and of unknown tables are not changed.
    """
    for node in [*_clause_parts(site), *(part for name in ("group", "order") for part in _clause_nodes(site, name))]:
        match = site.columns.find(node) if isinstance(node, exp.Column) and not node.is_star else None
        if not isinstance(node, exp.Column) or match is None or match[0] is not site.names:
            continue
        alias, source = match[1], site.table(match[1])
        if source is None or node.name.lower() not in (column_names := [*source.by_name]):
            continue
        place = column_names.index(node.name.lower())
        family = _family(source.columns[place].type)
        in_turn = (*source.columns[place + 1 :], *source.columns[:place])
        replacement = next((column.name for column in in_turn if _family(column.type) == family), None)
        if replacement is None:
            continue
        new = replaced(node, this=_identifier(replacement, site))
        if len(site.names.sources) > 1:
            new.set("table", new.args["table"] if node.table else exp.to_identifier(alias))
        clause = node.find_ancestor(exp.Join, exp.Query)
        operator = "join-condition" if isinstance(clause, exp.Join) else "column"
        yield Mutation(node, new, operator)


def arithmetic(site: Site) -> Iterator[Mutation]:
    """Yield edits that exchange plus and minus, or times and divided by."""
    for node in _clause_parts(site):
        if type(node) in _SWAPPED:
            yield Mutation(node, of_type(node, _SWAPPED[type(node)]), "arithmetic")


def set_operations(query: exp.Expr, site: Site) -> Iterator[Mutation]:
    """Yield edits that exchange UNION and UNION ALL, UNION, INTERSECT and EXCEPT, or the operands of EXCEPT."""
    if isinstance(query, exp.Union):
        is_distinct = bool(query.args.get("distinct"))
        words = ("UNION", "UNION ALL") if is_distinct else ("UNION ALL", "UNION")
        yield Mutation(query, replaced(query, distinct=not is_distinct), "union-all", " → ".join(words))
    if isinstance(query, exp.Except):
        new = replaced(query, this=query.expression.copy(), expression=query.this.copy())
        yield Mutation(query, new, "except-swapped", "operands of EXCEPT swapped")
    for type_ in _SET_OPERATIONS.get(type(query), ()):  # none for other queries
        new = of_type(query, type_)
        new.set("distinct", True)
        yield Mutation(query, new, "set-operation", f"{query.key.upper()} → {new.key.upper()}")


def _clause_parts(site: Site) -> Iterator[exp.Expr]:
    """Yield the nodes of selected expressions, of conditions, and of sort keys except columns."""
    for item in site.select.expressions:
        yield from own_nodes(item)
    yield from site.conditions
    yield from (node for node in _clause_nodes(site, "order") if not isinstance(node, exp.Column))


def _clause_nodes(site: Site, name: str) -> Iterator[exp.Expr]:
    clause = site.select.args.get(name)
    if clause is not None:
        yield from own_nodes(clause)


def _column_to_count(site: Site) -> exp.Column | None:
    """Return the column to count: the first in FROM that may be NULL, else the first; None if no column is known."""
    # A condition is not true of NULL.
    tested = {(node.table.lower(), node.name.lower()) for node in site.conditions if isinstance(node, exp.Column)}
    columns = [
        (
            column.not_null or not tested.isdisjoint((owner, column.name.lower()) for owner in ("", alias)),
            exp.column(_identifier(column.name, site), table=alias if len(site.names.sources) > 1 else None),
        )
        for alias in site.names.sources
        if (source := site.table(alias)) is not None
        for column in source.columns
    ]
    return next((node for is_never_null, node in columns if not is_never_null), columns[0][1] if columns else None)


def _opposite_direction(key: exp.Expr, site: Site) -> exp.Expr:
    """Return a sort key with the opposite direction, by which NULLs change sides unless the dialect has them last."""
    nulls_first = bool(key.args.get("nulls_first"))
    are_last = Dialect.get_or_raise(site.dialect).NULL_ORDERING == "nulls_are_last"
    return replaced(key, desc=not key.args.get("desc"), nulls_first=nulls_first if are_last else not nulls_first)


def _identifier(name: str, site: Site) -> exp.Identifier:
    """Return the name of a column as an identifier, with quotes if the dialect would change its case without them."""
    return exp.to_identifier(name, quoted=Dialect.get_or_raise(site.dialect).case_sensitive(name) or None)


def _family(type_: str) -> str:
    """Return the name of a family of types, such as TEXT for VARCHAR(10), whose columns can replace each other."""
    name = type_.upper().partition("(")[0].strip()
    if "INT" in name:
        return "INT"
    if name in ("REAL", "FLOAT", "DOUBLE", "NUMERIC", "DECIMAL", "NUMBER"):
        return "REAL"
    return "TEXT" if "CHAR" in name or name in ("TEXT", "STRING", "CLOB") else name


def replaced(node: exp.Expr, **arguments: object) -> exp.Expr:
    """Return a copy of a node in which these arguments have other values."""
    copy = node.copy()
    for name, value in arguments.items():
        copy.set(name, value)
    return copy


def of_type(node: exp.Expr, type_: type[exp.Expr]) -> exp.Expr:
    """Return a node of another type with copies of a node's arguments."""
    return type_(**node.copy().args)


def own_nodes(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the nodes of an expression, of nested queries only their root."""
    yield from tree.walk(prune=lambda node: node is not tree and isinstance(node, exp.Query))
