"""How gold differs from what systems agree on: the smallest edit of its query, and what kind of difference it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from pytest_queryeval.comparison.equality import equal_tables, project
from pytest_queryeval.core.cause import Cause
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.model import QueryOrAnswer
from pytest_queryeval.core.table import Table
from pytest_queryeval.evaluation.evaluation import evaluate_case
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.review.answers import AnswerGroup
from pytest_queryeval.languages import KINDS

MAX_QUERIES = 3  # of an answer, for which edits are looked for
DifferenceKind: TypeAlias = Literal["duplicates", "order", "columns", "letter case"]
# The settings of a comparison by which two answers that differ in nothing else are equal.
_ALLOWANCES: tuple[tuple[DifferenceKind, dict[str, Any]], ...] = (
    ("order", {"row_order": "ignore"}),
    ("duplicates", {"duplicates": "ignore", "row_order": "ignore"}),
    ("letter case", {"case": "ignore", "row_order": "ignore"}),
    ("columns", {"extra_columns": "allow", "row_order": "ignore"}),
)


def smallest_edit(gold: AnswerGroup, group: AnswerGroup, session: Session) -> Cause | None:
    """Return the fewest edits of gold's query after which it answers as the systems of a group do.

    They are found as the cause of a wrong answer is, with gold in place of the prediction. None if none is found.
    """
    causes = sorted(_causes(gold, group, session), key=lambda cause: cause.size)
    return causes[0] if causes else None


def _causes(gold: AnswerGroup, group: AnswerGroup, session: Session) -> Iterator[Cause]:
    settings, kind = group.case.settings, KINDS[group.case.settings.kind]
    if gold.case.settings.gold_source is not None:  # whose queries are in another dialect
        return
    if gold.execution.answer is None or (gold.execution.query is None and kind.has_queries):
        return
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
            yield cause


def difference_kind(gold: AnswerGroup, group: AnswerGroup) -> DifferenceKind | None:
    """Return the only thing in which two answers differ; None if they differ in more, or in something else."""
    answer, other_answer = gold.execution.answer, group.execution.answer
    if not isinstance(answer, Table) or not isinstance(other_answer, Table):
        return None
    answer = project(answer, gold.case.settings.policy.gold_columns)
    policy = replace(gold.case.settings.policy, gold_columns=())
    for kind, allowance in _ALLOWANCES:
        if kind == "columns" and not (answer.rows and other_answer.rows):
            continue
        allowing = replace(policy, **allowance)
        if equal_tables(answer, other_answer, allowing) or equal_tables(other_answer, answer, allowing):
            return kind
    return None
