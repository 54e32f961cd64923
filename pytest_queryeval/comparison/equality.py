"""Equality of two answers: which columns of gold count, and how rows compare whose order has ties."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pytest_queryeval.comparison.pairing import Pair, pair
from pytest_queryeval.core.errors import GoldColumnError, did_you_mean
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Row, Table, Tie


def project(table: Table, columns: Sequence[str | int]) -> Table:
    """Return gold's answer with these columns alone, by name or 0-based position; the whole answer without any.

    Rows and ties stay as many as they are. Raise `GoldColumnError` for a column that gold lacks, a name that several of
    its columns have, and an answer that is a graph.
    """
    if not columns:
        return table
    if table.is_graph:
        raise GoldColumnError("compare: gold_columns: gold is a graph, which has no columns to choose from")
    places = [_place(column, table.columns) for column in columns]

    def chosen(rows: Iterable[Row]) -> tuple[Row, ...]:
        return tuple([tuple([row[place] for place in places]) for row in rows])

    return Table(
        columns=tuple(table.columns[place] for place in places),
        rows=chosen(table.rows),
        ties=None if table.ties is None else tuple(replace(tie, rows=chosen(tie.rows)) for tie in table.ties),
    )


def _place(column: str | int, names: tuple[str, ...]) -> int:
    if isinstance(column, int):
        if column >= len(names):
            raise GoldColumnError(
                f"compare: gold_columns: gold has no column {column}: its columns are 0 to {len(names) - 1}"
            )
        return column
    # A database may give names in another letter case than the query.
    places = [place for place, name in enumerate(names) if name == column]
    places = places or [place for place, name in enumerate(names) if name.casefold() == column.casefold()]
    if len(places) == 1:
        return places[0]
    if places:
        raise GoldColumnError(
            f"compare: gold_columns: gold has {len(places)} columns '{column}': write the position of one, from 0 on"
        )
    raise GoldColumnError(f"compare: gold_columns: gold has no column '{column}'{did_you_mean(column, names)}")


def equal_tables(gold: Table, predicted: Table, policy: Policy) -> bool:
    """Return whether predicted equals gold under a policy; of answers without rows only the widths count."""
    if not gold.rows or not predicted.rows:
        return len(gold.rows) == len(predicted.rows) and is_wide_enough(gold, predicted, policy)
    policy = policy.of(gold, predicted)
    if gold.is_graph != predicted.is_graph or not is_wide_enough(gold, predicted, policy):
        return False
    ordered = policy.row_order == "strict" or (policy.row_order == "auto" and gold.ties is not None)
    if ordered and policy.duplicates == "count":  # a set of rows has no order
        return equal_in_order(gold, predicted, policy)
    if policy.duplicates == "count" and len(gold.rows) != len(predicted.rows):
        return False
    return pair(gold, predicted, policy).is_equal


def is_wide_enough(gold: Table, predicted: Table, policy: Policy) -> bool:
    """Return whether predicted has as many columns as gold, or at least as many where the policy allows more.

    An answer without a header fits any.
    """
    if not gold.has_header or not predicted.has_header:
        return True
    surplus = len(predicted.columns) - len(gold.columns)
    return surplus == 0 or (surplus > 0 and policy.extra_columns == "allow")


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
