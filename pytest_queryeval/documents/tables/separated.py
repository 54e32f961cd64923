"""Reader of tables in CSV files and the like."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from pytest_queryeval.documents.document import File
from pytest_queryeval.documents.tables.rows import (
    MAX_CELL_CHARACTERS,
    MAX_TABLE_BYTES,
    NumberedCells,
    Table,
    TableFile,
    table_of,
)
from pytest_queryeval.text.formatting import pluralize

_ROWS_AT_ONCE = 1000


@contextmanager
def open_separated(file: File, delimiter: str) -> Iterator[Table]:
    """Open a file of rows whose cells are separated by `delimiter`."""
    with io.TextIOWrapper(file.open(MAX_TABLE_BYTES), encoding="utf-8-sig", newline="") as stream:
        lines = csv.reader(stream, delimiter=delimiter, strict=True)
        yield table_of(file, _numbered_cells(lines, file), str)


def _numbered_cells(lines: Any, file: File) -> NumberedCells:
    table = TableFile(file.path, file.shown)
    number, width = 0, 0
    while True:
        try:
            chunk = _next_lines(lines)
        except UnicodeDecodeError:
            file.text(MAX_TABLE_BYTES)  # raises with the line and the column
            raise
        except csv.Error as error:
            raise file.problem(str(error), lines.line_num) from error
        if not chunk:
            return
        for cells in chunk:
            number += 1
            if not any(map(str.strip, cells)):
                continue
            width = width or len(cells)
            if len(cells) < width or any(cells[width:]):
                counts = f"{pluralize(len(cells), 'cell')} in a table of {pluralize(width, 'column')}"
                raise table.problem(f"{counts}: quote cells that hold a delimiter or a line end", number)
            yield number, cells


def _next_lines(lines: Any) -> list[list[str]]:
    # The limit, 131,072 characters by default, holds for the whole process.
    before = csv.field_size_limit(MAX_CELL_CHARACTERS)
    try:
        return list(islice(lines, _ROWS_AT_ONCE))
    finally:
        csv.field_size_limit(before)
