"""Reads the answers of systems from reports, and groups equal answers to a case; each report is a system.

Answers that the comparison of the case calls equal form a group, together with equal golds. Between gold and a group,
this module finds the smallest edit of gold's query, and the kind of difference between the answers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log2
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pytest_queryeval.comparison.equality import equal_tables, project
from pytest_queryeval.comparison.ties import OrderPlan
from pytest_queryeval.core.case_report import CaseReport, by_data
from pytest_queryeval.core.cause import Cause
from pytest_queryeval.core.errors import QueryEvalError, ReportError
from pytest_queryeval.core.model import SCORE_TOLERANCE, Abstention, Case, Execution, Prediction, QueryOrAnswer
from pytest_queryeval.core.table import Table
from pytest_queryeval.evaluation import evaluate_case
from pytest_queryeval.evaluation.scoring import Scoring
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.languages import KINDS
from pytest_queryeval.results.audit_file import AnswerName, Audit, prediction_digest
from pytest_queryeval.results.case_json import is_whole
from pytest_queryeval.results.report_file import read_report
from pytest_queryeval.text.formatting import one_line

ABSTAINED = Execution(query=None)  # the answer of a system that abstains, and the right one to an unanswerable question
MAX_QUERIES = 3  # of an answer, for which edits are looked for
FAR_WORDS = 32  # between texts that have nothing to do with each other
DifferenceKind: TypeAlias = Literal["duplicates", "order", "columns", "letter case", "no rows"]
_WORD = re.compile(r"'[^']*'|\w+|[^\w\s]")
# The settings of a comparison by which two answers that differ in nothing else are equal.
_ALLOWANCES: tuple[tuple[DifferenceKind, dict[str, Any]], ...] = (
    ("order", {"row_order": "ignore"}),
    ("duplicates", {"duplicates": "ignore", "row_order": "ignore"}),
    ("letter case", {"case": "ignore", "row_order": "ignore"}),
    ("columns", {"extra_columns": "allow", "row_order": "ignore"}),
)
NAME_CHARACTERS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemAnswer:
    """The answer of a system to a case, in the first of several trials, and its verdict."""

    prediction: QueryOrAnswer | Abstention | None
    """None if the report does not have the whole query."""
    is_right: bool = False
    """Whether the case passed with the answer."""
    is_wrong: bool = False
    """Whether the case failed with the answer."""
    refuted_gold: str | None = None
    """The gold that the answer equals on the source but not on a small database; None for other answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A report as a system, with its answers by the node ids of cases."""

    name: str
    answers: Mapping[str, SystemAnswer]
    changed: Sequence[str]
    """The node ids of cases whose question or evidence has changed since the report."""


def read_systems(paths: Sequence[Path], cases: Mapping[str, Case]) -> list[System]:
    """Return a system for each report, with its answers to `cases`, which are keyed by node id.

    A system has the name of its run, or the path of the report if names are missing or equal. Raise `ReportError` for a
    report that cannot be read, is given twice, or has none of the cases.
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
    is_refuted = challenge is not None and by_data(challenge).verdict == "refuted"
    return SystemAnswer(
        prediction=answer,
        is_right=reported["outcome"] in ("passed", "xpassed"),
        is_wrong=reported["outcome"] in ("failed", "missed", "xfailed"),
        refuted_gold=gold["query"] if is_refuted and gold is not None else None,
    )


