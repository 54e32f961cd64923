"""The tables of a database, its columns and foreign keys, as far as a query's text needs them to be understood."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from pytest_queryeval.core.table_definition import ColumnDefinition, ForeignKey, TableDefinition

T = TypeVar("T")
NO_TABLE = -1  # of the column `*`
Column: TypeAlias = tuple[str, str]  # table, column
# table, column, type, and the table and column that it refers to, if any; a column with two foreign keys comes twice
DescribedColumn: TypeAlias = tuple[str, str, str | None, str | None, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Names in lower case; tables, columns and foreign keys in the order in which the database or the file has them.

    A foreign key is a pair of columns, the one that refers first. `definitions` are the tables of a file as predictors
    see them; of a database the engine lists them.
    """

    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    foreign_keys: tuple[tuple[Column, Column], ...] = ()
    definitions: tuple[TableDefinition, ...] = field(default=(), compare=False)

    def __hash__(self) -> int:
        return hash((tuple(self.tables), self.foreign_keys))


def schema_of_columns(described: Iterable[Sequence[Any]]) -> Schema:
    """Return the schema of a database from its `DescribedColumn`s, as its engine lists them."""
    tables: dict[str, dict[str, None]] = {}
    keys: dict[tuple[Column, Column], None] = {}
    for table, column, _, other_table, other_column in described:
        referring = (str(table).lower(), str(column).lower())
        tables.setdefault(referring[0], {})[referring[1]] = None
        if other_table and other_column:
            keys[referring, (str(other_table).lower(), str(other_column).lower())] = None
    return Schema(tables={name: tuple(columns) for name, columns in tables.items()}, foreign_keys=tuple(keys))


def schema_of_entry(entry: Mapping[str, Any]) -> Schema:
    """Return the schema in one entry of Spider's tables.json.

    Such an entry has `table_names_original`, `column_names_original` as [number of the table, name] with [-1, "*"] in
    front, `foreign_keys` as pairs of numbers of columns, and perhaps `column_types` and `primary_keys`, numbers of
    columns, or lists of them. Raise KeyError, IndexError, TypeError or ValueError for any other entry.
    """
    names = [_name(name) for name in entry["table_names_original"]]
    columns = [(table, _name(name)) for table, name in entry["column_names_original"]]
    tables: dict[str, list[str]] = {name: [] for name in names}
    for table, name in columns:
        if table != NO_TABLE:
            tables[_at(names, table, "table")].append(name)

    def column(number: Any) -> Column:
        table, name = _at(columns, number, "column")
        return _at(names, table, "table"), name

    keys = tuple((column(first), column(second)) for first, second in entry.get("foreign_keys", ()))
    return Schema(
        tables={name: tuple(columns) for name, columns in tables.items()},
        foreign_keys=keys,
        definitions=_definitions(entry),
    )


def _definitions(entry: Mapping[str, Any]) -> tuple[TableDefinition, ...]:
    """Return the tables of an entry with their keys, names in its letter case; raise as `schema_of_entry` does."""
    names, columns = entry["table_names_original"], entry["column_names_original"]
    types = entry.get("column_types") or [""] * len(columns)
    if len(types) != len(columns):
        raise ValueError(f"{len(types):,} column_types for {len(columns):,} columns")
    of_table: dict[int, list[ColumnDefinition]] = defaultdict(list)
    primary_keys: dict[int, list[str]] = defaultdict(list)
    foreign_keys: dict[int, list[ForeignKey]] = defaultdict(list)
    for (table, name), type_ in zip(columns, types, strict=True):
        of_table[table].append(ColumnDefinition(name, str(type_)))
    for key in entry.get("primary_keys", ()):
        for number in key if isinstance(key, list) else [key]:
            table, name = _at(columns, number, "column")
            primary_keys[table].append(name)
    for first, second in entry.get("foreign_keys", ()):
        (table, name), (target, target_name) = (_at(columns, number, "column") for number in (first, second))
        foreign_keys[table].append(ForeignKey((name,), _at(names, target, "table"), (target_name,)))
    return tuple(
        TableDefinition(name, tuple(of_table[at]), tuple(primary_keys[at]), tuple(foreign_keys[at]))
        for at, name in enumerate(names)
    )


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError("a name that is not text")
    return name.lower()


def _at(items: Sequence[T], number: Any, sort: str) -> T:
    """Return the item with this number, counted from 0; negative numbers are refused."""
    if type(number) is not int or not 0 <= number < len(items):
        raise IndexError(f"a {sort} that is not listed")
    return items[number]
