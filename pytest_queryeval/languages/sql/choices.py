"""Where a SQL query leaves its answer open, below the LIMIT of its top level, which `order.py` reads.

It does so by LIMIT in nested queries, DISTINCT ON, row_number() and values of windows over rows that tie, aggregates
that take any of several values, SQLite's bare columns, and collections without an order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from sqlglot import exp

from pytest_queryeval.languages.sql.columns import find_cte

ChoiceKind: TypeAlias = Literal["limit", "distinct on", "window", "aggregate", "bare columns", "collection"]
WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)  # what stands around the call of a function
_ORDERED_VALUES = (exp.FirstValue, exp.LastValue, exp.NthValue)
_RANKS = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)
_PICKING = (exp.AnyValue, exp.First, exp.Last, exp.ArgMax, exp.ArgMin)
_PICKING_NAMES = frozenset(("arbitrary", "arg_max_null", "arg_min_null"))
_COLLECTING_DIALECTS = frozenset(("sqlite", "duckdb", "postgres"))
_SORTING_DIALECTS = frozenset(("duckdb", "postgres"))  # which sort the rows of any aggregate


class Choice(NamedTuple):
    """A place that leaves the answer open: a window or an aggregate, else the query itself, with its name for readers.

    `query` is the SELECT, or of LIMIT also the set operation, that has it.
    """

    kind: ChoiceKind
    query: exp.Query
    node: exp.Expr
    name: str


def choices_in(tree: exp.Expr, dialect: str) -> list[Choice]:
    """Return the choices of a query, those of inner queries first; recursive queries are left out."""
    found: list[Choice] = []
    for query in tree.find_all(exp.Select, exp.SetOperation):
        if not any(clause.args.get("recursive") for clause in _withs_around(query)):
            found += reversed([*_choices_of(query, dialect, is_top=query is top_query(tree))])
    return found[::-1]


def top_query(tree: exp.Expr) -> exp.Expr:
    """Return the query without the parentheses around it."""
    while isinstance(tree, exp.Subquery):
        tree = tree.this
    return tree


def _choices_of(query: exp.Query, dialect: str, *, is_top: bool) -> Iterator[Choice]:
    clauses = [clause for name in ("limit", "offset") if (clause := query.args.get(name)) is not None]
    if clauses and not is_top and _takes_a_number(clauses[0]):
        text = " ".join(clause.sql(dialect=dialect).strip() for clause in clauses)
        yield Choice("limit", query, query, f"{text} in a nested query")
    if not isinstance(query, exp.Select):
        return
    distinct = query.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None:
        yield Choice("distinct on", query, query, f"DISTINCT ON {distinct.args['on'].sql(dialect=dialect)}")
    decided = _decided_windows(query)
    calls = Counter(_spelling(node) for node in own_nodes(query) if _picks(node))
    for node in own_nodes(query):
        text = node.sql(dialect=dialect) if isinstance(node, exp.Func) else ""
        if isinstance(node, exp.Window) and any(node is window for window in decided):
            yield Choice("window", query, node, _window_name(node, query, dialect))
        elif dialect in _COLLECTING_DIALECTS and _collects(node, query) and _is_only_returned(node, query):
            yield Choice("collection", query, node, f"{text} without ORDER BY")
        elif dialect in _SORTING_DIALECTS and _picks(node) and calls[_spelling(node)] == 1:  # else they are one
            yield Choice("aggregate", query, node, text)
    if dialect == "sqlite" and (bare := bare_columns(query)):
        names = ", ".join(dict.fromkeys(column.sql(dialect=dialect) for column in bare))
        yield Choice("bare columns", query, query, f"{names} of any row of a group")


def _withs_around(node: exp.Expr) -> Iterator[exp.With]:
    parent: exp.Expr | None = node
    while parent is not None:
        if isinstance(parent, exp.With):
            yield parent
        parent = parent.parent


def _takes_a_number(limit: exp.Expr) -> bool:
    """Return whether a LIMIT takes a number of rows: not all that tie with the last, nor a share of them."""
    options = limit.args.get("limit_options")
    return options is None or not (options.args.get("with_ties") or options.args.get("percent"))


def own_nodes(select: exp.Query) -> Iterator[exp.Expr]:
    """Yield the nodes of a SELECT, without those of queries in it."""
    for child in select.iter_expressions():
        if not isinstance(child, exp.With):
            for node in child.walk(prune=lambda it: isinstance(it, exp.Query)):
                if not isinstance(node, exp.Query):
                    yield node


def call_within(node: exp.Expr) -> exp.Expr:
    """Return the call of a function that a window or a selected expression is, without FILTER and the like."""
    while isinstance(node, exp.Window | exp.Paren | exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        node = node.this
    return node


def window_clauses(window: exp.Expr, select: exp.Query) -> exp.Expr:
    """Return the window with the clauses of one: itself, or that of WINDOW which it names."""
    name = window.args.get("alias")
    named = (it for it in select.args.get("windows") or () if name is not None and it.name.lower() == name.name.lower())
    return next(named, window)


def _spelling(node: exp.Expr) -> str:
    """Return an expression as text, the same whether or not its columns have their table, and in any letter case."""
    plain = node.copy()
    for column in plain.find_all(exp.Column):
        column.set("table", None)
    return plain.sql(comments=False).lower()


def sorting_of(window: exp.Expr, select: exp.Query) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the same value for windows of one SELECT that sort the same rows by the same keys, however written."""
    clauses = window_clauses(window, select)
    order = clauses.args.get("order")
    keys = (
        f"{_spelling(key.this)} {bool(key.args.get('desc'))} {bool(key.args.get('nulls_first'))}"
        for key in (order.expressions if order is not None else ())
    )
    return frozenset(map(_spelling, clauses.args.get("partition_by") or ())), tuple(keys)


