"""Searches for a small database on which two queries differ, although they agree on the source.

The search is random and counts candidates, not seconds, so it finds the same database on every machine.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, TypeAlias

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Case, Execution, Prediction, QueryOrAnswer
from pytest_queryeval.core.table import Table
from pytest_queryeval.evaluation.counterexamples import MAX_DATABASES, Counterexample
from pytest_queryeval.evaluation.scoring import Scoring
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength.small_databases import small_databases

Pair: TypeAlias = tuple[Execution, Execution]


def find_counterexample(
    case: Case, gold: str, predicted: str, session: Session, *, candidates: int | None = None, seed: int = 0
) -> Counterexample | None:
    """Return a small database on which two queries differ by the policy of the case, or None if the search finds none.

    Both queries run there, all declared keys hold, and the answers differ in whatever order rows are inserted. None
    does not prove that the queries are equivalent. With `candidates`, only so many databases are tried, and the first
    one on which the answers differ is returned as it is. Raise `SourceError` where the source cannot list its tables,
    where no small database with them can be built, and where a query does not end in one.
    """
    random = Random(seed)  # noqa: S311 - no secret depends on it
    databases = small_databases(case, session, () if candidates is None else (gold, predicted))
    refusals: list[str] = []
    is_buildable = False

    def difference(state: Any) -> Pair | None:
        """Return the answers of both queries in a database with this state; None unless both run and differ."""
        nonlocal is_buildable
        try:
            candidate_case = replace(case, settings=replace(case.settings, source=databases.source_of(state)))
            pair = (
                session.execute(QueryOrAnswer(query=gold), candidate_case),
                session.execute(QueryOrAnswer(query=predicted), candidate_case),
            )
        except SourceError as error:
            refusals.append(str(error))
            return None
        is_buildable = True
        return pair if _differ(*pair, candidate_case, session) else None

    def answers(state: Any) -> Pair | None:
        """Return both answers in a database with this state if they differ in this order and in reverse."""
        pair = difference(state)
        if pair is None or ((reverse := databases.reversed(state)) != state and difference(reverse) is None):
            return None
        return pair

    def smallest(state: Any) -> tuple[Any, Pair | None]:
        """Return a smaller state with its answers; without them where they do not differ in every order."""
        state = databases.reduced(state, lambda fewer: answers(fewer) is not None, MAX_DATABASES)
        has_lucky_order = any(answers(order) is None for order in databases.reordered(state, random))
        return state, None if has_lucky_order else answers(state)

    is_first_enough = candidates is not None
    count = candidates or MAX_DATABASES
    for state in databases.candidates((gold, predicted), random, count, plain_first=not is_first_enough):
        pair = difference(state) if is_first_enough else answers(state)
        if pair is not None and not is_first_enough:
            state, pair = smallest(state)
        if pair is not None:
            return Counterexample(
                script=databases.script(state), tables=databases.contents(state), gold=pair[0], predicted=pair[1]
            )
    if refusals and not is_buildable:
        raise SourceError(f"no small database with these tables can be built: {refusals[0]}")
    return None


def _differ(gold: Execution, predicted: Execution, case: Case, session: Session) -> bool:
    """Return whether both have answers that differ by the policy; raise `SourceError` where one timed out."""
    for error in (gold.error, predicted.error):
        if error is not None and error.kind == "timeout":  # as it would in the next databases
            raise SourceError(f"a query does not end in a small database: {error.message}")
    if not isinstance(gold.answer, Table) or not isinstance(predicted.answer, Table):
        return False
    prediction = Prediction(content=QueryOrAnswer(query=predicted.query), predictor="counterexample")
    return Scoring(case, gold, predicted, prediction, session).value("execution_accuracy") != 1.0
