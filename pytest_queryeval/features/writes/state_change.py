"""The answer of statements that change data: how each table changed and what they return, as data and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

from pytest_queryeval.core.answer_json import (
    Entry,
    decode_answer,
    decode_cell,
    decode_text,
    encode,
    encode_answer,
)
from pytest_queryeval.core.case_report import DifferenceReport
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import AddedAnswer, Answer, Case
from pytest_queryeval.core.table import Row, Table
from pytest_queryeval.features.writes.comparison import HEAD, Comparison


class Reference(NamedTuple):
    """A column of a table that refers to a column of another one."""

    column: str
    table: str
    to: str


@dataclass(frozen=True, slots=True, eq=False)
class TableChange:
    """How one table or view changed; where it was made, dropped, or got other columns, all of its rows are listed."""

    table: str
    before: tuple[str, ...] | None = None
    """Its columns before; None if it did not exist."""
    after: tuple[str, ...] | None = None
    """Its columns after; None if it does not exist any more."""
    key: tuple[str, ...] = ()
    """The columns of its primary key."""
    generated: tuple[str, ...] = ()
    """The columns for which the database makes values where a statement has none."""
    references: tuple[Reference, ...] = ()
    added: Sequence[Row] = ()
    """Rows in the order of `after`."""
    removed: Sequence[Row] = ()
    """Rows in the order of `before`."""
    added_indexes: tuple[str, ...] = ()
    """What they are, such as `unique index (name)`."""
    removed_indexes: tuple[str, ...] = ()

    def definitions(self) -> Iterator[tuple[str, bool]]:
        """Yield what is defined otherwise than before, and whether it was added: columns, and indexes.

        All names are in lower case.
        """
        table = self.table.lower()
        before, after = (names and sorted(map(str.lower, names)) for names in (self.before, self.after))
        if before != after:
            sides = ((before, False), (after, True))
            yield from ((f"{table} ({', '.join(names)})", is_added) for names, is_added in sides if names is not None)
        yield from ((f"{table}: {index}", False) for index in self.removed_indexes)
        yield from ((f"{table}: {index}", True) for index in self.added_indexes)

    def rows(self) -> Iterator[tuple[bool, tuple[str, ...], Row]]:
        """Yield the rows with their columns, and whether they were added."""
        yield from ((False, self.before or (), row) for row in self.removed)
        yield from ((True, self.after or (), row) for row in self.added)


def encode_table(table: TableChange) -> JsonValue:
    """Return how a table changed as recordings hold it."""
    return {field.name: encode(getattr(table, field.name)) for field in fields(table)}


def decode_table(entry: Entry) -> TableChange:
    """Return what was encoded; raise ValueError, TypeError or KeyError if it is invalid."""
    return TableChange(
        table=decode_text(entry["table"]),
        before=None if entry["before"] is None else _decode_names(entry["before"]),
        after=None if entry["after"] is None else _decode_names(entry["after"]),
        key=_decode_names(entry["key"]),
        generated=_decode_names(entry["generated"]),
        references=tuple(Reference(*_decode_names(names)) for names in entry["references"]),
        added=_decode_rows(entry["added"], entry["after"]),
        removed=_decode_rows(entry["removed"], entry["before"]),
        added_indexes=_decode_names(entry["added_indexes"]),
        removed_indexes=_decode_names(entry["removed_indexes"]),
    )


def _decode_names(names: Sequence[Any]) -> tuple[str, ...]:
    return tuple(map(decode_text, names))


def _decode_rows(rows: Sequence[Sequence[Any]], columns: Sequence[str] | None) -> list[Row]:
    if any(len(row) != len(columns or ()) for row in rows):
        raise ValueError("a row that is not as long as the columns")
    return [tuple(map(decode_cell, row)) for row in rows]


@dataclass(frozen=True, kw_only=True, eq=False)
class StateChange(AddedAnswer):
    """What statements changed and returned, as the answer of a query."""

    type_name: ClassVar[str] = "changes"
    query: str
    """The statements."""
    dialect: str
    """What sqlglot calls their language."""
    tables: tuple[TableChange, ...]
    """The tables that are not what they were, by name."""
    returned: Table | None = None
    """What the last statement that returns rows returned."""

    def equals(self, predicted: Answer, case: Case) -> bool:
        """Return whether predicted leads to the same state as this gold, and returns the same."""
        return isinstance(predicted, StateChange) and Comparison(self, predicted, case).is_equal()

    def difference(self, predicted: Answer, case: Case, *, limit: int) -> DifferenceReport[Row] | None:
        """Return the rows that only one state has, paired by key, or how what returned differs."""
        return Comparison(self, predicted, case).difference(limit) if isinstance(predicted, StateChange) else None

    def as_table(self) -> Table:
        """Return all changes as rows of one table, in which tables share columns of one name; then what returned."""
        changes = [
            (table.table, "added" if is_added else "removed", dict(zip(columns, row, strict=True)))
            for table in self.tables
            for is_added, columns, row in table.rows()
        ]
        changes += [
            (text, "added" if is_added else "removed", {})
            for table in self.tables
            for text, is_added in table.definitions()
        ]
        if not changes and self.returned is not None:
            return self.returned
        names = tuple(dict.fromkeys(name for _, _, cells in changes for name in cells))
        rows: list[Row] = [(table, change, *map(cells.get, names)) for table, change, cells in changes]
        if self.returned is None:
            return Table(columns=(*HEAD, *names), rows=rows)
        width, blank = len(self.returned.columns), (None,) * len(names)
        rows = [(*row, *(None,) * width) for row in rows]
        rows += [(None, "returned", *blank, *row) for row in self.returned.rows]
        return Table(columns=(*HEAD, *names, *self.returned.columns), rows=rows)

    def stable_part(self, case: Case) -> Table:
        """Return all changes and what returned without columns that do not count, and nodes for generated keys."""
        return Comparison(self, self, case).stable_part()

    def encode(self) -> dict[str, JsonValue]:
        """Return the answer as recordings hold it."""
        return {
            "query": encode(self.query),
            "dialect": self.dialect,
            "tables": [encode_table(table) for table in self.tables],
            "returned": encode_answer(self.returned),
        }


def decode_state_change(entry: Entry) -> StateChange:
    """Return the answer that was encoded; raise ValueError, TypeError or KeyError if it is invalid."""
    returned = decode_answer(entry["returned"])
    if not isinstance(returned, Table | None):
        raise ValueError("what returned is not a table")
    return StateChange(
        query=decode_text(entry["query"]),
        dialect=decode_text(entry["dialect"]),
        tables=tuple(map(decode_table, entry["tables"])),
        returned=returned,
    )
