"""Small random SQLite databases that keep the constraints of their CREATE TABLE statements."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from pytest_queryeval.core.db_schema import TableDefinition
from pytest_queryeval.features.strength.sql.source_tables import read_tables

NULLS = 0.25  # the share of NULLs in columns that admit them


def make_database(path: Path, ddl: str, seed: int, values: Sequence[object] = (), rows: int = 5) -> None:
    """Make a database with up to `rows` rows in each table, whose values are few, some of them those in `values`."""
    chance = random.Random(seed)
    tables = read_tables(ddl, "sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(ddl)
        for table in tables.values():
            for _ in range(chance.randint(0, rows)):
                row = [_value(column.type, column.not_null, values, chance) for column in table.columns]
                marks = ", ".join("?" * len(row))
                connection.execute(f'INSERT OR IGNORE INTO "{table.name}" VALUES ({marks})', row)
        for table in tables.values():
            _fit_keys(connection, table, chance)
        while any(_remove_unmatched(connection, table) for table in tables.values()):
            pass
        connection.commit()


def _value(type_: str, not_null: bool, values: Sequence[object], chance: random.Random) -> object:
    if not not_null and chance.random() < NULLS:
        return None
    is_number = any(word in type_.upper() for word in ("INT", "NUM", "DEC", "REAL", "FLOAT", "DOUBLE", "BOOL", "BIT"))
    is_whole = "INT" in type_.upper()
    fits = (int,) if is_whole else (int, float) if is_number else (str,)
    fitting = [value for value in values if isinstance(value, fits)]
    return chance.choice([*([0, 1, 2, 3] if is_number else ["a", "b", "c", "1"]), *fitting])


def _fit_keys(connection: sqlite3.Connection, table: TableDefinition, chance: random.Random) -> None:
    """Let most foreign keys refer to rows that there are."""
    for key in table.foreign_keys:
        referred = ", ".join(f'"{name}"' for name in key.referred)
        rows = connection.execute(f'SELECT {referred} FROM "{key.table}"').fetchall()
        changes = ", ".join(f'"{name}" = ?' for name in key.columns)
        tests = " AND ".join(f'"{name}" IS NOT NULL' for name in key.columns)
        for (row,) in connection.execute(f'SELECT rowid FROM "{table.name}" WHERE {tests}').fetchall():
            if rows:
                connection.execute(
                    f'UPDATE OR IGNORE "{table.name}" SET {changes} WHERE rowid = ?', (*chance.choice(rows), row)
                )


def _remove_unmatched(connection: sqlite3.Connection, table: TableDefinition) -> bool:
    """Remove rows whose foreign keys refer to nothing; return whether there were any."""
    removed = 0
    for key in table.foreign_keys:
        matches = " AND ".join(
            f'other."{name}" = "{table.name}"."{own}"' for own, name in zip(key.columns, key.referred, strict=True)
        )
        tests = " AND ".join(f'"{name}" IS NOT NULL' for name in key.columns)
        removed += connection.execute(
            f'DELETE FROM "{table.name}" WHERE {tests}'
            f' AND NOT EXISTS (SELECT 1 FROM "{key.table}" AS other WHERE {matches})'
        ).rowcount
    return removed > 0
