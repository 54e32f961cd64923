"""Where two answers differ, for reports."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_queryeval.core.table import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """At most `limit` rows of each kind of difference, predicted's cells in the order of gold's columns.

    `columns` are the names of gold's columns, or of the columns in which answers that are no tables are shown;
    `predicted_columns` are the names that predicted's have in their places.
    `changed` pairs a gold row with the predicted row that shares most of its cells, at least half of them.
    `repeated` rows are on both sides, each with its number in gold and in predicted.
    `counts` are the numbers of all gold rows that predicted lacks, and of all predicted rows that gold lacks. `summary`
    says it all in a few words, for the first line of a failure; empty where nothing differs.
    """

    columns: tuple[str, ...] = ()
    predicted_columns: tuple[str, ...] = ()
    missing: tuple[Row, ...] = ()
    extra: tuple[Row, ...] = ()
    changed: tuple[tuple[Row, Row], ...] = ()
    repeated: tuple[tuple[Row, int, int], ...] = ()
    counts: tuple[int, int] = (0, 0)
    summary: str = ""
