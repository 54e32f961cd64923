"""Rewrites a SQL query so that sort keys can decide all choices of the database, not only some of them.

Windows get their clauses, and DISTINCT ON its ORDER BY. LIMIT reads rows that may be sorted by any column. Values that
SQLite takes from any row of a group are taken from the first row that row_number() counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import chain

from sqlglot import exp

from pytest_queryeval.languages.sql.choices import (
    Choice,
    bare_columns,
    choices_in,
    extremes,
    group_keys,
    is_alias,
    top_query,
    window_clauses,
)
from pytest_queryeval.languages.sql.columns import Columns

ROWS = "queryeval_rows"
_PICK = "queryeval_pick"
_BEFORE = ("from_", "joins", "where")
_BEHIND = ("expressions", "group", "having", "order", "qualify", "windows")


def sortable_choices(tree: exp.Query, dialect: str, tables: Mapping[str, tuple[str, ...]]) -> list[Choice]:
    """Rewrite a tree, without changing what the query may return, and return the choices that sort keys then decide.

    `tables` are the columns of the tables, in lower case.
    """
    for choice in choices_in(tree, dialect):
        match choice.kind:
            case "window":
                _write_out(choice)
            case "distinct on" if not choice.query.args.get("order"):
                on = choice.query.args["distinct"].args["on"]
                keys = [ordered(key.copy()) for key in on.expressions or [on]]
                choice.query.set("order", exp.Order(expressions=keys))
            case "limit" if _sorts_by_output(choice.query):
                _wrap(choice.query)
            case "aggregate" if choice.node.args.get("count") and not isinstance(choice.node.this, exp.Distinct):
                _write_list(choice.node, dialect)
            case "bare columns":
                assert isinstance(choice.query, exp.Select)
                _number_rows(choice.query, Columns(tables, dialect))
    return [
        choice
        for choice in choices_in(tree, dialect)
        if choice.kind != "bare columns" and not (choice.kind == "limit" and _sorts_by_output(choice.query))
    ]


def ordered(key: exp.Expr, *, is_descending: bool = False) -> exp.Ordered:
    """Return a sort key for an expression; NULLs sort last in every dialect and direction.

    The key takes over the expression without copying it, so the expression must have no parent.
    """
    return exp.Ordered(this=key, desc=is_descending)


def arms_of(tree: exp.Expr) -> Iterator[exp.Select]:
    """Yield the SELECTs whose rows a query returns: itself, or the arms of set operations."""
    tree = top_query(tree)
    if isinstance(tree, exp.Select):
        yield tree
    elif isinstance(tree, exp.SetOperation):
        yield from arms_of(tree.this)
        yield from arms_of(tree.expression)


def value_of_row(expression: exp.Expr) -> exp.Expr:
    """Return an expression in which the row's own columns replace those that a rewritten SELECT takes from a first row.

    `sortable_choices` rewrites SQLite's bare columns in that form; other expressions are returned unchanged.
    """
    return expression.transform(_column_of_row) if expression.find(exp.Max) else expression


def _column_of_row(node: exp.Expr) -> exp.Expr:
    case = node.this if isinstance(node, exp.Max) else None
    branch: exp.If | None = case.args["ifs"][0] if isinstance(case, exp.Case) else None
    is_of_row = branch is not None and isinstance(branch.this, exp.EQ) and branch.this.this.name == _PICK
    return branch.args["true"].copy() if branch is not None and is_of_row else node


def _write_out(choice: Choice) -> None:
    """Give a window the clauses of the definition in WINDOW that it names."""
    clauses = window_clauses(choice.node, choice.query)
    if clauses is not choice.node:
        copied = clauses.copy()
        choice.node.set("alias", None)
        for name in ("partition_by", "order", "spec"):
            choice.node.set(name, choice.node.args.get(name) or copied.args.get(name))


def _write_list(node: exp.Expr, dialect: str) -> None:
    """Replace a call of arg_max() or arg_min() with a count by the first elements of a sorted list."""
    whole = node.parent if isinstance(node.parent, exp.Filter) else node
    value, key, number = (node.args[name].sql(dialect) for name in ("this", "expression", "count"))
    condition = f"{value} IS NOT NULL AND {key} IS NOT NULL"
    if whole is not node:
        condition += f" AND ({whole.expression.this.sql(dialect)})"
    way = "DESC" if isinstance(node, exp.ArgMax) else "ASC"
    text = f"(LIST({value} ORDER BY {key} {way}) FILTER (WHERE {condition}))[1:{number}]"
    whole.replace(exp.maybe_parse(text, dialect=dialect))


def _sorts_by_output(query: exp.Query) -> bool:
    """Return whether the rows of a query can be sorted only by the columns that it returns."""
    return isinstance(query, exp.SetOperation) or query.args.get("distinct") is not None


def _wrap(query: exp.Query) -> None:
    """Move ORDER BY, LIMIT and OFFSET of a query into a SELECT around it, which can sort by all its columns.

    Does nothing if the query's columns have no different names, or a sort key is not among them.
    """
    items = next(arms_of(query)).expressions
    names = [item.alias_or_name for item in items]
    places = {item.unalias().sql().lower(): name for item, name in zip(items, names, strict=True)}
    places |= {name.lower(): name for name in names} | {str(place): name for place, name in enumerate(names, start=1)}
    order = query.args.get("order")
    keys = order.expressions if order is not None else []
    is_known = all(key.this.sql().lower() in places for key in keys)
    if not is_known or not all(names) or len({name.lower() for name in names}) < len(names):
        return
    wrapping = exp.select("*")
    query.replace(wrapping)
    for key in keys:
        key.set("this", exp.column(places[key.this.sql().lower()], quoted=True))
    for clause in ("order", "limit", "offset"):
        wrapping.set(clause, query.args.get(clause))
        query.set(clause, None)
    wrapping.set("from_", exp.From(this=query.subquery(ROWS, copy=False)))


def _number_rows(select: exp.Select, columns: Columns) -> None:
    """Take the bare columns of a grouped SELECT from the first row of each group; changes the tree.

    FROM and WHERE become a nested query, which numbers the rows of each group. With a single MIN or MAX, rows that have
    its value come first, as in SQLite.
    """
    if select.is_star:
        items, joins = columns.items(select), select.args.get("joins") or ()
        if items is None or any([*columns.names(select).joined_columns(join)] for join in joins):
            return
        select.set("expressions", [exp.alias_(item, name, quoted=True) for name, item in items])
    bare = {id(column) for column in bare_columns(select)}
    keys = []
    for extreme in extremes(select):
        keys.append(ordered(exp.Is(this=extreme.this.copy(), expression=exp.null())))
        keys.append(ordered(extreme.this.copy(), is_descending=isinstance(extreme, exp.Max)))
    partition = [key.copy() for key in group_keys(select)]
    order = exp.Order(expressions=keys) if keys else None
    window = exp.Window(this=exp.RowNumber(), partition_by=partition, order=order, over="OVER")
    group = select.args.get("group")
    if group is not None:
        group.set("expressions", [key.copy() for key in partition])
    _nest(select, {_PICK: window}, bare)


def can_nest(select: exp.Select) -> bool:
    """Return whether `nest_windows` can rewrite a SELECT."""
    clauses = {name for name, clause in select.args.items() if clause}
    is_plain = clauses <= {*_BEFORE, *_BEHIND, "with_", "distinct", "limit", "offset"} - {"group", "having"}
    return is_plain and not any(part.find(exp.Query, exp.Star) for part in _parts_behind(select))


def nest_windows(select: exp.Select) -> None:
    """Move windows on which other windows depend into columns of a nested query, from which the SELECT then reads."""
    windows = [node for part in _parts_behind(select) for node in part.find_all(exp.Window)]
    inner = [it for it in windows if isinstance(it.find_ancestor(exp.Window, exp.Query), exp.Window)]
    inner = [it for it in inner if it.find_ancestor(exp.Query) is select]
    names = {text: f"{_PICK}_{number}" for number, text in enumerate(dict.fromkeys(window.sql() for window in inner))}
    columns = {names[window.sql()]: window.copy() for window in inner}
    for window in inner:
        window.replace(exp.column(names[window.sql()]))
    if columns:
        _nest(select, columns)


def _parts_behind(select: exp.Select) -> list[exp.Expr]:
    """Return the parts of a SELECT that use the rows of its FROM and WHERE."""
    clauses = (select.args.get(name) or [] for name in _BEHIND)
    return list(chain.from_iterable(clause if isinstance(clause, list) else [clause] for clause in clauses))


def _nest(select: exp.Select, columns: Mapping[str, exp.Expr], bare: Collection[int] = ()) -> None:
    """Move FROM and WHERE of a SELECT into a nested query with these extra columns; changes the tree.

    `bare` are the ids of the columns whose values the SELECT takes from the row that is the first by _PICK.
    """
    inner = exp.Select().select(*(exp.alias_(value, name) for name, value in columns.items()))
    names: dict[str, str] = {}
    read = [column for part in _parts_behind(select) for column in part.find_all(exp.Column)]
    for column in [it for it in read if not is_alias(it, select) and it.name not in columns]:
        text = column.sql()
        if text not in names:
            names[text] = f"queryeval_{len(names)}"
            inner = inner.select(exp.alias_(column.copy(), names[text]), copy=False)
        renamed: exp.Expr = exp.column(names[text])
        if id(column) in bare:
            renamed = exp.Max(this=exp.Case().when(exp.column(_PICK).eq(1), renamed))
        column.replace(exp.alias_(renamed, column.name, quoted=True) if column.parent is select else renamed)
    for clause in _BEFORE:
        inner.set(clause, select.args.get(clause))
        select.set(clause, None)
    select.set("from_", exp.From(this=inner.subquery(ROWS, copy=False)))
