"""The tables of a service that can only run queries, listed by its information schema."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from pytest_queryeval.core.db_schema import (
    ColumnDefinition,
    ForeignKey,
    TableDefinition,
    create_table,
    script_of,
)
from pytest_queryeval.core.table import Table
from pytest_queryeval.languages.sql.dialects import quote_in

_STATEMENTS = {
    "sqlite": """
        SELECT sql FROM sqlite_master
        WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY lower(name)
    """
}
_COLUMNS = """
    SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns
    WHERE lower(table_schema)
        NOT IN ('information_schema', 'mysql', 'performance_schema', 'pg_catalog', 'pg_toast', 'sys', 'system')
    ORDER BY table_schema, table_name, ordinal_position
"""
_KEYS = """
    SELECT k.table_schema AS table_schema, k.table_name AS table_name, k.constraint_name AS constraint_name,
        c.constraint_type AS constraint_type, k.column_name AS column_name,
        r.table_schema AS other_schema, r.table_name AS other_table, r.column_name AS other_column
    FROM information_schema.table_constraints c
    JOIN information_schema.key_column_usage k ON k.constraint_schema = c.constraint_schema
        AND k.constraint_name = c.constraint_name AND k.table_name = c.table_name
    LEFT JOIN information_schema.referential_constraints f ON f.constraint_schema = c.constraint_schema
        AND f.constraint_name = c.constraint_name
    LEFT JOIN information_schema.key_column_usage r ON r.constraint_schema = f.unique_constraint_schema
        AND r.constraint_name = f.unique_constraint_name AND r.ordinal_position = k.position_in_unique_constraint
    WHERE c.constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY')
    ORDER BY k.table_schema, k.table_name, k.constraint_name, k.ordinal_position
"""
# In MySQL all primary keys have the same name.
_MYSQL_KEYS = """
    SELECT table_schema, table_name, constraint_name, column_name,
        CASE WHEN referenced_table_name IS NULL THEN 'PRIMARY KEY' ELSE 'FOREIGN KEY' END AS constraint_type,
        referenced_table_schema AS other_schema, referenced_table_name AS other_table,
        referenced_column_name AS other_column
    FROM information_schema.key_column_usage
    WHERE constraint_name = 'PRIMARY' OR referenced_table_name IS NOT NULL
    ORDER BY table_schema, table_name, constraint_name, ordinal_position
"""


def listed_ddl(ask: Callable[[str], Table | None], dialect: str) -> str | None:
    """Return the CREATE TABLE statements of the tables that a service lists; None if it lists none.

    `ask` returns the answer to a query, or None if the service does not support it.
    """
    if dialect in _STATEMENTS:
        statements = ask(_STATEMENTS[dialect])
        return script_of(row["sql"] for row in _rows(statements, "sql")) if statements and statements.rows else None
    columns = ask(_COLUMNS)
    if columns is None or not columns.rows:
        return None
    keys = ask(_MYSQL_KEYS if dialect == "mysql" else _KEYS)
    quote = quote_in(dialect, keep_case=True)
    return script_of(create_table(table, quote) for table in _definitions(columns, keys))


def _rows(table: Table, *names: str) -> Sequence[Mapping[str, str]]:
    """Return rows as mappings without NULLs; services may change the case and the order of the columns."""
    column_names = [column.lower() for column in table.columns]
    places = [column_names.index(name) if name in column_names else place for place, name in enumerate(names)]
    rows = ([row[place] for place in places] for row in table.rows)
    return [{name: str(cell) for name, cell in zip(names, row, strict=True) if cell is not None} for row in rows]


def _definitions(columns: Table, keys: Table | None) -> Sequence[TableDefinition]:
    tables: dict[tuple[str, str], list[ColumnDefinition]] = defaultdict(list)
    for row in _rows(columns, "table_schema", "table_name", "column_name", "data_type"):
        column = ColumnDefinition(row["column_name"], row.get("data_type", ""))
        tables[row.get("table_schema", ""), row["table_name"]].append(column)
    primary: dict[tuple[str, str], list[str]] = defaultdict(list)
    foreign: dict[tuple[str, str], dict[str, list[Mapping[str, str]]]] = defaultdict(lambda: defaultdict(list))
    names = ("table_schema", "table_name", "constraint_name", "constraint_type", "column_name")
    for row in _rows(keys, *names, "other_schema", "other_table", "other_column") if keys else ():
        place = row.get("table_schema", ""), row["table_name"]
        if row["constraint_type"] == "PRIMARY KEY":
            primary[place].append(row["column_name"])
        elif "other_column" in row:
            foreign[place][row["constraint_name"]].append(row)
    is_one = len({schema for schema, _ in tables}) == 1  # then names need no schema
    return [
        TableDefinition(
            name,
            column_definitions,
            primary[schema, name],
            [
                ForeignKey(
                    [row["column_name"] for row in parts],
                    parts[0]["other_table"],
                    [row["other_column"] for row in parts],
                    "" if is_one else parts[0].get("other_schema", ""),
                )
                for parts in foreign[schema, name].values()
            ],
            "" if is_one else schema,
        )
        for (schema, name), column_definitions in tables.items()
    ]
