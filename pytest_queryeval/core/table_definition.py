"""Tables as CREATE TABLE statements. Also imported by child processes, so it imports nothing else of the package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias


class ColumnDefinition(NamedTuple):
    """A column of a table; its type is empty if unknown. `is_collated` tells whether it declares a collation."""

    name: str
    type: str = ""
    not_null: bool = False
    is_collated: bool = False


class ForeignKey(NamedTuple):
    """Columns of a table, and those that they refer to; `schema` is empty for the default one."""

    columns: Sequence[str]
    table: str
    referred: Sequence[str]
    schema: str = ""


class TableDefinition(NamedTuple):
    """A table or a view, with names as the database spells them; `schema` is empty for the default one.

    `unique` are the sets of columns that are declared unique, without the primary key. `nullable_key` has those of
    the primary key that SQLite lets be NULL.
    """

    name: str
    columns: Sequence[ColumnDefinition]
    primary_key: Sequence[str] = ()
    foreign_keys: Sequence[ForeignKey] = ()
    schema: str = ""
    unique: Sequence[Sequence[str]] = ()
    nullable_key: Sequence[str] = ()


Tables: TypeAlias = Mapping[str, TableDefinition]  # by their names in lower case


def create_table(table: TableDefinition, quote: Callable[[str], str]) -> str:
    """Return the statement that would make a table; `quote` puts quotes around names that need them.

    >>> columns = [ColumnDefinition("id", "INTEGER", not_null=True), ColumnDefinition("name")]
    >>> print(create_table(TableDefinition("singer", columns, primary_key=["id"]), quote=str))
    CREATE TABLE singer (
      id INTEGER NOT NULL,
      name,
      PRIMARY KEY (id)
    )
    """

    def column_list(names: Sequence[str]) -> str:
        return ", ".join(map(quote, names))

    def qualified(schema: str, name: str) -> str:
        return ".".join(map(quote, filter(None, (schema, name))))

    lines = [
        " ".join(filter(None, (quote(column.name), column.type, "NOT NULL" if column.not_null else "")))
        for column in table.columns
    ]
    if table.primary_key:
        lines.append(f"PRIMARY KEY ({column_list(table.primary_key)})")
    lines += [
        f"FOREIGN KEY ({column_list(key.columns)}) "
        f"REFERENCES {qualified(key.schema, key.table)} ({column_list(key.referred)})"
        for key in table.foreign_keys
    ]
    inner = "".join(f"\n  {line}{',' * (number < len(lines))}" for number, line in enumerate(lines, start=1))
    return f"CREATE TABLE {qualified(table.schema, table.name)} ({inner}\n)"


def script_of(statements: Iterable[str]) -> str:
    """Return statements as one text, each ended by a semicolon, with a blank line between them."""
    return "\n\n".join(f"{statement.rstrip().rstrip(';')};" for statement in statements)