def verdict_contradictions(audit: Audit, nodeid: str, answers: Mapping[str, SystemAnswer]) -> list[str]:
    """Return a sentence for each answer whose verdict contradicts the judgements of reviewers, right or wrong.

    `answers` are keyed by the names of systems. Answers on which reviewers contradict each other are left out.
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
            sentences.append(f"the answer of {system} failed, but is right ({reviewers})")
        elif clear_judgements == {"wrong"} and answer.is_right:
            sentences.append(f"the answer of {system} passes, but is wrong ({reviewers})")
    return sentences


@dataclass(slots=True, kw_only=True)
class AnswerGroup:
    """Equal answers to a case, and the systems that give them."""

    execution: Execution
    """The execution of the first query with this answer; ABSTAINED if the systems abstain."""
    case: Case
    """The case whose comparison decides which other answers equal `execution`."""
    is_gold: bool = False
    systems: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    """The distinct queries of the systems."""
    tied_systems: list[str] = field(default_factory=list)
    """The systems whose answers are equal only because a LIMIT cuts through rows that tie."""
    ordering_systems: list[str] = field(default_factory=list)
    """The systems whose queries order rows that gold, to which they are equal, leaves in any order."""

    @property
    def is_abstention(self) -> bool:
        """Whether the systems of the group abstain."""
        return self.execution is ABSTAINED

    def drop_answer(self) -> None:
        """Remove the answer but keep its query, so that the answers of all cases need not fit in memory."""
        if not self.is_abstention:
            self.execution = replace(self.execution, answer=None)

    def add(self, system: str, execution: Execution, session: Session) -> bool:
        """Add a system if its answer is equal to that of the group, and return whether it was added.

        Equal answers reach the default thresholds of the kind. A system whose answer is only equal by a choice among
        tied rows is also in `tied_systems`.
        """
        tied = False
        if execution is not self.execution:
            if execution.answer is None or self.execution.answer is None:
                return False
            prediction = Prediction(QueryOrAnswer(query=execution.query), predictor=system)
            scoring = Scoring(self.case, self.execution, execution, prediction, session)
            for metric, minimum in KINDS[self.case.settings.kind].default_thresholds.items():
                score = scoring.value(metric)
                if score is None or score < minimum - SCORE_TOLERANCE:
                    return False
            tied = scoring.depends_on_tie
        self.systems.append(system)
        if execution.query is not None and execution.query not in self.queries:
            self.queries.append(execution.query)
        self.tied_systems += [system] if tied else []
        return True


def group_answers(
    case: Case, predictions: Mapping[str, QueryOrAnswer | Abstention], session: Session
) -> Sequence[AnswerGroup]:
    """Run golds and predictions, which are keyed by the names of systems, and group equal answers.

    Groups are in the order of their first answers, golds first. Systems whose queries fail are in no group. An answer
    belongs to the first group whose first answer it equals by the comparison of the case; the order of rows counts if
    it counts for gold. Raise `SourceError` if the source does not answer, and `PredictorError` for an answer of another
    kind.
    """
    gold_case = case.on_gold_source
    golds = [session.execute_cached(gold, gold_case) for gold in case.golds] or [ABSTAINED]
    groups = [AnswerGroup(execution=gold, case=case, is_gold=True) for gold in golds]
    plans = [_order_plan(gold_case, gold) for gold in golds]
    is_ordered = any(map(_orders, plans))
    for system, prediction in predictions.items():
        execution = ABSTAINED if isinstance(prediction, Abstention) else session.execute_cached(prediction, case)
        if execution.error is not None:
            continue
        group = next((group for group in groups if group.add(system, execution, session)), None)
        plan = _order_plan(case, execution)
        if group is None:
            # Predictions are compared with all of their columns, and in exactly this order if only gold orders rows.
            policy = replace(case.settings.policy, gold_columns=())
            if policy.row_order == "auto" and not (is_ordered and _orders(plan)):
                policy = replace(policy, row_order="strict" if is_ordered else "ignore")
            settings = replace(case.settings, policy=policy, gold_source=None, gold_dialect="")
            group = AnswerGroup(execution=execution, case=replace(case, settings=settings))
            group.add(system, execution, session)
            groups.append(group)
        elif group.is_gold and not is_ordered and _orders(plan):
            has_several_rows = isinstance(execution.answer, Table) and len(execution.answer.rows) > 1
            if any(plans) or has_several_rows:  # else the order says nothing; a plan of gold has a LIMIT
                group.ordering_systems.append(system)
    return groups


def _order_plan(case: Case, execution: Execution) -> OrderPlan | None:
    if execution.query is None:
        return None
    table = execution.answer if isinstance(execution.answer, Table) else Table(columns=(), rows=())
    return KINDS[case.settings.kind].order_plan(execution.query, table, case)


def _orders(plan: OrderPlan | None) -> bool:
    return plan is not None and plan.ordered


def smallest_edit(gold: AnswerGroup, group: AnswerGroup, session: Session) -> Cause | None:
    """Return the fewest edits of gold's query after which it gives the answer of a group; None if none are found.

    The search is that for the cause of a wrong answer, with a query of the group as gold and gold as the prediction.
    None also if gold runs on a source of its own.
    """
    settings, kind = group.case.settings, KINDS[group.case.settings.kind]
    if gold.case.settings.gold_source is not None:  # whose queries are in another dialect
        return None
    if gold.execution.answer is None or (gold.execution.query is None and kind.has_queries):
        return None
    causes: list[Cause] = []
    metrics = tuple(kind.default_thresholds)
    settings = replace(settings, predictor=None, metrics=metrics, thresholds={}, trials=1)
    prediction = QueryOrAnswer(query=gold.execution.query, answer=None if kind.has_queries else gold.execution.answer)
    for query in group.queries[:MAX_QUERIES]:
        case = replace(
            group.case,
            golds=(QueryOrAnswer(query=query),),
            predicted=prediction,
            settings=settings,
        )
        try:
            cause = evaluate_case(case, session).cause
        except QueryEvalError:
            continue
        if cause is not None and (cause.repaired_query is not None or not kind.has_queries):
            causes.append(cause)
    return min(causes, key=lambda cause: cause.effective_edit_count, default=None)


def closeness(gold: AnswerGroup, group: AnswerGroup, cause: Cause | None) -> float:
    """Return `log2(FAR_WORDS / (1 + d))`, at least 0, for d differing words between gold's query and the nearest text.

    That is a query of the group, or gold's query after the edits of `cause`. The result is 0 if an answer has no text,
    as a table, or if gold runs on another source.
    """
    if gold.case.settings.gold_source is not None:
        return 0.0
    text = _normal_text(gold, gold.execution.query)
    texts = [_normal_text(group, query) for query in group.queries[:MAX_QUERIES]]
    if cause is not None and cause.repaired_query is not None:
        texts.append(_normal_text(gold, cause.repaired_query))
    distances = [_differing_words(text, other_text) for other_text in texts if text and other_text]
    return max(0.0, log2(FAR_WORDS / (1 + min(distances)))) if distances else 0.0


def shares_query(group: AnswerGroup) -> bool:
    """Return whether at least two systems of a group wrote the same query, except for its layout."""
    texts = [_normal_text(group, query) for query in group.queries[:MAX_QUERIES]]
    return len(group.queries) < len(group.systems) or len(set(texts)) < len(texts)


def _normal_text(group: AnswerGroup, query: str | None) -> str:
    """Return a query in its normal layout, or the text of the answer without a query; empty for a table."""
    settings, answer = group.case.settings, group.execution.answer
    kind = KINDS[settings.kind]
    if query is not None and kind.has_queries:
        return kind.normal_text(query, settings.dialect)
    return (answer is not None and kind.text(answer)) or ""


def _differing_words(text: str, other_text: str) -> int:
    """Return the number of words that only one of both texts has, repeated words counted.

    >>> _differing_words("SELECT a FROM t WHERE b > 'x y'", "SELECT a FROM t WHERE b < 'x z'")
    4
    """
    words, other_words = Counter(_WORD.findall(text)), Counter(_WORD.findall(other_text))
    return ((words - other_words) + (other_words - words)).total()


def difference_kind(gold: AnswerGroup, group: AnswerGroup) -> DifferenceKind | None:
    """Return the only kind of difference between two answers; None if there are several or other differences.

    Answers that are no tables have None. "no rows" is the kind if only gold has rows.
    """
    answer, other_answer = gold.execution.answer, group.execution.answer
    if not isinstance(answer, Table) or not isinstance(other_answer, Table):
        return None
    answer = project(answer, gold.case.settings.policy.gold_columns)
    if answer.rows and not other_answer.rows:
        return "no rows"
    policy = replace(gold.case.settings.policy, gold_columns=())
    for kind, allowance in _ALLOWANCES:
        if kind == "columns" and not (answer.rows and other_answer.rows):
            continue
        allowing = replace(policy, **allowance)
        if equal_tables(answer, other_answer, allowing) or equal_tables(other_answer, answer, allowing):
            return kind
    return None
