"""Where a SQL query leaves its answer open, below the LIMIT of its top level, which `order.py` reads.

It does so by:
- LIMIT in nested queries, and DISTINCT ON,
- row_number() and values of windows over rows that tie,
- aggregates that take any of several values, and SQLite's bare columns,
- collections without an order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from sqlglot import exp

from pytest_queryeval.languages.sql.columns import aliases_of, at_position, find_cte

ChoiceKind: TypeAlias = Literal[
    "limit", "distinct on", "window", "aggregate", "bare columns", "collection", "sorted input"
]
COLLECTIONS = (exp.GroupConcat, exp.ArrayAgg, exp.JSONArrayAgg)
WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)  # what stands around the call of a function
_ORDERED_VALUES = (exp.FirstValue, exp.LastValue, exp.NthValue)
_RANKS = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)
_PICKING = (exp.AnyValue, exp.First, exp.Last, exp.ArgMax, exp.ArgMin)
_PICKING_NAMES = frozenset(("arbitrary", "arg_max_null", "arg_min_null"))
_COLLECTING_DIALECTS = frozenset(("sqlite", "duckdb", "postgres"))
_SORTING_DIALECTS = frozenset(("duckdb", "postgres"))  # which sort the rows of any aggregate


class Choice(NamedTuple):
    """A place that leaves the answer of a query open, with a name for readers.

    `node` is the window or the aggregate, otherwise the query itself. `query` is the SELECT, or for LIMIT also the set
    operation, that contains the choice. For a sorted input it is the nested SELECT whose ORDER BY leaves open in which
    order another SELECT reads its rows.
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
    return [*{(choice.kind, id(choice.node)): choice for choice in found[::-1]}.values()]


def fixed_columns(tree: exp.Query, choices: Sequence[Choice]) -> tuple[int, ...] | None:
    """Return the positions, from 0, of the output columns that no choice changes.

    None if choices may change which rows there are, or are outside the selected expressions. None also for `*`,
    DISTINCT, set operations, and choices in nested queries.
    """
    select = top_query(tree)
    if not isinstance(select, exp.Select) or select.is_star or select.args.get("distinct"):
        return None
    if any(choice.query is not select or choice.kind in ("limit", "distinct on") for choice in choices):
        return None
    bare = [id(column) for column in bare_columns(select) if any(choice.node is select for choice in choices)]
    chosen = {*bare, *(id(choice.node) for choice in choices if choice.node is not select)}
    items = [{id(node) for node in item.walk()} for item in select.expressions]
    if not chosen <= set().union(*items):
        return None
    is_cut = select.args.get("limit") is not None or select.args.get("offset") is not None
    changed = [place for place, nodes in enumerate(items) if nodes & chosen]
    if is_cut and any(is_sorted_by(select, place) for place in changed):
        return None
    return tuple(place for place in range(len(items)) if place not in changed)


def is_sorted_by(select: exp.Query, place: int) -> bool:
    """Return whether ORDER BY names the selected item at `place`, from 0, by its number from 1, its name or ALL.

    The letter case of names is ignored.
    """
    order = select.args.get("order")
    names = {"all", str(place + 1), *(item.alias_or_name.lower() for item in select.selects[place : place + 1])}
    return order is not None and any(
        part.name.lower() in names for part in order.find_all(exp.Column, exp.Literal, exp.Var)
    )


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
    yield from _sorted_inputs(query, dialect) if _reads_sorted(query) else _choices_among_rows(query, dialect)
    for window in _decided_windows(query):
        yield Choice("window", query, window, _window_name(window, query, dialect))


def _choices_among_rows(select: exp.Select, dialect: str) -> Iterator[Choice]:
    """Yield the choices of a SELECT that nothing sorts: aggregates that take any row, or rows in any order.

    SQLite's bare columns are a choice, too. What counts depends on the dialect.
    """
    nodes = [*own_nodes(select)]
    calls = Counter(spelling(node) for node in nodes if picks(node))
    are_sorted = all(map(_collects_sorted, (node for node in nodes if isinstance(node, COLLECTIONS))))
    for node in nodes:
        if dialect in _COLLECTING_DIALECTS and _collects(node):
            yield Choice("collection", select, node, f"{node.sql(dialect=dialect)} without ORDER BY")
        elif dialect in _COLLECTING_DIALECTS and are_sorted and _collects_sorted(node):
            yield Choice(
                "aggregate", select, node, f"{node.sql(dialect=dialect)} over ties of {_keys_of(node.this, dialect)}"
            )
        elif dialect in _SORTING_DIALECTS and picks(node) and calls[spelling(node)] == 1:  # else they are one
            yield Choice("aggregate", select, node, node.sql(dialect=dialect))
    if dialect == "sqlite" and (bare := bare_columns(select)):
        names = ", ".join(dict.fromkeys(column.sql(dialect=dialect) for column in bare))
        yield Choice("bare columns", select, select, f"{names} of any row of a group")


