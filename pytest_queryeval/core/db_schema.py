"""The tables of a database, their columns and keys, as texts of queries need them, and as CREATE TABLE statements.

Also imported by child processes, so it imports nothing else of the package.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")
NO_TABLE = -1  # of the column `*`
Column: TypeAlias = tuple[str, str]  # table, column
# table, column, type, and the table and column that it refers to, if any; a column with two foreign keys comes twice
DescribedColumn: TypeAlias = tuple[str, str, str | None, str | None, str | None]


class ColumnDefinition(NamedTuple):
    """A column of a table.

    `type` is empty if unknown. `is_collated` says whether the column declares a collation, and `is_generated` whether
    the database computes its values.
    """

    name: str
    type: str = ""
    not_null: bool = False
    is_collated: bool = False
    is_generated: bool = False


class ForeignKey(NamedTuple):
    """A foreign key: the `columns` of a table that refer to the columns `referred` of another `table`.

    `schema` is that of the other table, empty for the default schema.
    """

    columns: Sequence[str]
    table: str
    referred: Sequence[str]
    schema: str = ""


class TableDefinition(NamedTuple):
    """A table or a view, with names as the database spells them; `schema` is empty for the default schema.

    `unique` contains the sets of columns that are declared unique, without the primary key. `nullable_key` contains the
    columns of the primary key in which SQLite allows NULL.
    """

    name: str
    columns: Sequence[ColumnDefinition]
    primary_key: Sequence[str] = ()
    foreign_keys: Sequence[ForeignKey] = ()
    schema: str = ""
    unique: Sequence[Sequence[str]] = ()
    nullable_key: Sequence[str] = ()

    @property
    def by_name(self) -> Mapping[str, ColumnDefinition]:
        """The columns by their names in lower case."""
        return {column.name.lower(): column for column in self.columns}

    @property
    def keys(self) -> Sequence[Sequence[str]]:
        """The sets of columns whose values identify a row: the primary key, if there is one, and each UNIQUE."""
        return [key for key in (self.primary_key, *self.unique) if key]

    @property
    def not_null(self) -> set[str]:
        """The names, in lower case, of the columns that are never NULL."""
        return {column.name.lower() for column in self.columns if column.not_null}

    def with_not_null(self, names: Collection[str]) -> TableDefinition:
        """Return a copy of the table in which exactly the columns of these names, in lower case, are NOT NULL."""
        columns = (column._replace(not_null=column.name.lower() in names) for column in self.columns)
        return self._replace(columns=tuple(columns))


Tables: TypeAlias = Mapping[str, TableDefinition]  # by their names in lower case


def create_table(table: TableDefinition, quote: Callable[[str], str]) -> str:
    """Return a CREATE TABLE statement with the columns, the primary key and the foreign keys of a table.

    `quote` returns a name with the quotes that it needs.

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
    """Return statements as one text: each statement ends with a semicolon, and blank lines separate statements."""
    return "\n\n".join(f"{statement.rstrip().rstrip(';')};" for statement in statements)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The tables of a database with their columns, and its foreign keys, by names in lower case.

    Their order is that of the database or the file. A foreign key is a pair: the column that refers, then the column
    that it refers to. `definitions` are the tables of a schema file as predictors see them; it is empty for the schema
    of a database, whose engine lists the tables.
    """

    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    foreign_keys: tuple[tuple[Column, Column], ...] = ()
    definitions: tuple[TableDefinition, ...] = field(default=(), compare=False)

    def __hash__(self) -> int:
        return hash((tuple(self.tables), self.foreign_keys))


def schema_of_columns(described: Iterable[Sequence[Any]]) -> Schema:
    """Return the schema of a database, with names in lower case, from the `DescribedColumn`s that its engine lists."""
    tables: dict[str, dict[str, None]] = {}
    keys: dict[tuple[Column, Column], None] = {}
    for table, column, _, other_table, other_column in described:
        referring = (str(table).lower(), str(column).lower())
        tables.setdefault(referring[0], {})[referring[1]] = None
        if other_table and other_column:
            keys[referring, (str(other_table).lower(), str(other_column).lower())] = None
    return Schema(tables={name: tuple(columns) for name, columns in tables.items()}, foreign_keys=tuple(keys))


def schema_of_entry(entry: Mapping[str, Any]) -> Schema:
    """Return the schema that one entry of Spider's tables.json describes.

    The entry has `table_names_original`, and `column_names_original` as pairs [number of the table, name] after the
    pair [-1, "*"]. Its `foreign_keys` are pairs of numbers of columns. It may have `column_types`, and `primary_keys`,
    which are numbers of columns or lists of numbers. Raise KeyError, IndexError, TypeError or ValueError for any other
    entry.
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
    """Return the tables that an entry of tables.json describes, with keys and with the entry's letter case.

    Raise the same errors as `schema_of_entry`.
    """
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
    """Return the item at a position, counted from 0; raise IndexError for a negative position or one beyond the end.

    `sort` is the word for the item in the message.
    """
    if type(number) is not int or not 0 <= number < len(items):
        raise IndexError(f"a {sort} that is not listed")
    return items[number]
