"""Writes the predictions of a report as a published tool reads them, or sends a whole report to another service.

Spider reads a query a line, BIRD a query by position, TEXT2SPARQL a query by `qname`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Protocol

from pytest_queryeval.cli.output import Result, first_lines
from pytest_queryeval.core.errors import QueryEvalError, ReportError
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.core.report import Report
from pytest_queryeval.features.transfer import EXPORT_TARGETS
from pytest_queryeval.predictors.file.predictions import BIRD_MARKER
from pytest_queryeval.reports import write_whole
from pytest_queryeval.results.gates import are_left_out
from pytest_queryeval.results.report_file import read_report
from pytest_queryeval.text.formatting import one_line, pluralize
from pytest_queryeval.text.redaction import mask_credentials, register_secrets

# A blank line would shift all that follow: Spider's tool leaves it out. This one is a query that fails.
NO_QUERY = "SELECT"
# A quoted text or name, or a comment, which must not swallow the lines behind it.
_TOKEN = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|\[[^]]*\]|(?P<comment>--[^\n]*|/\*.*?\*/)""", re.DOTALL)
EXAMPLE = "queryeval export report.json -f spider -o predictions.txt"
OK, FINDINGS = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A case of a report, with its predicted query."""

    id: str
    question: str
    kind: str
    source: str
    query: str | None
    """The predicted query; None if there is none."""


@dataclass(frozen=True, slots=True)
class PredictionFile:
    """The content of a file of predictions for a published tool."""

    content: bytes
    fillers: Sequence[str] = ()
    """The ids without a case in the report, for which the file has a placeholder."""


class Exporter(Protocol):
    """Makes a file of predictions for a published tool; raises `ReportError` for cases that the tool cannot read."""

    def __call__(self, cases: Sequence[Exported]) -> PredictionFile:
        """Return the file with the predictions of all cases."""


def check_kind(cases: Sequence[Exported], kind: str) -> None:
    """Raise `ReportError` if a case is of another kind than `kind`."""
    if unfit_cases := [case for case in cases if case.kind != kind]:
        first = f"the first is '{unfit_cases[0].id}' of the kind '{unfit_cases[0].kind}'"
        remedy = f"run suites of {kind} alone, and export that report"
        raise ReportError(
            f"{len(unfit_cases):,} of {len(cases):,} cases are of other kinds than {kind} ({first}): {remedy}"
        )


def spider_file(cases: Sequence[Exported]) -> PredictionFile:
    """Return a file with one line for each case: its query without line breaks, tabs and comments.

    A case without a query has a query that fails. Raise `ReportError` for cases that are not SQL.
    """
    check_kind(cases, "sql")
    placed_cases, fillers = _by_position(cases)
    lines = []
    for case in placed_cases:
        query = case.query or ""
        if "\n" in query:
            query = _TOKEN.sub(lambda match: " " if match["comment"] else match[0], query)
        lines.append(re.sub(r"[\t\r\n]+", " ", query).strip() or NO_QUERY)
    return PredictionFile("".join(f"{line}\n" for line in lines).encode(errors="backslashreplace"), fillers)


def bird_file(cases: Sequence[Exported]) -> PredictionFile:
    """Return JSON with the queries by position, each followed by the name of its database; a missing query is a space.

    Raise `ReportError` for cases that are not SQL.
    """
    check_kind(cases, "sql")
    placed_cases, fillers = _by_position(cases)
    lines = {}
    for position, case in enumerate(placed_cases):
        query = case.query or " "
        database = PurePosixPath(case.source).stem
        lines[str(position)] = f"{query.replace(BIRD_MARKER, ' ')}{BIRD_MARKER}{database}"
    return PredictionFile(json.dumps(lines, indent=4).encode(), fillers)


def _by_position(cases: Sequence[Exported]) -> tuple[list[Exported], list[str]]:
    """Return the cases in the order of positions, and the ids of missing positions.

    If ids are positions that ascend from 0, a missing position gets a case without a query. Other ids, such as those of
    BIRD's mini-dev, are no positions; then the cases are returned as they are.
    """
    positions = [int(case.id) if re.fullmatch(r"[0-9]{1,6}", case.id) else -1 for case in cases]
    if positions[:1] != [0] or positions != sorted(set(positions)):
        return list(cases), []
    placed_cases: list[Exported] = []
    missing_ids: list[str] = []
    for position, case in zip(positions, cases, strict=True):
        while len(placed_cases) < position:
            missing_ids.append(str(len(placed_cases)))
            placed_cases.append(replace(placed_cases[-1], id=missing_ids[-1], query=None))
        placed_cases.append(case)
    return placed_cases, missing_ids


def text2sparql_file(cases: Sequence[Exported]) -> PredictionFile:
    """Return JSON with id, question and query of each case; cases without a query are left out, as the tool expects.

    Raise `ReportError` for cases that are not SPARQL.
    """
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments REPORT.json, `--format` or `--to`, `--output` and `--force`."""
    parser.add_argument("report", type=Path, metavar="REPORT.json", help="a report.json; with -f of a whole data set")
    names = EXPORTERS.names()
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("-f", "--format", choices=names, metavar="FORMAT", help=f"the format: {', '.join(names)}")
    target.add_argument("--to", metavar="TARGET", help=f"the service that gets the report: {_target_forms()}")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the file (FORMAT.json or .txt here)")
    parser.add_argument("--force", action="store_true", help="replace the file if it is there")


