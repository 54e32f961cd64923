"""Appends reviewed predictions to the review file of their suites, as more right answers of their cases.

The query is taken from report.json, so read it there first. Either all predictions are accepted or none.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pytest_queryeval.cli.output import Result, wrap_write_errors
from pytest_queryeval.core.case_report import CaseReport, PredictedReport
from pytest_queryeval.core.errors import QueryEvalError, ReportError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.mappings import grouped
from pytest_queryeval.core.model import Case, ReviewDecision
from pytest_queryeval.documents.document import file_at, parse_json
from pytest_queryeval.documents.values import json_mapping
from pytest_queryeval.features.review.decisions import (
    CaseKey,
    GoldDecision,
    answer_item,
    check_reviewer,
    decision_line,
    git_user,
    gold_digest,
    open_for_append,
    read_answers,
)
from pytest_queryeval.features.review.named_case import case_of, find_reported, read_suite_below
from pytest_queryeval.features.review.reviews_key import NoReviewFileError, Reviews, reviews_of
from pytest_queryeval.results.case_json import case_json, is_whole
from pytest_queryeval.results.report_file import read_report
from pytest_queryeval.suites import Suite
from pytest_queryeval.text.formatting import one_line

EXAMPLE = "queryeval accept report.json shop.queryeval.yaml::cheapest --reviewer anna"
OK, REFUSED = 0, 1
SHOWN_CHARACTERS = 1_000
BY_HAND = "write the answer into the review file by hand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """A prediction to append as a right answer of its case."""

    reported: CaseReport
    case: Case
    name: CaseKey
    reviews: Reviews
    """The review files of the suite."""
    file: Path
    """The review file."""
    answer: dict[str, JsonValue]
    """The answer as an item of `answers`."""

    @property
    def decision(self) -> ReviewDecision:
        """The decision to append with the answer: the current one if `wrong` or `ambiguous`, else `right`."""
        review = self.case.review
        return review.decision if review is not None and review.decision in ("wrong", "ambiguous") else "right"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments REPORT.json, CASE and `--reviewer`."""
    parser.add_argument("report", type=Path, metavar="REPORT.json", help="a report.json")
    parser.add_argument("cases", nargs="+", metavar="CASE", help="a node id, or an id that one case of the report has")
    parser.add_argument("--reviewer", metavar="NAME", help="who reviewed the predictions; default: git's user.name")


def run(arguments: argparse.Namespace) -> Result:
    """Append the predictions of the named cases to the review files of their suites as right answers.

    The exit status is 1 if a prediction is refused; then nothing is appended. Raise `ReportError` for a report that
    cannot be used, for an unknown case, for a suite without `reviews`, and without the name of a reviewer.
    """
    reviewer = check_reviewer(arguments.reviewer or git_user(), lambda problem: ReportError(f"--reviewer: {problem}"))
    report = read_report(arguments.report)
    matches = (find_reported(report, name) for name in arguments.cases)
    reported_cases = {case["nodeid"]: case for case in matches}.values()
    suites = cache(read_suite_below)
    accepted: list[Acceptance] = []
    problems: list[str] = []
    for case in reported_cases:
        try:
            accepted.append(_acceptance(case, suites, reviewer))
        except NoReviewFileError:
            raise
        except QueryEvalError as error:
            problems.append(one_line(f"{case['nodeid']}: {error}", SHOWN_CHARACTERS))
    if problems:
        return Result(
            status=REFUSED,
            lines=[*problems, "nothing was appended"],
            data={"accepted": [], "problems": problems},
        )
    for file, acceptances in grouped((acceptance.file, acceptance) for acceptance in accepted).items():
        with wrap_write_errors(file), open_for_append(file) as append:
            # Copies read their files again, which another process may have written meanwhile.
            reviews_now = {acceptance.reviews: replace(acceptance.reviews) for acceptance in acceptances}
            append(
                [_line_to_append(acceptance, reviews_now[acceptance.reviews], reviewer) for acceptance in acceptances]
            )
    return Result(
        status=OK,
        lines=[
            f"{file_at(acceptance.file).shown}: the prediction of '{acceptance.case.id}' is a right answer ({reviewer})"
            f"{', but had passed without this one' if acceptance.reported['outcome'] == 'passed' else ''}"
            for acceptance in accepted
        ],
        data={
            "accepted": [
                {
                    "id": acceptance.case.id,
                    "path": file_at(acceptance.file).shown.as_posix(),
                    "decision": acceptance.decision,
                    "reviewer": reviewer,
                }
                for acceptance in accepted
            ],
            "problems": [],
        },
    )


