"""Files with a query or a stored table, by suffix."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from typing import TypeAlias

from pytest_queryeval.core.model import QueryOrAnswer
from pytest_queryeval.core.table import Cell, Table
from pytest_queryeval.documents.document import File, Node
from pytest_queryeval.documents.json_nodes import read_json
from pytest_queryeval.documents.values import scalar
from pytest_queryeval.languages.files import MAX_STATED_BYTES, FileReader, text_file
from pytest_queryeval.languages.stated_tables import read_table
from pytest_queryeval.text.formatting import pluralize

CellReader: TypeAlias = Callable[[Cell], Cell]


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
                raise file.problem(counts, lines.line_num)
            if line:
                rows.append(tuple(read_cell(scalar(Node(cell, lines.line_num, "plain", file))) for cell in line))
    except csv.Error as error:
        raise file.problem(str(error), lines.line_num) from error
    return QueryOrAnswer(answer=Table(columns=header, rows=rows))
