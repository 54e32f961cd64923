"""Copies of SQLite databases in DuckDB, for benchmarks: types and keys as declared."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import duckdb

from pytest_queryeval.core.db_schema import ColumnDefinition, TableDefinition, create_table
from pytest_queryeval.core.table import Row
from pytest_queryeval.features.strength.sql.candidates import insert_statement
from pytest_queryeval.features.strength.sql.rows import insertion_order
from pytest_queryeval.features.strength.sql.source_tables import read_tables
from pytest_queryeval.features.strength.sql.values import coerce_value


def copy_to_duckdb(database: Path, copy: Path) -> None:
    """Copy all tables; values that do not fit the declared type become NULL.

    Foreign keys that DuckDB cannot have are left out: those that rows break, to columns that are not a key or have another
    type, to the table itself, and to tables that come later in a circle.
    """
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as source, duckdb.connect(copy) as target:
        definitions = source.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        declared = read_tables(";\n".join(sql for (sql,) in definitions), "sqlite")
        tables: dict[str, TableDefinition] = {}
        rows: dict[str, list[Row]] = {}
        for name in insertion_order(declared):
            columns = [column._replace(type=type_in_duckdb(column.type)) for column in declared[name].columns]
            rows[name] = [
                tuple(
                    None if cell is None else next(iter(coerce_value(cell, column.type, is_strict=True)), None)
                    for cell, column in zip(row, columns, strict=True)
                )
                for row in source.execute(f'SELECT * FROM "{name}"')
            ]
            keys = [
                key
                for key in declared[name].foreign_keys
                if (referred := tables.get(key.table)) is not None
                and list(key.referred) == list(referred.primary_key)
                and types(columns, key.columns) == types(referred.columns, key.referred)
                and values(columns, rows[name], key.columns) <= values(referred.columns, rows[key.table], key.referred)
            ]
            tables[name] = declared[name]._replace(columns=columns, foreign_keys=keys)
            target.execute(create_table(tables[name], lambda text: f'"{text}"'))
            if rows[name]:
                target.execute(insert_statement(name, rows[name], "duckdb"))


def types(columns: Sequence[ColumnDefinition], names: Sequence[str]) -> list[str]:
    return [column.type for name in names for column in columns if column.name.lower() == name]


def values(columns: Sequence[ColumnDefinition], rows: Sequence[Row], names: Sequence[str]) -> set[Row]:
    places = [at for name in names for at, column in enumerate(columns) if column.name.lower() == name]
    return {key for row in rows if None not in (key := tuple(row[at] for at in places))}


def type_in_duckdb(declared: str) -> str:
    name = declared.upper()
    if "INT" in name:
        return "BIGINT"
    if "BOOL" in name:
        return "BOOLEAN"
    if "TIME" in name:
        return "TIMESTAMP"
    if name == "DATE":
        return name
    return "DOUBLE" if any(word in name for word in ("REAL", "FLOA", "DOUB", "DEC", "NUM")) else "VARCHAR"
