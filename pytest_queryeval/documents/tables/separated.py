"""Reader of tables in CSV files and the like."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from pytest_queryeval.documents.document import File
from pytest_queryeval.documents.tables.rows import (
    MAX_CELL_CHARACTERS,
    MAX_TABLE_BYTES,
    NumberedRows,
    Table,
    TableFile,
    table_of,
)
from pytest_queryeval.text.formatting import pluralize

_ROWS_AT_ONCE = 1000


@contextmanager
def open_separated(file: File, delimiter: str, *, number_lines: bool, header_row: int | None) -> Iterator[Table]:
    """Open a file of rows whose cells are separated by `delimiter`."""
    table_file = TableFile(file.path, file.shown, numbers_lines=number_lines)
    with io.TextIOWrapper(file.open(MAX_TABLE_BYTES), encoding="utf-8-sig", newline="") as stream:
        lines = csv.reader(stream, delimiter=delimiter, strict=True)
        yield table_of(table_file, _numbered_rows(lines, table_file), str, header_row, partial(_fit, table_file))


def _numbered_rows(lines: Any, file: TableFile) -> NumberedRows:
    number, next_line = 0, 1
    for last_line, cells in _rows(lines, file):
        number = next_line if file.numbers_lines else number + 1
        next_line = last_line + 1
        if any(map(str.strip, cells)):
            yield number, cells


def _fit(file: TableFile, number: int, cells: Sequence[str], width: int) -> Sequence[str]:
    """Return the cells; raise `CaseError` if they are fewer than the header has, or more."""
    if len(cells) < width or any(cells[width:]):
        counts = f"{pluralize(len(cells), 'cell')} in a table of {pluralize(width, 'column')}"
        raise file.problem(f"{counts}: quote cells that hold a delimiter or a line end", number)
    return cells


def _rows(lines: Any, file: TableFile) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with the lines that they end on."""
    while True:
        # The limit, 131,072 characters by default, holds for the whole process.
        before = csv.field_size_limit(MAX_CELL_CHARACTERS)
        try:
            some = [(lines.line_num, cells) for cells in islice(lines, _ROWS_AT_ONCE)]
        except UnicodeDecodeError:
            File(file.path, file.shown).text(MAX_TABLE_BYTES)  # raises with the line and the column
            raise
        except csv.Error as error:
            raise replace(file, numbers_lines=True).problem(str(error), lines.line_num) from error
        finally:
            csv.field_size_limit(before)
        yield from some
        if not some:
            return