def _sorted_inputs(select: exp.Select, dialect: str) -> Iterator[Choice]:
    """Yield the nested queries in whose order a SELECT takes rows that may tie, as choices.

    There are none if the SELECT takes no rows by their order.
    """
    windows = [window for window in _windows(select) if window_clauses(window, select).args.get("order") is None]
    calls = [node for node in own_nodes(select) if _collects(node) or picks(node)]
    parts = [node.sql(dialect=dialect) for node in (*calls, *windows)] or [
        it.sql(dialect) for it in bare_columns(select)
    ]
    if parts and dialect in _COLLECTING_DIALECTS:
        for query in _sorting_queries(select):
            names = ", ".join(dict.fromkeys(parts))
            yield Choice("sorted input", query, query, f"{names} over ties of {_keys_of(query.args['order'], dialect)}")


def _withs_around(node: exp.Expr) -> Iterator[exp.With]:
    parent: exp.Expr | None = node
    while parent is not None:
        if isinstance(parent, exp.With):
            yield parent
        parent = parent.parent


def _takes_a_number(limit: exp.Expr) -> bool:
    """Return whether a LIMIT takes a number of rows: no share of them, and not WITH TIES."""
    options = limit.args.get("limit_options")
    return options is None or not (options.args.get("with_ties") or options.args.get("percent"))


def own_nodes(select: exp.Query) -> Iterator[exp.Expr]:
    """Yield the nodes of a SELECT, without those of queries in it."""
    for child in select.iter_expressions():
        if not isinstance(child, exp.With):
            for node in child.walk(prune=lambda it: isinstance(it, exp.Query)):
                if not isinstance(node, exp.Query):
                    yield node


# Windows and aggregates


def call_within(node: exp.Expr) -> exp.Expr:
    """Return the call of a function within a window or a selected expression, without FILTER and the like."""
    while isinstance(node, (exp.Window, exp.Paren, *WRAPPERS)):
        node = node.this
    return node


def argument_of(node: exp.Expr) -> exp.Expr:
    """Return the argument of a call whose values it takes, without DISTINCT and ORDER BY."""
    call = call_within(node)
    argument = call.expressions[0] if isinstance(call, exp.Anonymous) else call.this
    if isinstance(argument, exp.Distinct):
        argument = argument.expressions[0]
    assert isinstance(argument, exp.Expr)
    return argument.this if isinstance(argument, exp.Order) else argument


def window_clauses(window: exp.Expr, select: exp.Query) -> exp.Expr:
    """Return the node that has the clauses of a window: itself, or the definition in WINDOW that it names."""
    name = window.args.get("alias")
    named = (it for it in select.args.get("windows") or () if name is not None and it.name.lower() == name.name.lower())
    return next(named, window)


def spelling(node: exp.Expr) -> str:
    """Return an expression as text in lower case, without tables of columns, parentheses and comments.

    Equal expressions have the same text; different expressions may have it too.
    """
    plain = node.copy().transform(lambda part: part.unnest() if isinstance(part, exp.Paren) else part)
    for column in plain.find_all(exp.Column):
        column.set("table", None)
    return plain.sql(comments=False).lower()


def sorting_of(window: exp.Expr, select: exp.Query) -> frozenset[str]:
    """Return the lower-case names of the columns by which a window partitions and sorts.

    Aliases are replaced by the columns of the expressions that they name.
    """
    clauses = window_clauses(window, select)
    aliases = aliases_of(select)
    keys = [*(clauses.args.get("partition_by") or ()), *filter(None, [clauses.args.get("order")])]
    names = {column.name.lower() for key in keys for column in key.find_all(exp.Column)}
    behind = (column for name in names & aliases.keys() for column in aliases[name].find_all(exp.Column))
    return frozenset({*(names - aliases.keys()), *(column.name.lower() for column in behind)})


def _windows(select: exp.Select) -> list[exp.Window]:
    return [node for node in own_nodes(select) if isinstance(node, exp.Window) and node.arg_key != "windows"]


