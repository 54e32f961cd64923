"""What the formats for spreadsheets share: a case's values as cells, and texts of which every character shows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, TypeAlias

from pytest_queryeval.aggregation import CaseJson

Cell: TypeAlias = str | int | float | None
# As they stand in the metadata of a prediction.
TIMES = ("sql_execution_time", "vector_store_search_time", "llm_time", "total_execution_time")
# As `plain.printable` has them, and the two that XML forbids besides. Secrets are out of a report before it is made; to
# look for them again would make other bytes of it where the environment is another one.
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)


def cell(value: Any) -> Cell:
    """A plain value as a cell: numbers and None as they are, all else as `visible` text, lists and objects as JSON."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    return visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def visible(text: str) -> str:
    r"""The text with escapes such as `\x1b` for what would act or hide: control and bidi characters, half surrogates.

    Tabs and line feeds stay.
    """
    if text.isprintable():
        return text
    return _UNSEEN.sub(_escaped, text.replace("\r\n", "\n"))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 2**8 else f"\\u{code:04x}" if code < 2**16 else f"\\U{code:08x}"


def metric_names(cases: Iterable[CaseJson]) -> list[str]:
    """The metrics that any case was asked for, in the order in which they first occur."""
    return list(dict.fromkeys(name for case in cases for name in case["scores"]))


def part(case: CaseJson, *path: str) -> Any:
    """What stands at a path of names, as `"gold", "query"`; None where a part of the path is missing."""
    found: Any = case
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found
