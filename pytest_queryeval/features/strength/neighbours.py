"""Values next to those that queries compare, at which their answers change."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, timedelta

from pytest_queryeval.core.table import Cell


def neighbours(value: str | float) -> list[Cell]:
    """Return a value with those just below and above it, for numbers, ISO dates, and texts of whole numbers.

    >>> neighbours(30)
    [30, 29, 31]
    >>> neighbours("2020-03-01")
    ['2020-03-01', '2020-02-29', '2020-03-02']
    """
    if not isinstance(value, str):
        step = 1 if isinstance(value, int) else 0.5
        return [value, value - step, value + step]
    if value.isascii() and value.isdigit():
        return [value, *(str(int(value) + step) for step in (-1, 1))]
    with suppress(ValueError, OverflowError):
        day = date.fromisoformat(value)
        return [value, *((day + timedelta(days=step)).isoformat() for step in (-1, 1))]
    return [value]
