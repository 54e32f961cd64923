"""Readers of files that hold a query or a stored answer, by suffix."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from pytest_queryeval.documents.document import MEBIBYTE, File, Node, file_at
from pytest_queryeval.documents.json_nodes import read_json
from pytest_queryeval.errors import CaseError, SuiteError
from pytest_queryeval.kinds import Kind
from pytest_queryeval.loading.stated_tables import counted, stated_table
from pytest_queryeval.loading.values import scalar, stated_text
from pytest_queryeval.model import Stated
from pytest_queryeval.table import Cell, Table

MAX_STATED_BYTES = 32 * MEBIBYTE
Reader: TypeAlias = Callable[[File, Kind], Stated]


def stated_file(node: Node, kind: Kind) -> Stated:
    """Read the file that a node names; raises `CaseError` there, also for what is wrong in the file."""
    name = stated_text(node)
    file = file_at(node.file.folder / name)
    suffix = file.path.suffix.lower()
    if suffix not in _READERS:
        raise node.problem(f"cannot tell what '{name}' holds: known suffixes are {', '.join(_READERS)}")
    try:
        return _READERS[suffix](file, kind)
    except (CaseError, SuiteError) as error:
        raise node.problem(str(error).splitlines()[0]) from error


def _query(file: File, _: Kind) -> Stated:
    query = file.text(MAX_STATED_BYTES)
    if not query.strip():
        raise file.problem("is empty")
    return Stated(query=query)


def _json(file: File, kind: Kind) -> Stated:
    return Stated(answer=stated_table(read_json(file), kind))


def _sparql_results(file: File, _: Kind) -> Stated:
    from pytest_queryeval.sparql.results import read_results

    try:
        return Stated(answer=read_results(file.text(MAX_STATED_BYTES), file.path.suffix.lower()))
    except ValueError as error:
        raise file.problem(str(error)) from error


def _csv(file: File, kind: Kind) -> Stated:
    return _separated(file, ",", kind.csv_cell)


def _tsv(file: File, kind: Kind) -> Stated:
    """SPARQL TSV results have a `?` before each variable, and no other table has."""
    if all(name.startswith("?") for name in file.text(MAX_STATED_BYTES).partition("\n")[0].split("\t")):
        return _sparql_results(file, kind)
    return _separated(file, "\t", kind.csv_cell)


def _separated(file: File, delimiter: str, read_cell: Callable[[Cell], Cell]) -> Stated:
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


_READERS: Mapping[str, Reader] = {
    ".sql": _query,
    ".rq": _query,
    ".csv": _csv,
    ".tsv": _tsv,
    ".json": _json,
    ".srj": _sparql_results,
    ".srx": _sparql_results,
}
