"""Ranks cases by how likely their golds are wrong, each with the evidence: which golds to look at first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NotRequired, TypeAlias, TypedDict

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.model import Case
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.review.answers import AnswerGroup, group_answers
from pytest_queryeval.features.review.gold_digest import gold_digest
from pytest_queryeval.features.review.systems import SystemAnswer

EvidenceKind: TypeAlias = Literal["audit", "challenge", "systems", "edit", "check", "tie"]


class Evidence(TypedDict):
    """A reason to look at a gold."""

    kind: EvidenceKind
    text: str
    rule: NotRequired[str]
    """The rule of `queryeval check`, of evidence of that kind."""


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
    """The strongest first."""
    answers: Sequence[AnswerGroup]
    """Golds first, then the answers that most systems give."""
    doubt: float
    """How likely the gold is wrong, on a scale of its own."""


def rank_cases(cases: Iterable[RankedCase]) -> list[RankedCase]:
    """Return the cases by doubt, the greatest first; those with the same keep their order."""
    return sorted(cases, key=lambda case: -case.doubt)


def examine_case(case: Case, nodeid: str, answers: Mapping[str, SystemAnswer], session: Session) -> RankedCase:
    """Return a case with what speaks against its gold; `answers` have the names of systems."""
    case = case.without_review
    predictions = {system: answer.prediction for system, answer in answers.items() if answer.prediction is not None}
    try:
        groups, _ = group_answers(case, predictions, session)
    except QueryEvalError:
        groups = []
    golds = [group for group in groups if group.is_gold]
    others = sorted((group for group in groups if not group.is_gold), key=lambda group: -len(group.systems))
    agreeing = len(others[0].systems) if others else 0
    with_gold = sum(len(group.systems) for group in golds)
    evidence: list[Evidence] = []
    if agreeing:
        count = f"{agreeing} of {len(answers)} systems"
        text = f"{count} give the same answer, gold another" if agreeing > 1 else f"{count} answers otherwise than gold"
        evidence.append({"kind": "systems", "text": text})
    return RankedCase(
        case=case, nodeid=nodeid, evidence=evidence, answers=[*golds, *others], doubt=float(agreeing - with_gold)
    )


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
