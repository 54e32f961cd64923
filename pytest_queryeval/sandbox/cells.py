"""Cells of tables that cross the pipe from a child process, which can send plain values only.

Children import it; `core.sent_cells` reads the cells in the parent. It imports the standard library only.
"""

from __future__ import annotations

import marshal
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any, TypeAlias

Rows: TypeAlias = list[tuple[Any, ...]]
_PLAIN = frozenset((str, int, float, bool, bytes, type(None)))
MAX_LEVELS = 50  # of lists and mappings within each other; what is nested deeper becomes text


def encode_rows(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Return a driver's rows as tuples of values that `marshal` can write; each value as `encode` returns it."""
    # Most answers hold plain values only: checking all types at once costs a fifth of checking each row.
    if _PLAIN.issuperset(map(type, chain.from_iterable(rows))):
        return [*map(tuple, rows)]
    return [tuple(value if type(value) in _PLAIN else encode(value) for value in row) for row in rows]


def encode(value: Any, levels: int = MAX_LEVELS) -> Any:
    """Return a driver's value in plain values that `marshal` can write and `core.sent_cells` reads back.

    None, booleans, numbers, texts and bytes stay as they are. Decimals, dates and times become pairs of a type's name
    and a text. Lists and sets become a pair of "list" and the encoded items, mappings a pair of "mapping" and pairs of
    encoded keys and values. Sets and mappings are sorted. Intervals become ISO 8601 durations. All other values, such
    as UUIDs, and lists nested deeper than `levels`, become their text.
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
        case list() | tuple() | dict() | set() | frozenset() if levels:
            return _encode_nested(value, levels - 1)
        case _:
            return str(value)


def _encode_nested(value: Any, levels: int) -> tuple[str, list[Any]]:
    match value:
        case dict():
            pairs = [(encode(key, levels), encode(item, levels)) for key, item in value.items()]
            return "mapping", sorted(pairs, key=repr)
        case set() | frozenset():
            return "list", sorted([encode(item, levels) for item in value], key=repr)
        case _:
            return "list", [encode(item, levels) for item in value]


def without_common(added: Rows, removed: Rows) -> tuple[Rows, Rows]:
    """Return both lists of encoded rows, without the rows that are in both lists.

    A row that occurs n times in a list and m times in the other list is removed min(n, m) times from both. Rows are
    compared by their bytes, because NaN is not equal to itself, and 1 is equal to 1.0.
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
    """Return an interval as an ISO 8601 duration, such as `P1DT2H0.5S`; a negative interval starts with `-`."""
    sign, value = ("-", -value) if value < timedelta(0) else ("", value)
    minutes, seconds = divmod(value.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{value.microseconds:06d}".rstrip("0") if value.microseconds else ""
    parts = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "")
    parts += f"{seconds}{fraction}S" if seconds or fraction else ""
    days = f"{value.days}D" if value.days else ""
    return f"{sign}P{days}T{parts}" if parts else f"{sign}P{days or 'T0S'}"
