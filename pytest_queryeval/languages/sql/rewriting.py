"""What else a gold query can be asked for: what it reads, what it answers over empty tables, its text in one layout."""

from __future__ import annotations

from sqlglot import exp

from pytest_queryeval.languages.sql.trees.parsing import UnreadableError, parse


def reads_no_table(query: str, dialect: str) -> bool:
    """Return whether a query has no FROM, in itself or in a nested query; False where it cannot be parsed.

    >>> reads_no_table("SELECT 42", ""), reads_no_table("SELECT count(*) FROM singer", "")
    (True, False)
    """
    tree = _tree(query, dialect)
    return tree is not None and tree.find(exp.From, exp.Table) is None


def with_empty_tables(query: str, dialect: str) -> str | None:
    """Return the query with `SELECT * FROM table WHERE 1 = 0` in place of every table; None where that cannot be done.

    >>> with_empty_tables("SELECT count(*) FROM singer AS s", "sqlite")
    'SELECT COUNT(*) FROM (SELECT * FROM singer WHERE 1 = 0) AS s'
    """
    tree = _tree(query, dialect)
    if tree is None:
        return None
    common = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    tables = [table for table in tree.find_all(exp.Table) if table.db or table.name.lower() not in common]
    for table in tables:
        if not isinstance(table.this, exp.Identifier) or table.args.get("pivots"):
            return None  # a function that returns rows
        named = exp.Table(**{name: table.args.get(name) for name in ("this", "db", "catalog")}).copy()
        empty = exp.select("*").from_(named).where("1 = 0").subquery(table.args.get("alias") or table.this.copy())
        empty.set("joins", table.args.get("joins"))
        table.replace(empty)
    return tree.sql(dialect=dialect) if tables else None


def normal_text(query: str, dialect: str) -> str:
    """Return the query in one layout: keywords, spaces, comments and the case of names do not matter.

    >>> normal_text("select NAME  from Singer -- all", "sqlite")
    'SELECT name FROM singer'
    """
    tree = _tree(query, dialect)
    if tree is None:
        return " ".join(query.split())
    for name in tree.find_all(exp.Identifier):
        if not name.args.get("quoted"):
            name.set("this", name.name.lower())
    return tree.sql(dialect=dialect, comments=False)


def _tree(query: str, dialect: str) -> exp.Expr | None:
    """Return a tree of its own of a query that can be read as a whole."""
    try:
        tree, broken = parse(query, dialect)
    except UnreadableError:
        return None
    return None if broken else tree.copy()
