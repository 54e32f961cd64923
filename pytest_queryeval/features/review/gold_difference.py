"""How gold differs from what systems agree on: the smallest edit of its query, and what kind of difference it is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from math import log2
from typing import Any, Literal, TypeAlias

from pytest_queryeval.comparison.equality import equal_tables, project
from pytest_queryeval.core.cause import Cause
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.model import QueryOrAnswer
from pytest_queryeval.core.table import Table
from pytest_queryeval.evaluation import evaluate_case
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.review.answers import AnswerGroup
from pytest_queryeval.languages import KINDS

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


def closeness(gold: AnswerGroup, group: AnswerGroup, cause: Cause | None) -> float:
    """Return how often FAR_WORDS are halved until only the words remain that gold has to change, and one; at least 0.

    These are the words that differ between gold and its query after the edits of `cause`, which lead to the answer of
    the group, or a query of the group that is nearer. 0 where an answer has no text, as a table, and where gold is the
    query of another source, whose dialect may be another.
    """
    if gold.case.settings.gold_source is not None:
        return 0.0
    text = _text(gold, gold.execution.query)
    texts = [_text(group, query) for query in group.queries[:MAX_QUERIES]]
    if cause is not None and cause.repaired_query is not None:
        texts.append(_text(gold, cause.repaired_query))
    distances = [_differing_words(text, other_text) for other_text in texts if text and other_text]
    return max(0.0, log2(FAR_WORDS / (1 + min(distances)))) if distances else 0.0


def shares_query(group: AnswerGroup) -> bool:
    """Return whether two systems with an answer wrote the same query, but for its layout."""
    texts = [_text(group, query) for query in group.queries[:MAX_QUERIES]]
    return len(group.queries) < len(group.systems) or len(set(texts)) < len(texts)


def _text(group: AnswerGroup, query: str | None) -> str:
    """Return a query in its normal layout, or without one the text of the answer; empty for a table."""
    settings, answer = group.case.settings, group.execution.answer
    kind = KINDS[settings.kind]
    if query is not None and kind.has_queries:
        return kind.normal_text(query, settings.dialect)
    return (answer is not None and kind.text(answer)) or ""


def _differing_words(text: str, other_text: str) -> int:
    """Return how many words one text has and the other has not.

    >>> _differing_words("SELECT a FROM t WHERE b > 'x y'", "SELECT a FROM t WHERE b < 'x z'")
    4
    """
    words, other_words = Counter(_WORD.findall(text)), Counter(_WORD.findall(other_text))
    return ((words - other_words) + (other_words - words)).total()


def difference_kind(gold: AnswerGroup, group: AnswerGroup) -> DifferenceKind | None:
    """Return the only thing in which two answers differ; None if they differ in more, or in something else."""
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
