"""The answer of statements that change data, compared as the state that they lead to and what they return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pytest_queryeval.core.answer_json import Entry, decode_answer, decode_text, encode, encode_answer
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import AddedAnswer, Answer, Case
from pytest_queryeval.core.table import Difference, Row, Table
from pytest_queryeval.features.writes.changes import HEAD, TableChange, decode_table, encode_table
from pytest_queryeval.features.writes.comparison import Comparison


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

    def difference(self, predicted: Answer, case: Case, *, limit: int) -> Difference | None:
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