def _decided_windows(select: exp.Select) -> list[exp.Window]:
    """Return the windows that extra sort keys can decide without another effect.

    Windows that sort by the same columns may have the same order of rows: if keys cannot decide a window, they decide
    none of these. Windows without an order of their own have that of a sorted input, and are left out.
    """
    sensitive = [window for window in _windows(select) if _depends_on_ties(window, select)]
    undecidable = {sorting_of(window, select) for window in sensitive if not _is_decidable(window, select)}
    is_unsorted = not _reads_sorted(select)
    return [
        window
        for window in sensitive
        if sorting_of(window, select) not in undecidable
        and (is_unsorted or window_clauses(window, select).args.get("order") is not None)
    ]


def _depends_on_ties(window: exp.Window, select: exp.Select) -> bool:
    """Return whether the value of a window depends on the order of rows that tie."""
    if isinstance(call_within(window), _RANKS):
        return False
    frame = window.args.get("spec") or window_clauses(window, select).args.get("spec")
    is_sum = isinstance(call_within(window), exp.Sum | exp.Avg | exp.Min | exp.Max | exp.Count)
    return not is_sum or (frame is not None and str(frame.args.get("kind")).upper() == "ROWS")


def _is_decidable(window: exp.Window, select: exp.Select) -> bool:
    """Return whether extra sort keys of a window only decide between values that it may give.

    That holds for row_number(), and for first, last and n-th values with a suitable frame.
    """
    function = call_within(window)
    if isinstance(function, exp.RowNumber):
        return True
    if not isinstance(function, _ORDERED_VALUES):
        return False
    frame = window.args.get("spec") or window_clauses(window, select).args.get("spec")
    if frame is None:  # from the first row on, to the last that ties, which may have the first value
        return isinstance(function, exp.FirstValue) and window.find(exp.IgnoreNulls) is None
    return str(frame.args.get("kind")).upper() == "ROWS" and frame.args.get("exclude") is None


def _window_name(window: exp.Expr, select: exp.Select, dialect: str) -> str:
    order = window_clauses(window, select).args.get("order")
    call = call_within(window).sql(dialect=dialect).lower()
    if order is None:
        return f"{call} over rows without order"
    return f"{call} over ties of {_keys_of(order, dialect)}"


def _keys_of(order: exp.Expr, dialect: str) -> str:
    return ", ".join(key.this.sql(dialect=dialect) for key in order.expressions)


def picks(node: exp.Expr) -> bool:
    """Return whether an aggregate, such as ANY_VALUE, takes its value from one of several rows."""
    is_named = isinstance(node, exp.Anonymous) and node.name.lower() in _PICKING_NAMES
    return (is_named or isinstance(node, _PICKING)) and not isinstance(_outside(node), exp.Window)


def _collects(node: exp.Expr) -> bool:
    """Return whether an aggregate makes a text or a list of rows in any order."""
    if not isinstance(node, COLLECTIONS) or isinstance(node.this, exp.Order) or node.args.get("order"):
        return False
    separator = node.args.get("separator")
    if isinstance(_outside(node), exp.Window | exp.WithinGroup):
        return False
    return separator is None or (isinstance(separator, exp.Literal) and separator.is_string)


def _collects_sorted(node: exp.Expr) -> bool:
    """Return whether an aggregate makes a text or a list of rows in its own order, in which rows may tie."""
    is_sorted = isinstance(node, COLLECTIONS) and isinstance(node.this, exp.Order)
    return is_sorted and not isinstance(node.this.this, exp.Distinct) and not isinstance(_outside(node), exp.Window)


def _sorting_queries(select: exp.Select) -> Iterator[exp.Select]:
    """Yield the nested queries without LIMIT and DISTINCT that alone sort the rows which a SELECT reads.

    Unsorted nested queries are searched in turn.
    """
    for item in filter(None, [select.args.get("from_"), *(select.args.get("joins") or ())]):
        source = find_cte(item.this) if isinstance(item.this, exp.Table) else item.this
        query = top_query(source.this) if isinstance(source, exp.CTE | exp.Subquery) else None
        if not isinstance(query, exp.Select) or query.args.get("distinct") is not None:
            continue
        if query.args.get("order") is None:
            yield from () if is_grouped(query) else _sorting_queries(query)
        elif not _reads_sorted(query) and not any(map(query.args.get, ("limit", "offset"))):
            yield query


