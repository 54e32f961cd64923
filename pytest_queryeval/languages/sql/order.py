"""What ORDER BY and LIMIT of a SQL query say about its rows, read from its tokens, and from its tree by sqlglot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain

from sqlglot import exp

from pytest_queryeval.comparison.ties import SELECTED_KEYS, UNREADABLE, MadeQueries, OrderPlan, TieQuery
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.languages.sql.clauses import Clauses, place_of, ranked_key, read_clauses
from pytest_queryeval.languages.sql.columns import aliases_of

RANK = "queryeval_rank"
ROWS = "queryeval_rows"
_ORDER_BY = re.compile(r"\border\s+by\b", re.IGNORECASE)
_LIMIT = re.compile(r"\b(?:limit|offset|fetch|top)\b", re.IGNORECASE)


@lru_cache(maxsize=1024)
def order_plan(query: str, columns: tuple[str, ...], row_count: int, dialect: str) -> OrderPlan | None:
    """Return the plan for the order of a query whose answer has these columns and `row_count` rows. Cached.

    None if its top level has neither ORDER BY nor LIMIT. The plan's queries are first gold's own text without its last
    clauses; those that sqlglot writes are tried if the database does not run these.
    """
    statements = parse_query(query, dialect).statements
    clauses = read_clauses(query, statements.tokens)
    trees = [statement for statement in statements.trees if isinstance(statement, exp.Query)]
    if len(trees) == 1:
        plan = _plan_of_tree(trees[0], columns, row_count, dialect)
        if plan is None or clauses is None:
            return plan
        of_text = MadeQueries(partial(_text_queries, clauses, plan, columns, row_count))
        return replace(plan, queries=MadeQueries(partial(chain, of_text, plan.queries)))
    if statements.error is None and not any(isinstance(tree, exp.Values | exp.Pivot) for tree in statements.trees):
        return None  # no query, or several
    if clauses is None:
        has_order = _ORDER_BY.search(query) is not None
        has_limit = _LIMIT.search(query) is not None
        return replace(UNREADABLE, ordered=has_order, limited=has_limit) if has_order or has_limit else None
    if not clauses.keys and clauses.has_other_orders:
        return None
    places = [place_of(key, clauses, columns) for key in clauses.keys]
    plan = OrderPlan(
        ordered=bool(clauses.keys),
        limited=clauses.limited,
        offset=clauses.offset or 0,
        queries=(),
        keys=tuple(place for place in places if place is not None) if places and None not in places else None,
    )
    return replace(plan, queries=MadeQueries(partial(_text_queries, clauses, plan, columns, row_count)))


def _text_queries(clauses: Clauses, plan: OrderPlan, columns: tuple[str, ...], row_count: int) -> Iterator[TieQuery]:
    """Yield queries that show the rows which tie, as text: gold without its last clauses, and with a rank.

    Yield nothing if OFFSET is not a number. The first query that a database runs is used.
    """
    if clauses.limited and clauses.offset is None:
        return
    places = (plan.offset, plan.offset + row_count) if clauses.limited else None
    if not clauses.keys:
        yield TieQuery(text=clauses.uncut, key_columns=0)
        return
    keys = [ranked_key(key, clauses.items) for key in clauses.keys] if clauses.items is not None else [None]
    if None not in keys:
        rank = f", RANK() OVER (ORDER BY {', '.join(map(str, keys))}) AS {RANK}"
        ranked = clauses.uncut[: clauses.items_end] + rank + clauses.uncut[clauses.items_end :]
        yield _text_tie_query(ranked, columns, places)
    if clauses.limited and plan.keys is not None:
        names = _numbered(columns)
        ranks = ", ".join(key.of(names[place]) for key, place in zip(clauses.keys, plan.keys, strict=True))
        answer = f"WITH queryeval_answer ({', '.join(names)}) AS ({clauses.uncut}\n)"
        rank = f"RANK() OVER (ORDER BY {ranks}) AS {RANK}"
        ranked = f"{answer} SELECT queryeval_answer.*, {rank} FROM queryeval_answer"  # noqa: S608 - gold's own text
        yield _text_tie_query(ranked, columns, places, SELECTED_KEYS)


def _text_tie_query(ranked: str, columns: Sequence[str], places: tuple[int, int] | None, *notes: str) -> TieQuery:
    """Return a query over a ranked query's text that sorts by rank, as `_tie_query` does with a tree."""
    renamed = "" if _has_names(columns) else f" ({', '.join([*_numbered(columns), RANK])})"
    condition = ""
    if places is not None:
        condition = f" WHERE {RANK} <= {places[1]}"
        if places[0]:
            highest = exp.select(f"MAX({RANK})").from_(ROWS).where(f"{RANK} <= {places[0] + 1}")
            condition += f" AND {RANK} >= ({highest.sql()})"
    rows = f"WITH {ROWS}{renamed} AS ({ranked}\n)"
    text = f"{rows} SELECT {ROWS}.* FROM {ROWS}{condition} ORDER BY {RANK}"  # noqa: S608 - gold's own text
    return TieQuery(text=text, key_columns=1, is_ranked=True, notes=notes)


