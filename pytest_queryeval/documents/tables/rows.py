"""Rows of a table, whose places are sheets, rows and headers; the reader of CSV files and the like."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from pytest_queryeval.core.errors import CaseError, Location, did_you_mean, nearest
from pytest_queryeval.documents.document import MEBIBYTE, File
from pytest_queryeval.text.formatting import one_line, pluralize

MAX_TABLE_BYTES = 256 * MEBIBYTE
MAX_CELL_CHARACTERS = 4 * MEBIBYTE
MAX_COLUMNS = 1000
MAX_HEADER_CHARACTERS = 80  # in messages
ROWS_SEARCHED = 20  # below a row that lacks headers, for one that has them


class BadRow(NamedTuple):
    """A row that cannot be split into cells: the problem, and the number of the wrong column, from 1."""

    problem: str
    column: int


# The numbers of rows with their cells, of which a missing one is None.
NumberedRows: TypeAlias = Iterator[tuple[int, Sequence[Any] | BadRow]]
# Returns a cell as text, "" where it is empty; raises `ValueError` with the problem of a cell.
CellText: TypeAlias = Callable[[Any], str]
# Returns the cells of a row, by its number, as many as the header has; raises `CaseError` if they do not fit.
FitRow: TypeAlias = Callable[[int, Sequence[Any], int], Sequence[Any]]
_ROWS_AT_ONCE = 1000
_QUOTED_CELL = re.compile(r'"(?:[^"]|"")*+"')


@dataclass(frozen=True, slots=True)
class TableFile(File):
    """A file with a table, in which lines are rows and columns have headers.

    `sheet` is empty if the file has no sheets. If `number_lines` is true, rows are numbered by line, as in text files.
    `unread` are the headers of columns that nothing reads although no setting allows it. `other_sheets` are the other
    visible sheets of the workbook.
    """

    sheet: str = ""
    headers: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    other_sheets: tuple[str, ...] = ()
    number_lines: bool = False

    def location(self, line: int = 0, column: int = 0) -> Location:
        """Return the place of the sheet, of a row or of a cell, in words of spreadsheets.

        If `number_lines` is true, it is the place of a line.
        """
        if self.number_lines:
            return Location(self.shown, line)
        header = self.headers[column - 1] if 0 < column <= len(self.headers) else ""
        parts = (
            f"sheet '{one_line(self.sheet, MAX_HEADER_CHARACTERS)}'" if self.sheet else "",
            f"row {line}" if line else "",
            f"column '{one_line(header, MAX_HEADER_CHARACTERS)}'" if header else f"column {column}" if column else "",
        )
        return Location(self.shown, line, column, ", ".join(filter(None, parts)))


class TableSettingError(CaseError):
    """A file does not have what a setting asks for, such as a sheet; `setting` is the name of the setting."""

    def __init__(self, setting: str, location: Location, problem: str) -> None:
        super().__init__(location, problem)
        self.setting = setting


@dataclass(frozen=True, slots=True)
class Row:
    """A row of an open table that is not empty; its cells become text when they are read.

    `number` is the number that a spreadsheet shows next to it. A row with a `fault` has no cells, and reading raises
    it.
    """

    number: int
    table: Table
    cells: Sequence[Any]
    fault: CaseError | None = None

    def text(self, header: str) -> str:
        """Return the cell of a column as a spreadsheet shows it, "" if it is empty.

        Raise `CaseError` if the row has a fault or the cell has no value.
        """
        if self.fault is not None:
            raise self.fault
        place = self.table.places[header]
        try:
            return self.table.cell_text(self.cells[place])
        except ValueError as error:
            raise self.problem(str(error), header) from error

    @property
    def values(self) -> dict[str, str]:
        """The text of each cell by header; raises `CaseError` if the row has a fault or a cell has no value."""
        return {header: self.text(header) for header in self.table.places}

    def problem(self, text: str, header: str | None = None) -> CaseError:
        """Return, without raising it, an error at this row, or at its cell in the column `header`."""
        return self.table.file.problem(text, self.number, self.table.column(header) if header is not None else 0)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """An open table; `places` are the positions of columns by header, without columns that have no header.

    `numbered_rows` are the rows below the header, and `fit` makes a row as wide as the header.
    """

    file: TableFile
    header_row: int
    places: dict[str, int]
    cell_text: CellText
    numbered_rows: NumberedRows
    fit: FitRow

    def rows(self) -> Iterator[Row]:
        """Yield the rows below the header that are not empty; they can be read only once.

        Rows that do not fit have a `fault`. Raise `CaseError` if reading fails.
        """
        places, width = self.places.values(), len(self.file.headers)
        for number, cells in self.numbered_rows:
            try:
                fitted = self.fit(number, self._split(number, cells), width)
            except CaseError as error:
                yield Row(number, self, (), error)
                continue
            if not all(_is_blank(fitted[place]) for place in places):
                yield Row(number, self, fitted)

    def _split(self, number: int, cells: Sequence[Any] | BadRow) -> Sequence[Any]:
        """Return the cells of a row; raise `CaseError` for a `BadRow`."""
        if not isinstance(cells, BadRow):
            return cells
        is_named = self.file.number_lines and cells.column <= len(self.file.headers)
        name = f"column '{self.file.headers[cells.column - 1]}': " if is_named else ""
        raise self.file.problem(f"{name}{cells.problem}", number, cells.column)

    def column(self, header: str) -> int:
        """Return the number of the column with a header, from 1."""
        return self.places[header] + 1

    @property
    def likely_delimiter(self) -> str:
        """The character that probably separates the headers of a table with only one column; empty if there is none."""
        headers = "".join(self.places) if len(self.places) == 1 else ""
        return next((mark for mark in ";\t|," if mark in headers), "")

    def missing_column(
        self,
        header: str,
        remedy: str = "",
        *,
        likely: str = "",
        setting: str = 'write `delimiter: "{}"` next to `file`',
    ) -> CaseError:
        """Return, without raising it, the error for a header that the table does not have.

        The message suggests the header `likely`, else the nearest, and ends with `remedy`, in which NAME is replaced by
        that header. If the delimiter is probably wrong, the message suggests `setting` instead, with the right
        delimiter for `{}`.
        """
        names = [one_line(name, MAX_HEADER_CHARACTERS) for name in self.places]
        near = one_line(likely, MAX_HEADER_CHARACTERS) or nearest(header, names)
        if mark := self.likely_delimiter:
            shown_mark = "\\t" if mark == "\t" else mark
            hint = f": the header is one cell, '{names[0]}': {setting.replace('{}', shown_mark, 1)}"
        elif near:
            hint = f": did you mean '{near}'?"
            hint += f" {remedy[0].upper()}{remedy[1:]}".replace("NAME", near) if remedy else ""
        else:
            hint = did_you_mean(header, names) + (f" ({remedy})" if remedy else "")
        return self.file.problem(f"there is no column '{header}'{hint}", self.header_row)

    def header_below(self, headers: Collection[str], setting: str) -> CaseError | None:
        """Return, without raising it, the error for a table whose header is probably a later row.

        That row has all `headers`; None if none of the next rows has. `setting` says how to name the row, with its
        number for `{}`. Reads rows, which `rows` does not yield afterwards.
        """
        lowered = {header.lower() for header in headers}
        for number, cells in islice(self.numbered_rows, ROWS_SEARCHED):
            if not isinstance(cells, BadRow) and lowered <= {str(cell).strip().lower() for cell in cells}:
                names = ", ".join(f"'{one_line(header, MAX_HEADER_CHARACTERS)}'" for header in headers)
                missing = f"there is no column {names}" if len(headers) == 1 else f"there are no columns {names}"
                remedy = f"row {number} looks like the header: {setting.replace('{}', str(number), 1)}"
                return self.file.problem(f"{missing}: {remedy}", self.header_row)
        return None


def table_of(
    file: TableFile,
    numbered_rows: NumberedRows,
    cell_text: CellText,
    header_row: int | None = None,
    fit: FitRow = lambda _, cells, __: cells,
) -> Table:
    """Return the table whose header is the row numbered `header_row`, by default the first row that is not empty.

    `cell_text` returns a cell as text, and `fit` makes a row as wide as the header. The rows up to the header are
    consumed. Raise `CaseError` if there is no such row, or if it is no valid header.
    """
    rows_with_text = (
        (number, cells)
        for number, cells in numbered_rows
        if isinstance(cells, BadRow) or not all(map(_is_blank, cells))
    )
    number, cells = next((row for row in rows_with_text if row[0] >= (header_row or 0)), (0, ()))
    if header_row is not None and number != header_row:
        empty = f"row {header_row} is empty" if number else f"there is no row {header_row} with cells"
        raise TableSettingError("header_row", file.location(), f"{empty}: name the row with the headers")
    if isinstance(cells, BadRow):
        raise file.problem(cells.problem, number, cells.column)
    cells = fit(number, cells, len(cells))
    if not number:
        raise file.problem("has no header row: write the names of the columns into the first row")
    if len(cells) > MAX_COLUMNS:
        raise file.problem(f"has more than {MAX_COLUMNS:,} columns: remove some", number)
    headers: list[str] = []
    for place, cell in enumerate(cells):
        try:
            header = cell_text(cell).strip()
        except ValueError as error:
            raise file.problem(str(error), number, place + 1) from error
        if header and header in headers:
            name = one_line(header, MAX_HEADER_CHARACTERS)
            raise file.problem(f"two columns are called '{name}': rename one", number)
        headers.append(header)
    places = {header: place for place, header in enumerate(headers) if header}
    return Table(replace(file, headers=tuple(headers)), number, places, cell_text, numbered_rows, fit)


def value_text(value: Any) -> str:
    """Return a value as a spreadsheet shows it without a number format: `12`, `0.5`, `TRUE`, `2024-03-01`.

    Raise ValueError for bytes.

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
        raise ValueError("contains bytes: write them as text")
    return str(value)