def _acceptance(reported: CaseReport, suites: Callable[[Path], Suite], reviewer: str) -> Acceptance:
    """Return the answer of a reported case with its review file, after checking that it can be accepted.

    Raise `QueryEvalError` if the prediction is missing, failed or not whole; if the case has changed, has no gold or
    several trials; and if the query is a gold already or was accepted before.
    """
    predicted = reported["predicted"]
    if predicted is None:
        raise ReportError(f"the report has no prediction ({reported['outcome']})")
    suite = suites(Path(reported["nodeid"].partition("::")[0]))
    case, name = case_of(suite, reported["id"]), CaseKey(suite.path, reported["id"])
    reviews = reviews_of(suite)
    if len(reported["trials"]) > 1:
        raise ReportError(f"the report has {len(reported['trials'])} trials, maybe with other queries: {BY_HAND}")
    if not case.answerable:
        prediction = reported["prediction"]
        if prediction is not None and prediction.get("abstained"):
            raise ReportError("the prediction is an abstention, which is right already")
        raise ReportError(
            "the case says that no answer is right: remove `answerable: false`, and write the query under `gold`"
        )
    if case.lacks_gold:
        raise ReportError("the case has no gold, only `expect`: write the query under `gold`")
    query = _whole_query(predicted, case)
    _check_unchanged(case, reported)
    if any(gold.query is not None and gold.query.split() == query.split() for gold in case.without_review.golds):
        raise ReportError("the query is a gold of the case already")
    file, answer = reviews.file_of(reviewer), answer_item(query, case)
    (right_answer,) = read_answers(parse_json(json.dumps([answer]), file_at(file), line=0))
    gold = right_answer.as_gold(case)  # or the suite could not be read any more
    last = _last_decision(case, name, reviews, reviewer)
    if last is not None and gold in [accepted.as_gold(case) for accepted in last.answers]:
        raise ReportError(f"{reviewer} has accepted the query already")
    return Acceptance(reported=reported, case=case, name=name, reviews=reviews, file=file, answer=answer)


def _whole_query(predicted: PredictedReport, case: Case) -> str:
    """Return the predicted query.

    Raise `ReportError` if the prediction failed, if the report does not have the whole query, or if golds run
    elsewhere.
    """
    if predicted["error"] is not None:
        raise ReportError(f"the prediction failed ({predicted['error']['kind']}): {predicted['error']['message']}")
    query = predicted["query"]
    if query is None:
        raise ReportError(f"the prediction is a table, of which the report has a sample: {BY_HAND}")
    if not is_whole(query):
        raise ReportError(f"the report does not have the query as it was, but without secrets or its end: {BY_HAND}")
    if case.settings.gold_source is not None:
        raise ReportError(
            f"golds run on another source, '{case.settings.gold_source.name}': {BY_HAND}, for that source"
        )
    return query


def _last_decision(case: Case, name: CaseKey, reviews: Reviews, reviewer: str) -> GoldDecision | None:
    """Return a reviewer's last decision on the current golds of a case.

    None if there is none, or if it is `unsure`.
    """
    digest = gold_digest(case.without_review)
    for decision in reversed(reviews.of_case(name, digest)):
        if decision.reviewer == reviewer and decision.digest in (None, digest):
            return None if decision.decision == "unsure" else decision
    return None


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


def _line_to_append(acceptance: Acceptance, reviews: Reviews, reviewer: str) -> dict[str, JsonValue]:
    """Return the line to append.

    The line repeats the answers of the reviewer's last decision, because only the last decision counts.
    """
    last = _last_decision(acceptance.case, acceptance.name, reviews, reviewer)
    earlier = {} if last is None else json_mapping(last.line)
    answers = earlier.get("answers", [])
    assert isinstance(answers, list)  # or it would not have been read
    return decision_line(
        acceptance.name,
        acceptance.file,
        digest=gold_digest(acceptance.case.without_review),
        decision=acceptance.decision,
        answers=answers if acceptance.answer in answers else [*answers, acceptance.answer],
        compare=earlier.get("compare"),
        reviewer=reviewer,
    )
