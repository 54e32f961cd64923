"""Small random SQLite databases that keep the constraints of their CREATE TABLE statements."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence

from hypothesis import Phase, settings

NULLS = 0.25  # the share of NULLs in columns that admit them
NUMBERS = ("INT", "NUM", "DEC", "REAL", "FLOAT", "DOUBLE", "BOOL", "BIT")


def filled(ddl: str, seed: int, values: Sequence[object] = (), rows: int = 5) -> sqlite3.Connection:
    """Return a database with up to `rows` rows in each table, whose values are few, some of them those in `values`."""
    chance, connection = random.Random(seed), sqlite3.connect(":memory:")
    connection.executescript(ddl)
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for name in names:
        columns = connection.execute(f'PRAGMA table_info("{name}")').fetchall()
        for _ in range(chance.randint(0, rows)):
            row = [_value(type_, bool(not_null), values, chance) for _, _, type_, not_null, *_ in columns]
            connection.execute(f'INSERT OR IGNORE INTO "{name}" VALUES ({", ".join("?" * len(row))})', row)
    for name in names:
        for _, _, parent, column, referred, *_ in connection.execute(f'PRAGMA foreign_key_list("{name}")').fetchall():
            _refer(connection, (name, column), (parent, referred), chance)
    while orphans := connection.execute("PRAGMA foreign_key_check").fetchall():
        for name, rowid, *_ in orphans:
            connection.execute(f'DELETE FROM "{name}" WHERE rowid = ?', (rowid,))
    connection.commit()
    return connection


def _value(type_: str, not_null: bool, values: Sequence[object], chance: random.Random) -> object:
    if not not_null and chance.random() < NULLS:
        return None
    is_number = any(word in type_.upper() for word in NUMBERS)
    fits = (int,) if "INT" in type_.upper() else (int, float) if is_number else (str,)
    fitting = [value for value in values if isinstance(value, fits)]
    return chance.choice([*([0, 1, 2, 3] if is_number else ["a", "b", "A", "1", ""]), *fitting])


def _refer(
    connection: sqlite3.Connection, child: tuple[str, str], parent: tuple[str, str], chance: random.Random
) -> None:
    """Let most rows refer to rows that there are."""
    table, column = child
    keys = connection.execute(f'SELECT "{parent[1]}" FROM "{parent[0]}"').fetchall()
    for (row,) in connection.execute(f'SELECT rowid FROM "{table}" WHERE "{column}" IS NOT NULL').fetchall():
        if keys:
            connection.execute(
                f'UPDATE OR IGNORE "{table}" SET "{column}" = ? WHERE rowid = ?', (*chance.choice(keys), row)
            )


def seeded(share: int = 1) -> settings:
    """Return settings of a property whose only example is a seed, which is as simple as any other one."""
    return settings(max_examples=settings().max_examples // share, phases=[Phase.generate])
