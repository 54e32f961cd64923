"""The answers of one or two systems that an audit can judge, and the random draw of some of them.

The verdicts on a case decide its stratum. Cases are drawn at random within a stratum, so that each case has a known
probability.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_queryeval.core.case_report import CaseReport, TrialReport, by_data
from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.core.mappings import grouped
from pytest_queryeval.core.model import Outcome
from pytest_queryeval.core.report import Report
from pytest_queryeval.results.audit_file import DrawnCase, DrawnPrediction, prediction_digest, prediction_of
from pytest_queryeval.results.baseline import MET_BY_OUTCOME
from pytest_queryeval.results.case_json import is_whole
from pytest_queryeval.results.verdict import answer_passes

IN_DOUBT = "passed in doubt"
STRATA = {True: "passed", False: "missed"}
JOINT_STRATA = {
    (True, True): "both passed",
    (True, False): "first passed",
    (False, True): "second passed",
    (False, False): "both missed",
}
SWAPPED_STRATA = {JOINT_STRATA[pair]: JOINT_STRATA[pair[::-1]] for pair in ((True, False), (False, True))}
"""For a stratum of two reports, its name if the reports are given in the other order."""
WITHOUT_VERDICT: Mapping[Outcome, str] = {"error": "in error", "skipped": "skipped", "not_run": "not run"}
NOT_WHOLE = "with a query that the report does not have whole"
MINIMUM = 5  # cases of a stratum
POWER = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A system's answer to a case; of several trials, the first trial."""

    passed: bool
    """The verdict."""
    is_in_doubt: bool
    """Whether it passes only by a choice among rows that tie, or although a small database refutes it."""
    is_right: bool | None
    """What is known without a judgement: a failed prediction is wrong, an abstention right if it passes; else None."""
    prediction: DrawnPrediction
    digest: str
    """The name of the prediction in audit files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredCase:
    """A case with the answers of all audited systems."""

    id: str
    nodeid: str
    answers: tuple[Answer, ...]

    @property
    def stratum(self) -> str:
        """The stratum from which the case is drawn."""
        if len(self.answers) == 2:
            first, second = self.answers
            return JOINT_STRATA[first.passed, second.passed]
        return IN_DOUBT if self.answers[0].is_in_doubt else STRATA[self.answers[0].passed]

    @property
    def predictions(self) -> dict[str, DrawnPrediction]:
        """The distinct predictions to be judged by digest, in an order that does not show whose they are."""
        return {
            answer.digest: answer.prediction
            for answer in sorted(self.answers, key=lambda answer: answer.digest)
            if answer.is_right is None
        }


def answered_cases(reports: Sequence[Report]) -> tuple[dict[str, AnsweredCase], Counter[str]]:
    """Return the cases that an audit can judge by node id, and the number of other cases by reason.

    A case can be judged if it has a gold, a verdict in all reports, and whole queries: a shortened query cannot be run.
    """
    ids: dict[str, str] = {}
    answers: defaultdict[str, list[Answer]] = defaultdict(list)
    reasons: dict[str, str] = {}
    for report in reports:
        for case in report["cases"]:
            ids[case["nodeid"]] = case["id"]
            first_trial = case["trials"][0] if case["trials"] else case
            passed = answer_passes(case, first_trial) if case["outcome"] in MET_BY_OUTCOME else None
            if passed is None:
                reasons[case["nodeid"]] = WITHOUT_VERDICT.get(case["outcome"], "without a verdict")
                continue
            if case["gold"] is None and "expect" in (case["fingerprint"] or ()):
                reasons[case["nodeid"]] = "without a gold"
                continue
            answer = _answer(case, first_trial, passed=passed)
            if answer.is_right is None and not is_whole(answer.prediction.get("query", "")):
                reasons[case["nodeid"]] = NOT_WHOLE
            else:
                answers[case["nodeid"]].append(answer)
    cases = {
        nodeid: AnsweredCase(id=id_, nodeid=nodeid, answers=tuple(answers[nodeid]))
        for nodeid, id_ in ids.items()
        if len(answers[nodeid]) == len(reports)
    }
    return cases, Counter(reasons.get(nodeid, "not in both reports") for nodeid in ids if nodeid not in cases)


def _answer(case: CaseReport, trial: CaseReport | TrialReport, *, passed: bool) -> Answer:
    call, predicted, prediction = trial["prediction"], trial["predicted"], prediction_of(case)
    is_right = None
    if call is not None and call.get("abstained"):
        is_right = passed
    elif predicted is None or predicted["error"] is not None or not prediction:
        is_right = False
    is_refuted = "challenge" in case and by_data(case["challenge"]).verdict == "refuted"
    return Answer(
        passed=passed,
        is_in_doubt=passed and (case["depends_on_tie"] or is_refuted),
        is_right=is_right,
        prediction=prediction,
        digest=prediction_digest(prediction),
    )


def strata_of(cases: Mapping[str, AnsweredCase]) -> dict[str, list[str]]:
    """Return the node ids of the cases that have an answer to be judged, by stratum; both are sorted."""
    strata = grouped((cases[nodeid].stratum, nodeid) for nodeid in sorted(cases) if cases[nodeid].predictions)
    return {stratum: strata[stratum] for stratum in sorted(strata)}


def draw(cases: Mapping[str, AnsweredCase], number: int, seed: int) -> list[DrawnCase]:
    """Return `number` randomly drawn cases, or all if there are fewer, in random order.

    The same cases, number and seed give the same draw. Raise `ReportError` if there is nothing to judge, or if `number`
    is too small for the strata.
    """
    strata = strata_of(cases)
    if not strata:
        raise ReportError("there is nothing to judge: no case has an answer with a verdict")
    sizes = [len(nodeids) for nodeids in strata.values()]
    least_number = sum(min(MINIMUM, size) for size in sizes)
    if number < least_number:
        parts = (f"{min(MINIMUM, len(nodeids))} of {len(nodeids):,} {stratum}" for stratum, nodeids in strata.items())
        raise ReportError(f"--draw {number}: draw at least {least_number}: {', '.join(parts)}")
    generator = random.Random(seed)  # noqa: S311 - a draw that can be repeated
    drawn_cases = []
    for (stratum, nodeids), count in zip(strata.items(), allocate(sizes, number), strict=True):
        drawn_cases += [
            DrawnCase(
                id=cases[nodeid].id,
                nodeid=nodeid,
                stratum=stratum,
                probability=count / len(nodeids),
                predictions=cases[nodeid].predictions,
            )
            for nodeid in generator.sample(nodeids, count)
        ]
    generator.shuffle(drawn_cases)  # so that those that are judged first are a random part of each stratum
    return drawn_cases


def allocate(sizes: Sequence[int], number: int) -> list[int]:
    """Return how many of `number` cases to draw from each stratum: at least `MINIMUM`, or all of a smaller stratum.

    `number` must be at least the sum of these minima. Further cases are shared in proportion to size ** 0.75. In
    proportion to the sizes, too few cases would be judged in small strata, which widens the interval; with equal shares
    too few in large strata. In simulations of two strata, as in `benchmarks/bench_audit.py`, 0.75 gave the shortest
    intervals if the larger stratum has 70 to 90 % of the cases.
    """
    counts = [min(MINIMUM, size) for size in sizes]
    weights = [size**POWER for size in sizes]
    for _ in range(min(number, sum(sizes)) - sum(counts)):
        places = [place for place, size in enumerate(sizes) if counts[place] < size]
        counts[max(places, key=lambda place: weights[place] / (counts[place] + 0.5))] += 1
    return counts
