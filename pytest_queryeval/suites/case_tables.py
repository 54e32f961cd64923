"""Reader of `cases: {file: …}`: the rows of a table as nodes of cases."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from pytest_queryeval.core.errors import did_you_mean, names_beside
from pytest_queryeval.core.mappings import not_none
from pytest_queryeval.core.shapes import (
    NULL,
    TEXT,
    described_shapes,
    either,
    enum_shape,
    list_shape,
    mapping_shape,
    shape,
)
from pytest_queryeval.documents.document import File, Form, Node, Problems, file_at
from pytest_queryeval.documents.tables import (
    DELIMITER,
    FLAGS,
    Row,
    Table,
    TableSettingError,
    is_delimiter,
    is_table,
    open_table,
)
from pytest_queryeval.documents.values import (
    MAX_SHOWN,
    Readers,
    each_entry,
    entries,
    items,
    known_entries,
    list_of,
    or_else,
    read_each,
    required_text,
    text,
    unexpected,
    whole_number,
)
from pytest_queryeval.suites.answers import GOLD_SYNONYMS
from pytest_queryeval.text.formatting import one_line

# What editors show on hover and next to completions; docs/reference/suites.md has the details.
TABLE_DESCRIPTIONS = {
    "file": "an .xlsx, .csv, .tsv or .parquet file, each row of which is a case",
    "sheet": "the sheet of a workbook; default: the first one",
    "delimiter": "what separates the cells of a CSV file; default: a comma",
    "header_row": "the row with the headers, as the spreadsheet numbers it; default: the first row with text",
    "columns": "the headers of keys, where they have other names; null for a key without a column",
    "metadata": "the headers of columns that become metadata, or rest for all that are not read otherwise",
}
GOLDS = ("gold", "gold_file")
# Keys of a case that can be columns of a table. The texts of the first ones are kept as they are, with their spaces.
_TEXTS = ("question", "evidence", "gold", "predicted")
COLUMNS = (*_TEXTS, "id", "gold_file", "difficulty", "tags", "source", "kind", "skip", "allow_empty", "answerable")
REST: Literal["rest"] = "rest"
# The remedy where a case needs a key that cannot be a column.
TO_YAML = "move the case to YAML: `queryeval import table`"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseTable:
    """A table whose rows are cases, and how to read it."""

    file: File
    sheet: str | None = None
    delimiter: str | None = None
    header_row: int | None = None
    columns: Mapping[str, str | None] = field(default_factory=dict)
    """Headers by key; None for a key without a column."""
    metadata: tuple[str, ...] | Literal["rest"] = ()
    """The headers of columns that become metadata."""
    nodes: Mapping[str, Node] = field(default_factory=dict)
    """The settings of the table in the suite, by their names."""


def read_case_table(node: Node) -> CaseTable:
    """Return the table that a mapping with a `file` names; raises `CaseError` if the file does not exist."""
    settings = known_entries(node, CASE_TABLE_KEYS)
    if "file" not in settings:
        raise node.problem("cases in a table need a `file`: write {file: questions.xlsx}, or a list of cases")
    name = settings.pop("file")
    file = file_at(node.file.folder / name)
    if not os.path.exists(file.path):  # noqa: PTH110 - Path.exists raises for names that are too long
        near = did_you_mean(name, filter(is_table, names_beside(file.path, name)))
        raise entries(node)["file"].problem(f"there is no file {one_line(name, MAX_SHOWN)}{near}")
    return CaseTable(file=file, nodes=entries(node), **settings)


@shape(DELIMITER)
def _delimiter(node: Node) -> str:
    value = text(node)
    if not is_delimiter(value):
        if is_delimiter(value.strip(" ")):
            raise node.problem(
                f"delimiter: expected one character, found '{value}' with spaces: write '{value.strip(' ')}'"
            )
        raise unexpected(node, "one character, such as ';' or \"\\t\"")
    return value


def _column(key: str, node: Node) -> str | None:
    if key not in COLUMNS:
        hint = (
            did_you_mean(key, COLUMNS) or ": write settings next to `cases`, and columns of your own under `metadata`"
        )
        raise node.problem(f"a table has no column for '{key}'{hint}")
    return or_else(None, required_text)(node)


@shape(mapping_shape({key: either(NULL, TEXT) for key in COLUMNS}))
def _columns(node: Node) -> dict[str, str | None]:
    return each_entry(node, _column)


@shape(either(enum_shape([REST]), list_shape(TEXT)))
def _metadata(node: Node) -> tuple[str, ...] | Literal["rest"]:
    return REST if node.value == REST else list_of(required_text)(node)


CASE_TABLE_KEYS: Readers = {
    "file": required_text,
    "sheet": text,
    "delimiter": _delimiter,
    "header_row": whole_number(1),
    "columns": _columns,
    "metadata": _metadata,
}
CASE_TABLE_SHAPE = mapping_shape(described_shapes(CASE_TABLE_KEYS, TABLE_DESCRIPTIONS), required=["file"])


def row_nodes(table: CaseTable, problems: Problems, *, empty_is_predicted: bool) -> Iterator[Node]:
    """Yield a case node for each row of a table.

    Problems of rows are added to `problems`; problems of the whole table are raised. A node has no key for an empty
    cell, except for an empty question; with `empty_is_predicted` an empty cell of `predicted` is an empty answer.
    """
    opened = open_table(table.file, sheet=table.sheet, delimiter=table.delimiter, header_row=table.header_row)
    with _located_in_suite(table), opened as rows:
        headers = _headers(table, rows)
        if table.metadata == REST:
            columns_of_keys = {*headers.values(), *GOLDS}
            metadata = tuple(header for header in rows.places if header not in columns_of_keys)
        else:
            metadata = table.metadata
        read_headers = {*headers.values(), *metadata}
        stated_keys = {*headers, *table.columns}
        unread = [name for name in rows.places if name not in read_headers and name.lower() not in stated_keys]
        file = replace(rows.file, unread=tuple(unread))
        row = None
        for row in rows.rows():
            node = problems.attempt(_case_node, row, file, headers, metadata, empty_is_predicted=empty_is_predicted)
            if node is not None:
                yield node
        if row is None:
            raise table.file.problem("it has no cases: add one")


@contextmanager
def _located_in_suite(table: CaseTable) -> Iterator[None]:
    """Raise the error of a missing sheet or header at the line of the suite that names it."""
    try:
        yield
    except TableSettingError as error:
        raise table.nodes[error.setting].problem(f"{error.setting}: {error}") from error


def _headers(table: CaseTable, rows: Table) -> dict[str, str]:
    """Return the headers by key: those that `columns` names, otherwise those that equal the key in any letter case.

    Raises `SuiteError` with all named headers that the table does not have, and `CaseError` if a later row has them.
    """
    by_name = {header.lower(): header for header in rows.places} | {header: header for header in rows.places}
    headers_by_key = {key: table.columns.get(key, by_name.get(key)) for key in COLUMNS}
    headers = not_none(headers_by_key)
    missing_headers = [
        (f"columns: {key}", header, entries(table.nodes["columns"])[key])
        for key, header in headers.items()
        if header not in rows.places
    ]
    for node in items(table.nodes["metadata"]) if table.metadata and table.metadata != REST else ():
        if (name := required_text(node)) not in rows.places:
            missing_headers.append(("metadata", name, node))
    has_gold = not headers.keys().isdisjoint(GOLDS)
    if table.header_row is None and (missing_headers or not has_gold):
        below = rows.header_below(
            [header for _, header, _ in missing_headers] or ["gold"], "write `header_row: {}` next to `file`"
        )
        if below is not None:
            raise below
    problems = Problems()
    for key, header, node in missing_headers:
        problems.append(node.problem(f"{key}: {rows.missing_column(header)}"))
    problems.raise_any()
    if not has_gold:
        add = "" if headers else "add a header above the first row, or "
        likely = next((name for name in rows.places if name.lower() in GOLD_SYNONYMS), "")
        raise rows.missing_column("gold", f"{add}write `columns: {{gold: NAME}}` next to `file`", likely=likely)
    return headers


def _case_node(
    row: Row, file: File, headers: Mapping[str, str], metadata: tuple[str, ...], *, empty_is_predicted: bool
) -> Node:
    """Return the case node of a row; raises `SuiteError` with the problems of its cells.

    A row without an id gets `row-NUMBER`.
    """
    number = row.number

    def cell(key: str, header: str) -> Node | None:
        value = row.text(header)
        column = row.table.column(header)
        form: Form = "quoted"
        if key not in _TEXTS:
            value = value.strip()
        if not value.strip() and key != "question" and not (key == "predicted" and empty_is_predicted):
            return None
        if key == "tags":
            names = filter(None, map(str.strip, value.split(",")))
            tags = [Node(name, number, form, file, key, column) for name in names]
            return Node(tags, number, "sequence", file, key, column)
        if key in ("skip", "allow_empty", "answerable") and value.lower() in FLAGS:
            value, form = FLAGS[value.lower()], "plain"
        return Node(value, number, form, file, key, column)

    def cells(headers_by_key: Mapping[str, str]) -> dict[str, Node]:
        nodes = read_each(headers_by_key.items(), lambda item: cell(*item))
        return {key: node for key, node in zip(headers_by_key, nodes, strict=True) if node is not None}

    case = cells(headers)
    if "id" not in case:
        case["id"] = Node(f"row-{number}", number, "quoted", file, "id")
    if metadata_cells := cells({header: header for header in metadata}):
        case["metadata"] = Node(metadata_cells, number, "mapping", file, "metadata")
    return Node(case, number, "mapping", file)
