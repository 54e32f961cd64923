"""Cells of tables that cross the pipe from a child process, which can send plain values only.

Parents and children import it. It imports the standard library only.
"""

from __future__ import annotations

import json
import marshal
import math
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any, TypeAlias

Rows: TypeAlias = list[tuple[Any, ...]]
_PLAIN = frozenset((str, int, float, bool, bytes, type(None)))
_INFINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}
_READERS: dict[str, Any] = {
    "decimal": Decimal,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "datetime": datetime.fromisoformat,
}


def encode_rows(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Return rows of a driver's values as rows of values that `marshal` knows: see `encode`."""
    # Most answers hold plain values only: checking all types at once costs a fifth of checking each row.
    if _PLAIN.issuperset(map(type, chain.from_iterable(rows))):
        return [*map(tuple, rows)]
    return [tuple(value if type(value) in _PLAIN else encode(value) for value in row) for row in rows]


def encode(value: Any) -> Any:
    """Return a value as a number, a text, bytes, or a pair of a type's name and a text.

    Lists, mappings and JSON become JSON text with sorted keys, intervals ISO 8601 durations, and whatever else a
    driver has, such as UUIDs and network addresses, becomes its text.
    """
    match value:
        case None | bool() | int() | float() | str() | bytes():
            return value
        case Decimal():
            return "decimal", str(value)
        case datetime():
            return "datetime", value.isoformat()
        case date():
            return "date", value.isoformat()
        case time():
            return "time", value.isoformat()
        case timedelta():
            return duration(value)
        case bytearray() | memoryview():
            return bytes(value)
        case list() | tuple() | dict():
            try:
                return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, default=_inner)
            except (TypeError, ValueError):  # keys of other types, NaN and infinite numbers
                return json.dumps(_nested(value), sort_keys=True, ensure_ascii=False)
        case _:
            return str(value)


def decode_rows(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the rows of `encode_rows` with the cells of a `Table`."""
    if tuple not in set(map(type, chain.from_iterable(rows))):
        return [*rows]
    return [
        tuple(_READERS[cell[0]](cell[1]) if type(cell) is tuple else cell for cell in row)
        if tuple in map(type, row)
        else row
        for row in rows
    ]


def without_common(added: Rows, removed: Rows) -> tuple[Rows, Rows]:
    """Return both lists of encoded rows without those that they have in common, each as often as both have it.

    Rows are compared by their bytes, since NaN is not equal to itself, and 1 is to 1.0.
    """
    counts = Counter(marshal.dumps(row, 2) for row in removed)
    only_added = []
    for row in added:
        content = marshal.dumps(row, 2)
        if counts[content]:
            counts[content] -= 1
        else:
            only_added.append(row)
    return only_added, [marshal.loads(content) for content in counts.elements()]  # noqa: S302 - dumped above


def duration(value: timedelta) -> str:
    """Return an interval as an ISO 8601 duration: `P1DT2H0.5S`, negative ones with a sign in front."""
    sign, value = ("-", -value) if value < timedelta(0) else ("", value)
    minutes, seconds = divmod(value.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{value.microseconds:06d}".rstrip("0") if value.microseconds else ""
    parts = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "")
    parts += f"{seconds}{fraction}S" if seconds or fraction else ""
    days = f"{value.days}D" if value.days else ""
    return f"{sign}P{days}T{parts}" if parts else f"{sign}P{days or 'T0S'}"


def _nested(value: Any) -> Any:
    """Return a value as JSON can hold it: keys, NaN, dates and the like become text."""
    match value:
        case dict():
            members = [(_nested(key), _nested(item)) for key, item in value.items()]
            return {
                key if isinstance(key, str) else json.dumps(key, sort_keys=True, ensure_ascii=False): item
                for key, item in members
            }
        case list() | tuple():
            return [_nested(item) for item in value]
        case float() if not math.isfinite(value):
            return _INFINITE.get(value, "NaN")
        case None | bool() | int() | float() | str():
            return value
    return _nested(_inner(value))


def _inner(value: Any) -> Any:
    """Return a value that JSON does not know, within a list or a mapping: numbers as numbers, the rest as text."""
    if isinstance(value, Decimal) and value.is_finite():
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    inner = encode(value)
    return inner[1] if isinstance(inner, tuple) else inner
