"""The tables of a source: what CREATE TABLE statements declare, and the constraints that its rows satisfy."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import filterfalse

import sqlglot
from sqlglot import ErrorLevel, exp

from pytest_queryeval.core.db_schema import ColumnDefinition, ForeignKey, TableDefinition, Tables
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.mappings import not_none
from pytest_queryeval.core.model import Case, QueryOrAnswer
from pytest_queryeval.core.table import Table
from pytest_queryeval.evaluation.prediction_call import schema_script
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength.sql.rows import insertion_order
from pytest_queryeval.languages.sql.dialects import quote_in
from pytest_queryeval.languages.sql.parsing import without_warnings

CONSTRAINT_SECONDS = 10.0  # for a source to find rows that break a constraint
# What SQLite reads by the type as it is written: an INTEGER PRIMARY KEY is the number of the row, so that it is never
# NULL, and STRING has no words that make it a type of texts.
_INTEGER = re.compile(
    r"""["`\]]?\s+INTEGER\s*(?:[,)]|\b(?:PRIMARY|NOT|NULL|UNIQUE|CHECK|DEFAULT|CONSTRAINT|REFERENCES)\b)""",
    re.IGNORECASE,
)
# Columns, those of SQLite without a type among them, and what else is declared next to them there.
_COLUMNS = (exp.ColumnDef, exp.Identifier, exp.Literal)
_CONSTRAINTS = (exp.Constraint, exp.ColumnConstraintKind, exp.PrimaryKey, exp.ForeignKey)
# What the parser does not know after the columns of a table.
_WITHOUT_ROWID = re.compile(r"(?<=\))\s*(?:STRICT\s*,\s*)?WITHOUT\s+ROWID\b(?:\s*,\s*STRICT\b)?", re.IGNORECASE)
_STRING = re.compile(r"""["`\]]?\s*STR(?:ING)?\b""", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, eq=False)
class SourceTables:
    """The tables of a source by their names in lower case; two objects with the same tables are not equal."""

    ddl: str
    """The statements that create the tables."""
    dialect: str
    declared: Tables
    """The tables with the constraints that the source declares."""
    tables: Tables
    """The tables with the constraints that their rows satisfy, each checked when it is first looked up."""

    @cached_property
    def strictest(self) -> Tables:
        """The tables with all constraints: those that rows satisfy, and declared constraints that rows violate."""
        return _LazyTables(self.tables, self._strictest)

    def _strictest(self, name: str) -> TableDefinition:
        table, declared = self.tables[name], self.declared[name]
        foreign_keys = dict.fromkeys((*declared.foreign_keys, *table.foreign_keys))
        return table.with_not_null(table.not_null | declared.not_null)._replace(foreign_keys=tuple(foreign_keys))

    @cached_property
    def script(self) -> str:
        """The statements in an order that runs: schemas, tables after their referenced tables, then all others."""
        statements = re.split(r"(?<=;)\n\n(?=CREATE )", self.ddl)
        by_table = {name: statement for statement in statements for name in read_tables(statement, self.dialect)}
        schemas = [statement for statement in statements if statement.startswith("CREATE SCHEMA")]
        other_statements = [statement for statement in statements if statement not in (*by_table.values(), *schemas)]
        return "\n\n".join([*schemas, *(by_table[name] for name in insertion_order(self.declared)), *other_statements])


