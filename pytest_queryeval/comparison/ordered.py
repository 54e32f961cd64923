"""Equality of answers whose rows are in an order, with ties."""

from __future__ import annotations

from pytest_queryeval.comparison.pairing import Pair, pair
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Row, Table, Tie


def in_strict_order(table: Table) -> tuple[Tie, ...]:
    """Return ties that leave no choice: one for each row."""
    return tuple(Tie(size=1, rows=(row,)) for row in table.rows)


def equal_in_order(gold: Table, predicted: Table, policy: Policy) -> bool:
    """Return whether predicted holds, tie by tie, rows that gold's ties allow, under one alignment for all of them.

    Each row gets the number of its tie as a further cell, in a column that is aligned with itself. Then the tables are
    equal if and only if every predicted row has a partner among the rows that gold allows.
    """
    strict = policy.row_order == "strict" or gold.ties is None
    ties = in_strict_order(gold) if strict or gold.ties is None else gold.ties
    if sum(tie.size for tie in ties) != len(predicted.rows):
        return False
    allowed = [(number, *row) for number, tie in enumerate(ties) for row in tie.rows]
    numbers = (number for number, tie in enumerate(ties) for _ in range(tie.size))
    numbered = [(number, *row) for number, row in zip(numbers, predicted.rows, strict=True)]
    tables = Pair(_numbered(gold, allowed), _numbered(predicted, numbered), policy, pinned=1)
    if policy.columns != "any":
        return tables.alignment is not None and tables.alignment.matched == len(numbered)
    is_equal = tables.matches_all_rows
    unordered = pair(gold, predicted, policy)  # which tells the case whether a search has stopped
    unordered.is_unproven = unordered.is_unproven or tables.is_unproven
    return is_equal


def _numbered(table: Table, rows: list[Row]) -> Table:
    return Table(columns=("\0tie", *table.columns), rows=rows)
