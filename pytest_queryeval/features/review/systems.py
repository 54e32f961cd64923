"""Reads from reports what systems answered, each report as one system, and compares it with judgements of an audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.core.model import Abstention, Case, QueryOrAnswer
from pytest_queryeval.results.audit_file import AnswerName, Audit, prediction_digest
from pytest_queryeval.results.case_json import is_whole
from pytest_queryeval.results.report_file import read_report
from pytest_queryeval.text.formatting import one_line

NAME_CHARACTERS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemAnswer:
    """What a system answered to a case, in the first of several trials."""

    prediction: QueryOrAnswer | Abstention | None
    """None if the report does not have the whole query."""
    is_right: bool = False
    """Whether the case was passed then."""
    is_wrong: bool = False
    """Whether the case was not passed then."""
    refuted_gold: str | None = None
    """The gold by which the answer was right, though a small database tells it from gold; None for other answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A report as a system, whose answers are known by the node ids of cases."""

    name: str
    answers: Mapping[str, SystemAnswer]
    changed: Sequence[str]
    """The node ids of cases that ask something else since the report."""


def read_systems(paths: Sequence[Path], cases: Mapping[str, Case]) -> list[System]:
    """Return the systems of reports on `cases`, which have their node ids, by the names of the runs.

    Raise `ReportError` for a report that cannot be read, that is given twice, or that has none of the cases.
    """
    if twice := next((path for path, number in Counter(paths).items() if number > 1), None):
        raise ReportError(f"{twice}: is given twice: give reports of different systems")
    reports = [read_report(path) for path in paths]
    names = Counter(report["name"] for report in reports)
    systems = []
    for path, report in zip(paths, reports, strict=True):
        name, answers, changed = report["name"], dict[str, SystemAnswer](), []
        for reported in report["cases"]:
            case = cases.get(reported["nodeid"])
            if case is None:
                continue
            if (reported["question"], reported["evidence"]) == (case.question, case.evidence):
                answers[reported["nodeid"]] = _system_answer(reported)
            else:
                changed.append(reported["nodeid"])
        if not answers and not changed:
            first = one_line(next(iter(cases), "there are none"), NAME_CHARACTERS)
            raise ReportError(
                f"{path}: has none of the cases, such as {first}: give a report on these suites, and start the command "
                "in the root folder of the run"
            )
        name = str(path) if not name or names[name] > 1 else name
        systems.append(System(name=one_line(name, NAME_CHARACTERS), answers=answers, changed=changed))
    return systems


def _system_answer(reported: CaseReport) -> SystemAnswer:
    trial = reported["trials"][0] if reported["trials"] else reported
    prediction, predicted = trial["prediction"], trial["predicted"]
    answer: QueryOrAnswer | Abstention | None = None
    if prediction is not None and prediction.get("abstained"):
        answer = Abstention(prediction.get("reason", ""))
    elif predicted is not None and predicted["query"] is not None and is_whole(predicted["query"]):
        answer = QueryOrAnswer(query=predicted["query"])
    challenge, gold = reported.get("challenge"), reported["gold"]
    is_refuted = challenge is not None and challenge["verdict"] == "refuted"
    return SystemAnswer(
        prediction=answer,
        is_right=reported["outcome"] in ("passed", "xpassed"),
        is_wrong=reported["outcome"] in ("failed", "missed", "xfailed"),
        refuted_gold=gold["query"] if is_refuted and gold is not None else None,
    )


def against_verdict(audit: Audit, nodeid: str, answers: Mapping[str, SystemAnswer]) -> list[str]:
    """Return a sentence on each answer to a case that passes although its reviewers call it wrong, or the reverse.

    `answers` have the names of systems. An answer on which reviewers contradict each other is left out.
    """
    sentences = []
    for system, answer in answers.items():
        if not isinstance(answer.prediction, QueryOrAnswer) or answer.prediction.query is None:
            continue
        digest = prediction_digest({"query": answer.prediction.query})
        judgements = audit.judgements.get(AnswerName(nodeid, digest), {})
        reviewers = one_line(", ".join(name for name, judgement in judgements.items() if judgement != "unclear"))
        clear_judgements = {*judgements.values()} - {"unclear"}
        if clear_judgements == {"right"} and answer.is_wrong:
            sentences.append(f"the answer of {system} misses, but is right ({reviewers})")
        elif clear_judgements == {"wrong"} and answer.is_right:
            sentences.append(f"the answer of {system} passes, but is wrong ({reviewers})")
    return sentences
