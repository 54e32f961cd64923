"""Files that hold a query or a stored table, by suffix."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from pytest_queryeval.core.model import Stated
from pytest_queryeval.core.table import Cell, Table
from pytest_queryeval.documents.document import File, Node
from pytest_queryeval.documents.json_nodes import read_json
from pytest_queryeval.documents.values import scalar
from pytest_queryeval.languages.files import MAX_STATED_BYTES, FileReader, text_file
from pytest_queryeval.languages.tables import read_table
from pytest_queryeval.text.plain import counted

CellReader: TypeAlias = Callable[[Cell], Cell]


def table_readers(stated_cell: CellReader, csv_cell: CellReader) -> Mapping[str, FileReader]:
    """Readers of queries and tables; the cells of tables as people write them, and those of CSV files, are read so."""
    return {
        ".sql": text_file,
        ".rq": text_file,
        ".csv": lambda file: _separated(file, ",", csv_cell),
        ".tsv": lambda file: _tsv(file, csv_cell),
        ".json": lambda file: Stated(answer=read_table(read_json(file), stated_cell)),
        ".srj": _sparql_results,
        ".srx": _sparql_results,
    }


def _sparql_results(file: File) -> Stated:
    from pytest_queryeval.languages.sparql.results import read_results

    try:
        return Stated(answer=read_results(file.text(MAX_STATED_BYTES), file.path.suffix.lower()))
    except ValueError as error:
        raise file.problem(str(error)) from error


def _tsv(file: File, read_cell: CellReader) -> Stated:
    """SPARQL TSV results have a `?` before each variable, and no other table has."""
    if all(name.startswith("?") for name in file.text(MAX_STATED_BYTES).partition("\n")[0].split("\t")):
        return _sparql_results(file)
    return _separated(file, "\t", read_cell)


def _separated(file: File, delimiter: str, read_cell: CellReader) -> Stated:
    lines = csv.reader(io.StringIO(file.text(MAX_STATED_BYTES), newline=""), delimiter=delimiter, strict=True)
    try:
        header = next((tuple(line) for line in lines if line), None)
        if header is None:
            raise file.problem("has no header row")
        rows = [_cells(line, len(header), file, lines.line_num) for line in lines if line]
    except csv.Error as error:
        raise file.problem(str(error), lines.line_num) from error
    return Stated(answer=Table(columns=header, rows=[tuple(map(read_cell, row)) for row in rows]))


def _cells(line: Sequence[str], width: int, file: File, number: int) -> tuple[Cell, ...]:
    if len(line) != width:
        raise file.problem(f"{counted(len(line), 'cell')} in a table of {counted(width, 'column')}", number)
    return tuple(scalar(Node(cell, number, "plain", file)) for cell in line)
