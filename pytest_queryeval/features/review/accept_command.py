"""Adds reviewed predictions to the golds of their cases, in place: `gold` becomes `gold_any`, all else stays as it is.

The query is taken from report.json, so read it there first. Either all cases are changed or none.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pytest_queryeval.cli.output import Result, write_in_place
from pytest_queryeval.core.cache_folder import locked, private_folder
from pytest_queryeval.core.errors import CaseError, QueryEvalError, ReportError, SuiteError
from pytest_queryeval.core.json_value import JsonAnswer, JsonValue
from pytest_queryeval.core.model import Case, QueryOrAnswer
from pytest_queryeval.core.report import CaseReport
from pytest_queryeval.features.review.named_case import case_of, find_reported, read_suite
from pytest_queryeval.features.review.new_gold import BY_HAND, with_gold
from pytest_queryeval.languages import KINDS
from pytest_queryeval.languages.answer_text import answer_text
from pytest_queryeval.results.case_fingerprint import case_fingerprint
from pytest_queryeval.results.case_json import QUERY_CHARACTERS, case_json
from pytest_queryeval.results.report_file import read_report
from pytest_queryeval.sandbox.host import Hosts
from pytest_queryeval.suites.case_tables import TO_YAML
from pytest_queryeval.suites.suites import Suite
from pytest_queryeval.text.redaction import MARK
from pytest_queryeval.text.truncation import one_line

EXAMPLE = "queryeval accept report.json shop.queryeval.yaml::cheapest"
OK, REFUSED = 0, 1
SHOWN_CHARACTERS = 1_000
LOCK = "accept.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """A gold to add to a case."""

    case: Case
    suite: Suite
    """The suite of the case."""
    gold: JsonValue
    """The gold as an item of `gold_any`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the report and the cases."""
    parser.add_argument("report", type=Path, metavar="REPORT.json", help="a report.json")
    parser.add_argument("cases", nargs="+", metavar="CASE", help="a node id, or an id that one case of the report has")


def run(arguments: argparse.Namespace) -> Result:
    """Change the suites, and name the cases; 1 where a case is refused, and then no file is changed.

    Raise `ReportError` for a report that cannot be used and for a case that it does not have.
    """
    report = read_report(arguments.report)
    matches = (find_reported(report, name) for name in arguments.cases)
    reported = [*{case["nodeid"]: case for case in matches}.values()]
    try:
        # Of two commands at the same time, one would overwrite the change of the other.
        with locked(private_folder() / LOCK):
            accepted, problems = _accept(reported)
    except OSError as error:
        raise ReportError(f"no lock can be had: {error}") from error
    if problems:
        return Result(
            status=REFUSED,
            lines=[*problems, "nothing was changed"],
            data={"accepted": [], "problems": problems},
        )
    return Result(
        status=OK,
        lines=[
            f"{case.location}: '{case.id}' has {len(case.golds)} golds now"
            f"{', but had passed without this one' if before['outcome'] == 'passed' else ''}"
            for case, before in zip(accepted, reported, strict=True)
        ],
        data={
            "accepted": [
                {
                    "id": case.id,
                    "path": case.location.path.as_posix(),
                    "line": case.location.line,
                    "golds": len(case.golds),
                }
                for case in accepted
            ],
            "problems": [],
        },
    )


def _accept(reported: Sequence[CaseReport]) -> tuple[list[Case], list[str]]:
    """Change all cases, or none if there are problems; return the changed cases, or the problems."""
    suites = cache(read_suite)
    accepted: list[Acceptance] = []
    problems: list[str] = []
    for case in reported:
        try:
            accepted.append(_acceptance(case, suites))
        except QueryEvalError as error:
            problems.append(one_line(f"{case['nodeid']}: {error}", SHOWN_CHARACTERS))
    if problems:
        return [], problems
    try:
        return _change(accepted), []
    except QueryEvalError as error:
        return [], [one_line(str(error), SHOWN_CHARACTERS)]


def _acceptance(reported: CaseReport, suites: Callable[[Path], Suite]) -> Acceptance:
    """Return what to add to which case; raise `QueryEvalError` where that is impossible."""
    predicted = reported["predicted"]
    if predicted is None:
        raise ReportError(f"the report has no prediction ({reported['outcome']})")
    suite = suites(Path(reported["path"]))
    case = case_of(suite, reported["id"])
    if case.row is not None:
        raise CaseError(case.row, f"a row has one gold: correct it, or {TO_YAML}, and write the query under `gold_any`")
    if len(reported["trials"]) > 1:
        raise ReportError(f"the report has {len(reported['trials'])} trials, maybe with other queries: {BY_HAND}")
    if predicted["error"] is not None:
        raise ReportError(f"the prediction failed ({predicted['error']['kind']}): {predicted['error']['message']}")
    query = predicted["query"]
    if query is None:
        raise ReportError(f"the prediction is a table, of which the report has a sample: {BY_HAND}")
    if MARK in query or len(query) >= QUERY_CHARACTERS:
        raise ReportError(f"the report does not have the query as it was, but without secrets or its end: {BY_HAND}")
    _check_unchanged(case, reported)
    if any(gold.query is not None and gold.query.split() == query.split() for gold in case.golds):
        raise ReportError("the query is a gold of the case already")
    return Acceptance(case=case, suite=suite, gold=_gold(query, case))


def _check_unchanged(case: Case, reported: CaseReport) -> None:
    now = case_json(case, nodeid=reported["nodeid"], path=reported["path"], outcome=reported["outcome"])
    old, new = reported["fingerprint"], now["fingerprint"]
    pairs = {
        "kind": (reported["kind"], now["kind"]),
        "question": (reported["question"], now["question"]),
        "evidence": (reported["evidence"], now["evidence"]),
        "source": (reported["source"], now["source"]),
    }
    changed_parts = [name for name, (before, after) in pairs.items() if before != after]
    if old is None or new is None or old["golds"] != new["golds"]:
        changed_parts.append("gold")
    elif old["context"] != new["context"]:
        changed_parts.append("metadata or conversation")
    if changed_parts:
        raise ReportError(f"the case has changed since the report ({', '.join(changed_parts)}): run it again")


def _gold(query: str, case: Case) -> JsonValue:
    """Return a prediction as an item of `gold_any`: a query, a JSON value, or the text of a selection."""
    if KINDS[case.settings.kind].has_queries:
        return f"{query.strip()}\n" if "\n" in query.strip() else query.strip()
    predicted = QueryOrAnswer(query=query)
    unchecked = replace(case, extra={})
    execution = KINDS[case.settings.kind].read_without_running(predicted, unchecked, Hosts())
    if execution is None or not isinstance(execution.answer, JsonAnswer):
        return answer_text(query)[0].strip()
    value: JsonValue = execution.answer.value
    # A suite reads a text as JSON, and null as no value.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | None) else value


def _change(accepted: Sequence[Acceptance]) -> list[Case]:
    """Write all golds, and return the cases with them.

    Restore every file and raise `QueryEvalError` where a suite is not as expected afterwards.
    """
    before: dict[Path, bytes] = {}
    texts: dict[Path, str] = {}
    # From the end of each file, so that lines before a change keep their numbers.
    for acceptance in sorted(accepted, key=lambda acceptance: acceptance.case.location, reverse=True):
        path = acceptance.case.location.path
        try:
            if path not in before:
                before[path] = path.read_bytes()
                texts[path] = before[path].decode()
        except (OSError, ValueError) as error:
            raise ReportError(f"{path}: cannot be read: {error}") from error
        texts[path] = with_gold(texts[path], acceptance.case.location, acceptance.case.id, acceptance.gold)
    try:
        for path, text in texts.items():
            write_in_place(path, text.encode())
        new_suites = {
            suite.path: _written(suite, {acceptance.case.id for acceptance in accepted if acceptance.suite is suite})
            for suite in {acceptance.suite.path: acceptance.suite for acceptance in accepted}.values()
        }
    except BaseException:
        for path, content in before.items():
            write_in_place(path, content)
        raise
    return [case_of(new_suites[acceptance.suite.path], acceptance.case.id) for acceptance in accepted]


def _written(suite: Suite, changed_ids: Collection[str]) -> Suite:
    """Return a suite as it is now.

    Raise `QueryEvalError` unless it is the same but for one more gold of the cases with these ids.
    """
    try:
        now = read_suite(suite.path)
    except SuiteError as error:
        raise ReportError(f"with the prediction the suite cannot be read: {error}") from error
    for old, new in zip(suite.cases, now.cases, strict=True):
        case_before = replace(new, golds=new.golds[:-1]) if new.id in changed_ids else new
        if _content(old) != _content(case_before) or len(case_before.golds) != len(old.golds):
            raise CaseError(old.location, f"the gold of '{old.id}' cannot be changed where it stands: {BY_HAND}")
    return now


def _content(case: Case) -> tuple[object, ...]:
    """Return what defines a case, apart from its location."""
    texts = (case.id, case.settings.kind, case.question, case.evidence, case.skip, case.xfail)
    return *texts, case.tags, case.difficulty, case.settings.source, case_fingerprint(case, None)
