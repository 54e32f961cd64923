"""What holds for the rows that a SELECT joins, on any data that keeps the declared constraints."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from pytest_queryeval.core.db_schema import Column, TableDefinition

T = TypeVar("T")
Node = TypeVar("Node")
Parts: TypeAlias = Callable[[Node], tuple[str, Sequence[Node]]]
"""Returns the operator of an expression, `column` for a column, and its operands."""
_STRICT = frozenset(
    ("add", "sub", "mul", "div", "mod", "neg", "paren", "cast", "trycast", "upper", "lower", "length", "abs")
)
_COMPARISONS = frozenset(("eq", "neq", "gt", "gte", "lt", "lte", "like", "ilike", "between"))


@dataclass(eq=False, kw_only=True)
class JoinedRows:
    """The rows of joined tables: which of their columns are equal, never NULL, or determined by others.

    A column is the alias of its table and its name, both in lower case. What does not follow from keys, NOT NULL and
    the conditions of the query is taken not to hold.
    """

    tables: Mapping[str, TableDefinition | None]
    """By alias, with keys in lower case; None for what is no table."""
    equal: Sequence[tuple[Column, Column]]
    """The columns that are equal in each row."""
    constants: AbstractSet[Column]
    """Columns that have the same value in all rows."""
    rejected: AbstractSet[Column]
    """Columns that are NULL in no row, by the conditions."""
    extended: AbstractSet[str]
    """The aliases whose columns are all NULL in rows without a match."""
    implied: Sequence[tuple[AbstractSet[Column], AbstractSet[Column]]] = ()
    """Columns, and others that are determined by all of them together."""

    def keys(self, alias: str) -> Iterator[Collection[str]]:
        """Yield the sets of columns that no two rows of a table share, none of which is NULL."""
        if (table := self.tables.get(alias)) is not None:
            not_null = table.not_null | {name for owner, name in self.rejected if owner == alias}
            yield from filter(not_null.issuperset, table.keys)

    def closure(self, columns: Iterable[Column]) -> set[Column]:
        """Return all columns whose values follow from those of these, by equalities and keys."""
        determined, size = {*self.constants, *columns}, -1
        while len(determined) != size:
            size = len(determined)
            for pair in self.equal:
                if not determined.isdisjoint(pair):
                    determined.update(pair)
            for premise, conclusion in self.implied:
                if premise <= determined:
                    determined |= conclusion
            for alias, table in self.tables.items():
                if table is not None and self._has_key(alias, determined):
                    determined.update((alias, name) for name in table.by_name)
        return determined

    def determine_rows(self, columns: Iterable[Column], ignored: str | None = None) -> bool:
        """Return whether no two rows, before they are grouped, have the same values of these columns.

        With the alias of an `ignored` table, return whether that holds for the rows without its columns.
        """
        determined = self.closure(columns)
        return bool(self.tables) and all(self._has_key(alias, determined) for alias in self.tables if alias != ignored)

    def is_not_null(self, column: Column) -> bool:
        """Return whether a column is NULL in no row."""
        alias, name = column
        table = self.tables.get(alias) if alias not in self.extended else None
        return column in self.rejected or (table is not None and name in table.not_null)

    def are_equal(self, first: Column, second: Column) -> bool:
        """Return whether two columns are equal in each row, by equalities between columns."""
        return second in linked(first, self.equal)

    def references(
        self, alias: str, referred: str, equated: AbstractSet[tuple[Column, Column]]
    ) -> Iterator[Sequence[tuple[Column, Column]]]:
        """Yield the foreign keys of a table to another whose columns are `equated`, as pairs of columns."""
        table, target = self.tables.get(alias), self.tables.get(referred)
        for key in table.foreign_keys if table is not None else ():
            if target is not None and key.table == target.name.lower() and len(key.columns) == len(key.referred):
                pairs = [((alias, name), (referred, of)) for name, of in zip(key.columns, key.referred, strict=True)]
                if equated >= {*pairs}:
                    yield pairs

    def _has_key(self, alias: str, columns: AbstractSet[Column]) -> bool:
        return any(all((alias, name) in columns for name in key) for key in self.keys(alias))


def linked(first: T, pairs: Collection[tuple[T, T]]) -> set[T]:
    """Return what pairs link to something, directly or by others; itself included."""
    found, size = {first}, 0
    while len(found) != size:
        size = len(found)
        found.update(item for pair in pairs if not found.isdisjoint(pair) for item in pair)
    return found


def strict_columns(expressions: Iterable[Node], parts: Parts[Node]) -> set[Node]:
    """Return the columns of which a NULL makes one of the expressions NULL."""
    columns = set[Node]()
    for expression in expressions:
        operator, operands = parts(expression)
        if operator == "column":
            columns.add(expression)
        elif operator in _STRICT:
            columns |= strict_columns(operands, parts)
    return columns


def non_null_columns(condition: Node, parts: Parts[Node], *, negated: bool = False) -> set[Node]:
    """Return the columns that are not NULL in rows for which a condition is true; with `negated`, false."""
    operator, operands = parts(condition)
    if operator in ("not", "paren"):
        return non_null_columns(operands[0], parts, negated=negated != (operator == "not"))
    if operator in ("and", "or"):
        columns = [non_null_columns(part, parts, negated=negated) for part in operands]
        return set.union(*columns) if (operator == "and") != negated else set.intersection(*columns)
    # Nothing is in an empty answer, not even NULL.
    needs_values = {"isnull": negated, "in": not negated}.get(operator, operator in _COMPARISONS)
    return strict_columns(operands, parts) if needs_values else set()
