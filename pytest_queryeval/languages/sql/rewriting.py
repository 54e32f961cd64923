"""Variants of a gold query for `queryeval check`: over empty tables, and in one layout; whether it reads a table."""

from __future__ import annotations

from sqlglot import exp


def reads_no_table(tree: exp.Expr) -> bool:
    """Return whether a query reads no table, in itself or in a nested query.

    >>> from sqlglot import parse_one
    >>> reads_no_table(parse_one("SELECT 42")), reads_no_table(parse_one("SELECT count(*) FROM singer"))
    (True, False)
    >>> reads_no_table(parse_one("WITH number AS (SELECT 1 AS n) SELECT n FROM number"))
    True
    """
    return not _tables(tree)


def with_empty_tables(tree: exp.Expr, dialect: str) -> str | None:
    """Return the query with `SELECT * FROM table WHERE 1 = 0` in place of every table; None where that cannot be done.

    >>> from sqlglot import parse_one
    >>> with_empty_tables(parse_one("SELECT count(*) FROM singer AS s"), "sqlite")
    'SELECT COUNT(*) FROM (SELECT * FROM singer WHERE 1 = 0) AS s'
    """
    tree = tree.copy()
    tables = _tables(tree)
    for table in tables:
        if not isinstance(table.this, exp.Identifier) or table.args.get("pivots"):
            return None  # a function that returns rows
        named = exp.Table(**{name: table.args.get(name) for name in ("this", "db", "catalog")}).copy()
        empty = exp.select("*").from_(named).where("1 = 0").subquery(table.args.get("alias") or table.this.copy())
        empty.set("joins", table.args.get("joins"))
        table.replace(empty)
    return tree.sql(dialect=dialect) if tables else None


def canonical_text(tree: exp.Expr, dialect: str) -> str:
    """Return a query in one layout, without comments, its names in lower case unless they are quoted."""
    tree = tree.copy()
    for name in tree.find_all(exp.Identifier):
        if not name.args.get("quoted"):
            name.set("this", name.name.lower())
    return tree.sql(dialect=dialect, comments=False)


def _tables(tree: exp.Expr) -> list[exp.Table]:
    """Return the tables of a query, without references to its common table expressions."""
    common = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    named = tree.find_all(exp.Table)
    return [table for table in named if table.db or table.name.lower() not in common or _is_within_own_name(table)]


def _is_within_own_name(table: exp.Table) -> bool:
    """Return whether it stands in a common table expression of its name, which is not recursive: then it is a table."""
    inside = table.find_ancestor(exp.CTE)
    while inside is not None:
        if inside.alias.lower() == table.name.lower() and not (inside.parent and inside.parent.args.get("recursive")):
            return True
        inside = inside.find_ancestor(exp.CTE)
    return False
