"""The answer of statements that change data: how each table changed and what they returned, as data and as JSON."""

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
    """A column of a table that refers to the column `to` of another table."""

    column: str
    table: str
    to: str


@dataclass(frozen=True, slots=True, eq=False)
class TableChange:
    """How one table or view changed; if it was created, dropped, or got other columns, all of its rows are listed."""

    table: str
    before: tuple[str, ...] | None = None
    """The columns before the change; None if the table did not exist."""
    after: tuple[str, ...] | None = None
    """The columns after the change; None if the table does not exist any more."""
    key: tuple[str, ...] = ()
    """The columns of its primary key."""
    generated: tuple[str, ...] = ()
    """The columns for which the database generates values if a statement has none."""
    references: tuple[Reference, ...] = ()
    added: Sequence[Row] = ()
    """Rows in the order of `after`."""
    removed: Sequence[Row] = ()
    """Rows in the order of `before`."""
    added_indexes: tuple[str, ...] = ()
    """The texts of new indexes, such as `unique index (name)`."""
    removed_indexes: tuple[str, ...] = ()

    def definitions(self) -> Iterator[tuple[str, bool]]:
        """Yield changed definitions of columns and indexes, in lower case, and for each whether it was added.

        A change of columns yields the old columns as removed and the new columns as added.
        """
        table = self.table.lower()
        before, after = (names and sorted(map(str.lower, names)) for names in (self.before, self.after))
        if before != after:
            sides = ((before, False), (after, True))
            yield from ((f"{table} ({', '.join(names)})", is_added) for names, is_added in sides if names is not None)
        yield from ((f"{table}: {index}", False) for index in self.removed_indexes)
        yield from ((f"{table}: {index}", True) for index in self.added_indexes)

    def rows(self) -> Iterator[tuple[bool, tuple[str, ...], Row]]:
        """Yield for each changed row whether it was added, its columns, and the row; removed rows come first."""
        yield from ((False, self.before or (), row) for row in self.removed)
        yield from ((True, self.after or (), row) for row in self.added)


def encode_table(table: TableChange) -> JsonValue:
    """Return a change of a table in the form of recordings."""
    return {field.name: encode(getattr(table, field.name)) for field in fields(table)}


def decode_table(entry: Entry) -> TableChange:
    """Return the change that `encode_table` encoded; raise ValueError, TypeError or KeyError if it is invalid."""
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
    """Their dialect, by sqlglot's name."""
    tables: tuple[TableChange, ...]
    """The changed tables, sorted by name."""
    returned: Table | None = None
    """The rows of the last statement that returned some; None if none did."""

    def equals(self, predicted: Answer, case: Case) -> bool:
        """Return whether predicted leads to the same state as this gold answer, and returns the same."""
        return isinstance(predicted, StateChange) and Comparison(self, predicted, case).is_equal()

    def difference(self, predicted: Answer, case: Case, *, limit: int) -> DifferenceReport[Row] | None:
        """Return how predicted's state, else its returned rows, differ from gold's; None if it is no `StateChange`."""
        return Comparison(self, predicted, case).difference(limit) if isinstance(predicted, StateChange) else None

    def as_table(self) -> Table:
        """Return changed rows, then changed definitions, then returned rows as one table.

        Tables share columns of the same name. Without changes, the returned table is returned as it is.
        """
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
        """Return changes and returned rows as a table, without ignored columns, with nodes for generated keys."""
        return Comparison(self, self, case).stable_part()

    def encode(self) -> dict[str, JsonValue]:
        """Return the answer in the form of recordings."""
        return {
            "query": encode(self.query),
            "dialect": self.dialect,
            "tables": [encode_table(table) for table in self.tables],
            "returned": encode_answer(self.returned),
        }


def decode_state_change(entry: Entry) -> StateChange:
    """Return the answer that `encode` encoded; raise ValueError, TypeError or KeyError if it is invalid."""
    returned = decode_answer(entry["returned"])
    if not isinstance(returned, Table | None):
        raise ValueError("what returned is not a table")
    return StateChange(
        query=decode_text(entry["query"]),
        dialect=decode_text(entry["dialect"]),
        tables=tuple(map(decode_table, entry["tables"])),
        returned=returned,
    )
