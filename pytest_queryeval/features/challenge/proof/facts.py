"""What holds for the rows of a SELECT on any data that keeps the constraints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from pytest_queryeval.core.db_schema import TableDefinition, Tables
from pytest_queryeval.features.challenge.proof.query import (
    AGGREGATES,
    Block,
    Name,
    Term,
    columns_of,
    conjuncts,
    name_of,
    nodes,
    operands,
)

_COMPARISONS = frozenset(("eq", "neq", "lt", "lte", "Like", "ILike"))
_STRICT = frozenset(("add", "sub", "mul", "Div", "Lower", "Upper", "Length", "Abs", "Neg"))
# Families of columns in which equal values look the same: in SQLite by words of the declared type, in the order in
# which it looks for them (1 equals 1.0 in columns without a type, BLOB and ANY), elsewhere by the type itself, since
# equal values of two types, such as DATE and TIMESTAMP, may look different.
_FAMILIES = (
    *(("INT", "integer"), ("CHAR", "text"), ("CLOB", "text"), ("TEXT", "text"), ("BLOB", ""), ("BINARY", "")),
    ("ANY", ""),
    *(("REAL", "real"), ("FLOA", "real"), ("DOUB", "real"), ("DATE", "time"), ("TIME", "time"), ("", "numeric")),
)
_FAMILIES_OF_TYPES = {
    **{name: f"integer {name}" for name in ("TINYINT", "SMALLINT", "INT", "BIGINT")},
    "TEXT": "text",
    "VARCHAR": "text",
    "DATE": "time DATE",
    "TIMESTAMP": "time TIMESTAMP",
}
# By family, the constants that determine the value of an equal column.
_CONSTANTS = {"integer": "number", "real": "number", "numeric": "number", "text": "text", "time": "text"}


class Facts:
    """The facts of one SELECT: which columns are equal, never NULL, or determined by others."""

    def __init__(self, block: Block, tables: Tables) -> None:
        self._block = block
        self._tables = tables
        self.pairs = [pair for condition in block.where if (pair := self._equal_columns(condition)) is not None]
        self._constants = {
            name_of(column)
            for condition in block.where
            if condition[0] == "eq"
            for column, constant in ((condition[1], condition[2]), (condition[2], condition[1]))
            if column[0] == "column" and constant[0] == constant_of(column)
        }
        self._rejected = {name for condition in block.where for name in rejected(condition)}

    def definition(self, alias: str) -> TableDefinition | None:
        """Return the table of an alias; None for nested queries, and for aliases of queries around this one."""
        source = self._block.tables.get(alias)
        return self._tables[source] if isinstance(source, str) else None

    def keys(self, alias: str) -> Iterator[set[str]]:
        """Yield the sets of columns that no two rows of a table share, none of which is NULL."""
        table = self.definition(alias)
        if table is not None:
            not_null = {column.name.lower() for column in table.columns if column.not_null}
            not_null |= {name for owner, name in self._rejected if owner == alias}
            for key in (table.primary_key, *table.unique):
                if key and not_null.issuperset(key):
                    yield set(key)

    def closure(self, names: Iterable[Name]) -> set[Name]:
        """Return all columns that have the same value in all rows with the same values of these."""
        determined, size = {*names, *self._constants}, -1
        while len(determined) != size:
            size = len(determined)
            for pair in self.pairs:
                if any(self._is_known(name, determined) for name in pair):
                    determined.update(pair)
            for alias in self._block.tables:
                if any(all((alias, name) in determined for name in key) for key in self.keys(alias)):
                    determined.update((alias, name) for name in self.column_names(alias))
        return {name for name in determined if name[0] in self._block.tables}

    def column_names(self, alias: str) -> set[str]:
        """Return the columns of a table."""
        table = self.definition(alias)
        return set() if table is None else {column.name.lower() for column in table.columns}

    def determine_rows(self, names: Iterable[Name]) -> bool:
        """Return whether no two rows, before they are grouped, have the same values of these columns."""
        determined = self.closure(names)
        return bool(self._block.tables) and all(
            any(all((alias, name) in determined for name in key) for key in self.keys(alias))
            for alias in self._block.tables
        )

    def not_null(self, term: Term) -> bool:
        """Return whether an expression is a column that is NULL in no row."""
        if term[0] != "column":
            return False
        return name_of(term) in self._rejected or self.is_declared_not_null(term)

    def is_declared_not_null(self, column: Term) -> bool:
        """Return whether a column is declared NOT NULL, and belongs to an inner join."""
        alias, name = name_of(column)
        table = self.definition(alias) if alias in self._block.inner_tables else None
        return table is not None and any(of.not_null and of.name.lower() == name for of in table.columns)

    def are_equal(self, first: Name, second: Name) -> bool:
        """Return whether two columns are equal in each row, by equalities between columns."""
        equal, size = {first}, 0
        while len(equal) != size:
            size = len(equal)
            equal.update(chain.from_iterable(pair for pair in self.pairs if not equal.isdisjoint(pair)))
        return second in equal

    def has_unique_rows(self) -> bool:
        """Return whether no two rows of the answer are equal, also without DISTINCT."""
        block = self._block
        names = [name_of(term) for term in block.select if term[0] == "column"]
        if block.group is None:
            return self.has_one_row() or (not block.has_aggregates and self.determine_rows(names))
        determined = self.closure(names)
        return all(key in block.select or (key[0] == "column" and name_of(key) in determined) for key in block.group)

    def has_one_row(self) -> bool:
        """Return whether the answer has one row at most."""
        block = self._block
        return block.group is None and (block.has_aggregates or self.determine_rows(()))

    def is_determined(self, term: Term, keys: Iterable[Term]) -> bool:
        """Return whether an expression has one value in all rows, or groups, with the same values of these keys.

        Only columns of which equal values look the same determine others.
        """
        determined = self.closure(name_of(key) for key in keys if have_one_family(key, key))
        if self._block.group is not None and all(
            key[0] == "column" and name_of(key) in determined for key in self._block.group
        ):
            return True  # a single group
        if any(part[0] in AGGREGATES for part in nodes(term)):
            return False
        return all(name in determined or name[0] not in self._block.tables for name in columns_of(term))

    def _is_known(self, name: Name, determined: set[Name]) -> bool:
        return name in determined or name[0] not in self._block.tables

    def _equal_columns(self, condition: Term) -> tuple[Name, Name] | None:
        if condition[0] != "eq" or not have_one_family(condition[1], condition[2]):
            return None
        return name_of(condition[1]), name_of(condition[2])


def family_of(declared: str, dialect: str) -> str:
    """Return the family of a column by its declared type; empty if equal values may look different."""
    if dialect != "sqlite":
        return _FAMILIES_OF_TYPES.get(declared.upper().partition("(")[0], "")
    return next(family for word, family in _FAMILIES if word in declared.upper()) if declared else ""


def constant_of(column: Term) -> str | None:
    """Return the operator of constants that determine a column: `number` or `text`; None for columns of no family."""
    return _CONSTANTS.get(column[3].partition(" ")[0])


def have_one_family(first: Term, second: Term) -> bool:
    """Return whether both are columns of which equal values are the same."""
    return first[0] == second[0] == "column" and bool(first[3]) and first[3] == second[3]


def rejected(condition: Term) -> set[Name]:
    """Return the columns that are not NULL in rows for which a condition is true."""
    if condition[0] == "and":
        return {name for part in conjuncts(condition) for name in rejected(part)}
    if condition[0] == "or":
        return set.intersection(*(rejected(part) for part in operands(condition)))
    if condition[0] == "not":
        (inner,) = operands(condition)
        if inner[0] == "isnull":
            return strict_columns(next(operands(inner)))
        return set().union(*map(strict_columns, operands(inner))) if inner[0] in _COMPARISONS else set()
    if condition[0] in _COMPARISONS:
        return set().union(*map(strict_columns, operands(condition)))
    return strict_columns(condition[1]) if condition[0] == "in" else set()


def strict_columns(term: Term) -> set[Name]:
    """Return the columns of which a NULL makes an expression NULL."""
    if term[0] == "column":
        return {name_of(term)}
    return set().union(*map(strict_columns, operands(term))) if term[0] in _STRICT else set()
