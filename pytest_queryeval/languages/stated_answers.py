"""Golds and predictions that are tables in a suite, or files: each kind has a reader for each suffix."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from pytest_queryeval.core.errors import CaseError, Location, SuiteError
from pytest_queryeval.core.model import QueryOrAnswer
from pytest_queryeval.core.shapes import SCALAR, list_shape, mapping_shape, shape
from pytest_queryeval.core.table import Cell, Table
from pytest_queryeval.documents.document import MEBIBYTE, File, Node, file_at
from pytest_queryeval.documents.json_nodes import read_json
from pytest_queryeval.documents.values import items, known_entries, read_each, required_text, scalar, text, unexpected
from pytest_queryeval.text.formatting import pluralize

MAX_STATED_BYTES = 32 * MEBIBYTE
TABLE_KEYS = ("columns", "rows")
_PARTS = {"columns": list_shape(SCALAR), "rows": list_shape(list_shape(SCALAR))}
FileReader: TypeAlias = Callable[[File], QueryOrAnswer]
CellReader: TypeAlias = Callable[[Cell], Cell]


def stated_file(node: Node, readers: Mapping[str, FileReader]) -> QueryOrAnswer:
    """Read the file that a node names; raise `CaseError` there, also for problems in the file."""
    name = required_text(node)
    file = file_at(node.file.folder / name)
    suffix = file.path.suffix.lower()
    if suffix not in readers:
        raise node.problem(f"unknown suffix of '{name}': choose from {', '.join(readers)}")
    try:
        return replace(readers[suffix](file), location=Location(file.shown))
    except (CaseError, SuiteError) as error:
        raise node.problem(str(error).splitlines()[0]) from error


def text_file(file: File) -> QueryOrAnswer:
    """Read a file with the text of a query or an answer; raise `CaseError` if it is empty."""
    text = file.text(MAX_STATED_BYTES)
    if not text.strip():
        raise file.problem("is empty")
    return QueryOrAnswer(query=text)


@shape(mapping_shape(_PARTS, required=TABLE_KEYS))
def read_table(node: Node, read_cell: CellReader) -> Table:
    """Read `{columns: [...], rows: [[...], ...]}`; raise `CaseError` or `SuiteError`."""
    if node.form != "mapping":
        raise unexpected(node, "{columns: [NAME, …], rows: [[VALUE, …], …]}")
    parts = known_entries(node, dict.fromkeys(TABLE_KEYS, items))
    if missing_keys := [name for name in TABLE_KEYS if name not in parts]:
        raise node.problem(f"a table needs `columns` and `rows`: there are no {missing_keys[0]}")
    columns = tuple(read_each(parts["columns"], text))
    rows = read_each(enumerate(parts["rows"], start=1), lambda row: _row(*row, width=len(columns), read_cell=read_cell))
    return Table(columns=columns, rows=rows, has_header=bool(columns or rows))


def _row(number: int, node: Node, *, width: int, read_cell: CellReader) -> tuple[Cell, ...]:
    cells = items(node)
    if len(cells) != width:
        counts = f"row {number} has {pluralize(len(cells), 'cell')}, the table {pluralize(width, 'column')}"
        raise node.problem(f"{counts}: write one cell for each column, `null` where there is no value")
    return tuple(map(read_cell, read_each(cells, scalar)))


def table_readers(stated_cell: CellReader, csv_cell: CellReader) -> Mapping[str, FileReader]:
    """Return readers by suffix; `stated_cell` reads cells that people write, `csv_cell` those of CSV files."""
    return {
        ".sql": text_file,
        ".rq": text_file,
        ".csv": lambda file: _read_separated(file, csv_cell),
        ".tsv": lambda file: _read_separated(file, csv_cell),
        ".json": lambda file: QueryOrAnswer(answer=read_table(read_json(file), stated_cell)),
        ".srj": _sparql_results,
        ".srx": _sparql_results,
    }


def _sparql_results(file: File) -> QueryOrAnswer:
    from pytest_queryeval.languages.sparql.results import read_results

    try:
        return QueryOrAnswer(answer=read_results(file.text(MAX_STATED_BYTES), file.path.suffix.lower()))
    except ValueError as error:
        raise file.problem(str(error)) from error


def _read_separated(file: File, read_cell: CellReader) -> QueryOrAnswer:
    text = file.text(MAX_STATED_BYTES)
    delimiter = "\t" if file.path.suffix.lower() == ".tsv" else ","
    if delimiter == "\t" and all(name.startswith("?") for name in text.partition("\n")[0].split("\t")):
        return _sparql_results(file)  # which have a `?` before each variable
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = next((tuple(line) for line in lines if line), None)
        if header is None:
            raise file.problem("has no header row: write the names of the columns into the first row")
        rows = []
        for line in lines:
            if line and len(line) != len(header):
                counts = f"{pluralize(len(line), 'cell')} in a table of {pluralize(len(header), 'column')}"
                raise file.problem(f"{counts}: quote cells that hold a delimiter or a line end", lines.line_num)
            if line:
                rows.append(tuple(read_cell(scalar(Node(cell, lines.line_num, "plain", file))) for cell in line))
    except csv.Error as error:
        raise file.problem(str(error), lines.line_num) from error
    return QueryOrAnswer(answer=Table(columns=header, rows=rows))
