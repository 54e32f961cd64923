"""Reader of sheets in xlsx workbooks: it holds few rows at a time, and refuses workbooks that attack it."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import islice
from typing import IO, Any
from xml.parsers import expat
from zipfile import ZipFile

from openpyxl.reader.excel import ExcelReader
from openpyxl.styles.numbers import is_datetime
from openpyxl.utils.cell import range_boundaries

from pytest_queryeval.core.errors import CaseError, did_you_mean, without_advice
from pytest_queryeval.documents.document import MEBIBYTE, File
from pytest_queryeval.documents.tables.rows import (
    MAX_TABLE_BYTES,
    NumberedRows,
    Table,
    TableFile,
    TableSettingError,
    table_of,
    value_text,
)

MAX_PARTS = 10_000
MAX_ROWS, MAX_ROW_CELLS = 1_048_576, 16_384  # of a sheet, as in Excel
MAX_INFLATION = 100  # times the size of the file, unpacked; the same text in all cells reaches about 20
MAX_PROBLEM_CELLS = 1_000_000
_ROWS_AT_ONCE = 500
_PROLOG_BYTES = 4096
_XML_BYTES = 256 * 1024
_COMPOUND_FILE = b"\xd0\xcf\x11\xe0"  # what xls workbooks and encrypted ones begin with
_CONTROL = re.compile(r"_x00([01][0-9A-Fa-f])_")
_ZEROS = re.compile(r"0{2,}")
_NO_VALUE = "is a formula without a stored value: open the workbook in a spreadsheet program and save it"


class _NoText(str):
    """The problem of a cell without a text, stored where its text would be."""

    __slots__ = ()


@contextmanager
def open_xlsx(file: File, sheet: str | None, default_sheet: str, header_row: int | None) -> Iterator[Table]:
    """Open a sheet of a workbook, for the `with` statement: `sheet`, else the sheet `default_sheet`, else the first.

    Raise `CaseError` for a workbook that cannot be read or is suspiciously large, and `TableSettingError` for a sheet
    that does not exist.
    """
    with file.open(MAX_TABLE_BYTES) as stream:
        if stream.read(len(_COMPOUND_FILE)) == _COMPOUND_FILE:
            raise file.problem("is an .xls workbook or has a password: save it as .xlsx, without a password")
        with _workbook_errors(file), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and extensions, which do not matter here
            archive = ZipFile(stream)
            _check_parts(archive, os.fstat(stream.fileno()).st_size)
            book = ExcelReader(stream, read_only=True, data_only=True, keep_links=False)
            book.read()
            sheets = {worksheet.title: worksheet for worksheet in book.wb.worksheets}
            parts = {described.name: relation.target for described, relation in book.parser.find_sheets()}
        if not sheets:
            raise file.problem("has no sheet with cells")
        visible = [title for title, worksheet in sheets.items() if worksheet.sheet_state == "visible"]
        name = sheet if sheet is not None else default_sheet if default_sheet in sheets else [*visible, *sheets][0]
        if name not in sheets:
            raise TableSettingError("sheet", file.location(), f"there is no sheet '{name}'{did_you_mean(name, sheets)}")
        others = tuple(title for title in visible if title != name)
        table_file = TableFile(file.path, file.shown, name, other_sheets=others)
        with _workbook_errors(table_file), archive.open(parts[name]) as part:
            problems = _ProblemCells(part).by_place
        cells = _numbered_rows(sheets[name], table_file)
        yield table_of(table_file, cells, _text, header_row, partial(_fit, problems))


@contextmanager
def _workbook_errors(file: File) -> Iterator[None]:
    """Raise any exception of the `with` statement as a `CaseError` of the file that says how to fix the workbook."""
    try:
        yield
    except CaseError:
        raise
    except Exception as error:
        problem = f"is not a .xlsx workbook that can be read, save it as .xlsx again: {without_advice(error)}"
        raise file.problem(problem) from error


def _check_parts(archive: ZipFile, packed: int) -> None:
    """Raise ValueError for an archive that is too large or too strongly packed, or that declares a document type."""
    parts = archive.infolist()
    # No part unpacks to more than what is stated here: `zipfile` stops there.
    unpacked = sum(part.file_size for part in parts)
    if len(parts) > MAX_PARTS or unpacked > MAX_TABLE_BYTES:
        raise ValueError(f"it is larger than {MAX_TABLE_BYTES // MEBIBYTE} MiB when unpacked")
    if unpacked > max(MEBIBYTE, MAX_INFLATION * packed):
        raise ValueError(f"unpacked it is {unpacked // packed} times as large, as no workbook is")
    for part in parts:
        with archive.open(part) as content:
            _check_prolog(content)


def _check_prolog(content: IO[bytes]) -> None:
    """Raise ValueError if XML declares a document type, whose entities could be of any size."""

    def refuse(*_: object) -> None:
        raise ValueError("it declares a document type, which no workbook has")

    elements: list[str] = []
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = lambda name, _: elements.append(name)
    try:
        while not elements and (data := content.read(_PROLOG_BYTES)):
            parser.Parse(data)
    except expat.ExpatError:
        return  # a picture, or what is reported where it is read


class _ProblemCells:
    """The problems of merged cells and of formulas without a value in a sheet, by row and column, as `by_place`.

    openpyxl reads such cells as empty. Raise ValueError for too many rows, cells or problems.
    """

    def __init__(self, content: IO[bytes]) -> None:
        self.by_place: dict[tuple[int, int], str] = {}
        self._cell: dict[str, str] = {}
        self._lacks_value = False
        self._rows = self._row_cells = 0
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        while data := content.read(_XML_BYTES):
            self._parser.Parse(data)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        if tag == "c":
            self._cell = attributes
            self._row_cells += 1
            if self._row_cells > MAX_ROW_CELLS:
                raise ValueError(f"a row has more than {MAX_ROW_CELLS:,} cells")
        elif tag == "f":
            self._lacks_value = self._cell.get("t") != "str"  # an empty text is a value
        elif tag == "v" and self._lacks_value:
            self._parser.CharacterDataHandler = self._value
        elif tag == "row":
            self._rows, self._row_cells = self._rows + 1, 0
            if self._rows > MAX_ROWS:
                raise ValueError(f"a sheet has more than {MAX_ROWS:,} rows")
        elif tag == "mergeCell":
            left, top, right, bottom = range_boundaries(attributes["ref"])
            problem = f"is merged with row {top}: unmerge the cells, and fill each of them"
            self._keep(range(top + 1, bottom + 1), range(left, right + 1), problem)

    def _value(self, text: str) -> None:
        self._lacks_value = self._lacks_value and not text.strip()

    def _end(self, name: str) -> None:
        tag = name.rpartition(" ")[2]
        if tag == "v":
            self._parser.CharacterDataHandler = None
        elif tag == "c" and self._lacks_value and "r" in self._cell:
            self._lacks_value = False
            column, row, _, _ = range_boundaries(self._cell["r"])
            self._keep(range(row, row + 1), range(column, column + 1), _NO_VALUE)

    def _keep(self, rows: range, columns: range, problem: str) -> None:
        if len(self.by_place) + len(rows) * len(columns) > MAX_PROBLEM_CELLS:
            raise ValueError(f"more than {MAX_PROBLEM_CELLS:,} cells are merged or have no value")
        self.by_place.update(dict.fromkeys(((row, column) for row in rows for column in columns), problem))


def _numbered_rows(worksheet: Any, file: TableFile) -> NumberedRows:
    # The size that a sheet states may be wrong.
    worksheet.reset_dimensions()
    rows = enumerate(worksheet.iter_rows(max_row=MAX_ROWS), start=1)
    while True:
        with _workbook_errors(file), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            chunk = list(islice(rows, _ROWS_AT_ONCE))
        if not chunk:
            return
        for number, cells in chunk:
            yield number, [_cell_text(cell) for cell in cells]


def _fit(problems: Mapping[tuple[int, int], str], number: int, cells: Sequence[str], width: int) -> Sequence[str]:
    """Return as many cells as there are headers; empty cells with a problem become a `_NoText`."""
    texts = [*cells[:width], *[""] * (width - len(cells))]
    if problems:
        for column, text in enumerate(texts, start=1):
            if not text and (number, column) in problems:
                texts[column - 1] = _NoText(problems[number, column])
    return texts


def _cell_text(cell: Any) -> str:
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, str):
        if cell.data_type == "e":
            return _NoText(f"shows the error {value}: correct its formula")
        # Of the escapes of XML only these are left by openpyxl.
        return _CONTROL.sub(lambda code: chr(int(code[1], 16)), value) if "_x00" in value else value
    if isinstance(value, datetime) and is_datetime(cell.number_format) == "date":
        return value.date().isoformat()
    text = value_text(value)
    if text.isdigit() and _ZEROS.fullmatch(zeros := cell.number_format):
        return text.zfill(len(zeros))
    return text


def _text(cell: str) -> str:
    if isinstance(cell, _NoText):
        raise ValueError(str(cell))
    return cell
