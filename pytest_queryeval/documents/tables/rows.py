"""Rows of a table, whose places are sheets, rows and headers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from pytest_queryeval.core.errors import CaseError, Location, did_you_mean
from pytest_queryeval.documents.document import MEBIBYTE, File
from pytest_queryeval.text.truncation import one_line

MAX_TABLE_BYTES = 256 * MEBIBYTE
MAX_CELL_CHARACTERS = 4 * MEBIBYTE
MAX_COLUMNS = 1000
MAX_HEADER_CHARACTERS = 80  # in messages

# The numbers of rows with their cells; a missing cell is None.
NumberedCells: TypeAlias = Iterator[tuple[int, Sequence[Any]]]
# Returns a cell as text, "" where it is empty; raises `ValueError` with the problem of a cell.
CellText: TypeAlias = Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class TableFile(File):
    """A file with a table: lines are rows, and columns have headers; `sheet` is empty where there are none.

    With `numbers_lines` rows have the numbers of lines, and are located as those of other texts.
    """

    sheet: str = ""
    headers: tuple[str, ...] = ()
    numbers_lines: bool = False

    def location(self, line: int = 0, column: int = 0) -> Location:
        """Return the place of a sheet, a row or a cell."""
        if self.numbers_lines:
            return Location(self.shown, line)
        header = self.headers[column - 1] if 0 < column <= len(self.headers) else ""
        parts = (
            f"sheet '{one_line(self.sheet, MAX_HEADER_CHARACTERS)}'" if self.sheet else "",
            f"row {line}" if line else "",
            f"column '{one_line(header, MAX_HEADER_CHARACTERS)}'" if header else f"column {column}" if column else "",
        )
        return Location(self.shown, line, column, ", ".join(filter(None, parts)))


class MissingSheetError(CaseError):
    """A workbook has no sheet of a name."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row that is not empty; `number` is what a spreadsheet shows beside it. Cells are converted when read."""

    number: int
    table: Table
    cells: Sequence[Any]

    def text(self, header: str) -> str:
        """Return a cell as a spreadsheet displays it, "" where it is empty; raise `CaseError` if it has no value."""
        place = self.table.places[header]
        try:
            return self.table.cell_text(self.cells[place])
        except ValueError as error:
            raise self.problem(str(error), header) from error

    @property
    def values(self) -> dict[str, str]:
        """The text of each cell by header; raises `CaseError` for the first cell without a value."""
        return {header: self.text(header) for header in self.table.places}

    def problem(self, text: str, header: str | None = None) -> CaseError:
        """Return an error at this row, or at one of its cells."""
        return self.table.file.problem(text, self.number, self.table.column(header) if header is not None else 0)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """An open table. `places` are the positions of columns by header; columns without a header have none."""

    file: TableFile
    header_row: int
    places: dict[str, int]
    cell_text: CellText
    numbered_cells: NumberedCells

    def rows(self) -> Iterator[Row]:
        """Yield the rows below the header that are not empty, once; raise `CaseError` where reading fails."""
        places = self.places.values()
        for number, cells in self.numbered_cells:
            if not all(_is_blank(cells[place]) for place in places):
                yield Row(number, self, cells)

    def column(self, header: str) -> int:
        """Return the number of a column, from 1 on."""
        return self.places[header] + 1

    def missing_column(self, header: str) -> CaseError:
        """Return the error of a header that the table does not have, to be raised or kept."""
        names = [one_line(name, MAX_HEADER_CHARACTERS) for name in self.places]
        hint = did_you_mean(header, names)
        if len(names) == 1 and (other := next((mark for mark in ";\t|," if mark in names[0]), None)):
            hint = f": the header is one cell, '{names[0]}': is the delimiter '{one_line(other, 2)}'?"
        return self.file.problem(f"there is no column '{header}'{hint}", self.header_row)


def table_of(file: TableFile, numbered_cells: NumberedCells, cell_text: CellText) -> Table:
    """Return the table whose header is the first row that is not empty; raise `CaseError` where there is none."""
    number, cells = next((row for row in numbered_cells if not all(map(_is_blank, row[1]))), (0, ()))
    if not number:
        raise file.problem("has no header row")
    if len(cells) > MAX_COLUMNS:
        raise file.problem(f"has more than {MAX_COLUMNS:,} columns: remove some", number)
    headers: list[str] = []
    for place, cell in enumerate(cells):
        try:
            header = cell_text(cell).strip()
        except ValueError as error:
            raise file.problem(str(error), number, place + 1) from error
        if header and header in headers:
            shown = one_line(header, MAX_HEADER_CHARACTERS)
            raise file.problem(f"two columns are called '{shown}': rename one", number)
        headers.append(header)
    places = {header: place for place, header in enumerate(headers) if header}
    return Table(replace(file, headers=tuple(headers)), number, places, cell_text, numbered_cells)


def value_text(value: Any) -> str:
    """Return a value as a spreadsheet displays it, without its number format: `12`, `0.5`, `TRUE`, `2024-03-01`.

    >>> value_text(12.0), value_text(0.1 + 0.2), value_text(True), value_text(datetime(2024, 3, 1, 9, 30))
    ('12', '0.3', 'TRUE', '2024-03-01T09:30:00')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.15g}"
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=value_text)
    if isinstance(value, bytes):
        raise ValueError("holds bytes: write them as text")
    return str(value)


def _is_blank(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())
