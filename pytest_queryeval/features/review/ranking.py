"""Ranks cases by how likely their golds are wrong, each with the evidence: which golds to look at first.

A ranking is summed up: systems that make the same mistakes more often than by chance, and what was decided.

Doubt is a sum of log-odds: each sign that a gold is wrong counts by its weight, in systems that give the same answer
against gold. The weights are those of a logistic regression on planted errors, `benchmarks/bench_review.py calibrate`,
rounded. To weight systems by their reliability, by the model of Dawid and Skene, ranks planted errors no better.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NotRequired, TypeAlias, TypedDict

from pytest_queryeval.core.case_report import CausingEditReport
from pytest_queryeval.core.errors import CHECK_RULES, Finding, QueryEvalError
from pytest_queryeval.core.model import Case, Review
from pytest_queryeval.core.model import ReviewDecision as DecisionWord
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.check.gold_rules import check_golds
from pytest_queryeval.features.review.answers import (
    AnswerGroup,
    DifferenceKind,
    System,
    SystemAnswer,
    closeness,
    difference_kind,
    group_answers,
    shares_query,
    smallest_edit,
)
from pytest_queryeval.features.review.decisions import DECISIONS, CaseKey, gold_digest
from pytest_queryeval.features.review.reviews_key import Reviews
from pytest_queryeval.reports.story import edit_text
from pytest_queryeval.suites import Suite
from pytest_queryeval.text.formatting import format_score, one_line, pluralize

EvidenceKind: TypeAlias = Literal["audit", "challenge", "systems", "edit", "check", "tie"]
MESSAGE_CHARACTERS = 1_000
# Of signs that the planted errors have. How near gold and the other answers are counts in halvings, see `closeness`.
FITTED_WEIGHTS: Mapping[str, float] = {
    "against": 1.0,  # of a system with the most common other answer
    "other": 0.5,  # of a system with an answer that is neither gold's nor the most common other one
    "with gold": -2.0,  # of a system with gold's answer
    "ordering": 3.0,  # of a system that orders rows that gold leaves in any order
    "closeness": 0.75,
    "same query": 0.5,  # if two systems with the most common other answer wrote it, but for its layout
    "duplicates": -2.0,  # often ambiguous
    "no rows": -0.5,  # systems often guess a value that the data do not have
    "gold-empty": 2.0,
    "constant-result": 0.25,
    "limit-tie": 0.25,
}
# Of signs that no planted error has, or too few: chosen by what they say.
CHOSEN_WEIGHTS: Mapping[str, float] = {
    "audit": 1_000.0,  # before all other evidence
    "columns": -1.0,  # often ambiguous
    "tie": 0.1,
    "refutation": 1.0,
    "gold-fails": 3.0,
    "text-order": 1.0,
    "value-not-in-data": 1.0,
    "unknown-term": 1.0,
    "lost-answer": 1.0,
    "moving-gold": 0.25,
}
WEIGHTS: Mapping[str, float] = {**FITTED_WEIGHTS, **CHOSEN_WEIGHTS}
# Of `queryeval check`; its other rules say nothing on whether gold answers the question.
RULES = frozenset(WEIGHTS) & CHECK_RULES.keys()
DIFFERENCE_TEXTS: Mapping[DifferenceKind, str] = {
    "duplicates": "the answers differ in duplicates only",
    "order": "the answers differ in the order of rows only",
    "columns": "one answer has the columns of the other and more",
    "letter case": "the answers differ in letter case only",
    "no rows": "their answer has no rows",
}
LEVEL = 0.01  # of the tests of all pairs together
MIN_CHANCE = 0.5  # of the same wrong answer to a case that two systems miss; unrelated systems are below


class Evidence(TypedDict):
    """A reason to look at a gold: its kind, a sentence, and details for some kinds."""

    kind: EvidenceKind
    text: str
    rule: NotRequired[str]
    """For the kind `check`, the rule of `queryeval check`."""
    edits: NotRequired[list[CausingEditReport]]
    """For the kind `edit`, the edits that lead from gold to the query."""
    difference: NotRequired[DifferenceKind]
    """For the kind `edit`, the only thing in which the answers differ."""


class RankedAnswer(TypedDict):
    """An answer to a case, and the systems that give it."""

    systems: list[str]
    """Empty if only gold has this answer."""
    is_gold: bool
    query: str | None
    """The gold query if `is_gold`, else the first query with this answer.

    None for a stated answer, and for systems that abstain.
    """


class RankedCaseReport(TypedDict):
    """A case of the ranking as `--json` prints it."""

    case: str
    suite: str
    nodeid: str
    gold: str
    """The digest of the case's question and golds, for review files."""
    rank: int
    """From 1, the first to look at."""
    evidence: list[Evidence]
    answers: list[RankedAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedCase:
    """A case with the evidence against its gold."""

    case: Case
    """The case as its suite states it, without the decisions on its golds."""
    nodeid: str
    evidence: Sequence[Evidence]
    answers: Sequence[AnswerGroup]
    """Golds first, then the answers that most systems give, without rows; empty if they could not be compared."""
    signs: Mapping[str, float]
    """The amount of each sign; WEIGHTS has its weight."""
    problem: str = ""
    """Why answers could not be compared; empty if they were."""
    review: Review | None = None
    """What was decided on the golds."""

    @property
    def doubt(self) -> float:
        """How likely the gold is wrong: log-odds, in units of one system that gives the same answer against gold."""
        return sum(WEIGHTS[sign] * amount for sign, amount in self.signs.items())

    @property
    def title(self) -> str:
        """The node id, followed by the decision on the golds and its reviewers if there is one."""
        if self.review is None:
            return self.nodeid
        return f"{self.nodeid} (decided: {self.review.decision}, by {', '.join(self.review.reviewers)})"


EvidenceWithSigns: TypeAlias = tuple[Mapping[str, float], Evidence]


def rank_cases(cases: Iterable[RankedCase]) -> list[RankedCase]:
    """Return the cases sorted by doubt, the greatest first; cases without evidence are last.

    Cases with the same doubt keep their order.
    """
    return sorted(cases, key=lambda case: (not case.evidence, -case.doubt))


def examine_case(
    case: Case,
    nodeid: str,
    answers: Mapping[str, SystemAnswer],
    session: Session,
    verdict_contradictions: Sequence[str] = (),
) -> RankedCase:
    """Return a case with the evidence against its gold, without regard to decisions on it.

    `answers` are keyed by the names of systems. `verdict_contradictions` are sentences on answers whose verdict
    reviewers contradict. If answers cannot be compared, `problem` of the result says why.
    """
    review, case = case.review, case.without_review
    evidence: list[EvidenceWithSigns] = [
        ({"audit": 1}, {"kind": "audit", "text": sentence}) for sentence in verdict_contradictions
    ]
    groups: Sequence[AnswerGroup] = ()
    signs: Counter[str] = Counter()
    problem = ""
    try:
        predictions = {name: answer.prediction for name, answer in answers.items() if answer.prediction is not None}
        unsorted_groups = group_answers(case, predictions, session)
        groups = sorted(unsorted_groups, key=lambda group: (not group.is_gold, -len(group.systems)))
        golds = [group for group in groups if group.is_gold]
        # Those that leave the order of rows open where gold does.
        signs["with gold"] = sum(len(gold.systems) - len(gold.ordering_systems) for gold in golds)
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
            text = f"the query of {system} gives the gold answer on the data, and another on a small database"
            evidence.append(({"refutation": 1}, {"kind": "challenge", "text": text}))
    for signs_of_evidence, _ in evidence:
        signs.update(signs_of_evidence)
    return RankedCase(
        case=case,
        nodeid=nodeid,
        evidence=[item for _, item in evidence],
        answers=groups,
        signs=signs,
        problem=problem,
        review=review,
    )


def _evidence_of_golds(golds: Sequence[AnswerGroup], systems: int) -> Iterator[EvidenceWithSigns]:
    """Yield the evidence against gold in answers that are equal to it; `systems` is the number of all systems."""
    if ordering := sum(len(gold.ordering_systems) for gold in golds):
        text = (
            f"{_systems_text(ordering, systems)} {'order' if ordering > 1 else 'orders'} rows, the gold query does not"
        )
        yield {"ordering": ordering}, {"kind": "systems", "text": text}
    if tied := sum(len(gold.tied_systems) for gold in golds):
        text = f"{_systems_text(tied, systems)} {'are' if tied > 1 else 'is'} right by a choice among rows that tie"
        yield {"tie": 1}, {"kind": "tie", "text": text}


def _evidence_of_systems(
    gold: AnswerGroup, other_answers: Sequence[AnswerGroup], systems: int, session: Session
) -> Iterator[EvidenceWithSigns]:
    """Yield the evidence against gold in the most common other answer; `systems` counts all systems.

    The first evidence says how many systems contradict gold; the second, if found, how the answers and queries differ.
    """
    agreeing, *differing = (len(group.systems) for group in other_answers)
    cause, kind = smallest_edit(gold, other_answers[0], session), difference_kind(gold, other_answers[0])
    signs = {
        "against": agreeing,
        "other": sum(differing),
        "closeness": closeness(gold, other_answers[0], cause),
        "same query": shares_query(other_answers[0]),
    }
    if other_answers[0].is_abstention:
        contradiction = f"{'abstain' if agreeing > 1 else 'abstains'}, but there is a gold answer"
    elif gold.is_abstention:
        contradiction = f"{'give the same answer' if agreeing > 1 else 'answers'}, but the case has no right answer"
    else:
        contradiction = "give the same answer, gold another" if agreeing > 1 else "disagrees with the gold answer"
    text = f"{_systems_text(agreeing, systems)} {contradiction}"
    yield signs, {"kind": "systems", "text": text}
    edits: list[CausingEditReport] = []
    texts = [] if kind is None else [DIFFERENCE_TEXTS[kind]]
    if cause is not None:
        edits = [{"label": edit.label, "clause": edit.clause, "change": edit.change} for edit in cause.edits]
        steps = "; ".join(one_line(edit_text(edit), MESSAGE_CHARACTERS) for edit in edits)
        texts.insert(0, f"{pluralize(len(edits), 'edit')} from the gold query to theirs: {steps}")
    if texts:
        evidence: Evidence = {"kind": "edit", "text": "; ".join(texts), "edits": edits}
        if kind is not None:
            evidence["difference"] = kind
        yield {kind: 1} if kind is not None and kind in WEIGHTS else {}, evidence


def _systems_text(number: int, systems: int) -> str:
    return "the only system" if systems == 1 else f"{number:,} of {systems:,} systems"


def _evidence_of_checks(case: Case, session: Session) -> Iterator[EvidenceWithSigns]:
    """Yield the findings of `queryeval check` on the golds; only the first finding of a rule counts as a sign."""
    counted: set[str] = set()
    for finding in check_golds(case, session, RULES):
        if not finding.silenced:
            signs = {} if finding.rule in counted else {finding.rule: 1}
            counted.add(finding.rule)
            text = one_line(finding.message, MESSAGE_CHARACTERS)
            yield signs, {"kind": "check", "text": text, "rule": finding.rule}


def ranking_data(ranking: Sequence[RankedCase]) -> list[RankedCaseReport]:
    """Return ranked cases in the form that `--json` prints."""
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


class SystemSummary(TypedDict):
    """A system, and for how many cases its report has a query, has none, and is about another question."""

    name: str
    cases: int
    without_query: int
    changed: int


class Correlation(TypedDict):
    """Two systems, the number of cases that both answer wrongly, and of cases with the same wrong answer."""

    systems: list[str]
    cases: int
    same: int


class Agreement(TypedDict):
    """How far two reviewers agree on the cases that both decided on, without decisions `unsure`."""

    reviewers: list[str]
    cases: int
    agreement: float
    """The share of these cases with the same decision."""
    kappa: float | None
    """Cohen's kappa: the agreement beyond what is expected by chance; None if chance alone explains all of it."""


class ReviewSummary(TypedDict):
    """What reviewers decided on all cases."""

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
    """The systems, correlations, problems and reviews that a ranking as a whole shows."""

    systems: list[SystemSummary]
    correlated: list[Correlation]
    """Pairs of systems whose wrong answers agree more often than by chance."""
    not_run: int
    """The number of cases of services that were not examined, because enough others were."""
    problems: dict[str, int]
    """The number of cases by the reason why answers could not be compared."""
    reviews: ReviewSummary


def ranking_summary(
    ranking: Sequence[RankedCase], systems: Sequence[System], reviews: ReviewSummary, *, not_run: int
) -> RankingSummary:
    """Return the summary of a ranking: its systems, correlated systems, problems, and the given reviews.

    `not_run` is the number of cases that were not examined.
    """
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
    """Yield sentences on systems without queries, correlated systems, and cases that were not compared or examined."""
    for system in summary["systems"]:
        if system["without_query"]:
            yield f"{system['name']}: without a whole query in {pluralize(system['without_query'], 'case')}"
        if system["changed"]:
            changed = pluralize(system["changed"], "case")
            yield f"{system['name']}: another question in {changed}, which is not counted: run the suites again"
    for pair in summary["correlated"]:
        names, cases = " and ".join(pair["systems"]), pluralize(pair["cases"], "case")
        yield f"{names} are correlated: the same wrong answer in {pair['same']:,} of {cases} that both answer wrongly"
    for problem, number in summary["problems"].items():
        yield f"not compared in {pluralize(number, 'case')}: {problem}"
    if summary["not_run"]:
        yield f"not examined: {pluralize(summary['not_run'], 'case')} of services, of which enough others were"


def review_lines(reviews: ReviewSummary) -> Iterator[str]:
    """Yield lines with the number of decisions, conflicts and decisions by reviewer, and how far reviewers agree."""
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
    from scipy.stats import binom  # takes long to import

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
        if binom.sf(same[pair] - 1, cases, chance) < LEVEL / len(missed):  # of at least so many by chance
            pairs.append({"systems": [*pair], "cases": cases, "same": same[pair]})
    return pairs


def review_summary(suites: Iterable[Suite]) -> ReviewSummary:
    """Return what reviewers decided on the cases of suites.

    Raise `CaseError` or `SuiteError` for invalid review files. For each reviewer, the last decision on a case counts.
    Decisions that settle a conflict do not count here, because their reviewers saw the decisions of others.
    """
    cases = settled = 0
    by_decision: Counter[DecisionWord] = Counter()
    findings: set[Finding] = set()
    decisions: defaultdict[str, dict[CaseKey, DecisionWord]] = defaultdict(dict)
    for suite in suites:
        reviews = suite.values.get("reviews")
        findings.update(suite.findings)
        for case in suite.cases:
            cases += 1
            if case.review is not None:
                by_decision[case.review.decision] += 1
            if isinstance(reviews, Reviews):
                name, digest = CaseKey(suite.path, case.id), gold_digest(case.without_review)
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


def _agreement(reviewers: Sequence[str], decisions: Sequence[dict[CaseKey, DecisionWord]]) -> Agreement | None:
    """Return how far two reviewers agree on common cases; None without such a case.

    Decisions `unsure` are left out. Cohen's kappa is None if all decisions are the same.
    """
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
