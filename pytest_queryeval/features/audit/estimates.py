"""Estimates from the judged answers of an audit: how many answers are right, and how often the verdict is wrong."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NotRequired, TypedDict

from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.features.audit.intervals import (
    LONE_TAILS,
    SIDE_TAILS,
    SUM_TAILS,
    Count,
    Estimate,
    as_share,
    difference,
    estimate_count,
    share,
    total,
)
from pytest_queryeval.features.audit.strata import SWAPPED_STRATA, Answer, AnsweredCase, allocate, strata_of
from pytest_queryeval.results.audit_file import AnswerName, Audit, DrawnCase, Judgement, is_sample
from pytest_queryeval.text.formatting import pluralize


class ShareReport(TypedDict):
    """An estimated share of the answers, with its 95 % interval."""

    value: float
    ci95: list[float]


class AuditedReport(ShareReport):
    """The estimated share of right answers, or the difference of two systems' shares."""

    bounds: list[float] | None
    """The lowest and the highest limit of the intervals if all unclear answers are wrong, or all right.

    None if no answer is unclear.
    """


class VerdictsReport(TypedDict):
    """The share of answers that pass, that of answers that are right, and the shares of wrong verdicts."""

    measured: float
    """The share of answers that pass."""
    audited: AuditedReport
    """The share of answers that are right."""
    wrongly_passed: ShareReport | None
    """The share of the wrong answers that pass; None if no answer was judged wrong."""
    wrongly_missed: ShareReport | None
    """The share of the right answers that do not pass; None if no answer was judged right."""


class SystemReport(VerdictsReport):
    """The estimates for one of two systems."""

    name: str


class AgreementReport(TypedDict):
    """How often two reviewers agree, among the reviewers who find an answer clear."""

    share: float
    answers: int
    """The number of answers that several reviewers find clear."""


class AuditReport(VerdictsReport):
    """The result of an audit; for two systems, figures are differences: the second less the first.

    Shares of wrong verdicts are then None, because `systems` has them for each system.
    """

    judged: int
    """The number of judged answers, including the unclear ones."""
    unclear: int
    """The number of judged answers without a clear judgement, or on which reviewers contradict each other."""
    contradictory: int
    """The number of answers on which reviewers contradict each other."""
    agreement: AgreementReport | None
    to_halve: int | None
    """How many more cases have to be judged until the interval is half as wide.

    None if the interval is a single value, or all cases are judged.
    """
    cases: int
    """The number of cases with a verdict, drawn or not."""
    pending: int
    """The number of drawn answers that nobody has judged."""
    not_counted: dict[str, int]
    """The number of drawn cases or judgements that do not count, by reason."""
    left_out: dict[str, int]
    """The number of cases of the reports that an audit cannot judge, by reason."""
    systems: NotRequired[list[SystemReport]]
    """The estimates for each system; present if there are two."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts from which a number of cases is estimated: those with a property, or the difference of two properties."""

    counts: Mapping[str, tuple[Count, ...]]
    """For each stratum, the count of the property, or the counts of two properties whose difference is estimated."""
    constant: int
    """The part of the number that comes from cases that need no judgement."""

    def estimate(self) -> Estimate:
        """Return the estimated number with its limits.

        The tails of either limit depend on how many strata can move that limit.
        """
        open_counts = [counts for counts in self.counts.values() if counts[0].judged < counts[0].size]

        def estimate(moving: int) -> Estimate:
            tails = LONE_TAILS if len(open_counts) < 2 else SUM_TAILS if moving > 1 else SIDE_TAILS
            return total(
                estimate_count(*counts, tails) if len(counts) == 1 else difference(counts[0], counts[1], tails)
                for counts in self.counts.values()
            )

        value, low, _ = estimate(sum(len(counts) == 2 or counts[0].hits > 0 for counts in open_counts))
        high = estimate(sum(len(counts) == 2 or counts[0].hits < counts[0].judged for counts in open_counts)).high
        return Estimate(value + self.constant, low + self.constant, high + self.constant)

    def with_judged_numbers(self, judged: Mapping[str, int], numbers: Mapping[str, int]) -> Tally:
        """Return the tally that is expected if `numbers` instead of `judged` cases of each stratum were judged.

        Shares stay the same.
        """

        def enlarge(count: Count, stratum: str) -> Count:
            number = numbers[stratum]
            if count.judged:
                number = round(count.judged * number / judged[stratum])
            number = min(count.size, number)
            return count._replace(judged=number, hits=round(count.share * number))

        counts = {
            stratum: tuple(enlarge(count, stratum) for count in counts) for stratum, counts in self.counts.items()
        }
        return Tally(counts, self.constant)


