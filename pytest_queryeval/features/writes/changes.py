"""How statements changed a table, as data and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_queryeval.core.answer_json import (
    Entry,
    decode_cell,
    decode_text,
    encode,
)
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.table import Row

HEAD = ("table", "change")


class Reference(NamedTuple):
    """A column of a table that refers to a column of another one."""

    column: str
    table: str
    to: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
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
    return {
        "table": encode(table.table),
        "before": encode([*table.before]) if table.before is not None else None,
        "after": encode([*table.after]) if table.after is not None else None,
        "key": encode([*table.key]),
        "generated": encode([*table.generated]),
        "references": [encode([*reference]) for reference in table.references],
        "added": [[encode(cell) for cell in row] for row in table.added],
        "removed": [[encode(cell) for cell in row] for row in table.removed],
        "added_indexes": encode([*table.added_indexes]),
        "removed_indexes": encode([*table.removed_indexes]),
    }


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