def _reads_sorted(select: exp.Select) -> bool:
    """Return whether a query that FROM or JOIN reads sorts its rows, so that choices among them may follow it."""
    sources: list[exp.Expr] = [*filter(None, [select.args.get("from_"), *(select.args.get("joins") or ())])]
    for source in sources:  # which grow by the queries of WITH that they read
        for node in source.walk():
            if isinstance(node, exp.Order) and isinstance(node.parent, exp.Query):
                return True
            query = find_cte(node)
            if query is not None and not any(query is known for known in sources):
                sources.append(query)
    return False


def _outside(node: exp.Expr) -> exp.Expr | None:
    """Return the node around the call of a function, and around its FILTER and the like; None at the root."""
    parent = node.parent
    while isinstance(parent, WRAPPERS):
        parent = parent.parent
    return parent


# Groups


def bare_columns(select: exp.Query) -> list[exp.Expr]:
    """Return the columns of a grouped SELECT that are neither keys nor aggregated: SQLite takes them from any row.

    `*` counts as a column. Return none for a query with nested queries or windows in its results, and none next to
    several minima or maxima, of which one decides.
    """
    if not is_grouped(select):
        return []
    group = select.args.get("group")
    parts = [part for part in (*select.expressions, *map(select.args.get, ("having", "order"))) if part is not None]
    nodes = [node for part in parts for node in part.walk()]
    if any(isinstance(node, exp.Query | exp.Window) for node in nodes):
        return []
    if group is not None and any(value for name, value in group.args.items() if name != "expressions"):
        return []
    if len(decisive := extremes(select)) > 1 or any(isinstance(node.parent, exp.Filter) for node in decisive):
        return []
    keys = group_keys(select)
    return [
        node
        for node in nodes
        if isinstance(node, exp.Column | exp.Star)
        and not isinstance(node.parent, exp.Column)
        and not is_alias(node, select)
        and not any(is_aggregate(part) or any(_is_same(key, part) for key in keys) for part in _around(node, select))
    ]


def extremes(select: exp.Query) -> list[exp.Expr]:
    """Return the different calls of MIN and MAX in a SELECT; calls that differ only in letter case count once.

    Bare columns of SQLite come from a row with such a value.
    """
    calls = [node for node in own_nodes(select) if isinstance(node, exp.Min | exp.Max) and is_aggregate(node)]
    return [*{call.sql().lower(): call for call in calls}.values()]


def is_grouped(select: exp.Query) -> bool:
    """Return whether the rows of a SELECT are groups."""
    if select.args.get("group") is not None:
        return True
    returned = [*select.expressions, *filter(None, [select.args.get("having")])]
    nodes = (node for part in returned for node in part.walk(prune=lambda it: isinstance(it, exp.Query)))
    return any(is_aggregate(node) and not isinstance(_outside(node), exp.Window) for node in nodes)


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether a node is the call of an aggregate; MIN and MAX of several arguments are none."""
    return isinstance(node, exp.AggFunc) and not (isinstance(node, exp.Min | exp.Max) and node.expressions)


def group_keys(select: exp.Query) -> list[exp.Expr]:
    """Return the expressions that a SELECT groups by, with positions and aliases replaced by what they stand for."""
    group = select.args.get("group")
    aliases = aliases_of(select)
    keys: list[exp.Expr] = []
    for key in group.expressions if group is not None else ():
        is_name = isinstance(key, exp.Column) and not key.table
        keys.append(aliases.get(key.name.lower(), key) if is_name else at_position(key, select).unalias())
    return keys


def is_alias(column: exp.Expr, select: exp.Query) -> bool:
    """Return whether a name in HAVING, QUALIFY, ORDER BY or a window is the alias of a selected expression."""
    clause = column.find_ancestor(exp.Window, exp.Order, exp.Having, exp.Qualify)
    return (
        clause is not None
        and clause.parent is select
        and not column.args.get("table")
        and column.name.lower() in aliases_of(select)
    )


def _is_same(one: exp.Expr, other: exp.Expr) -> bool:
    if isinstance(one, exp.Column) and isinstance(other, exp.Column) and not (one.table and other.table):
        return one.name.lower() == other.name.lower()
    return type(one) is type(other) and one.sql().lower() == other.sql().lower()


def _around(node: exp.Expr, select: exp.Query) -> Iterator[exp.Expr]:
    """Yield a node within a SELECT, and the expressions around it up to the SELECT."""
    parent: exp.Expr | None = node
    while parent is not None and parent is not select:
        yield parent.unalias()
        parent = parent.parent