@dataclass(frozen=True, slots=True)
class JudgedCases:
    """The cases of an audit, with the reviewers' joint judgements on the drawn answers, as a basis for estimates.

    A system is named by its index in the answers of a case. Answers whose `is_right` is known need no judgement.
    """

    cases: Mapping[str, AnsweredCase]
    strata: Mapping[str, Sequence[str]]
    """The node ids of the cases with an answer to be judged, by stratum."""
    judgements: Mapping[AnswerName, Judgement]

    def is_right(self, nodeid: str, system: int, *, unclear: bool | None = None) -> bool | None:
        """Return whether a system's answer to a case is right; None if nobody has judged it.

        An unclear judgement gives the value of `unclear`.
        """
        answer = self.cases[nodeid].answers[system]
        if answer.is_right is not None:
            return answer.is_right
        judgement = self.judgements.get(AnswerName(nodeid, answer.digest))
        return unclear if judgement == "unclear" else None if judgement is None else judgement == "right"

    def right_answers(self, system: int, *, unclear: bool | None = None) -> Tally:
        """Return the tally of a system's right answers; unclear answers count as `unclear`, None leaves them out."""
        counts = {}
        for stratum, nodeids in self.strata.items():
            answers = {nodeid: self.cases[nodeid].answers[system] for nodeid in nodeids}
            nodeids_to_judge = [nodeid for nodeid, answer in answers.items() if answer.is_right is None]
            judgements = [
                is_right
                for nodeid in nodeids_to_judge
                if (is_right := self.is_right(nodeid, system, unclear=unclear)) is not None
            ]
            expected_share = float(answers[nodeids[0]].passed)  # the verdict is the same in a whole stratum
            counts[stratum] = (Count(len(nodeids_to_judge), len(judgements), sum(judgements), expected_share),)
        return Tally(counts, sum(case.answers[system].is_right is True for case in self.cases.values()))

    def improvement(self, *, unclear: tuple[bool | None, bool | None] = (None, None)) -> Tally:
        """Return the tally of how many more right answers the second system has than the first.

        Answers that cannot differ count as equal. `unclear` says for each system how its unclear answers count.
        """
        counts, constant = {}, 0
        for case in self.cases.values():
            first, second = case.answers
            if first.is_right is not None and second.is_right is not None:
                constant += second.is_right - first.is_right
        for stratum, nodeids in self.strata.items():
            differing_cases = [nodeid for nodeid in nodeids if _differ(*self.cases[nodeid].answers)]
            pairs = [
                (first_right, second_right)
                for nodeid in differing_cases
                if (first_right := self.is_right(nodeid, 0, unclear=unclear[0])) is not None
                and (second_right := self.is_right(nodeid, 1, unclear=unclear[1])) is not None
            ]
            first_passed, second_passed = (answer.passed for answer in self.cases[nodeids[0]].answers)
            counts[stratum] = tuple(
                Count(len(differing_cases), len(pairs), pairs.count(pair), float((first_passed, second_passed) == pair))
                for pair in ((False, True), (True, False))
            )
        return Tally(counts, constant)

    def wrong_verdicts(self, system: int) -> tuple[Estimate | None, Estimate | None]:
        """Return the share of a system's wrong answers that pass, and of its right answers that do not pass.

        A share is None if there are no such answers.
        """
        right_numbers: dict[bool, list[Estimate]] = {True: [], False: []}  # by the verdict
        wrong_numbers: dict[bool, list[Estimate]] = {True: [], False: []}
        for stratum, (count,) in self.right_answers(system).counts.items():
            passed = self.cases[self.strata[stratum][0]].answers[system].passed
            estimate = estimate_count(count)
            right_numbers[passed].append(estimate)
            wrong_numbers[passed].append(estimate.complement(count.size))
        for case in self.cases.values():
            answer = case.answers[system]
            if answer.is_right is not None:
                (right_numbers if answer.is_right else wrong_numbers)[answer.passed].append(Estimate(1, 1, 1))
        return (
            share(total(wrong_numbers[True]), total(wrong_numbers[False])),
            share(total(right_numbers[False]), total(right_numbers[True])),
        )