def _plan_of_tree(tree: exp.Query, columns: tuple[str, ...], row_count: int, dialect: str) -> OrderPlan | None:
    order, limit = tree.args.get("order"), tree.args.get("limit")
    offset_clause = tree.args.get("offset")
    offset: int | None = 0
    if offset_clause is not None:
        number = offset_clause.expression
        offset = int(number.name) if isinstance(number, exp.Literal) and number.name.isdigit() else None
    # An ORDER BY below the top level, other than that of a window, may have ordered the rows that LIMIT takes.
    if order is None and (
        limit is None or any(not isinstance(inner.parent, exp.Window) for inner in tree.find_all(exp.Order))
    ):
        return None
    keys = None if order is None else _selected_keys(tree, order, columns)
    limited = limit is not None or offset_clause is not None
    plan = OrderPlan(ordered=order is not None, limited=limited, offset=offset or 0, queries=(), keys=keys)
    if offset is None:  # an expression
        return plan
    return replace(plan, queries=MadeQueries(partial(_tree_queries, tree, plan, columns, row_count, dialect)))


def _tree_queries(
    tree: exp.Query, plan: OrderPlan, columns: tuple[str, ...], row_count: int, dialect: str
) -> Iterator[TieQuery]:
    """Yield queries that show the rows which tie, from the tree: gold without its last clauses, and with a rank.

    Without ORDER BY, yield only gold without its last clauses.
    """
    order = tree.args.get("order")
    uncut = _uncut(tree)
    places = (plan.offset, plan.offset + row_count) if plan.limited else None
    if order is None:
        yield TieQuery(text=uncut.sql(dialect=dialect), key_columns=0)
        return
    for ranked in _ranked(uncut, order):
        yield _tie_query(ranked, columns, places, dialect)
    if plan.limited and plan.keys is not None:
        ranked = _ranked_by_columns(uncut, order, plan.keys, _numbered(columns))
        yield _tie_query(ranked, columns, places, dialect, SELECTED_KEYS)


def _uncut(tree: exp.Query) -> exp.Query:
    """Return a copy of a query without its ORDER BY, LIMIT and OFFSET."""
    uncut = tree.copy()
    for clause in ("order", "limit", "offset"):
        uncut.set(clause, None)
    return uncut


def _tie_query(
    ranked: exp.Query, columns: Sequence[str], places: tuple[int, int] | None, dialect: str, *notes: str
) -> TieQuery:
    """Return a query over a ranked query that sorts by rank; with `places`, only rows that tie with these places.

    The rows that tie with the row at place n, from 1, are those of the highest rank that is at most n.
    """
    rows = _selected_from(ranked, ROWS, () if _has_names(columns) else [*_numbered(columns), RANK])
    if places is not None:
        first, last = places[0] + 1, places[1]
        rows = rows.where(f"{RANK} <= {last}")
        if first > 1:
            highest = exp.select(f"MAX({RANK})").from_(ROWS).where(f"{RANK} <= {first}")
            rows = rows.where(exp.column(RANK) >= exp.Subquery(this=highest))
    text = rows.order_by(RANK).sql(dialect=dialect)
    return TieQuery(text=text, key_columns=1, is_ranked=True, notes=notes)


def _has_names(columns: Sequence[str]) -> bool:
    """Return whether all columns have different names; otherwise engines make up names or reject the query."""
    names = [name.lower() for name in columns]
    return all(names) and len(set(names)) == len(names)


def _selected_from(query: exp.Query, name: str, columns: Sequence[str] = ()) -> exp.Select:
    """Return a query of all rows of another query under a name, with its columns renamed to `columns` if given."""
    alias = exp.TableAlias(this=exp.to_identifier(name), columns=[exp.to_identifier(column) for column in columns])
    all_columns = exp.Column(this=exp.Star(), table=exp.to_identifier(name))
    return exp.select(all_columns).from_(name).with_(alias, as_=query)


def _numbered(columns: Sequence[str]) -> list[str]:
    return [f"c{number}" for number in range(1, len(columns) + 1)]


