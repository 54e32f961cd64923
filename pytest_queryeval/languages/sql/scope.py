"""Whether a SQL query stays within a scope: what of that which it reads is outside."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import NamedTuple

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import did_you_mean
from pytest_queryeval.core.scope import Constant, Scope
from pytest_queryeval.languages.sql.reads import (
    ALL,
    Read,
    Reads,
    TableName,
    Views,
    folded,
    name_key,
    table_name,
    what_is_read,
)
from pytest_queryeval.text.formatting import first_of

MAX_NAMED = 8  # names in a message
_PART = re.compile(r'"((?:[^"]|"")*)"|`([^`]*)`|([^.]+)')
_CATALOGUES = frozenset(
    ("information_schema", "pg_catalog", "pg_toast", "sys", "system", "mysql", "performance_schema")
)
_CATALOGUE_TABLE = re.compile(r"(?:sqlite|pragma|pg|duckdb)_", re.IGNORECASE)
# What reads columns that SQLite's authorizer does not see.
_JOINS_COLUMNS = re.compile(r"\b(?:using|natural)\b", re.IGNORECASE)


class Recorded(NamedTuple):
    """A column of a table that a database saw a query read, and the view in whose definition, if any."""

    table: TableName
    column: str
    view: str = ""


class UnresolvedError(Exception):
    """It cannot be decided what a query reads; the message says why."""


@dataclass(frozen=True)
class ScopeRules:
    """The rules of a scope, with names as a dialect compares them; answers whether reads are inside."""

    scope: Scope
    dialect: str
    schema: Schema

    @cached_property
    def _tables(self) -> Sequence[TableName] | None:
        return None if self.scope.tables is None else [*map(self._table_name, self.scope.tables)]

    @cached_property
    def _columns(self) -> Mapping[TableName, frozenset[str]]:
        return {
            self._table_name(table): frozenset(self._column_key(name) for name in names)
            for table, names in self.scope.columns.items()
        }

    @cached_property
    def _denied_columns(self) -> Sequence[tuple[TableName, str]]:
        """Denied columns in lower case, with their table, or () for a column that is denied in all tables."""
        denied = []
        for name in self.scope.deny:
            *table, (column, _) = _name_parts(name)
            denied.append((table_name(table, self.dialect) if table else (), folded(column)))
        return denied

    @cached_property
    def _where(self) -> Mapping[TableName, Mapping[str, Constant]]:
        return {self._table_name(table): conditions for table, conditions in self.scope.where.items()}

    def lists(self, table: TableName) -> bool:
        """Return whether the scope names a table, a function or a view under `tables`."""
        return any(_matches(table, name) for name in self._tables or ())

    def breaches(self, reads: Iterable[Read]) -> Iterator[str]:
        """Yield a message for each read that is outside, without repetition.

        Raises `UnresolvedError` if that depends on columns that are not known.
        """
        seen: set[tuple[object, ...]] = set()
        for read in reads:
            for key, message in self._breaches_of(read) if read.form != "unknown" else ():
                if key not in seen:
                    seen.add(key)
                    yield message

    def _breaches_of(self, read: Read) -> Iterator[tuple[tuple[object, ...], str]]:
        table = ".".join(read.table)
        name = f"{table}.{read.column}" if read.column else table
        at = ", ".join(filter(None, (read.place, f"through the view {read.view}" if read.view else "")))
        shown = f"{name} ({at})" if at else name
        if read.form == "function":
            if not self.lists(read.table):
                yield (read.table,), f"calls the function {shown}, which `tables` does not list"
            return
        if not self._is_table_inside(read.table):
            yield (read.table,), f"reads {f'{table} ({at})' if at else table}, which is not {self._allowed_tables}"
            return
        if not read.column:
            for column, constant in self._missing_conditions(read):
                condition = f"{column} = {shown_constant(constant)}"
                rule = "which `where` demands in the WHERE of its SELECT or in ON of an inner join"
                yield (read.table, read.place, column), f"reads {shown} without {condition}, {rule}"
            return
        if self._is_denied(read):
            yield (read.table, read.column), f"reads {shown}, which `deny` excludes"
        elif (allowed := self._columns_of(read.table)) is not None and not self._is_column_in(read, allowed):
            columns = ", ".join(sorted(allowed)[:MAX_NAMED])
            yield (read.table, read.column), f"reads {shown}: of {table}, `columns` allows {columns or 'none'}"

    def _is_table_inside(self, table: TableName) -> bool:
        if self._tables is not None:
            return self.lists(table)
        if any(part.lower() in _CATALOGUES for part in table[:-1]) or _CATALOGUE_TABLE.match(table[-1]):
            return False
        return len(table) > 1 or not self.schema.tables or table[-1].lower() in self.schema.tables

    @property
    def _allowed_tables(self) -> str:
        if self.scope.tables is None:
            return "a table of the source"
        return f"among `tables`: {first_of(self.scope.tables, MAX_NAMED) or 'none'}"

    def _missing_conditions(self, read: Read) -> Iterator[tuple[str, Constant]]:
        for table, conditions in self._where.items():
            if _matches(read.table, table):
                for column, constant in conditions.items():
                    name = folded(_name_parts(column)[-1][0])
                    if not any(name == of and is_same(constant, text, is_text) for of, text, is_text in read.filters):
                        yield column, constant

    def _is_denied(self, read: Read) -> bool:
        for table, column in self._denied_columns:
            if table and not _matches(read.table, table):
                continue
            if column == ALL or folded(read.column) == column:
                return True
            if read.column == ALL:
                raise _unknown_columns(read)
        return False

    def _columns_of(self, table: TableName) -> frozenset[str] | None:
        return next((columns for name, columns in self._columns.items() if _matches(table, name)), None)

    def _is_column_in(self, read: Read, allowed: Collection[str]) -> bool:
        if read.column == ALL:
            raise _unknown_columns(read)
        if read.form in ("all", "joined"):  # names of the schema, which are in lower case
            return folded(read.column) in map(folded, allowed)
        return read.column in allowed

    def unknown_names(self) -> Iterator[str]:
        """Yield a message for each name in the scope that the source does not have.

        Nothing if its tables are not known.
        """
        tables = self.schema.tables
        if not tables:
            return
        named = [("tables", name) for name in self.scope.tables or ()]
        named += [(key, name) for key in ("columns", "where") for name in getattr(self.scope, key)]
        for key, name in named:
            table = _name_parts(name)[-1][0]
            if table != ALL and table.lower() not in tables:
                hint = did_you_mean(table, tables)
                yield f"`scope: {key}` names the table {name}, which the source does not have{hint}"
        columns = {table: [*names] for table, names in self.scope.columns.items()}
        for table, conditions in self.scope.where.items():
            columns[table] = [*columns.get(table, ()), *conditions]
        for denied in self.scope.deny:
            *above, (column, _) = _name_parts(denied)
            columns.setdefault(above[-1][0] if above else ALL, []).append(column)
        for table, names in columns.items():
            own = _name_parts(table)[-1][0].lower()
            known = [name for of, names_of in tables.items() if own in (ALL, of) for name in names_of]
            for name in names if known else ():
                column = _name_parts(name)[-1][0]
                if column != ALL and column.lower() not in map(str.lower, known):
                    lacking = "no table of the source has" if own == ALL else f"{table} does not have"
                    yield f"`scope` names the column {column}, which {lacking}{did_you_mean(column, known)}"

    def _table_name(self, name: str) -> TableName:
        return table_name(_name_parts(name), self.dialect)

    def _column_key(self, name: str) -> str:
        column, quoted = _name_parts(name)[-1]
        return name_key(column, self.dialect, quoted=quoted)


def scope_breaches(
    query: str, rules: ScopeRules, views: Views, record: Sequence[Recorded] | None = None, *, has_run: bool = True
) -> list[str]:
    """Return a phrase, without a subject, for each read of a query that is outside of a scope.

    `record` is what the database saw the query read, if it reports that. Raises `UnresolvedError` for a query that ran
    (`has_run`) if it cannot be decided what it reads.
    """
    reads = what_is_read(query, rules.dialect, rules.schema, views, rules.lists)
    if record is not None:
        reads = with_record(reads, record, views, rules, query)
    found = list(rules.breaches(reads.reads))
    problems = (*reads.problems, *reads.unknown)
    if has_run and problems and not found:
        raise UnresolvedError(problems[0])
    return found


def with_record(reads: Reads, record: Sequence[Recorded], views: Views, rules: ScopeRules, query: str) -> Reads:
    """Return the reads of a query with columns from the database's record.

    Tables, USING and NATURAL stay as in its text. Records from the definition of a listed view do not count, unless the
    text has a query of the same name: to SQLite, queries of WITH are views.
    """
    names = {folded(name[-1]) for name in views.queries}
    hides = any(map(rules.lists, views.queries))
    counted = [entry for entry in record if not hides or not entry.view or folded(entry.view) in reads.expanded]
    columns = dict.fromkeys(
        (folded_name(entry.table), folded(entry.column))
        for entry in counted
        if (folded(entry.table[-1]) not in names or rules.lists(folded_name(entry.table)))
        and (entry.column or not reads.is_whole)
    )
    kept, seen = [], set()
    for read in reads.reads:
        key = read.table, folded(read.column)
        if read.form in ("table", "function", "joined") or key in columns:
            kept.append(read)
            seen.add(key)
    added = [
        Read("column", table, column) if column else Read("table", table)
        for table, column in columns
        if (table, column) not in seen
    ]
    is_open = rules.scope.where or _JOINS_COLUMNS.search(query) or len(counted) < len(record)
    problems = reads.problems if is_open or reads.is_whole else ()
    return reads._replace(reads=(*kept, *added), problems=problems, unknown=())


def folded_name(table: TableName) -> TableName:
    """Return the name of a table as SQLite compares it."""
    return tuple(map(folded, table))


def _unknown_columns(read: Read) -> UnresolvedError:
    return UnresolvedError(f"the columns of {'.'.join(read.table)} are not known, and all are read ({read.place})")


def is_same(constant: Constant, text: str, is_text: bool) -> bool:
    """Return whether a constant in a query is the constant of a scope.

    `text` and `is_text` are the constant's text in the query, and whether it is quoted.

    >>> is_same(7, "7", False), is_same(7, "7", True), is_same("a", "a", True), is_same("07", "7", False)
    (True, True, True, False)
    """
    if isinstance(constant, bool):
        return not is_text and text == str(constant).lower()
    if isinstance(constant, str) or is_text:
        return text == str(constant)
    try:
        return Decimal(text) == Decimal(str(constant))
    except InvalidOperation:
        return False


def shown_constant(constant: Constant) -> str:
    """Return a constant as SQL writes it."""
    if isinstance(constant, bool):
        return str(constant).lower()
    return "'" + constant.replace("'", "''") + "'" if isinstance(constant, str) else str(constant)


def _name_parts(name: str) -> list[tuple[str, bool]]:
    """Return the parts of a dotted name, with whether they are quoted."""
    return [
        (match[3].strip(), False) if match[3] is not None else ((match[1] or match[2] or "").replace('""', '"'), True)
        for match in _PART.finditer(name)
    ]


def _matches(table: TableName, name: TableName) -> bool:
    """Return whether a table has a name, or belongs to `schema.*`."""
    if name[-1] == ALL:
        return table[: len(name) - 1] == name[:-1] and (len(table) == len(name) or len(name) == 1)
    return table == name