def _differ(first: Answer, second: Answer) -> bool:
    """Return whether one of two answers to a case may be right and the other wrong.

    Even answers whose predictions look the same may differ. A query may fail in one run only or give another answer,
    and tables may differ after their first rows.
    """
    table = first.prediction.get("table")
    return (
        first.digest != second.digest
        or first.passed != second.passed
        or (table is not None and is_sample(table))
        or first.is_right is not None
        or second.is_right is not None
    )


def audit_report(
    cases: Mapping[str, AnsweredCase], audit: Audit, names: Sequence[str], left_out_counts: Mapping[str, int]
) -> AuditReport:
    """Return the result of an audit of one or two systems with the given names.

    `left_out_counts` are the cases that cannot be judged, by reason. Raise `ReportError` if no judgement counts.
    """
    reasons = {nodeid: _why_not_counted(drawn_case, cases) for nodeid, drawn_case in audit.cases.items()}
    answers = [
        AnswerName(nodeid, digest)
        for nodeid, drawn_case in audit.cases.items()
        if not reasons[nodeid]
        for digest in drawn_case.predictions
    ]
    reviews = {answer: list(audit.judgements[answer].values()) for answer in answers if answer in audit.judgements}
    judgements = {answer: _joint_judgement(judgements_of_answer) for answer, judgements_of_answer in reviews.items()}
    judged_cases = JudgedCases(cases, strata_of(cases), judgements)
    not_counted = Counter(filter(None, reasons.values()))
    if audit.undrawn:
        not_counted["judgements on answers that were not drawn"] = audit.undrawn
    if not judgements:
        raise ReportError(_no_judgement(len(answers), not_counted))
    unclear = list(judgements.values()).count("unclear")
    systems = [_system_report(judged_cases, system, name) for system, name in enumerate(names)]
    tally = judged_cases.right_answers(0) if len(names) == 1 else judged_cases.improvement()
    report: AuditReport = {
        "measured": systems[-1]["measured"] - (systems[0]["measured"] if len(names) == 2 else 0),
        "audited": systems[0]["audited"],
        "wrongly_passed": systems[0]["wrongly_passed"],
        "wrongly_missed": systems[0]["wrongly_missed"],
        "judged": len(judgements),
        "unclear": unclear,
        "contradictory": sum(
            {"right", "wrong"} <= {*judgements_of_answer} for judgements_of_answer in reviews.values()
        ),
        "agreement": _agreement(reviews.values()),
        "to_halve": _cases_to_halve(tally, judged_cases),
        "cases": len(cases),
        "pending": len(answers) - len(judgements),
        "not_counted": dict(not_counted),
        "left_out": dict(left_out_counts),
    }
    if len(names) == 2:
        extremes = [judged_cases.improvement(unclear=pair) for pair in ((True, False), (False, True))]
        report["audited"] = _audited_report(tally, extremes if unclear else [], len(cases))
        report["wrongly_passed"] = report["wrongly_missed"] = None
        report["systems"] = systems
    return report


def _why_not_counted(drawn_case: DrawnCase, cases: Mapping[str, AnsweredCase]) -> str:
    """Return the reason why judgements on a drawn case do not apply to the reports' cases; empty if they apply."""
    case = cases.get(drawn_case.nodeid)
    if case is None:
        return "cases without a verdict now"
    if case.predictions.keys() != drawn_case.predictions.keys():
        return "predictions that changed since the draw"
    if SWAPPED_STRATA.get(drawn_case.stratum) == case.stratum:
        return "cases with the verdicts of the two reports swapped: give them in the order of the draw"
    return "" if case.stratum == drawn_case.stratum else "verdicts that changed since the draw"


