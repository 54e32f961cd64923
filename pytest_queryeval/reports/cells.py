"""What the formats for spreadsheets share: a case's values as cells, and texts of which every character shows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeAlias

from pytest_queryeval.core.report import CaseReport
from pytest_queryeval.text.escaping import escape_invisible

Cell: TypeAlias = str | int | float | None
# As they stand in the metadata of a prediction.
TIMES = ("sql_execution_time", "vector_store_search_time", "llm_time", "total_execution_time")


def cell(value: Any) -> Cell:
    """Return a plain value as a cell: numbers and None as they are, other values as `escape_invisible` text or JSON."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    return escape_invisible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def metric_names(cases: Iterable[CaseReport]) -> list[str]:
    """Return the metrics that any case requests, in the order of their first case."""
    return list(dict.fromkeys(name for case in cases for name in case["scores"]))


def part(case: CaseReport, *path: str) -> Any:
    """Return the value at a path of names such as `"gold", "query"`; None where a part of the path is missing."""
    found: Any = case
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found
