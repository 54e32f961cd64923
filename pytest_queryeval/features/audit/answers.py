"""The answers of one or two systems that an audit can judge: what the verdict says of each, and its stratum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.model import Outcome
from pytest_queryeval.core.report import Report
from pytest_queryeval.results.answer_verdict import answer_passes
from pytest_queryeval.results.audit_file import DrawnPrediction, prediction_digest, prediction_of
from pytest_queryeval.results.baseline.difference import MET

IN_DOUBT = "passed in doubt"
STRATA = {True: "passed", False: "missed"}
JOINT_STRATA = {
    (True, True): "both passed",
    (True, False): "first passed",
    (False, True): "second passed",
    (False, False): "both missed",
}
WITHOUT_VERDICT: Mapping[Outcome, str] = {"error": "in error", "skipped": "skipped", "not_run": "not run"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a system answered to a case, in the first of several trials."""

    passed: bool
    """The verdict."""
    is_right: bool | None
    """What needs no judgement: a failed prediction is wrong, an abstention is what the verdict says. Else None."""
    prediction: DrawnPrediction
    digest: str
    """The name of the prediction in audit files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredCase:
    """A case with the answer of each audited system."""

    id: str
    nodeid: str
    answers: tuple[Answer, ...]
    stratum: str

    @property
    def predictions(self) -> dict[str, DrawnPrediction]:
        """The different predictions to be judged, by digest, which does not tell whose they are."""
        return {
            answer.digest: answer.prediction
            for answer in sorted(self.answers, key=lambda answer: answer.digest)
            if answer.is_right is None
        }


def answered_cases(reports: Sequence[Report]) -> tuple[dict[str, AnsweredCase], Counter[str]]:
    """Return by node id the cases with a verdict in all reports, and how many others there are for which reason."""
    left_out: Counter[str] = Counter()
    by_system: list[dict[str, tuple[CaseReport, Answer]]] = []
    nodeids: dict[str, None] = {}
    for report in reports:
        answers: dict[str, tuple[CaseReport, Answer]] = {}
        for case in report["cases"]:
            nodeids[case["nodeid"]] = None
            passed = _verdict(case)
            if passed is None:
                left_out[WITHOUT_VERDICT.get(case["outcome"], "without a verdict")] += 1
            else:
                answers[case["nodeid"]] = case, _answer(case, passed=passed)
        by_system.append(answers)
    cases: dict[str, AnsweredCase] = {}
    for nodeid in nodeids:
        pairs = [answers[nodeid] for answers in by_system if nodeid in answers]
        if len(pairs) == len(reports):
            of_case = tuple(answer for _, answer in pairs)
            case = pairs[0][0]
            cases[nodeid] = AnsweredCase(id=case["id"], nodeid=nodeid, answers=of_case, stratum=_stratum(case, of_case))
        elif pairs:
            left_out["not answered by both systems"] += 1
    return cases, left_out


def _verdict(case: CaseReport) -> bool | None:
    """Return whether the first trial of a case passes; None for a case that was not scored."""
    return answer_passes(case, case["trials"][0] if case["trials"] else case) if case["outcome"] in MET else None


def _answer(case: CaseReport, *, passed: bool) -> Answer:
    trial = case["trials"][0] if case["trials"] else case
    call, predicted, prediction = trial["prediction"], trial["predicted"], prediction_of(case)
    is_right = None
    if call is not None and call.get("abstained"):
        is_right = passed
    elif predicted is None or predicted["error"] is not None or not prediction:
        is_right = False
    return Answer(passed=passed, is_right=is_right, prediction=prediction, digest=prediction_digest(prediction))


def _stratum(case: CaseReport, answers: tuple[Answer, ...]) -> str:
    if len(answers) == 2:
        first, second = answers
        return JOINT_STRATA[first.passed, second.passed]
    is_in_doubt = case["depends_on_tie"] or ("challenge" in case and case["challenge"]["verdict"] == "refuted")
    return IN_DOUBT if answers[0].passed and is_in_doubt else STRATA[answers[0].passed]
