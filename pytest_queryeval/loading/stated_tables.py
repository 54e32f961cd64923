"""Reader of tables that stand in a suite: `{columns: [...], rows: [[...], ...]}`."""

from __future__ import annotations

from pytest_queryeval.documents.document import Node
from pytest_queryeval.kinds import Kind
from pytest_queryeval.loading.values import each, items, known_entries, scalar, text
from pytest_queryeval.table import Cell, Table

TABLE_KEYS = ("columns", "rows")


def stated_table(node: Node, kind: Kind) -> Table:
    """Read a table; raises `CaseError` or `SuiteError`."""
    parts = known_entries(node, dict.fromkeys(TABLE_KEYS, items))
    if missing := [name for name in TABLE_KEYS if name not in parts]:
        raise node.problem(f"a table needs `columns` and `rows`: there are no {missing[0]}")
    columns = tuple(each(parts["columns"], text))
    rows = each(enumerate(parts["rows"], start=1), lambda row: _row(*row, width=len(columns), kind=kind))
    return Table(columns=columns, rows=rows)


def _row(number: int, node: Node, *, width: int, kind: Kind) -> tuple[Cell, ...]:
    cells = items(node)
    if len(cells) != width:
        raise node.problem(f"row {number} has {counted(len(cells), 'cell')}, the table {counted(width, 'column')}")
    return tuple(kind.stated_cell(cell) for cell in each(cells, scalar))


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(2, "cell")
    '2 cells'
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"
