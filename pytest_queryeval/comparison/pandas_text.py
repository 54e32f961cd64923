"""Cells as texts in the way of pandas 2, without pandas: what published evaluators compare."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_queryeval.core.table import IRI, BlankNode, Cell, Literal, Row

_INTEGERS = range(-(2**63), 2**64)  # what a column of numbers can hold in pandas


def text_rows(rows: Iterable[Row]) -> list[tuple[str, ...]]:
    """Return the rows as `DataFrame(rows).astype(str)` of pandas 2 has them.

    A column of numbers that holds a float or NULL is one of floats, with `nan` for NULL; in any other column each cell
    is its own text, and NULL is `None`.

    >>> text_rows([(1, 1, "a"), (2, None, None)])
    [('1', '1.0', 'a'), ('2', 'nan', 'None')]
    """
    rows = list(rows)
    columns = [
        ["nan" if cell is None else str(float(cell)) for cell in column]
        if _is_of_floats(column)
        else [_text(cell) for cell in column]
        for column in zip(*rows, strict=True)
    ]
    return list(zip(*columns, strict=True)) if columns else [()] * len(rows)


def _is_of_floats(column: Sequence[Cell]) -> bool:
    """Return whether pandas reads a column as floats: numbers and NULLs that are not all integers nor all NULLs."""
    types = set(map(type, column))
    if not types <= {int, float, type(None)} or not types - {type(None)} or types == {int}:
        return False
    return all(cell in _INTEGERS for cell in column if type(cell) is int)


def _text(cell: Cell) -> str:
    match cell:
        case bytes():
            return cell.decode(errors="replace")
        case IRI(iri=text) | Literal(lexical=text):
            return text
        case BlankNode(label=label):
            return f"_:{label}"
        case _:
            return str(cell)