def _decided_windows(select: exp.Select) -> list[exp.Window]:
    """Return the windows that further sort keys decide, and change nothing else.

    Windows that sort alike have the same order of rows: if keys cannot decide one of them, they decide none.
    """
    windows = [node for node in own_nodes(select) if isinstance(node, exp.Window) and node.arg_key != "windows"]
    sensitive = [window for window in windows if _depends_on_ties(window, select)]
    undecidable = {sorting_of(window, select) for window in sensitive if not _is_decidable(window, select)}
    return [window for window in sensitive if sorting_of(window, select) not in undecidable]


def _depends_on_ties(window: exp.Window, select: exp.Select) -> bool:
    """Return whether the value of a window depends on the order of rows that tie."""
    if isinstance(call_within(window), _RANKS):
        return False
    frame = window.args.get("spec") or window_clauses(window, select).args.get("spec")
    is_sum = isinstance(call_within(window), exp.Sum | exp.Avg | exp.Min | exp.Max | exp.Count)
    return not is_sum or (frame is not None and str(frame.args.get("kind")).upper() == "ROWS")


def _is_decidable(window: exp.Window, select: exp.Select) -> bool:
    """Return whether further sort keys of a window only decide between values that it may give."""
    function = call_within(window)
    if isinstance(function, exp.RowNumber):
        return True
    if not isinstance(function, _ORDERED_VALUES):
        return False
    frame = window.args.get("spec") or window_clauses(window, select).args.get("spec")
    if frame is None:  # from the first row on, to the last that ties, which may have the first value
        return isinstance(function, exp.FirstValue) and window.find(exp.IgnoreNulls) is None
    return str(frame.args.get("kind")).upper() == "ROWS" and frame.args.get("exclude") is None


def _window_name(window: exp.Window, select: exp.Select, dialect: str) -> str:
    order = window_clauses(window, select).args.get("order")
    call = call_within(window).sql(dialect=dialect).lower()
    if order is None:
        return f"{call} over rows without order"
    return f"{call} over ties of {', '.join(key.this.sql(dialect=dialect) for key in order.expressions)}"


def _picks(node: exp.Expr) -> bool:
    """Return whether an aggregate, such as ANY_VALUE, takes its value from one of several rows."""
    if isinstance(outside(node), exp.Window):
        return False
    return isinstance(node, _PICKING) or (isinstance(node, exp.Anonymous) and node.name.lower() in _PICKING_NAMES)


def _collects(node: exp.Expr, select: exp.Select) -> bool:
    """Return whether an aggregate makes a text or a list of rows in any order."""
    if not isinstance(node, exp.GroupConcat | exp.ArrayAgg) or isinstance(node.this, exp.Order):
        return False
    separator = node.args.get("separator")
    if isinstance(node.parent, exp.Window | exp.Filter | exp.WithinGroup):
        return False
    if separator is not None and not (isinstance(separator, exp.Literal) and separator.is_string):
        return False
    from_ = select.args.get("from_")
    item = from_.this if from_ is not None else None
    source = find_cte(item) if isinstance(item, exp.Table) else item
    return not (isinstance(source, exp.Subquery | exp.CTE) and source.this.args.get("order"))


def _is_only_returned(call: exp.Expr, select: exp.Select) -> bool:
    """Return whether the value of a call is an output column of the whole query, and is used for nothing else.

    So the SELECT is the query itself, an arm of UNION ALL in it, or all that queries around it read and pass on.
    """
    if not _passes_on(select, call):
        return False
    query: exp.Expr = select
    while (around := query.parent) is not None:
        if isinstance(around, exp.SetOperation) and (not isinstance(around, exp.Union) or around.args.get("distinct")):
            return False
        if isinstance(around, exp.Select | exp.CTE | exp.With | exp.From | exp.Join):
            return False
        query = around
    return True


