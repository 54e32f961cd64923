"""Which rows of an ordered SQL answer tie, and which rows a LIMIT cut off from among them.

The gold query is run once more without its LIMIT and with the dense rank of its sort keys as one more column, so that
keys which are not selected, collations and null orders are judged by the database itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from pytest_queryeval.comparison.policy import Policy, canonical_rows
from pytest_queryeval.model import Execution
from pytest_queryeval.table import Row, Table, Tie

RANK = "queryeval_rank"
_ORDER_BY = re.compile(r"\border\s+by\b", re.IGNORECASE)
NO_KEYS = "order: gold's sort keys could not be read, so its rows must stand in exactly their order"
SELECTED_KEYS = "order: only selected keys decide which of gold's rows tie"
UNCUT_FAILED = "order: the rows that gold's LIMIT cut off could not be read, so only the rows it returned count"
CUT = "order: gold's LIMIT cuts through rows that tie, so any choice among them is right"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPlan:
    """What a query says of the order of its rows, with the queries that would tell more.

    `ranked` queries end in the rank of the sort keys, and the first that runs counts; `uncut` is the query without
    LIMIT and OFFSET. `keys` are the output columns that hold all sort keys, by position (from 0) or by name, or None
    where some key is not selected.
    """

    ordered: bool
    limited: bool
    offset: int
    ranked: tuple[str, ...]
    uncut: str | None
    keys: tuple[int | str, ...] | None


# A query that the engine runs and the parser does not read: its rows must stand in exactly their order.
UNREADABLE = OrderPlan(ordered=True, limited=False, offset=0, ranked=(), uncut=None, keys=None)


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


def ties_of(
    plan: OrderPlan, table: Table, policy: Policy, run: Callable[[str], Execution]
) -> tuple[tuple[Tie, ...] | None, tuple[str, ...]]:
    """The ties of gold's answer, or None where they could not be told, and notes that say how they were found."""
    for query, read_groups, notes in _attempts(plan, _positions(plan, table), policy):
        full = run(query).answer
        if full is None:
            continue
        ties = _cut(read_groups(full), plan.offset if plan.limited else 0, table, policy)
        if ties is not None:
            cut = (CUT,) if any(len(tie.rows) > tie.size for tie in ties) else ()
            return ties, (*notes, *cut)
    return _selected_ties(plan, table, policy)


Groups = Callable[[Table], list[list[Row]]]


def _attempts(
    plan: OrderPlan, positions: Sequence[int] | None, policy: Policy
) -> Iterator[tuple[str, Groups, tuple[str, ...]]]:
    if not plan.ordered:
        if plan.uncut:
            yield plan.uncut, lambda full: [list(full.rows)], ()
        return
    for ranked in plan.ranked:
        yield ranked, _groups_by_rank, ()
    if plan.uncut and plan.limited and positions is not None:
        yield plan.uncut, lambda full: _groups_by_keys(full, positions, policy), (SELECTED_KEYS,)


def _selected_ties(plan: OrderPlan, table: Table, policy: Policy) -> tuple[tuple[Tie, ...] | None, tuple[str, ...]]:
    """Ties by the selected keys of the rows that gold returned, where running gold again has failed."""
    cut = (UNCUT_FAILED,) if plan.limited else ()
    positions = _positions(plan, table)
    if not plan.ordered or positions is None:
        return None, (*cut, *((NO_KEYS,) if plan.ordered else ()))
    groups = _groups_by_keys(table, positions, policy)
    return tuple(Tie(size=len(rows), rows=tuple(rows)) for rows in groups), (SELECTED_KEYS, *cut)


def _groups_by_rank(full: Table) -> list[list[Row]]:
    return [[row[:-1] for row in rows] for _, rows in groupby(full.rows, key=lambda row: row[-1])]


def _groups_by_keys(table: Table, positions: Sequence[int], policy: Policy) -> list[list[Row]]:
    keys = [tuple(row[position] for position in positions) for row in canonical_rows(table, policy)]
    return [
        [row for _, row in pairs] for _, pairs in groupby(zip(keys, table.rows, strict=True), key=lambda pair: pair[0])
    ]


def _cut(groups: list[list[Row]], offset: int, table: Table, policy: Policy) -> tuple[Tie, ...] | None:
    """The part of the groups that the answer covers; None where the answer's rows are not those of the groups."""
    start, end = offset, offset + len(table.rows)
    ties = []
    position = taken = 0
    for rows in groups:
        size = min(position + len(rows), end) - max(position, start)
        position += len(rows)
        if size <= 0:
            continue
        allowed = Counter(_canonical(rows, table, policy))
        mine = Counter(_canonical(table.rows[taken : taken + size], table, policy))
        if mine - allowed:
            return None
        ties.append(Tie(size=size, rows=tuple(rows)))
        taken += size
    return tuple(ties) if taken == len(table.rows) else None


def _canonical(rows: Sequence[Row], table: Table, policy: Policy) -> Sequence[tuple[Hashable, ...]]:
    return canonical_rows(Table(columns=table.columns, rows=list(rows)), policy)


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


def _positions(plan: OrderPlan, table: Table) -> tuple[int, ...] | None:
    """Where gold's sort keys stand in its answer; None where one of them is not there, or is there twice."""
    names = [name.lower() for name in table.columns]
    found = []
    for key in plan.keys or ():
        if isinstance(key, str):
            key = names.index(key.lower()) if names.count(key.lower()) == 1 else -1
        found.append(key)
    return tuple(found) if found and all(0 <= key < len(names) for key in found) else None
