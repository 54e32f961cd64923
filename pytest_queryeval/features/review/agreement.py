"""What reviewers decided so far: decisions, conflicts, and how far reviewers agree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TypedDict

from pytest_queryeval.core.errors import Finding
from pytest_queryeval.core.model import Decision as DecisionWord
from pytest_queryeval.features.review.decisions import DECISIONS, CaseName
from pytest_queryeval.features.review.gold_digest import gold_digest
from pytest_queryeval.features.review.reviews_key import Reviews
from pytest_queryeval.suites import Suite


class Agreement(TypedDict):
    """How far two reviewers agree on the cases that both decided on, other than as `unsure`."""

    reviewers: list[str]
    cases: int
    agreement: float
    """The share of the same decisions."""
    kappa: float | None
    """Cohen's kappa: the agreement beyond what is expected by chance; None if chance alone explains all of it."""


class ReviewSummary(TypedDict):
    """What reviewers decided."""

    cases: int
    """The number of all cases."""
    by_decision: dict[DecisionWord, int]
    """The number of cases to which each decision applies."""
    conflicts: int
    """The number of cases on which reviewers disagree."""
    settled: int
    """The number of cases whose conflict between reviewers was settled by a later decision."""
    stale: int
    """The number of decisions on questions or golds that have changed since."""
    by_reviewer: dict[str, int]
    """The number of cases that each reviewer decided on."""
    agreements: list[Agreement]


def review_summary(suites: Iterable[Suite]) -> ReviewSummary:
    """Return what reviewers decided on the cases of suites; raise `SuiteError` as their review files do.

    Of each reviewer, the last decision on a case counts, other than one that settles a conflict in view of the others.
    """
    cases = settled = 0
    by_decision: Counter[DecisionWord] = Counter()
    findings: set[Finding] = set()
    decisions: defaultdict[str, dict[CaseName, DecisionWord]] = defaultdict(dict)
    for suite in suites:
        reviews = suite.values.get("reviews")
        findings.update(suite.findings)
        for case in suite.cases:
            cases += 1
            if case.review is not None:
                by_decision[case.review.decision] += 1
            if isinstance(reviews, Reviews):
                name, digest = CaseName(suite.path, case.id), gold_digest(case.without_review)
                on_gold = [decision for decision in reviews.of_case(name, digest) if decision.digest in (None, digest)]
                settled += any(decision.settles for decision in on_gold)
                for decision in on_gold:
                    if not decision.settles:
                        decisions[decision.reviewer][name] = decision.decision
    rules = Counter(finding.rule for finding in findings)
    return {
        "cases": cases,
        "by_decision": {word: by_decision[word] for word in DECISIONS if by_decision[word]},
        "conflicts": rules["review-conflict"],
        "settled": settled,
        "stale": rules["review-stale"],
        "by_reviewer": {reviewer: len(words) for reviewer, words in sorted(decisions.items())},
        "agreements": [
            agreement
            for first, second in combinations(sorted(decisions), 2)
            if (agreement := _agreement((first, second), [decisions[first], decisions[second]])) is not None
        ],
    }


def _agreement(reviewers: Sequence[str], decisions: Sequence[dict[CaseName, DecisionWord]]) -> Agreement | None:
    """Return how far two reviewers agree; None without a case that both decided on."""
    first, second = decisions
    pairs = [(first[name], second[name]) for name in first if name in second]
    pairs = [pair for pair in pairs if "unsure" not in pair]
    if not pairs:
        return None
    same = sum(first == second for first, second in pairs) / len(pairs)
    counts = [Counter(words) for words in zip(*pairs, strict=True)]
    chance = sum(counts[0][word] * counts[1][word] for word in counts[0]) / len(pairs) ** 2
    return {
        "reviewers": [*reviewers],
        "cases": len(pairs),
        "agreement": same,
        "kappa": None if chance == 1 else (same - chance) / (1 - chance),
    }
