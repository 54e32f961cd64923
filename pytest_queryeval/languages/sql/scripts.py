"""Statements about whole tables, in any dialect."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from sqlglot import exp

from pytest_queryeval.core.table import Row


def select_rows(table: str, limit: int, dialect: str) -> str:
    """Return the query for the first rows of a table.

    >>> select_rows("order", 5, "sqlite")
    'SELECT * FROM "order" LIMIT 5'
    """
    return exp.select("*").from_(exp.to_identifier(table, quoted=True)).limit(limit).sql(dialect)


def insert_rows(table: str, rows: Sequence[Row], dialect: str) -> str:
    """Return the statement that inserts rows into a table, a line for each.

    >>> print(insert_rows("order", [(1, "it's"), (2, None)], "sqlite"))
    INSERT INTO "order" VALUES
      (1, 'it''s'),
      (2, NULL);
    """
    values = ",\n  ".join(exp.convert(row).sql(dialect) for row in rows)
    return f"INSERT INTO {exp.to_identifier(table, quoted=True).sql(dialect)} VALUES\n  {values};"


def can_insert(row: Row) -> bool:
    """Return whether SQL can state every value of a row."""
    with suppress(ValueError):
        exp.convert(row)
        return True
    return False