def _rank(keys: Sequence[exp.Expression]) -> exp.Expr:
    window = exp.Window(this=exp.Anonymous(this="RANK"), order=exp.Order(expressions=keys))
    return exp.alias_(window, RANK)


def _ranked(uncut: exp.Query, order: exp.Expression) -> Iterator[exp.Select]:
    """Yield `uncut` with the rank of its sort keys as last column; nothing for DISTINCT and set operations.

    A name within a sort expression is a column of the tables first, and an alias only if there is no such column: the
    second query, if it differs, reads it as an alias.
    """
    if not isinstance(uncut, exp.Select) or uncut.args.get("distinct"):
        return
    readings = [[expanded(key, uncut, inner=inner) for key in order.expressions] for inner in (False, True)]
    for keys in readings if readings[0] != readings[1] else readings[:1]:
        readable_keys = [key for key in keys if key is not None]
        if len(readable_keys) == len(keys):
            yield uncut.select(_rank(readable_keys), copy=True)


def _ranked_by_columns(
    uncut: exp.Query, order: exp.Expression, keys: Sequence[int], names: Sequence[str]
) -> exp.Select:
    """Return `uncut` with the rank of its sort keys, which are its columns at the places `keys`."""
    by_columns = [
        exp.Ordered(**{**key.copy().args, "this": exp.column(names[place])})
        for key, place in zip(order.expressions, keys, strict=True)
    ]
    return _selected_from(uncut, "queryeval_answer", names).select(_rank(by_columns))


def expanded(key: exp.Expression, select: exp.Select, *, inner: bool) -> exp.Expression | None:
    """Return a copy of a sort key in which the selected expression replaces its position or alias.

    Windows cannot use positions and aliases. With `inner`, aliases within an expression are replaced too. None if the
    position is of no known column.
    """
    key = key.copy()
    core = key  # without direction, collation and parentheses
    while isinstance(core, exp.Ordered | exp.Collate | exp.Paren):
        core = core.this
    if isinstance(core, exp.Literal) and not core.is_string:
        items = select.selects
        place = int(core.name) - 1 if core.name.isdigit() else -1
        if not 0 <= place < len(items) or any(item.is_star for item in items[: place + 1]):
            return None
        core.replace(exp.paren(items[place].unalias().copy()))
    aliases = aliases_of(select)
    columns = [core] if isinstance(core, exp.Column) else [*key.find_all(exp.Column)] if inner else []
    for column in columns:
        if not column.table and column.name.lower() in aliases:
            column.replace(exp.paren(aliases[column.name.lower()].copy()))
    return key


def _selected_keys(query: exp.Query, order: exp.Expression, columns: Sequence[str]) -> tuple[int, ...] | None:
    """Return the output column of each sort key, from 0; None if a key is not selected."""
    names = [name.lower() for name in columns]
    places = []
    for key in order.expressions:
        place = _output_column(key.this.unnest(), query, names)
        if place is None or not 0 <= place < len(columns):
            return None
        places.append(place)
    return tuple(places)


def _output_column(key: exp.Expression, query: exp.Query, names: Sequence[str]) -> int | None:
    if isinstance(key, exp.Literal) and not key.is_string:
        return int(key.name) - 1 if key.name.isdigit() else None
    is_name = isinstance(key, exp.Column) and not key.table
    for place, item in enumerate(query.selects):
        if item.is_star:
            break
        if (is_name and item.alias_or_name.lower() == key.name.lower()) or item.unalias() == key:
            return place
    return names.index(key.name.lower()) if is_name and names.count(key.name.lower()) == 1 else None


def sort_key_query(query: str, columns: tuple[str, ...], dialect: str) -> TieQuery | None:
    """Return a query of the sort keys alone, for all rows that LIMIT chooses from.

    None without ORDER BY, if a key cannot be selected, or if the query cannot be parsed.
    """
    tree = parse_query(query, dialect).whole_tree
    order = tree.args.get("order") if isinstance(tree, exp.Query) else None
    if order is None or not isinstance(tree, exp.Query):
        return None
    uncut = _uncut(tree)
    if isinstance(uncut, exp.Select) and not uncut.args.get("distinct"):
        readable_keys = [expanded(key, uncut, inner=True) for key in order.expressions]
        keys = [key.this for key in readable_keys if key is not None]
        if len(keys) < len(readable_keys):
            return None
        selected = uncut.select(*keys, append=False)
    else:
        places = _selected_keys(tree, order, columns)
        if places is None:
            return None
        names = _numbered(columns)
        rows = _selected_from(uncut, ROWS, names)
        selected, keys = rows.select(*(exp.column(names[place]) for place in places), append=False), list(places)
    return TieQuery(text=selected.sql(dialect=dialect), key_columns=len(keys))
