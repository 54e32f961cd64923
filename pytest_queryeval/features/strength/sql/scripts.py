"""Statements about whole tables, in any dialect."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache

from sqlglot import exp

from pytest_queryeval.core.db_schema import ForeignKey
from pytest_queryeval.core.table import Cell, Row
from pytest_queryeval.languages.sql.dialects import quote_in

COLUMN_FIGURES = 4


@lru_cache(maxsize=256)
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
    values = ",\n  ".join(f"({', '.join(_literal(cell, dialect) for cell in row)})" for row in rows)
    return f"INSERT INTO {exp.to_identifier(table, quoted=True).sql(dialect)} VALUES\n  {values};"


@lru_cache(maxsize=8_192, typed=True)
def _literal(cell: Cell, dialect: str) -> str:
    """Return a cell as a SQL literal; what all dialects write alike is written without sqlglot, which is slow."""
    match cell:
        case None:
            return "NULL"
        case int() if not isinstance(cell, bool):
            return str(cell)
        case str() if cell.isascii() and cell.isprintable() and "\\" not in cell:
            return "'" + cell.replace("'", "''") + "'"
    return exp.convert(cell).sql(dialect)


def select_key_faults(table: str, columns: Sequence[str], dialect: str) -> str:
    """Return the query for values that a key may not have: NULL, and values of several rows.

    >>> select_key_faults("singer", ["id", "Year"], "sqlite")
    'SELECT id, Year FROM singer GROUP BY id, Year HAVING COUNT(*) > 1 OR id IS NULL OR Year IS NULL'
    """
    names = [quote_in(dialect, keep_case=True)(column) for column in columns]
    column_list, nulls = ", ".join(names), " OR ".join(f"{name} IS NULL" for name in names)
    return f"SELECT {column_list} FROM {quote_in(dialect)(table)} GROUP BY {column_list} HAVING COUNT(*) > 1 OR {nulls}"  # noqa: S608 - quoted


def select_nulls(table: str, column: str, dialect: str) -> str:
    """Return the query for the NULLs of a column.

    >>> select_nulls("singer", "id", "sqlite")
    'SELECT id FROM singer WHERE id IS NULL'
    """
    name = quote_in(dialect, keep_case=True)(column)
    return f"SELECT {name} FROM {quote_in(dialect)(table)} WHERE {name} IS NULL"  # noqa: S608 - quoted


def select_figures(table: str, columns: Sequence[str], rows: int, dialect: str) -> str:
    """Return the query for figures of the first rows of a table: their number, and COLUMN_FIGURES of each column.

    These are how many values are not NULL, how many different ones there are, the least and the greatest.

    >>> select_figures("singer", ["id"], 5, "sqlite")
    'SELECT COUNT(*), COUNT(id), COUNT(DISTINCT id), MIN(id), MAX(id) FROM (SELECT * FROM singer LIMIT 5) AS t'
    """
    names = map(quote_in(dialect, keep_case=True), columns)
    figures = [f"COUNT({name}), COUNT(DISTINCT {name}), MIN({name}), MAX({name})" for name in names]
    select_list = ", ".join(["COUNT(*)", *figures])
    return f"SELECT {select_list} FROM (SELECT * FROM {quote_in(dialect)(table)} LIMIT {rows}) AS t"  # noqa: S608 - quoted


def select_orphans(table: str, key: ForeignKey, dialect: str) -> str:
    """Return the query for the rows whose foreign key refers to no row.

    >>> select_orphans("concert", ForeignKey(["singer"], "singer", ["id"]), "sqlite")
    'SELECT 1 FROM concert AS a LEFT JOIN singer AS b ON a.singer = b.id WHERE a.singer IS NOT NULL AND b.id IS NULL'
    """
    quote = quote_in(dialect, keep_case=True)
    pairs = [
        (f"a.{quote(column)}", f"b.{quote(referred_column)}")
        for column, referred_column in zip(key.columns, key.referred, strict=True)
    ]
    joined = " AND ".join(f"{column} = {referred_column}" for column, referred_column in pairs)
    orphaned = " AND ".join([*(f"{column} IS NOT NULL" for column, _ in pairs), f"{pairs[0][1]} IS NULL"])
    tables = f"{quote_in(dialect)(table)} AS a LEFT JOIN {quote_in(dialect)(key.table)} AS b"
    return f"SELECT 1 FROM {tables} ON {joined} WHERE {orphaned}"  # noqa: S608 - quoted


def can_insert(row: Row) -> bool:
    """Return whether SQL has a literal for every value of a row."""
    if all(isinstance(cell, int | float | str | None) for cell in row):
        return True
    with suppress(ValueError):
        exp.convert(row)
        return True
    return False
