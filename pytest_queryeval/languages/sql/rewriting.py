"""Rewritten gold queries for `queryeval check`: over empty tables, and in one layout; whether it reads a table."""

from __future__ import annotations

from sqlglot import exp

from pytest_queryeval.languages.sql.trees.columns import common_query


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
        bare_table = exp.Table(**{name: table.args.get(name) for name in ("this", "db", "catalog")}).copy()
        empty = exp.select("*").from_(bare_table).where("1 = 0").subquery(table.args.get("alias") or table.this.copy())
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
    return [table for table in tree.find_all(exp.Table) if common_query(table) is None]
