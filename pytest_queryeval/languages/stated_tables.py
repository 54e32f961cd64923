"""Reader of tables in a suite: `{columns: [...], rows: [[...], ...]}`."""

from __future__ import annotations

from collections.abc import Callable

from pytest_queryeval.core.shapes import SCALAR, list_shape, mapping_shape, shape
from pytest_queryeval.core.table import Cell, Table
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.values import each, items, known_entries, scalar, text, unexpected
from pytest_queryeval.text.formatting import pluralize

TABLE_KEYS = ("columns", "rows")
_PARTS = {"columns": list_shape(SCALAR), "rows": list_shape(list_shape(SCALAR))}


@shape(mapping_shape(_PARTS, required=TABLE_KEYS))
def read_table(node: Node, read_cell: Callable[[Cell], Cell]) -> Table:
    """Read a table; raise `CaseError` or `SuiteError`."""
    if node.form != "mapping":
        raise unexpected(node, "{columns: [NAME, …], rows: [[VALUE, …], …]}")
    parts = known_entries(node, dict.fromkeys(TABLE_KEYS, items))
    if missing_keys := [name for name in TABLE_KEYS if name not in parts]:
        raise node.problem(f"a table needs `columns` and `rows`: there are no {missing_keys[0]}")
    columns = tuple(each(parts["columns"], text))
    rows = each(enumerate(parts["rows"], start=1), lambda row: _row(*row, width=len(columns), read_cell=read_cell))
    return Table(columns=columns, rows=rows, has_header=bool(columns or rows))


def _row(number: int, node: Node, *, width: int, read_cell: Callable[[Cell], Cell]) -> tuple[Cell, ...]:
    cells = items(node)
    if len(cells) != width:
        raise node.problem(f"row {number} has {pluralize(len(cells), 'cell')}, the table {pluralize(width, 'column')}")
    return tuple(map(read_cell, each(cells, scalar)))
