"""The values of columns: which their types take, and what rows keep without declaring it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from pytest_queryeval.core.db_schema import TableDefinition
from pytest_queryeval.core.table import Cell, Row

KEY_VALUES = 100  # that are tried
COLUMN_FIGURES = 4  # of each column of a table, of which `observe` tells what its rows keep
_FIRST_DAY = datetime(2020, 1, 1)  # of the times that are numbered
_PART_OF_DATE = re.compile(r"\d{4}(-\d\d)?")
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


def type_held(declared: str, cells: Iterable[Cell]) -> str:
    """Return the type of the values that a column of SQLite holds: of a column of times, that of how they are written.

    It is empty, for any type, where the values are neither times nor numbers.

    >>> type_held("DATETIME", ["2020-01-31", None]), type_held("DATE", [20200131]), type_held("DATE", ["31/01/2020"])
    ('DATE', 'NUMERIC', '')
    """
    if not _is_of_times(declared):
        return declared
    values = [cell for cell in cells if cell is not None]
    if not values:
        return declared
    if all(isinstance(value, int | float) for value in values):
        return "NUMERIC"
    for name in ("DATE", "TIME", "TIMESTAMP"):
        if all([*fitted(value, name, is_strict=True)] == [value] for value in values):
            return name
    return ""


def _is_of_times(declared: str) -> bool:
    return "DATE" in declared.upper() or "TIME" in declared.upper()


@lru_cache(maxsize=256)
def key_values(declared: str, *, is_strict: bool) -> Sequence[Cell]:
    """Return a number, or a time, for each row that is tried, as the type stores it; none where it refuses numbers."""
    values: Iterable[Cell] = range(1, KEY_VALUES + 1)
    if _is_of_times(declared):
        values = [(_FIRST_DAY + number * timedelta(days=1, minutes=1)).isoformat(" ") for number in range(KEY_VALUES)]
    return [cell for value in values for cell in fitted(value, declared, is_strict=is_strict)]


@lru_cache(maxsize=8_192, typed=True)
def fitted(value: Cell, declared: str, *, is_strict: bool) -> Sequence[Cell]:
    """Return the value as a column of the declared type stores it, or nothing if the column refuses it.

    >>> fitted("31", "INTEGER", is_strict=True), fitted(31, "TEXT", is_strict=True), fitted("x", "DATE", is_strict=True)
    ([31], ['31'], [])
    >>> fitted("2020-02", "DATE", is_strict=False), fitted("2020-02-29", "TIMESTAMP", is_strict=False)
    (['2020-02-01'], ['2020-02-29 00:00:00'])
    """
    name = declared.upper()
    if "INT" in name or "SERIAL" in name or any(word in name for word in ("REAL", "FLOA", "DOUB", "DEC", "NUM")):
        number = value
        if not isinstance(number, int | float):
            try:
                number = float(str(number))
            except ValueError:
                return []
            number = int(number) if number.is_integer() else number
        return [] if "INT" in name and isinstance(number, float) and not number.is_integer() else [number]
    if any(word in name for word in ("CHAR", "TEXT", "CLOB", "STRING")):
        return [value if isinstance(value, str) else str(value)]
    if _is_of_times(name):
        if isinstance(value, str):
            return _fitted_time(value, name)
        return [] if isinstance(value, int | float) else [value]
    return [value] if not is_strict or not name or not isinstance(value, str) else []


def _fitted_time(text: str, name: str) -> Sequence[Cell]:
    """Return a text as a date, a time of day or both, by the name of the type; a year or a month as its first day."""
    if _PART_OF_DATE.fullmatch(text):
        text = f"{text}-01-01"[:10]
    has_date = "DATE" in name or "STAMP" in name
    with suppress(ValueError):
        if not has_date and ":" in text[:3]:
            return [time.fromisoformat(text).isoformat()]
        moment = datetime.fromisoformat(text)
        if not has_date:
            return [moment.time().isoformat()]
        return [moment.isoformat(" ") if "TIME" in name else moment.date().isoformat()]
    return []
