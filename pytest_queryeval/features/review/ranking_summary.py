"""What a ranking as a whole says, and what reviewers decided, as data and as lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypedDict

from pytest_queryeval.features.review.agreement import ReviewSummary
from pytest_queryeval.features.review.correlation import Correlation, correlations
from pytest_queryeval.features.review.ranking import RankedCase
from pytest_queryeval.features.review.systems import System
from pytest_queryeval.text.formatting import format_score, pluralize


class SystemSummary(TypedDict):
    """A system, and for how many cases its report has a query, has none, and is about another question."""

    name: str
    cases: int
    without_query: int
    changed: int


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
