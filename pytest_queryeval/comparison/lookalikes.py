"""Cells that differ in their type only and so are shown by the same text, such as text 3 and integer 3."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal

from pytest_queryeval.comparison.canonical import canonical, is_equal
from pytest_queryeval.comparison.shown_cells import type_name
from pytest_queryeval.comparison.temporal import read_temporal
from pytest_queryeval.core.difference import Difference
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Cell, Literal, Row


def lookalikes(found: Difference, policy: Policy, shown: Callable[[Cell], str]) -> list[tuple[int, Cell, Cell]]:
    """Return pairs of a gold and a predicted cell of one column that are unequal and yet shown by the same text."""
    golds, others = _sides(found)
    by_text = defaultdict(list)
    for column, cell in (place for row in golds for place in enumerate(row)):
        by_text[column, shown(cell)].append(cell)
    return [
        (column, gold, cell)
        for column, cell in (place for row in others for place in enumerate(row))
        for gold in by_text.get((column, shown(cell)), ())
        if type_name(gold) != type_name(cell) and not is_equal(canonical(gold, policy), canonical(cell, policy), policy)
    ]


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
