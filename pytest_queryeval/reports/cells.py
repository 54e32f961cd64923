"""What the formats for spreadsheets share: a case's values as cells, and texts in which every character is visible."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.text.escaping import escape_invisible

Cell: TypeAlias = str | int | float | None
# As named in the metadata of a prediction.
TIMES = ("sql_execution_time", "vector_store_search_time", "llm_time", "total_execution_time")
# A spreadsheet may run a text that begins with one of these as a formula, those in full width too. The apostrophe,
# which is put before such a text, is one of them: so a reader can take one apostrophe away without a doubt.
ACTING = frozenset("=+-@'＝＋－＠")  # noqa: RUF001 - in full width
LEADING = frozenset("\t\n")


def cell(value: Any) -> Cell:
    """Return a plain value as a cell: numbers and None as they are, other values as `escape_invisible` text or JSON."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    return escape_invisible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def guard_cell(value: Any) -> Any:
    """Return the value as a cell; a text that a spreadsheet could take for a formula gets an apostrophe before it."""
    if value is None or type(value) is float:  # as most are
        return value
    plain_cell = escape_invisible(value) if type(value) is str else cell(value)
    if not isinstance(plain_cell, str):
        return plain_cell
    acts = plain_cell[:1] in LEADING or plain_cell.lstrip()[:1] in ACTING
    return f"'{plain_cell}" if acts else plain_cell


def metric_names(cases: Iterable[CaseReport]) -> list[str]:
    """Return the metrics that any case requests, in the order of their first case."""
    return list(dict.fromkeys(name for case in cases for name in case["scores"]))


def part(case: CaseReport, *path: str) -> Any:
    """Return the value at a path of names such as `"gold", "query"`; None if a part of the path is missing."""
    node: Any = case
    for name in path:
        node = node.get(name) if isinstance(node, dict) else None
    return node


# Whether no answer is right, whether the system abstained, and why; a file of predictions may have the last two.
ABSTENTION: Mapping[str, Callable[[CaseReport], str | None]] = {
    "answerable": lambda case: None if case.get("answerable", True) else "false",
    "abstained": lambda case: "true" if part(case, "prediction", "abstained") else None,
    "reason": lambda case: part(case, "prediction", "reason") or None,
}


def abstention_columns(cases: Iterable[CaseReport]) -> dict[str, Callable[[CaseReport], str | None]]:
    """Return the columns of ABSTENTION in which some case has a value."""
    used_names = {name for case in cases for name, read in ABSTENTION.items() if read(case) is not None}
    return {name: read for name, read in ABSTENTION.items() if name in used_names}
