"""Facts about the rows of a SELECT, on all data that satisfy the declared constraints.

A fact that does not follow from keys, NOT NULL, foreign keys and the conditions of the query is assumed to be false.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from pytest_queryeval.core.db_schema import Column, Tables
from pytest_queryeval.features.strength.sql.proof.query import (
    Block,
    Term,
    aggregates_in,
    columns_of,
    constant_of,
    have_one_family,
    name_of,
    operands,
)
from pytest_queryeval.languages.sql.columns import linked

_STRICT = frozenset(("add", "sub", "mul", "div", "mod", "neg", "cast", "upper", "lower", "length", "abs"))
_COMPARISONS = frozenset(("eq", "neq", "lt", "lte", "like", "ilike"))


class Facts:
    """The facts of one SELECT: which columns are equal, never NULL, or determined by others.

    A column is the alias of its table and its name, both in lower case.
    """

    def __init__(self, block: Block, tables: Tables) -> None:
        self._block = block
        # By alias, with keys in lower case; None for what is no table.
        self._tables = {alias: tables[of] if isinstance(of, str) else None for alias, of in block.tables.items()}
        self.equal = [(name_of(first), name_of(second)) for first, second in block.equalities]
        """The columns that are equal in each row."""
        self._constants = {
            name_of(column)
            for condition in block.where
            if condition[0] == "eq"
            for column, constant in (condition[1:], condition[:0:-1])
            if column[0] == "column" and constant[0] == constant_of(column)
        }.union(name for pair in self.equal for name in pair if name[0] not in block.tables)
        self.rejected = {name_of(column) for term in block.where for column in _non_null_columns(term)}
        """The columns that are NULL in no row, by the conditions."""

    def keys(self, alias: str) -> Iterator[Collection[str]]:
        """Yield the keys of a table that are never NULL, as collections of column names; nothing for nested queries."""
        if (table := self._tables.get(alias)) is not None:
            not_null = table.not_null | {name for owner, name in self.rejected if owner == alias}
            yield from filter(not_null.issuperset, table.keys)

    def closure(self, columns: Iterable[Column]) -> set[Column]:
        """Return all columns whose values follow from the values of `columns`, by equalities, constants and keys."""
        determined, size = {*self._constants, *columns}, -1
        while len(determined) != size:
            size = len(determined)
            for pair in self.equal:
                if not determined.isdisjoint(pair):
                    determined.update(pair)
            for alias, table in self._tables.items():
                if table is not None and self._has_key(alias, determined):
                    determined.update((alias, name) for name in table.by_name)
        return determined

    def determine_rows(self, columns: Iterable[Column], ignored: str | None = None) -> bool:
        """Return whether no two rows, before they are grouped, have the same values of these columns.

        With the alias of an `ignored` table, return whether that holds for the rows without the columns of that table.
        """
        determined = self.closure(columns)
        return bool(self._tables) and all(
            self._has_key(alias, determined) for alias in self._tables if alias != ignored
        )

    def is_not_null(self, column: Column) -> bool:
        """Return whether a column is NULL in no row, by its declaration or the conditions of WHERE."""
        alias, name = column
        table = self._tables[alias] if alias in self._block.inner_tables else None
        return column in self.rejected or (table is not None and name in table.not_null)

    def are_equal(self, first: Column, second: Column) -> bool:
        """Return whether two columns are equal in each row, by equalities in WHERE, also through other columns."""
        return second in linked(first, self.equal)

    def references(
        self, alias: str, referred: str, equated: AbstractSet[tuple[Column, Column]]
    ) -> Iterator[Sequence[tuple[Column, Column]]]:
        """Yield the foreign keys from one table to another, as pairs of columns, if all pairs are in `equated`."""
        table, target = self._tables.get(alias), self._tables.get(referred)
        for key in table.foreign_keys if table is not None else ():
            if target is not None and key.table == target.name.lower() and len(key.columns) == len(key.referred):
                pairs = [((alias, name), (referred, of)) for name, of in zip(key.columns, key.referred, strict=True)]
                if equated >= {*pairs}:
                    yield pairs

    def _has_key(self, alias: str, columns: AbstractSet[Column]) -> bool:
        return any(all((alias, name) in columns for name in key) for key in self.keys(alias))

    def is_not_null_column(self, term: Term) -> bool:
        """Return whether an expression is a column that is NULL in no row."""
        return term[0] == "column" and self.is_not_null(name_of(term))

    def has_unique_rows(self) -> bool:
        """Return whether no two rows of the answer are equal, even without DISTINCT."""
        block = self._block
        names = [name_of(term) for term in block.select if term[0] == "column"]
        if block.group is None:
            return self.has_one_row() or (not block.has_aggregates and self.determine_rows(names))
        determined = self.closure(names)
        return all(key in block.select or (key[0] == "column" and name_of(key) in determined) for key in block.group)

    def has_one_row(self) -> bool:
        """Return whether the answer has at most one row."""
        block = self._block
        return block.group is None and (not block.tables or block.has_aggregates or self.determine_rows(()))

    def is_determined(self, term: Term, keys: Iterable[Term]) -> bool:
        """Return whether an expression has the same value in all rows, or groups, with the same values of `keys`.

        Keys only count if they are columns whose equal values look the same.
        """
        determined = self.closure(name_of(key) for key in keys if have_one_family(key, key))
        if self._block.group is not None and all(
            key[0] == "column" and name_of(key) in determined for key in self._block.group
        ):
            return True  # a single group
        return not aggregates_in(term) and all(
            name in determined or name[0] not in self._block.tables for name in columns_of(term)
        )


def _strict_columns(terms: Iterable[Term]) -> set[Term]:
    """Return the columns whose NULL makes one of the expressions NULL."""
    columns = set[Term]()
    for term in terms:
        if term[0] == "column":
            columns.add(term)
        elif term[0].lower() in _STRICT:
            columns |= _strict_columns(operands(term))
    return columns


def _non_null_columns(condition: Term, *, negated: bool = False) -> set[Term]:
    """Return the columns that are not NULL in rows for which a condition is true, or with `negated` is false."""
    operator, parts = condition[0].lower(), [*operands(condition)]
    if operator == "not":
        return _non_null_columns(parts[0], negated=not negated)
    if operator in ("and", "or"):
        columns = [_non_null_columns(part, negated=negated) for part in parts]
        return set.union(*columns) if (operator == "and") != negated else set.intersection(*columns)
    # Nothing is in an empty answer, not even NULL.
    needs_values = {"isnull": negated, "in": not negated}.get(operator, operator in _COMPARISONS)
    return _strict_columns(parts) if needs_values else set()
