"""The tables that CREATE TABLE statements declare, with their keys and constraints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import filterfalse

import sqlglot
from sqlglot import ErrorLevel, exp

from pytest_queryeval.core.db_schema import ColumnDefinition, ForeignKey, TableDefinition, Tables
from pytest_queryeval.languages.sql.parsing import without_warnings

# What SQLite reads by the type as it is written: an INTEGER PRIMARY KEY is the number of the row, so that it is never
# NULL, and STRING has no words that make it a type of texts.
_INTEGER = re.compile(
    r"""["`\]]?\s+INTEGER\s*(?:[,)]|\b(?:PRIMARY|NOT|NULL|UNIQUE|CHECK|DEFAULT|CONSTRAINT|REFERENCES)\b)""",
    re.IGNORECASE,
)
# Columns, those of SQLite without a type among them, and what else is declared beside them there.
_COLUMNS = (exp.ColumnDef, exp.Identifier, exp.Literal)
_CONSTRAINTS = (exp.Constraint, exp.ColumnConstraintKind, exp.PrimaryKey, exp.ForeignKey)
# What the parser does not know after the columns of a table.
_WITHOUT_ROWID = re.compile(r"(?<=\))\s*(?:STRICT\s*,\s*)?WITHOUT\s+ROWID\b(?:\s*,\s*STRICT\b)?", re.IGNORECASE)
_STRING = re.compile(r"""["`\]]?\s*STR(?:ING)?\b""", re.IGNORECASE)


@lru_cache(maxsize=64)
def read_tables(ddl: str, dialect: str) -> Tables:
    """Return the tables of a script by their names; none of a script that cannot be parsed.

    Names are in lower case, but for those in `columns`; tables whose names differ in the case of letters such as é are
    left out. Columns of a primary key are NOT NULL, also where SQLite would admit NULLs, as it does in those of
    `nullable_key`.

    >>> table = read_tables("CREATE TABLE singer (id INT PRIMARY KEY, name TEXT UNIQUE)", "sqlite")["singer"]
    >>> table.primary_key, table.unique, table.columns[0]
    (('id',), (('name',),), ColumnDefinition(name='id', type='INT', not_null=True, is_collated=False))
    """
    if dialect == "sqlite":
        ddl = _WITHOUT_ROWID.sub(lambda match: " " * len(match[0]), ddl)
    try:
        with without_warnings():
            statements = sqlglot.parse(ddl, dialect=dialect, error_level=ErrorLevel.IGNORE)
    except Exception:  # noqa: BLE001 - the parser fails with any error on what it does not know
        return {}
    created = [statement for statement in statements if isinstance(statement, exp.Create)]
    definitions: dict[str, TableDefinition | None] = {}  # of the first table or view of each name: DuckDB's schema main
    spellings: dict[str, bytes] = {}  # engines ignore the case of ASCII letters only
    for statement in created:
        if statement.kind in ("TABLE", "VIEW"):
            spelling = (statement.find(exp.Table) or statement).name
            name = spelling.lower()
            definitions.setdefault(name, _table(statement, ddl if dialect == "sqlite" else ""))
            if spellings.setdefault(name, spelling.encode().lower()) != spelling.encode().lower():
                definitions[name] = None
    tables = {name: table for name, table in definitions.items() if table is not None}
    for name, columns in filter(None, map(_unique_index, created)):
        if name in tables:
            tables[name] = tables[name]._replace(unique=(*tables[name].unique, columns))
    return {name: _with_referred_keys(table, tables) for name, table in tables.items()}


def _table(statement: exp.Create, sqlite_ddl: str) -> TableDefinition | None:
    """Return the table that a statement declares; `sqlite_ddl` is the script that has it, empty for other engines."""
    declared = statement.this
    if statement.kind != "TABLE" or not isinstance(declared, exp.Schema) or not isinstance(declared.this, exp.Table):
        return None
    primary: tuple[str, ...] = ()
    unique: list[tuple[str, ...]] = []
    foreign: list[ForeignKey] = []
    not_null: set[str] = set()
    if sqlite_ddl and not all(isinstance(item, (*_COLUMNS, *_CONSTRAINTS)) for item in declared.expressions):
        return None
    columns = [_column(item, sqlite_ddl) for item in declared.expressions if isinstance(item, _COLUMNS)]
    for item, column_name in _constraints(declared):
        match item:
            case exp.PrimaryKeyColumnConstraint():
                primary = (column_name,)
            case exp.PrimaryKey():
                primary = _names(item.expressions)
            case exp.NotNullColumnConstraint() if not item.args.get("allow_null"):
                not_null.add(column_name)
            case exp.UniqueColumnConstraint():
                unique.append(_names(item.this.expressions) if isinstance(item.this, exp.Schema) else (column_name,))
            case exp.Reference():
                foreign.append(_foreign_key((column_name,), item))
            case exp.ForeignKey() if isinstance(item.args.get("reference"), exp.Reference):
                foreign.append(_foreign_key(_names(item.expressions), item.args["reference"]))
    is_never_null = _is_never_null(declared, primary, sqlite_ddl)
    nullable = () if is_never_null else tuple(filterfalse(not_null.__contains__, primary))
    not_null.update(primary)
    return TableDefinition(
        declared.this.name.lower(),
        tuple(column._replace(not_null=column.name.lower() in not_null) for column in columns),
        primary,
        tuple(foreign),
        unique=tuple(unique),
        nullable_key=nullable,
    )


