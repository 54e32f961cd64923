"""What is true of the rows of a source without being declared: no NULL in a column, no value twice, a range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import NamedTuple, TypeAlias

from pytest_queryeval.core.db_schema import TableDefinition
from pytest_queryeval.core.table import Cell, Row
from pytest_queryeval.features.strength.sql.scripts import COLUMN_FIGURES

MIN_ROWS = 2  # of a table from whose rows anything is concluded
Place: TypeAlias = tuple[str, float | str]  # in the order of numbers, or of times


class ObservedTable(NamedTuple):
    """What the rows of a table keep; columns are given by their indices, none of them a column of a declared key."""

    not_null: frozenset[int] = frozenset()
    unique: frozenset[int] = frozenset()
    ranges: Mapping[int, tuple[Cell, Cell]] = {}
    """The least and the greatest value, of columns with numbers or times."""

    def tightened(self, table: TableDefinition) -> TableDefinition:
        """Return the definition of the table with what its rows keep as constraints."""
        columns = [
            column._replace(not_null=column.not_null or at in self.not_null) for at, column in enumerate(table.columns)
        ]
        unique = [(table.columns[at].name.lower(),) for at in sorted(self.unique)]
        return table._replace(columns=tuple(columns), unique=(*table.unique, *unique))

    def are_kept_by(self, rows: Sequence[Row]) -> bool:
        """Return whether rows keep all this."""
        if any(row[at] is None for row in rows for at in self.not_null):
            return False
        for at in self.unique:
            values = [row[at] for row in rows if row[at] is not None]
            if len(values) > len({*values}):
                return False
        return all(is_in_range(row[at], limits) for row in rows for at, limits in self.ranges.items())


def observe(table: TableDefinition, figures: Row) -> ObservedTable:
    """Return what the rows of a table keep by their `column_figures`; nothing for fewer than MIN_ROWS rows."""
    rows, *figures_of_columns = figures
    if not isinstance(rows, int) or rows < MIN_ROWS:
        return ObservedTable()
    declared_keys = {name for key in (table.primary_key, *table.unique) for name in key}
    references = {name for key in table.foreign_keys for name in key.columns}
    not_null, unique, ranges = set(), set(), {}
    for at, column in enumerate(table.columns):
        values, different_values, least, greatest = figures_of_columns[COLUMN_FIGURES * at : COLUMN_FIGURES * (at + 1)]
        if values == rows:
            not_null.add(at)
        if column.name.lower() in declared_keys:
            continue
        if values == different_values and values:
            unique.add(at)
        if column.name.lower() not in references and is_in_range(least, (least, greatest)) and _place(least):
            ranges[at] = (least, greatest)
    return ObservedTable(frozenset(not_null), frozenset(unique), ranges)


def is_in_range(cell: Cell, limits: tuple[Cell, Cell]) -> bool:
    """Return whether a value is between two others, these included; NULL is in every range.

    >>> is_in_range("2020-03-01", ("2020-01-31", "2021-01-31")), is_in_range(7, (1, 5)), is_in_range("a", (1, 5))
    (True, False, False)
    """
    place, low, high = map(_place, (cell, *limits))
    if cell is None:
        return True
    if place is None or low is None or high is None:
        return False
    return place[0] == low[0] == high[0] and low <= place <= high


def _place(cell: Cell) -> Place | None:
    """Return where numbers and times stand in their order; None for other values."""
    match cell:
        case bool():
            return None
        case int() | float():
            return "number", cell
        case datetime():
            return "time", cell.isoformat(" ")
        case date():
            return "time", f"{cell.isoformat()} 00:00:00"
        case str():
            with suppress(ValueError):
                return "time", datetime.fromisoformat(cell).isoformat(" ")
    return None
