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


def lookalikes(difference: Difference, policy: Policy, text_of: Callable[[Cell], str]) -> list[tuple[int, Cell, Cell]]:
    """Return pairs of a gold and a predicted cell of one column that are unequal by their types only.

    They are shown by the same text, or `is_number_text`. Takes time in proportion to the pairs of rows.
    """
    gold_rows, predicted_rows = _sides(difference)
    return [
        (column, gold, predicted)
        for gold_row in gold_rows
        for predicted_row in predicted_rows
        for column, (gold, predicted) in enumerate(zip(gold_row, predicted_row, strict=False))
        if type_name(gold) != type_name(predicted)
        and (text_of(gold) == text_of(predicted) or is_number_text(gold, predicted, policy))
        and not is_equal(canonical(gold, policy), canonical(predicted, policy), policy)
    ]


def is_number_text(gold: Cell, predicted: Cell, policy: Policy) -> bool:
    """Return whether one of two cells is a number and the other one a text of it, as `text_numbers` reads texts."""
    reading = replace(policy, text_numbers=True)
    gold_value, predicted_value = canonical(gold, reading), canonical(predicted, reading)
    return text_and_number(gold, predicted) and is_equal(gold_value, predicted_value, reading)


def has_midnight(difference: Difference) -> bool:
    """Return whether one answer has a date where the other one has a timestamp at midnight of that day."""
    (gold_dates, gold_timestamps), (predicted_dates, predicted_timestamps) = map(_moments, _sides(difference))
    return not gold_dates.isdisjoint(predicted_timestamps) or not gold_timestamps.isdisjoint(predicted_dates)


def _sides(difference: Difference) -> tuple[Sequence[Row], Sequence[Row]]:
    """Return the rows of gold and of predicted that the other one lacks."""
    golds = (*difference.missing, *(gold for gold, _ in difference.changed))
    return golds, (*difference.extra, *(predicted for _, predicted in difference.changed))


def _moments(rows: Sequence[Row]) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Return the dates and the timestamps, texts among them, as numbers of columns with seconds."""
    dates, timestamps = set[tuple[int, int]](), set[tuple[int, int]]()
    for column, cell in (place for row in rows for place in enumerate(row)):
        text = cell.lexical if isinstance(cell, Literal) else str(cell) if isinstance(cell, str | date) else ""
        moment = read_temporal(text)
        if moment is not None and moment.kind == "date":
            dates.add((column, moment.seconds))
        elif moment is not None and moment.kind == "datetime" and not moment.fraction:
            timestamps.add((column, moment.seconds))
    return dates, timestamps


def text_and_number(gold: Cell, predicted: Cell) -> bool:
    """Return whether one of two cells is a text and the other one a number."""
    return {str} < {type(gold), type(predicted)} < {str, int, float, Decimal}
