"""What the ORDER BY and LIMIT of a SQL query say of its rows, read by sqlglot."""

from __future__ import annotations

import re
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from pytest_queryeval.comparison.ties import UNREADABLE, OrderPlan

RANK = "queryeval_rank"
_ORDER_BY = re.compile(r"\border\s+by\b", re.IGNORECASE)


@lru_cache(maxsize=1024)
def order_plan(query: str, dialect: str) -> OrderPlan | None:
    """The plan of a query; None where its top level has neither ORDER BY nor LIMIT, or cannot be parsed."""
    try:
        statements = [tree for tree in sqlglot.parse(query, dialect=dialect) if isinstance(tree, exp.Query)]
    except (SqlglotError, RecursionError):
        return UNREADABLE if _ORDER_BY.search(query) else None
    if len(statements) != 1:
        return None
    tree = statements[0]
    order, limit = tree.args.get("order"), tree.args.get("limit")
    offset = _whole_number(tree.args.get("offset"))
    if order is None and (limit is None or _orders_inside(tree)):
        return None
    uncut = tree.copy()
    uncut.set("limit", None)
    uncut.set("offset", None)
    return OrderPlan(
        ordered=order is not None,
        limited=limit is not None and offset is not None,
        offset=offset or 0,
        ranked=_ranked(uncut, dialect),
        uncut=uncut.sql(dialect=dialect),
        keys=_selected_keys(tree, order),
    )


def _whole_number(clause: exp.Expression | None) -> int | None:
    """The number of an OFFSET clause, 0 without one, None where it is not a plain number."""
    if clause is None:
        return 0
    text = clause.expression.name if clause.expression else ""
    return int(text) if text.isdigit() else None


def _orders_inside(query: exp.Query) -> bool:
    """Whether some ORDER BY below the top level may have ordered the rows that LIMIT takes (windows order nothing)."""
    return any(not isinstance(order.parent, exp.Window) for order in query.find_all(exp.Order))


def _ranked(uncut: exp.Query, dialect: str) -> tuple[str, ...]:
    """`uncut` with the dense rank of its sort keys behind its columns; nothing for DISTINCT and set operations.

    A name within a sort expression is a column of the tables first, and an alias only where there is no such column:
    the second query, if it differs, reads it so.
    """
    order = uncut.args.get("order")
    if order is None or not isinstance(uncut, exp.Select) or uncut.args.get("distinct"):
        return ()
    texts = []
    for replace in (_expanded, _fully_expanded):
        keys = [replace(key, uncut) for key in order.expressions]
        if None in keys:
            return ()
        rank = exp.Window(this=exp.Anonymous(this="DENSE_RANK"), order=exp.Order(expressions=keys))
        texts.append(uncut.select(exp.alias_(rank, RANK), copy=True).sql(dialect=dialect))
    return tuple(dict.fromkeys(texts))


def _expanded(key: exp.Expression, select: exp.Select) -> exp.Expression | None:
    """The sort key with a position or an alias replaced by what it stands for, as a window cannot use them."""
    key = key.copy()
    core = _core(key)
    if isinstance(core, exp.Literal) and not core.is_string:
        column = _projection_at(select, core.name)
        if column is None:
            return None
        core.replace(exp.paren(column.unalias().copy()))
    elif isinstance(core, exp.Column) and not core.table and core.name.lower() in (aliases := _aliases(select)):
        core.replace(exp.paren(aliases[core.name.lower()].copy()))
    return key


def _fully_expanded(key: exp.Expression, select: exp.Select) -> exp.Expression | None:
    """`_expanded`, also with the aliases within an expression."""
    expanded = _expanded(key, select)
    if expanded is None or isinstance(_core(key), exp.Column):
        return expanded
    aliases = _aliases(select)
    for column in list(expanded.find_all(exp.Column)):
        if not column.table and column.name.lower() in aliases:
            column.replace(exp.paren(aliases[column.name.lower()].copy()))
    return expanded


def _core(key: exp.Expression) -> exp.Expression:
    """What a sort key sorts by, without direction, collation and parentheses."""
    while isinstance(key, exp.Ordered | exp.Collate | exp.Paren):
        key = key.this
    return key


def _aliases(select: exp.Select) -> dict[str, exp.Expression]:
    return {item.alias.lower(): item.this for item in select.expressions if isinstance(item, exp.Alias)}


def _projection_at(query: exp.Query, ordinal: str) -> exp.Expr | None:
    items = query.selects
    place = int(ordinal) - 1 if ordinal.isdigit() else -1
    if not 0 <= place < len(items) or any(item.is_star for item in items[: place + 1]):
        return None
    return items[place]


def _selected_keys(query: exp.Query, order: exp.Expression | None) -> tuple[int | str, ...] | None:
    """The output column of each sort key; None where some key is not selected."""
    if order is None:
        return None
    keys = [(key.this if isinstance(key, exp.Ordered) else key).unnest() for key in order.expressions]
    columns = [_output_column(key, query) for key in keys]
    return None if None in columns else tuple(column for column in columns if column is not None)


def _output_column(key: exp.Expression, query: exp.Query) -> int | str | None:
    if isinstance(key, exp.Literal) and not key.is_string:
        return int(key.name) - 1 if key.name.isdigit() else None
    for place, item in enumerate(query.selects):
        if item.is_star:
            break
        named = isinstance(key, exp.Column) and not key.table and item.alias_or_name.lower() == key.name.lower()
        if named or item.unalias() == key:
            return place
    return key.name if isinstance(key, exp.Column) and not key.table else None
