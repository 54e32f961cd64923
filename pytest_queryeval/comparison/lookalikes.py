"""Cells that differ in their type only, such as text 3 and integer 3, or text 1.10 and the number 1.1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal

from pytest_queryeval.comparison.canonical import canonical, is_equal
from pytest_queryeval.comparison.shown_cells import type_name
from pytest_queryeval.comparison.temporal import read_temporal
from pytest_queryeval.core.difference import Difference
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Cell, Literal, Row


def lookalikes(found: Difference, policy: Policy, shown: Callable[[Cell], str]) -> list[tuple[int, Cell, Cell]]:
    """Return pairs of a gold and a predicted cell of one column that are unequal by their types only.

    They are shown by the same text, or `is_number_text`. Takes time in proportion to the pairs of rows.
    """
    golds, others = _sides(found)
    return [
        (column, gold, cell)
        for row in golds
        for other in others
        for column, (gold, cell) in enumerate(zip(row, other, strict=False))
        if type_name(gold) != type_name(cell)
        and (shown(gold) == shown(cell) or is_number_text(gold, cell, policy))
        and not is_equal(canonical(gold, policy), canonical(cell, policy), policy)
    ]


def is_number_text(cell: Cell, other: Cell, policy: Policy) -> bool:
    """Return whether one of two cells is a number and the other one a text of it, as `text_numbers` reads texts."""
    reading = replace(policy, text_numbers=True)
    return text_and_number(cell, other) and is_equal(canonical(cell, reading), canonical(other, reading), reading)


def has_midnight(found: Difference) -> bool:
    """Return whether one answer has a date where the other one has a timestamp at midnight of that day."""
    (dates, timestamps), (other_dates, other_timestamps) = map(_moments, _sides(found))
    return not dates.isdisjoint(other_timestamps) or not timestamps.isdisjoint(other_dates)


def _sides(found: Difference) -> tuple[Sequence[Row], Sequence[Row]]:
    """Return the rows of gold and of predicted that the other one lacks."""
    golds = (*found.missing, *(gold for gold, _ in found.changed))
    return golds, (*found.extra, *(predicted for _, predicted in found.changed))


def _moments(rows: Sequence[Row]) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Return the dates and the timestamps, texts among them, as numbers of columns with seconds."""
    dates, timestamps = set[tuple[int, int]](), set[tuple[int, int]]()
    for column, cell in (place for row in rows for place in enumerate(row)):
        text = cell.lexical if isinstance(cell, Literal) else str(cell) if isinstance(cell, str | date) else ""
        found = read_temporal(text)
        if found is not None and found.kind == "date":
            dates.add((column, found.seconds))
        elif found is not None and found.kind == "datetime" and not found.fraction:
            timestamps.add((column, found.seconds))
    return dates, timestamps


def text_and_number(cell: Cell, other: Cell) -> bool:
    """Return whether one of two cells is a text and the other one a number."""
    return {str} < {type(cell), type(other)} < {str, int, float, Decimal}
