"""The formats of `queryeval export`: the predictions of a report as a published tool reads them.

Spider reads a query a line, BIRD a query by position, TEXT2SPARQL a query by `qname`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.predictors.file.predictions import BIRD_MARKER

# A blank line would shift all that follow: Spider's tool leaves it out. This one is a query that fails.
NO_QUERY = "SELECT"
# A quoted text or name, or a comment, which must not swallow the lines behind it.
_TOKEN = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|\[[^]]*\]|(?P<comment>--[^\n]*|/\*.*?\*/)""", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A case of a report."""

    id: str
    question: str
    kind: str
    source: str
    query: str | None
    """The predicted query; None if there is none."""


@dataclass(frozen=True, slots=True)
class PredictionFile:
    """A file of predictions."""

    content: bytes
    fillers: Sequence[str] = ()
    """The ids without a case in the report, for which the file has a placeholder."""


class Exporter(Protocol):
    """Writes predictions as a published tool reads them; raises `ReportError` for cases that the tool cannot read."""

    def __call__(self, cases: Sequence[Exported]) -> PredictionFile:
        """Return the file."""


def check_kind(cases: Sequence[Exported], kind: str) -> None:
    """Raise `ReportError` for cases of another kind than the one of the format."""
    if unfit_cases := [case for case in cases if case.kind != kind]:
        first = f"the first is '{unfit_cases[0].id}' of the kind '{unfit_cases[0].kind}'"
        remedy = f"run suites of {kind} alone, and export that report"
        raise ReportError(
            f"{len(unfit_cases):,} of {len(cases):,} cases are of other kinds than {kind} ({first}): {remedy}"
        )


def spider_file(cases: Sequence[Exported]) -> PredictionFile:
    """Return a line for each question, which the tool reads up to its first tab."""
    check_kind(cases, "sql")
    lines = []
    fillers = []
    for position, case in enumerate(_by_position(cases)):
        if case is None:
            fillers.append(str(position))
        query = (case.query if case else None) or ""
        if "\n" in query:
            query = _TOKEN.sub(lambda match: " " if match["comment"] else match[0], query)
        lines.append(re.sub(r"[\t\r\n]+", " ", query).strip() or NO_QUERY)
    return PredictionFile("".join(f"{line}\n" for line in lines).encode(errors="backslashreplace"), fillers)


def bird_file(cases: Sequence[Exported]) -> PredictionFile:
    """Return the queries by position, each followed by the name of its database; a missing query is a blank.

    Positions are those of the cases, whatever their ids: BIRD's `question_id`s may have gaps.
    """
    check_kind(cases, "sql")
    lines = {}
    for position, case in enumerate(cases):
        query = case.query or " "
        database = PurePosixPath(case.source).stem
        lines[str(position)] = f"{query.replace(BIRD_MARKER, ' ')}{BIRD_MARKER}{database}"
    return PredictionFile(json.dumps(lines, indent=4).encode())


def _by_position(cases: Sequence[Exported]) -> list[Exported | None]:
    """Return the cases in their order; where ids are positions from 0 on, None for each missing position."""
    positions = [int(case.id) if re.fullmatch(r"[0-9]{1,6}", case.id) else -1 for case in cases]
    if positions[:1] != [0] or positions != sorted(set(positions)):
        return list(cases)
    by_position = dict(zip(positions, cases, strict=True))
    return [by_position.get(position) for position in range(positions[-1] + 1)]


def text2sparql_file(cases: Sequence[Exported]) -> PredictionFile:
    """Return what the tool reads of each answer; questions without an answer are left out, as the tool expects it."""
    check_kind(cases, "sparql")
    answers = [
        {"qname": case.id, "question": case.question, "query": case.query} for case in cases if case.query is not None
    ]
    return PredictionFile(f"{json.dumps(answers, indent=2)}\n".encode())


EXPORTERS: Registry[Exporter] = Registry(
    "format",
    group="pytest_queryeval.exporters",
    members={
        "spider": spider_file,
        "bird": bird_file,
        "text2sparql": text2sparql_file,
    },
)
