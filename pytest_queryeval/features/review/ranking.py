"""Ranks cases by how likely their golds are wrong, each with the evidence: which golds to look at first.

Doubt is a sum of weights, in systems that give the same answer against gold. They were chosen by planted errors
(`benchmarks/bench_review.py`): a system that answers as gold does counts as two against it, and the fewer edits lead
from gold to what systems agree on, the likelier gold is wrong. To weight systems by their reliability, by the model of
Dawid and Skene, ranks planted errors no better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, NotRequired, TypeAlias, TypedDict

from pytest_queryeval.core.case_report import CausingEditReport
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.model import Case, Review
from pytest_queryeval.evaluation.gold_checks import GOLD_CHECKS
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.review.answers import AnswerGroup, group_answers
from pytest_queryeval.features.review.gold_difference import DifferenceKind, difference_kind, smallest_edit
from pytest_queryeval.features.review.gold_digest import gold_digest
from pytest_queryeval.features.review.systems import SystemAnswer
from pytest_queryeval.reports.story import edit_text
from pytest_queryeval.text.formatting import pluralize
from pytest_queryeval.text.truncation import one_line

EvidenceKind: TypeAlias = Literal["audit", "challenge", "systems", "edit", "check", "tie"]
MESSAGE_CHARACTERS = 1_000
WEIGHT_OF_AUDIT = 1_000.0  # before all other evidence
WEIGHT_WITH_GOLD = -2.0  # of a system
WEIGHT_OF_OTHERS = 0.5  # of a system with an answer that is neither gold's nor the most common other one
WEIGHT_OF_ORDER = 1.0  # of a system that orders rows that gold leaves in any order
WEIGHT_OF_REFUTATION = 1.0
WEIGHT_OF_TIES = 0.1
WEIGHTS_OF_EDITS = {1: 1.5, 2: 0.5}  # by the number of those that have an effect on the data
WEIGHTS_OF_DIFFERENCES: Mapping[DifferenceKind, float] = {"duplicates": -1.0, "columns": -1.0}  # often ambiguous
# Of rules of `queryeval check`; the others say nothing on whether gold answers the question.
WEIGHTS_OF_RULES: Mapping[str, float] = {
    "gold-fails": 3.0,
    "gold-empty": 1.0,
    "constant-result": 1.0,
    "text-order": 1.0,
    "value-not-in-data": 1.0,
    "unknown-term": 1.0,
    "lost-answer": 1.0,
    "moving-gold": 0.25,
    "limit-tie": 0.25,
}
DIFFERENCE_TEXTS: Mapping[DifferenceKind, str] = {
    "duplicates": "the answers differ in duplicates only",
    "order": "the answers differ in the order of rows only",
    "columns": "one answer has the columns of the other and more",
    "letter case": "the answers differ in letter case only",
}


class Evidence(TypedDict):
    """A reason to look at a gold."""

    kind: EvidenceKind
    text: str
    rule: NotRequired[str]
    """For the kind `check`, the rule of `queryeval check`."""
    edits: NotRequired[list[CausingEditReport]]
    """For the kind `edit`, those that lead from gold to the query."""
    difference: NotRequired[DifferenceKind]
    """For the kind `edit`, the only thing in which the answers differ."""


class RankedAnswer(TypedDict):
    """An answer to a case, and who gives it."""

    systems: list[str]
    is_gold: bool
    query: str | None
    """The first query with this answer; None for a stated answer, and for systems that abstain."""


class RankedCaseReport(TypedDict):
    """A case as `--json` prints it."""

    case: str
    suite: str
    nodeid: str
    gold: str
    """The digest of its question and golds, for review files."""
    rank: int
    """From 1, the first to look at."""
    evidence: list[Evidence]
    answers: list[RankedAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedCase:
    """A case with what speaks against its gold."""

    case: Case
    """The case as its suite states it, whatever was decided on its golds."""
    nodeid: str
    evidence: Sequence[Evidence]
    answers: Sequence[AnswerGroup]
    """Golds first, then the answers that most systems give, without rows; empty if they could not be compared."""
    doubt: float
    """How likely the gold is wrong, on a scale of its own."""
    problem: str = ""
    """Why answers could not be compared; empty if they were."""
    review: Review | None = None
    """What was decided on the golds."""

    @property
    def title(self) -> str:
        """The node id, with the decision on the golds and who made it."""
        if self.review is None:
            return self.nodeid
        return f"{self.nodeid} (decided: {self.review.decision}, by {', '.join(self.review.reviewers)})"


WeighedEvidence: TypeAlias = tuple[float, Evidence]


def rank_cases(cases: Iterable[RankedCase]) -> list[RankedCase]:
    """Return the cases with evidence before those without, each by doubt, the greatest first.

    Cases with the same doubt keep their order.
    """
    return sorted(cases, key=lambda case: (not case.evidence, -case.doubt))


def examine_case(
    case: Case,
    nodeid: str,
    answers: Mapping[str, SystemAnswer],
    session: Session,
    *,
    against_verdict: Sequence[str] = (),
) -> RankedCase:
    """Return a case with what speaks against its gold, whatever was decided on it.

    `answers` have the names of systems; `against_verdict` are sentences on judgements of people against the verdict.
    """
    review, case = case.review, case.without_review
    evidence: list[WeighedEvidence] = [
        (WEIGHT_OF_AUDIT, {"kind": "audit", "text": sentence}) for sentence in against_verdict
    ]
    groups: Sequence[AnswerGroup] = ()
    doubt, problem = 0.0, ""
    try:
        groups = _groups(case, answers, session)
        golds = [group for group in groups if group.is_gold]
        doubt = _support(golds)
        evidence += _evidence_of_golds(golds, len(answers))
        if other_answers := groups[len(golds) :]:
            evidence += _evidence_of_systems(golds[0], other_answers, len(answers), session)
        for group in groups:
            group.drop_answer()
    except QueryEvalError as error:
        problem = one_line(str(error), MESSAGE_CHARACTERS)
    with suppress(QueryEvalError):  # the same problem, or what is not recorded
        evidence += _evidence_of_checks(case, session)
    queries = {gold.query for gold in case.golds if gold.query is not None}
    for system, answer in answers.items():
        if answer.refuted_gold in queries:
            text = f"the query of {system} gives gold's answer on the data, and another on a small database"
            evidence.append((WEIGHT_OF_REFUTATION, {"kind": "challenge", "text": text}))
    return RankedCase(
        case=case,
        nodeid=nodeid,
        evidence=[item for _, item in evidence],
        answers=groups,
        doubt=doubt + sum(weight for weight, _ in evidence),
        problem=problem,
        review=review,
    )


def _groups(case: Case, answers: Mapping[str, SystemAnswer], session: Session) -> Sequence[AnswerGroup]:
    predictions = {system: answer.prediction for system, answer in answers.items() if answer.prediction is not None}
    return sorted(group_answers(case, predictions, session), key=lambda group: (not group.is_gold, -len(group.systems)))


def _support(golds: Sequence[AnswerGroup]) -> float:
    """Return the weight of the systems that answer as gold does, and leave the order of rows open if gold does."""
    return WEIGHT_WITH_GOLD * sum(len(gold.systems) - len(gold.ordering_systems) for gold in golds)


def _evidence_of_golds(golds: Sequence[AnswerGroup], systems: int) -> Iterator[WeighedEvidence]:
    """Yield what speaks against gold in the queries of `systems` with the same answer."""
    if ordering := sum(len(gold.ordering_systems) for gold in golds):
        text = f"{_count(ordering, systems)} {'order' if ordering > 1 else 'orders'} rows, gold does not"
        yield WEIGHT_OF_ORDER * ordering, {"kind": "systems", "text": text}
    if tied := sum(len(gold.tied_systems) for gold in golds):
        text = f"{_count(tied, systems)} {'are' if tied > 1 else 'is'} right by a choice among rows that tie"
        yield WEIGHT_OF_TIES, {"kind": "tie", "text": text}


def _evidence_of_systems(
    gold: AnswerGroup, other_answers: Sequence[AnswerGroup], systems: int, session: Session
) -> Iterator[WeighedEvidence]:
    """Yield what speaks against gold in the other answers of `systems`, the most common one first."""
    agreeing, *differing = (len(group.systems) for group in other_answers)
    text = f"{_count(agreeing, systems)} {_contradiction(gold, other_answers[0])}"
    yield agreeing + WEIGHT_OF_OTHERS * sum(differing), {"kind": "systems", "text": text}
    cause, kind = smallest_edit(gold, other_answers[0], session), difference_kind(gold, other_answers[0])
    edits: list[CausingEditReport] = []
    texts = [] if kind is None else [DIFFERENCE_TEXTS[kind]]
    if cause is not None:
        edits = [{"label": edit.label, "clause": edit.clause, "change": edit.change} for edit in cause.edits]
        steps = "; ".join(one_line(edit_text(edit), MESSAGE_CHARACTERS) for edit in edits)
        texts.insert(0, f"{pluralize(len(edits), 'edit')} from gold to theirs: {steps}")
    if texts:
        evidence: Evidence = {"kind": "edit", "text": "; ".join(texts), "edits": edits}
        weight = 0.0 if cause is None else WEIGHTS_OF_EDITS.get(cause.size, 0.0)
        if kind is not None:
            weight += WEIGHTS_OF_DIFFERENCES.get(kind, 0.0)
            evidence["difference"] = kind
        yield weight, evidence


def _count(number: int, systems: int) -> str:
    return "the only system" if systems == 1 else f"{number:,} of {systems:,} systems"


def _contradiction(gold: AnswerGroup, against: AnswerGroup) -> str:
    """Return the end of a sentence on the systems that give an answer against gold."""
    agree = len(against.systems) > 1
    if against.is_abstention:
        return f"{'abstain' if agree else 'abstains'}, gold has an answer"
    if gold.is_abstention:
        return f"{'give the same answer' if agree else 'answers'}, gold says that there is none"
    return "give the same answer, gold another" if agree else "disagrees with gold"


def _evidence_of_checks(case: Case, session: Session) -> Iterator[WeighedEvidence]:
    """Yield what `queryeval check` finds wrong with the golds; each rule counts once."""
    counted: set[str] = set()
    for name in GOLD_CHECKS.available():
        for finding in GOLD_CHECKS[name](case, session, WEIGHTS_OF_RULES):
            if not finding.silenced:
                weight = 0.0 if finding.rule in counted else WEIGHTS_OF_RULES[finding.rule]
                counted.add(finding.rule)
                text = one_line(finding.message, MESSAGE_CHARACTERS)
                yield weight, {"kind": "check", "text": text, "rule": finding.rule}


def ranking_data(ranking: Sequence[RankedCase]) -> list[RankedCaseReport]:
    """Return ranked cases as `--json` prints them."""
    return [
        {
            "case": ranked.case.id,
            "suite": ranked.nodeid.removesuffix(f"::{ranked.case.id}"),
            "nodeid": ranked.nodeid,
            "gold": gold_digest(ranked.case),
            "rank": rank,
            "evidence": [*ranked.evidence],
            "answers": [
                {"systems": group.systems, "is_gold": group.is_gold, "query": group.execution.query}
                for group in ranked.answers
            ],
        }
        for rank, ranked in enumerate(ranking, 1)
    ]
