"""The columns of gold that a case compares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pytest_queryeval.core.errors import GoldColumnError, did_you_mean
from pytest_queryeval.core.table import Row, Table


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
