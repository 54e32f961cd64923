"""What a ranking as a whole says, and what reviewers decided, as data and as lines.

Systems whose wrong answers agree more often than by chance are together less than two witnesses.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from math import comb
from typing import TypedDict

from pytest_queryeval.core.errors import Finding
from pytest_queryeval.core.model import Decision as DecisionWord
from pytest_queryeval.features.review.answers import System
from pytest_queryeval.features.review.decisions import DECISIONS, CaseName, gold_digest
from pytest_queryeval.features.review.ranking import RankedCase
from pytest_queryeval.features.review.reviews_key import Reviews
from pytest_queryeval.suites import Suite
from pytest_queryeval.text.formatting import format_score, pluralize

LEVEL = 0.01  # of the tests of all pairs together
MIN_CHANCE = 0.5  # of the same wrong answer to a case that two systems miss; unrelated systems are below


class SystemSummary(TypedDict):
    """A system, and for how many cases its report has a query, has none, and is about another question."""

    name: str
    cases: int
    without_query: int
    changed: int


class Correlation(TypedDict):
    """Two systems, the number of cases that both miss, and of those to which they give the same answer."""

    systems: list[str]
    cases: int
    same: int


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


class RankingSummary(TypedDict):
    """What a ranking as a whole says."""

    systems: list[SystemSummary]
    correlated: list[Correlation]
    """Pairs of systems whose wrong answers agree more often than by chance."""
    not_run: int
    """How many cases of services were not examined, since enough others were."""
    problems: dict[str, int]
    """Why answers could not be compared, and of how many cases."""
    reviews: ReviewSummary


def ranking_summary(
    ranking: Sequence[RankedCase], systems: Sequence[System], reviews: ReviewSummary, *, not_run: int
) -> RankingSummary:
    """Return what a ranking by the answers of systems says as a whole."""
    return {
        "systems": [
            {
                "name": system.name,
                "cases": sum(answer.prediction is not None for answer in system.answers.values()),
                "without_query": sum(answer.prediction is None for answer in system.answers.values()),
                "changed": len(system.changed),
            }
            for system in systems
        ],
        "correlated": correlations(ranking),
        "not_run": not_run,
        "problems": dict(Counter(ranked.problem for ranked in ranking if ranked.problem)),
        "reviews": reviews,
    }


def summary_lines(summary: RankingSummary) -> Iterator[str]:
    """Yield what a reader should know about the ranking as a whole."""
    for system in summary["systems"]:
        if system["without_query"]:
            yield f"{system['name']}: without a whole query in {pluralize(system['without_query'], 'case')}"
        if system["changed"]:
            changed = pluralize(system["changed"], "case")
            yield f"{system['name']}: another question in {changed}, which is not counted: run the suites again"
    for pair in summary["correlated"]:
        names, cases = " and ".join(pair["systems"]), pluralize(pair["cases"], "case")
        yield f"{names} are correlated: the same wrong answer in {pair['same']:,} of {cases} that both miss"
    for problem, number in summary["problems"].items():
        yield f"not compared in {pluralize(number, 'case')}: {problem}"
    if summary["not_run"]:
        yield f"not examined: {pluralize(summary['not_run'], 'case')} of services, of which enough others were"


def review_lines(reviews: ReviewSummary) -> Iterator[str]:
    """Yield what reviewers decided, and how far they agree."""
    decisions = ", ".join(f"{number:,} {word}" for word, number in reviews["by_decision"].items()) or "none"
    yield f"decisions on {sum(reviews['by_decision'].values()):,} of {pluralize(reviews['cases'], 'case')}: {decisions}"
    if reviews["conflicts"]:
        yield f"reviewers disagree on {pluralize(reviews['conflicts'], 'case')}"
    if reviews["settled"]:
        yield f"settled: {pluralize(reviews['settled'], 'case')} on which reviewers disagreed"
    if reviews["stale"]:
        yield f"{pluralize(reviews['stale'], 'decision')} on questions or golds that have changed since"
    for reviewer, number in reviews["by_reviewer"].items():
        yield f"{reviewer}: {pluralize(number, 'case')}"
    for pair in reviews["agreements"]:
        kappa = "" if pair["kappa"] is None else f", Cohen's kappa {format_score(pair['kappa'])}"
        names, cases = " and ".join(pair["reviewers"]), pluralize(pair["cases"], "case")
        yield f"{names} agree on {round(pair['agreement'] * pair['cases']):,} of {cases}{kappa}"


def correlations(ranking: Iterable[RankedCase]) -> list[Correlation]:
    """Return the pairs of systems whose wrong answers agree more often than by chance.

    Chance is the share of the same answers of all other pairs, at least MIN_CHANCE, in the cases that both systems of a
    pair miss. A binomial test decides, at LEVEL by Bonferroni's correction.
    """
    missed: Counter[tuple[str, str]] = Counter()
    same: Counter[tuple[str, str]] = Counter()
    for ranked in ranking:
        groups = {system: group for group in ranked.answers if not group.is_gold for system in group.systems}
        for pair in combinations(sorted(groups), 2):
            missed[pair] += 1
            same[pair] += groups[pair[0]] is groups[pair[1]]
    pairs: list[Correlation] = []
    for pair, cases in missed.items():
        other_cases, other_same = missed.total() - cases, same.total() - same[pair]
        chance = max(MIN_CHANCE, other_same / other_cases if other_cases else 0.0)
        if _probability(same[pair], cases, chance) < LEVEL / len(missed):
            pairs.append({"systems": [*pair], "cases": cases, "same": same[pair]})
    return pairs


def _probability(successes: int, trials: int, chance: float) -> float:
    """Return the probability of at least so many successes."""
    return sum(
        comb(trials, number) * chance**number * (1 - chance) ** (trials - number)
        for number in range(successes, trials + 1)
    )


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