def _is_blank(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


@contextmanager
def open_separated(file: File, delimiter: str, *, number_lines: bool, header_row: int | None) -> Iterator[Table]:
    """Open a text file whose cells are separated by `delimiter`, for the `with` statement.

    Raise `CaseError` if the file cannot be read or has no valid header.
    """
    table_file = TableFile(file.path, file.shown, number_lines=number_lines)
    with io.TextIOWrapper(file.open(MAX_TABLE_BYTES), encoding="utf-8-sig", newline="") as stream:
        yield table_of(
            table_file, _numbered_rows(stream, delimiter, table_file), str, header_row, partial(_fit, table_file)
        )


def _numbered_rows(stream: Iterable[str], delimiter: str, file: TableFile) -> NumberedRows:
    row_lines: list[str] = []  # of the row that is being read

    def read_lines() -> Iterator[str]:
        for line in stream:
            row_lines.append(line)
            yield line

    lines = csv.reader(read_lines(), delimiter=delimiter, strict=True)

    def read_row() -> Sequence[str] | BadRow | None:
        row_lines.clear()
        try:
            return next(lines, None)
        except csv.Error as error:
            return _bad_row("".join(row_lines), delimiter) or BadRow(str(error), 1)

    number, next_line = 0, 1
    while True:
        # The limit, 131,072 characters by default, holds for the whole process.
        before = csv.field_size_limit(MAX_CELL_CHARACTERS)
        try:
            rows_read: Iterator[Sequence[str] | BadRow] = iter(read_row, None)
            rows = [(lines.line_num, cells) for cells in islice(rows_read, _ROWS_AT_ONCE)]
        except UnicodeDecodeError:
            File(file.path, file.shown).text(MAX_TABLE_BYTES)  # raises with the line and the column
            raise
        finally:
            csv.field_size_limit(before)
        for last_line, cells in rows:
            number = next_line if file.number_lines else number + 1
            next_line = last_line + 1
            if isinstance(cells, BadRow) or any(map(str.strip, cells)):
                yield number, cells
        if not rows:
            return


def _bad_row(text: str, delimiter: str) -> BadRow | None:
    """Return the problem of the first double quote in the text of a row that neither opens nor ends a cell; else None.

    >>> _bad_row('a,"SELECT "name" FROM t",b', ",")
    BadRow(problem='a double quote ends this cell too early: double each one within it, as in ""name""', column=2)
    """
    place, column = 0, 1
    while place < len(text):
        if text[place] == '"':
            cell = _QUOTED_CELL.match(text, place)
            if cell is None:
                return BadRow("the double quote that opens this cell is not closed: add one at its end", column)
            place = cell.end()
            if text[place : place + 1] not in (delimiter, "\r", "\n", ""):
                return BadRow(
                    'a double quote ends this cell too early: double each one within it, as in ""name""', column
                )
        place = text.find(delimiter, place) + 1 or len(text)
        column += 1
    return None


def _fit(file: TableFile, number: int, cells: Sequence[str], width: int) -> Sequence[str]:
    """Return the cells of a row; raise `CaseError` if there are fewer than headers, or more that are not empty."""
    if len(cells) < width or any(cells[width:]):
        counts = f"{pluralize(len(cells), 'cell')} in a table of {pluralize(width, 'column')}"
        raise file.problem(f"{counts}: quote cells that contain a delimiter or a line end", number)
    return cells