def _column(column: exp.Expr, sqlite_ddl: str) -> ColumnDefinition:
    if not isinstance(column, exp.ColumnDef):
        return ColumnDefinition(column.name)
    declared_type = column.kind.sql() if column.kind is not None else ""
    # The parser reads `DEFAULT 'x' COLLATE NOCASE` as a value with a collation.
    is_collated = column.find(exp.CollateColumnConstraint, exp.Collate) is not None
    type_ = "STRING" if _STRING.match(_text_after_name(column, sqlite_ddl)) else declared_type
    return ColumnDefinition(column.name, type_, is_collated=is_collated)


def _is_never_null(declared: exp.Schema, key: Sequence[str], sqlite_ddl: str) -> bool:
    """Return whether no column of a primary key can be NULL: in SQLite, if it is the number of the row."""
    if not sqlite_ddl:
        return True
    column = next((item for item in declared.find_all(exp.ColumnDef) if [item.name.lower()] == [*key]), None)
    if column is None or not _INTEGER.match(_text_after_name(column, sqlite_ddl)):
        return False
    return not any(
        isinstance(constraint.kind, exp.PrimaryKeyColumnConstraint) and constraint.kind.args.get("desc")
        for constraint in column.constraints
    )


def _text_after_name(column: exp.ColumnDef, sqlite_ddl: str) -> str:
    return sqlite_ddl[column.this.meta.get("end", len(sqlite_ddl)) + 1 :]


def _unique_index(statement: exp.Create) -> tuple[str, tuple[str, ...]] | None:
    """Return the table and the columns of a unique index; None of others, of expressions, some rows or a schema."""
    index = statement.this
    if not isinstance(index, exp.Index) or not statement.args.get("unique") or index.args.get("params") is None:
        return None
    parameters, table = index.args["params"], index.args.get("table")
    columns = [node.this if isinstance(node, exp.Ordered) else node for node in parameters.args.get("columns") or ()]
    columns = [node.this if isinstance(node, exp.Collate) else node for node in columns]
    if table is None or table.db or parameters.args.get("where"):
        return None
    if not all(isinstance(node, exp.Column) for node in columns):
        return None
    return table.name.lower(), tuple(column.name.lower() for column in columns)


def _constraints(declared: exp.Schema) -> Iterator[tuple[exp.Expr, str]]:
    """Yield columns and constraints, each with the name of the column that it belongs to."""
    for item in declared.expressions:
        if isinstance(item, exp.ColumnDef):
            yield item, item.name.lower()
            yield from ((constraint.args["kind"], item.name.lower()) for constraint in item.constraints)
        elif isinstance(item, exp.Constraint):
            yield from ((inner, "") for inner in item.expressions)
        else:
            yield item, ""


def _foreign_key(columns: tuple[str, ...], reference: exp.Reference) -> ForeignKey:
    referred = reference.this
    if isinstance(referred, exp.Schema):
        return ForeignKey(columns, referred.this.name.lower(), _names(referred.expressions))
    return ForeignKey(columns, referred.name.lower(), ())


def _with_referred_keys(table: TableDefinition, tables: Tables) -> TableDefinition:
    """Return the table with the primary key in foreign keys that name none of the columns they refer to."""
    keys = [
        key if key.referred or key.table not in tables else key._replace(referred=tables[key.table].primary_key)
        for key in table.foreign_keys
    ]
    return table._replace(foreign_keys=tuple(keys))


def _names(nodes: list[exp.Expr]) -> tuple[str, ...]:
    """Return the names of columns, which a key may order or shorten."""
    return tuple((node.find(exp.Identifier) or node).name.lower() for node in nodes)