def _target_forms() -> str:
    return " or ".join(f"{name}:ADDRESS" for name in EXPORT_TARGETS)


def run(arguments: argparse.Namespace) -> Result:
    """Send the report to a service, or write its predictions to a file.

    The exit status is 1 if the service refuses a part, or if cases have no prediction; else 0. Raise `ReportError` if
    the report cannot be read, if predictions are to be written and the report lacks cases, or if the file exists and
    `--force` is not set. Raise `QueryEvalError` for a service that cannot be used.
    """
    report = read_report(arguments.report)
    if arguments.to is not None:
        if arguments.output is not None or arguments.force:
            raise QueryEvalError("--to sends the report and writes no file: leave out --output and --force")
        scheme, _, address = arguments.to.partition(":")
        register_secrets(address)
        if scheme not in EXPORT_TARGETS or not address:
            shown_target = one_line(f"{scheme}:{mask_credentials(address)}")
            raise QueryEvalError(f"--to: expected {_target_forms()}, found '{shown_target}'")
        return EXPORT_TARGETS[scheme](report, address)
    return _write_predictions(report, arguments)


def _write_predictions(report: Report, arguments: argparse.Namespace) -> Result:
    # Published tools find the gold by position.
    collected = report["collected"]  # empty if pytest did not collect the run
    is_cut = report["selected"] or report["stopped"] or report["totals"]["not_run"]
    if is_cut or (collected and are_left_out(report["cases"], collected)):
        problem = "is of a part of its cases, whose positions are not known: run all of them"
        raise ReportError(f"{arguments.report}: {problem}")
    if not report["cases"]:
        raise ReportError(f"{arguments.report}: has no case")
    cases = [
        Exported(
            id=case["id"],
            question=case["question"],
            kind=case["kind"] or "",
            source=case["source"] or "",
            query=None if case["predicted"] is None else case["predicted"]["query"],
        )
        for case in report["cases"]
    ]
    try:
        file = EXPORTERS[arguments.format](cases)
    except ReportError as error:
        raise ReportError(f"{arguments.report}: {error}") from error
    target = arguments.output or Path(
        f"{arguments.format}.{'json' if file.content.startswith((b'{', b'[')) else 'txt'}"
    )
    if os.path.lexists(target) and not arguments.force:
        raise ReportError(f"{target}: already exists: write elsewhere, or replace it with --force")
    write_whole(target, file.content)
    missing_ids = [*(case.id for case in cases if case.query is None), *file.fillers]
    lines = [
        f"{arguments.format}: {target}",
        f"{pluralize(len(cases), 'case')}, {len(missing_ids):,} without a prediction",
    ]
    lines += first_lines([f"no prediction: {name}" for name in missing_ids])
    data = {"file": str(target), "cases": len(cases), "missing": missing_ids}
    return Result(status=FINDINGS if missing_ids else OK, lines=lines, data=data)
