"""Cells of tables as child processes send them, read again in the parent. `sandbox.cells` encodes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from pytest_queryeval.core.table import Cell, FrozenMapping, Row


def decode_rows(rows: Sequence[tuple[Any, ...]]) -> list[Row]:
    """Return the rows that `sandbox.cells.encode_rows` encoded in a child process, with the cells of a `Table`."""
    return [
        tuple([_READERS[cell[0]](cell[1]) if type(cell) is tuple else cell for cell in row])
        if tuple in map(type, row)
        else row
        for row in rows
    ]


def _decode(value: Any) -> Any:
    return _READERS[value[0]](value[1]) if type(value) is tuple else value


def _read_list(items: Sequence[Any]) -> Cell:
    return tuple(map(_decode, items))


def _read_mapping(pairs: Sequence[tuple[Any, Any]]) -> Cell:
    return FrozenMapping({_decode(key): _decode(item) for key, item in pairs})


_READERS: Mapping[str, Callable[[Any], Cell]] = {
    "decimal": Decimal,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "datetime": datetime.fromisoformat,
    "list": _read_list,
    "mapping": _read_mapping,
}
