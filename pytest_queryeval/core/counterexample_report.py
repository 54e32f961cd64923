"""A counterexample to a prediction as `queryeval explain --json` has it."""

from __future__ import annotations

from typing import TypedDict

from pytest_queryeval.core.report import QueryReport, Row


class TableReport(TypedDict):
    """A table of a database with all its rows."""

    name: str
    columns: list[str]
    rows: list[Row]


class CounterexampleReport(TypedDict):
    """A small database in which two queries differ that agree on the source, and the script that makes it.

    `note` says so, or why there is none: then the other values are empty.
    """

    note: str
    tables: list[TableReport]
    gold: QueryReport | None
    predicted: QueryReport | None
    script: str
