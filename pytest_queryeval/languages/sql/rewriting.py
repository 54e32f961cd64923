"""Queries rewritten over empty tables, or in one layout; what they are made of; whether they read data or a clock."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from sqlglot import exp

from pytest_queryeval.languages.sql.columns import find_cte

# Functions by the names that sqlglot or the query gives them.
_CLOCK = re.compile(
    r"current_\w*(?:date|time)\w*|local_?time(?:stamp)?|utc_?(?:date|time|timestamp)|(?:clock|statement|transaction)_timestamp"
    r"|sys(?:utc)?(?:date|datetime|timestamp|datetimeoffset)|get(?:utc)?date|get_current_time(?:stamp)?|now(?:64)?"
    r"|cur(?:date|time)|today|yesterday|tomorrow|timeofday",
    re.IGNORECASE,
)
_CLOCK_WITHOUT_ARGUMENTS = frozenset(("date", "time", "datetime", "julianday", "unixepoch", "unix_timestamp"))
_MOMENTS = frozenset(("now", "today", "yesterday", "tomorrow"))
RANDOM = frozenset(("rand", "random", "randomblob", "gen_random_uuid", "uuid"))
# Functions whose value is random, or the state of the connection.
INDEPENDENT_OF_DATA = RANDOM | {"changes", "last_insert_rowid", "total_changes", "txid_current"}
_ALWAYS: dict[type[exp.Expr], str] = {
    exp.Join: "join",
    exp.Group: "grouping",
    exp.Window: "window",
    exp.Distinct: "distinct",
    **dict.fromkeys((exp.Union, exp.Intersect, exp.Except), "set-operation"),
}


def clock_reading(tree: exp.Expr, dialect: str) -> str:
    """Return the first part of a query that reads the current date or time; empty if there is none.

    >>> from sqlglot import parse_one
    >>> clock_reading(parse_one("SELECT * FROM loan WHERE due < date('now', '-1 day')", dialect="sqlite"), "sqlite")
    "DATE('now', '-1 day')"
    >>> clock_reading(parse_one('SELECT date("now")', dialect="sqlite"), "sqlite")
    'DATE("now")'
    >>> clock_reading(parse_one("SELECT * FROM loan WHERE state = 'now' AND today = date(due)"), "")
    ''
    """
    for node in tree.find_all(exp.Func, exp.Cast):
        name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
        operands = [operand for operand in node.iter_expressions() if not isinstance(operand, exp.DataType)]
        states_moment = any(_is_text(operand) and operand.name.lower() in _MOMENTS for operand in operands)
        if _CLOCK.fullmatch(name) or states_moment or (name.lower() in _CLOCK_WITHOUT_ARGUMENTS and not operands):
            return node.sql(dialect=dialect)
    return ""


def first_call(tree: exp.Expr, dialect: str, names: Collection[str]) -> str:
    """Return the first call in a query of a function with one of these names, such as `RANDOM`.

    Empty if there is none.

    >>> from sqlglot import parse_one
    >>> first_call(parse_one("SELECT name FROM singer ORDER BY random() LIMIT 1", dialect="sqlite"), "sqlite", RANDOM)
    'RANDOM()'
    """
    for node in tree.find_all(exp.Func):
        name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
        if name.lower() in names:
            return node.sql(dialect=dialect)
    return ""


def _is_text(node: exp.Expr) -> bool:
    """Return whether a node is a text, or a name in double quotes, which SQLite may take for a text."""
    if isinstance(node, exp.Column):
        return not node.table and isinstance(node.this, exp.Identifier) and bool(node.this.args.get("quoted"))
    return isinstance(node, exp.Literal) and node.is_string


def with_empty_tables(tree: exp.Expr, dialect: str) -> str | None:
    """Return the query with `SELECT * FROM table WHERE 1 = 0` instead of every table.

    None if it reads no table, pivots a table, or reads a function that returns rows.

    >>> from sqlglot import parse_one
    >>> with_empty_tables(parse_one("SELECT count(*) FROM singer AS s"), "sqlite")
    'SELECT COUNT(*) FROM (SELECT * FROM singer WHERE 1 = 0) AS s'
    """
    tree = tree.copy()
    tables = tables_in(tree)
    for table in tables:
        if not isinstance(table.this, exp.Identifier) or table.args.get("pivots"):
            return None  # a function that returns rows
        bare_table = exp.Table(**{name: table.args.get(name) for name in ("this", "db", "catalog")}).copy()
        empty = exp.select("*").from_(bare_table).where("1 = 0").subquery(table.args.get("alias") or table.this.copy())
        empty.set("joins", table.args.get("joins"))
        table.replace(empty)
    return tree.sql(dialect=dialect) if tables else None


def canonical_text(tree: exp.Expr, dialect: str) -> str:
    """Return a query in one layout, without comments, and with its unquoted names in lower case."""
    tree = tree.copy()
    for name in tree.find_all(exp.Identifier):
        if not name.args.get("quoted"):
            name.set("this", name.name.lower())
    return tree.sql(dialect=dialect, comments=False)


def tables_in(tree: exp.Expr) -> list[exp.Table]:
    """Return the tables of a query and of those nested in it, without references to its common table expressions.

    >>> from sqlglot import parse_one
    >>> tables_in(parse_one("WITH number AS (SELECT 1 AS n) SELECT n FROM number"))
    []
    """
    return [table for table in tree.find_all(exp.Table) if find_cte(table) is None]


def tree_features(tree: exp.Expr) -> Iterator[str]:
    """Yield the features of a query, each as often as it occurs.

    A comma in FROM is a join, a query of WITH is nested, the arms of a set operation are not. A function with OVER is a
    window, not an aggregate. ORDER BY counts for a query, not within OVER or an aggregate; DISTINCT within an aggregate
    does count.
    """
    for node in tree.walk():
        match node:
            case exp.AggFunc():
                if not isinstance(_outside(node, exp.Filter, exp.WithinGroup, exp.IgnoreNulls), exp.Window):
                    yield "aggregate"
            case exp.Order():
                if isinstance(node.parent, exp.Query):
                    yield "order"
            case exp.Select():
                if _outside(node, exp.SetOperation, exp.Subquery) is not None:
                    yield "nesting"
            case _:
                if name := _ALWAYS.get(type(node)):
                    yield name


def count_common_queries(tree: exp.Expr) -> int:
    """Return how many queries the WITH of a query has, without those in nested queries and in each other."""
    nodes = tree.walk(prune=lambda node: isinstance(node, (exp.CTE, exp.From, exp.Join, exp.Where, exp.Having)))
    return sum(isinstance(node, exp.CTE) for node in nodes)


def _outside(node: exp.Expr, *outer_types: type[exp.Expr]) -> exp.Expr | None:
    """Return the nearest node around a node that is of none of these types; None at the root."""
    parent = node.parent
    while isinstance(parent, outer_types):
        parent = parent.parent
    return parent