def _passes_on(select: exp.Select, call: exp.Expr) -> bool:
    """Return whether a SELECT has a call as one of its items, and no other part that depends on its value.

    Another collection does so only where it is an item itself: collections of one SELECT have one order.
    """
    place, item = next(((at, it) for at, it in enumerate(select.expressions, 1) if it.unalias() is call), (0, call))
    if not place or select.args.get("distinct"):
        return False
    calls = [it.unalias() for it in select.expressions if isinstance(it.unalias(), exp.GroupConcat | exp.ArrayAgg)]
    nested = [node for node in own_nodes(select) if isinstance(node, exp.GroupConcat | exp.ArrayAgg)]
    names = {item.alias_or_name.lower()} - {""}
    others = [it for it in select.expressions if it is not item]
    others += [clause for name in ("having", "order", "qualify") if (clause := select.args.get(name)) is not None]
    order = select.args.get("order")
    keys = [key.this for key in order.expressions] if order is not None else []
    return not (
        len(nested) > len(calls)
        or sum(_spelling(other) == _spelling(call) for other in calls) > 1
        or any(column.name.lower() in names for other in others for column in other.find_all(exp.Column))
        or any(isinstance(key, exp.Literal) and key.name == str(place) for key in keys)
    )


def outside(node: exp.Expr) -> exp.Expr | None:
    """Return the node around the call of a function, and around its FILTER and the like."""
    parent = node.parent
    while isinstance(parent, WRAPPERS):
        parent = parent.parent
    return parent


# Groups


def bare_columns(select: exp.Query) -> list[exp.Column]:
    """Return the columns of a grouped SELECT that are neither keys nor aggregated: SQLite takes them from any row.

    None of a query whose parts cannot be told apart, with `*`, or with nested queries or windows in what it returns;
    none next to several minima or maxima, of which one decides.
    """
    group = select.args.get("group")
    parts = [part for part in (*select.expressions, *map(select.args.get, ("having", "order"))) if part is not None]
    nodes = [node for part in parts for node in part.walk()]
    if select.is_star or any(isinstance(node, exp.Query | exp.Window) for node in nodes) or not is_grouped(select):
        return []
    if group is not None and any(value for name, value in group.args.items() if name != "expressions"):
        return []
    if len(decisive := extremes(select)) > 1 or any(isinstance(node.parent, exp.Filter) for node in decisive):
        return []
    keys = group_keys(select)
    return [
        node
        for node in nodes
        if isinstance(node, exp.Column)
        and not is_alias(node, select)
        and not any(is_aggregate(part) or any(_is_same(key, part) for key in keys) for part in _around(node, select))
    ]


def extremes(select: exp.Query) -> list[exp.Expr]:
    """Return the calls of MIN and MAX in a SELECT, each once: bare columns of SQLite are of a row with such a value."""
    calls = [node for node in own_nodes(select) if isinstance(node, exp.Min | exp.Max) and is_aggregate(node)]
    return [*{call.sql().lower(): call for call in calls}.values()]


def is_grouped(select: exp.Query) -> bool:
    """Return whether the rows of a SELECT are groups."""
    if select.args.get("group") is not None:
        return True
    returned = [*select.expressions, *filter(None, [select.args.get("having")])]
    nodes = (node for part in returned for node in part.walk(prune=lambda it: isinstance(it, exp.Query)))
    return any(is_aggregate(node) and not isinstance(outside(node), exp.Window) for node in nodes)


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether a node is the call of an aggregate; MIN and MAX of several arguments are none."""
    return isinstance(node, exp.AggFunc) and not (isinstance(node, exp.Min | exp.Max) and node.expressions)


def group_keys(select: exp.Query) -> list[exp.Expr]:
    """Return what a SELECT groups by; positions and aliases are replaced by what they stand for."""
    group = select.args.get("group")
    aliases = {item.alias.lower(): item.this for item in select.expressions if isinstance(item, exp.Alias)}
    keys = []
    for key in group.expressions if group is not None else ():
        if isinstance(key, exp.Literal) and not key.is_string and 0 < int(key.name) <= len(select.expressions):
            keys.append(select.expressions[int(key.name) - 1].unalias())
        elif isinstance(key, exp.Column) and not key.table and key.name.lower() in aliases:
            keys.append(aliases[key.name.lower()])
        else:
            keys.append(key)
    return keys


def is_alias(column: exp.Column, select: exp.Query) -> bool:
    """Return whether a name in HAVING or ORDER BY is that of a selected expression."""
    aliases = {item.alias.lower() for item in select.expressions if isinstance(item, exp.Alias)}
    is_behind = column.find_ancestor(exp.Order, exp.Having) is not None
    return is_behind and not column.table and column.name.lower() in aliases


def _is_same(one: exp.Expr, other: exp.Expr) -> bool:
    if isinstance(one, exp.Column) and isinstance(other, exp.Column) and not (one.table and other.table):
        return one.name.lower() == other.name.lower()
    return type(one) is type(other) and one.sql().lower() == other.sql().lower()


def _around(node: exp.Expr, select: exp.Query) -> Iterator[exp.Expr]:
    """Yield a node of a SELECT, and the expressions around it."""
    parent: exp.Expr | None = node
    while parent is not None and parent is not select:
        yield parent.unalias()
        parent = parent.parent