class _LazyTables(Mapping[str, TableDefinition]):
    """A mapping of tables that `make` returns when a name is first looked up."""

    def __init__(self, names: Collection[str], make: Callable[[str], TableDefinition]) -> None:
        self._names, self._make = names, cache(make)

    def __getitem__(self, name: str) -> TableDefinition:
        if name not in self._names:
            raise KeyError(name)
        return self._make(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def source_tables(case: Case, session: Session) -> SourceTables:
    """Return the tables of a case's SQL source, with the constraints that its rows satisfy.

    Computed once in a session. The source declares tables and columns; if it declares none, the case's `db_schema`
    does. Constraints are declared, or stated in `db_schema` and satisfied by the rows. A declared foreign key that rows
    violate is left out, and so is a key of `db_schema` that is part of a declared key: formats without composite keys
    list such parts. Raise `SourceError` if the source cannot be queried; the error is the same for every call.
    """
    source, schema, dialect = case.settings.source, case.db_schema, case.settings.dialect
    assert source is not None  # or there would be nothing to query
    stated_ddl = None if schema is None else schema_script(schema, dialect)
    source_case = replace(case, db_schema=None, settings=replace(case.settings, timeout=CONSTRAINT_SECONDS, max_rows=1))

    def returns_rows(query: str) -> bool | None:
        execution = session.execute(QueryOrAnswer(query=query), source_case, is_derived=True)
        if execution.error is not None:
            return True if execution.error.kind == "too_large" else None
        return isinstance(execution.answer, Table) and bool(execution.answer.rows)

    def read() -> SourceTables:
        try:
            declared_ddl = session.list_ddl(source) or ""
        except SourceError:
            if stated_ddl is None:
                raise
            declared_ddl = ""
        stated_tables = read_tables(stated_ddl or "", dialect)
        tables = read_tables(declared_ddl, dialect) or {
            name: TableDefinition(name, table.columns).with_not_null(()) for name, table in stated_tables.items()
        }
        rows = _ConstraintChecker(tables, dialect, returns_rows)
        checked = _LazyTables(tables, lambda name: rows.constrain(tables[name], stated_tables.get(name)))
        return SourceTables(ddl=declared_ddl or stated_ddl or "", dialect=dialect, declared=tables, tables=checked)

    return session.cached(("tables", source.key, stated_ddl, dialect), read)


@dataclass(frozen=True)
class _ConstraintChecker:
    """Checks by queries which constraints the rows of a source satisfy."""

    tables: Tables
    dialect: str
    returns_rows: Callable[[str], bool | None]
    """Return whether a query returns rows; None if it does not run."""

    def constrain(self, declared: TableDefinition, stated: TableDefinition | None) -> TableDefinition:
        """Return the declared table with the constraints, declared or stated in `db_schema`, that its rows satisfy.

        Declared keys stay without a check. A stated key that contains no declared key counts if the rows satisfy it.
        """
        name = declared.name
        references = dict.fromkeys([*declared.foreign_keys, *(stated.foreign_keys if stated else ())])
        declared_keys = [set(key) for key in declared.keys]
        stated_keys = [
            key
            for key in (stated.keys if stated else ())
            if not any(columns >= set(key) for columns in declared_keys) and self.keep_key(name, key)
        ]
        not_null = declared.not_null - {column for column in declared.primary_key if self.have_nulls(name, column)}
        not_null.update(column for key in stated_keys for column in key)
        return declared.with_not_null(not_null)._replace(
            unique=(*declared.unique, *stated_keys),
            foreign_keys=tuple(key for key in references if self.keep_reference(declared, key)),
        )

    def keep_key(self, table: str, key: Sequence[str]) -> bool:
        """Return whether no two rows have the same values of these columns, and no row has a NULL there.

        Return False if a column does not exist or the query does not run.
        """
        columns = self._quote(table, key)
        if not columns:
            return False
        column_list, nulls = ", ".join(columns), " OR ".join(f"{column} IS NULL" for column in columns)
        query = f"SELECT {column_list} FROM {quote_in(self.dialect)(table)} GROUP BY {column_list}"  # noqa: S608 - quoted
        return self.returns_rows(f"{query} HAVING COUNT(*) > 1 OR {nulls}") is False

    def have_nulls(self, table: str, column: str) -> bool:
        """Return whether a column of a primary key contains NULL, which only SQLite allows."""
        name = quote_in(self.dialect, keep_case=True)(column)
        query = f"SELECT {name} FROM {quote_in(self.dialect)(table)} WHERE {name} IS NULL"  # noqa: S608 - quoted
        return self.dialect == "sqlite" and self.returns_rows(query) is True

    def keep_reference(self, table: TableDefinition, key: ForeignKey) -> bool:
        """Return whether each row refers to an existing row, or to none by NULL; False if a column does not exist.

        If the query does not run, return whether the table declares the key.
        """
        columns, referred = self._quote(table.name, key.columns, "a."), self._quote(key.table, key.referred, "b.")
        if not columns or len(columns) != len(referred):
            return False
        tables = f"{quote_in(self.dialect)(table.name)} AS a LEFT JOIN {quote_in(self.dialect)(key.table)} AS b"
        joined = " AND ".join(map(" = ".join, zip(columns, referred, strict=True)))
        orphaned = " AND ".join([*(f"{column} IS NOT NULL" for column in columns), f"{referred[0]} IS NULL"])
        orphans = self.returns_rows(f"SELECT 1 FROM {tables} ON {joined} WHERE {orphaned}")  # noqa: S608 - quoted
        return orphans is False or (orphans is None and key in table.foreign_keys)

    def _quote(self, table: str, names: Sequence[str], prefix: str = "") -> list[str]:
        """Return the columns as a query names them, after `prefix`; empty if the table lacks one of them."""
        columns = self.tables[table].by_name if table in self.tables else {}
        quote = quote_in(self.dialect, keep_case=True)
        return [prefix + quote(columns[name].name) for name in names] if columns.keys() >= {*names} else []


@lru_cache(maxsize=64)
def read_tables(ddl: str, dialect: str) -> Tables:
    """Return the tables that a script creates, by their names; empty if the script cannot be parsed.

    Names are in lower case, except in `columns`. Views are left out, and so are tables whose names differ only in the
    case of letters such as é. Columns of a primary key are NOT NULL; SQLite allows NULL in the columns of
    `nullable_key`.

    >>> table = read_tables("CREATE TABLE singer (id INT PRIMARY KEY, name TEXT UNIQUE)", "sqlite")["singer"]
    >>> table.primary_key, table.unique, table.columns[0].name, table.columns[0].not_null
    (('id',), (('name',),), 'id', True)
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
            definitions.setdefault(name, _declared_table(statement, ddl if dialect == "sqlite" else ""))
            if spellings.setdefault(name, spelling.encode().lower()) != spelling.encode().lower():
                definitions[name] = None
    tables = not_none(definitions)
    for name, columns in filter(None, map(_unique_index, created)):
        if name in tables:
            tables[name] = tables[name]._replace(unique=(*tables[name].unique, columns))
    for name, table in tables.items():  # foreign keys that name no columns refer to the primary key
        keys = (
            key if key.referred or key.table not in tables else key._replace(referred=tables[key.table].primary_key)
            for key in table.foreign_keys
        )
        tables[name] = table._replace(foreign_keys=tuple(keys))
    return tables


def _declared_table(statement: exp.Create, sqlite_ddl: str) -> TableDefinition | None:
    """Return the table that a CREATE TABLE statement declares; None for other statements, or if parts are unknown.

    `sqlite_ddl` is the script that contains the statement; it is empty for other engines than SQLite.
    """
    declared = statement.this
    if statement.kind != "TABLE" or not isinstance(declared, exp.Schema) or not isinstance(declared.this, exp.Table):
        return None
    primary: tuple[str, ...] = ()
    unique: list[tuple[str, ...]] = []
    foreign: list[ForeignKey] = []
    not_null: set[str] = set()
    if sqlite_ddl and not all(isinstance(item, (*_COLUMNS, *_CONSTRAINTS)) for item in declared.expressions):
        return None
    columns = [_declared_column(item, sqlite_ddl) for item in declared.expressions if isinstance(item, _COLUMNS)]
    for item, column_name in _constraints(declared):
        match item:
            case exp.PrimaryKeyColumnConstraint():
                primary = (column_name,)
            case exp.PrimaryKey():
                primary = _column_names(item.expressions)
            case exp.NotNullColumnConstraint() if not item.args.get("allow_null"):
                not_null.add(column_name)
            case exp.UniqueColumnConstraint():
                unique.append(
                    _column_names(item.this.expressions) if isinstance(item.this, exp.Schema) else (column_name,)
                )
            case exp.Reference():
                foreign.append(_foreign_key((column_name,), item))
            case exp.ForeignKey() if isinstance(item.args.get("reference"), exp.Reference):
                foreign.append(_foreign_key(_column_names(item.expressions), item.args["reference"]))
    is_never_null = _is_never_null(declared, primary, sqlite_ddl)
    nullable = () if is_never_null else tuple(filterfalse(not_null.__contains__, primary))
    not_null.update(primary)
    return TableDefinition(
        declared.this.name.lower(),
        columns,
        primary,
        tuple(foreign),
        unique=tuple(unique),
        nullable_key=nullable,
    ).with_not_null(not_null)


def _declared_column(column: exp.Expr, sqlite_ddl: str) -> ColumnDefinition:
    if not isinstance(column, exp.ColumnDef):
        return ColumnDefinition(column.name)
    declared_type = column.kind.sql() if column.kind is not None else ""
    # The parser reads `DEFAULT 'x' COLLATE NOCASE` as a value with a collation.
    is_collated = column.find(exp.CollateColumnConstraint, exp.Collate) is not None
    type_ = "STRING" if _STRING.match(_text_after_name(column, sqlite_ddl)) else declared_type
    is_generated = any(
        isinstance(constraint.kind, exp.ComputedColumnConstraint)
        or (isinstance(constraint.kind, exp.GeneratedAsIdentityColumnConstraint) and constraint.kind.expression)
        for constraint in column.constraints
    )
    return ColumnDefinition(column.name, type_, is_collated=is_collated, is_generated=is_generated)


def _is_never_null(declared: exp.Schema, key: Sequence[str], sqlite_ddl: str) -> bool:
    """Return whether no column of a primary key can be NULL: in SQLite, only if the key is an INTEGER PRIMARY KEY."""
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
    """Return the table and the columns of CREATE UNIQUE INDEX, in lower case; None for other statements.

    Also return None for an index of expressions, of some rows (WHERE), or of a table with a schema.
    """
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
    """Yield columns and constraints, each with the name of its column; empty for a constraint of the table."""
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
        return ForeignKey(columns, referred.this.name.lower(), _column_names(referred.expressions))
    return ForeignKey(columns, referred.name.lower(), ())


def _column_names(nodes: list[exp.Expr]) -> tuple[str, ...]:
    """Return the names of columns in lower case, without the order or length that a key may give them."""
    return tuple((node.find(exp.Identifier) or node).name.lower() for node in nodes)