def _no_judgement(answers: int, not_counted: Mapping[str, int]) -> str:
    reasons = not_counted_text(not_counted)
    if answers:
        not_judged = f"no drawn answer is judged yet{f' (not counted: {reasons})' if reasons else ''}"
        return f"{not_judged}: judge some with `queryeval review --audit FILE --serve`"
    return (
        f"nothing of the draw counts ({reasons or 'it is empty'}): give the report that it was made from, or draw again"
    )


def not_counted_text(not_counted: Mapping[str, int]) -> str:
    """Return the reasons why cases do not count, with their numbers; a reason begins with a plural noun.

    >>> not_counted_text({"verdicts that changed since the draw": 1, "cases without a verdict now": 2})
    '1 verdict that changed since the draw, 2 cases without a verdict now'
    """
    parts = ((number, reason.partition("s ")) for reason, number in not_counted.items())
    return ", ".join(f"{pluralize(number, noun)} {clause}" for number, (noun, _, clause) in parts)


def _joint_judgement(judgements: Sequence[Judgement]) -> Judgement:
    """Return the judgement on which all reviewers who find an answer clear agree; else 'unclear'."""
    clear_judgements = {*judgements} - {"unclear"}
    return clear_judgements.pop() if len(clear_judgements) == 1 else "unclear"


def _agreement(reviews: Iterable[Sequence[Judgement]]) -> AgreementReport | None:
    clear_reviews = ([judgement for judgement in judgements if judgement != "unclear"] for judgements in reviews)
    multiple_reviews = [judgements for judgements in clear_reviews if len(judgements) > 1]
    pairs = [first == second for judgements in multiple_reviews for first, second in combinations(judgements, 2)]
    return {"share": sum(pairs) / len(pairs), "answers": len(multiple_reviews)} if pairs else None


def _system_report(judged_cases: JudgedCases, system: int, name: str) -> SystemReport:
    size = len(judged_cases.cases)
    extremes = [judged_cases.right_answers(system, unclear=is_right) for is_right in (False, True)]
    tally = judged_cases.right_answers(system)
    wrongly_passed, wrongly_missed = judged_cases.wrong_verdicts(system)
    return {
        "name": name,
        "measured": sum(case.answers[system].passed for case in judged_cases.cases.values()) / size,
        "audited": _audited_report(tally, extremes if "unclear" in judged_cases.judgements.values() else [], size),
        "wrongly_passed": _share_report(wrongly_passed),
        "wrongly_missed": _share_report(wrongly_missed),
    }


def _audited_report(tally: Tally, extremes: Sequence[Tally], size: int) -> AuditedReport:
    estimate = as_share(tally.estimate(), size)
    intervals = [as_share(extreme.estimate(), size) for extreme in extremes]
    bounds = (
        [min(interval.low for interval in intervals), max(interval.high for interval in intervals)]
        if extremes
        else None
    )
    return {"value": estimate.value, "ci95": [estimate.low, estimate.high], "bounds": bounds}


def _share_report(estimate: Estimate | None) -> ShareReport | None:
    return None if estimate is None else {"value": estimate.value, "ci95": [estimate.low, estimate.high]}


def _cases_to_halve(tally: Tally, judged_cases: JudgedCases) -> int | None:
    """Return how many more cases have to be drawn and judged until the interval is half as wide.

    None if the interval is a single value, or all cases are judged.
    """
    nodeids = {answer.nodeid for answer in judged_cases.judgements}
    judged_numbers = {
        stratum: len(nodeids.intersection(stratum_nodeids)) for stratum, stratum_nodeids in judged_cases.strata.items()
    }
    sizes = [len(stratum_nodeids) for stratum_nodeids in judged_cases.strata.values()]
    width = tally.estimate().high - tally.estimate().low
    more_cases = range(1, sum(sizes) - len(nodeids) + 1)
    if width <= 0 or not more_cases:
        return None

    def is_half(added_number: int) -> bool:
        allocated_numbers = zip(judged_numbers.items(), allocate(sizes, len(nodeids) + added_number), strict=True)
        numbers = {stratum: max(number, allocated_number) for (stratum, number), allocated_number in allocated_numbers}
        estimate = tally.with_judged_numbers(judged_numbers, numbers).estimate()
        return estimate.high - estimate.low <= width / 2

    return more_cases[min(bisect_left(more_cases, True, key=is_half), len(more_cases) - 1)]
