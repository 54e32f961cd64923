"""Searches for a small database on which two queries differ, although they agree on the source.

The search is random and counts candidates, not seconds, so it finds the same database on every machine.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TypeAlias

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Case, Execution, Prediction, QueryOrAnswer
from pytest_queryeval.core.table import Table
from pytest_queryeval.evaluation.counterexamples import MAX_DATABASES, Counterexample
from pytest_queryeval.evaluation.scoring import Scoring
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength.sql.candidates import CandidateDatabases
from pytest_queryeval.features.strength.sql.rows import Rows

PLAIN_SHARE = 1 / 3  # of the candidates, tried first: few rows, and NULL only where unavoidable
PLAIN_SIZES = (4, 8)
SHUFFLES = 2

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
    databases = CandidateDatabases(case, session)
    generator = databases.generator([databases.compared(query) for query in (gold, predicted)])
    refusals: list[str] = []
    is_buildable = False

    def difference(rows: Rows) -> Pair | None:
        """Return the answers of both queries in a database of these rows; None unless both run and differ."""
        nonlocal is_buildable
        try:
            candidate_case = replace(case, settings=replace(case.settings, source=databases.source_of(rows)))
            pair = (
                session.execute(QueryOrAnswer(query=gold), candidate_case),
                session.execute(QueryOrAnswer(query=predicted), candidate_case),
            )
        except SourceError as error:
            refusals.append(str(error))
            return None
        is_buildable = True
        return pair if _differ(*pair, candidate_case, session) else None

    def answers(rows: Rows) -> Pair | None:
        """Return both answers in a database of these rows if they differ in this order of rows and in reverse."""
        reversed_rows = {name: table_rows[::-1] for name, table_rows in rows.items()}
        pair = difference(rows)
        return pair if pair is not None and (reversed_rows == rows or difference(reversed_rows) is not None) else None

    for number in range((candidates or MAX_DATABASES) if databases.tables else 0):
        is_plain = candidates is None and number < PLAIN_SHARE * MAX_DATABASES
        rows = generator.rows(random, sizes=PLAIN_SIZES, null_shares=(0.0,)) if is_plain else generator.rows(random)
        pair = answers(rows) if candidates is None else difference(rows)
        if pair is None:
            continue
        if candidates is not None:
            return _counterexample(rows, pair, databases)
        rows = databases.reduced(rows, lambda fewer: answers(fewer) is not None, MAX_DATABASES)
        # Try each row as the first one, and some random orders.
        turns = range(1, max(map(len, rows.values())))
        orders = [{name: table_rows[at:] + table_rows[:at] for name, table_rows in rows.items()} for at in turns]
        orders += (
            {name: random.sample(table_rows, len(table_rows)) for name, table_rows in rows.items()}
            for _ in range(SHUFFLES)
        )
        if any(answers(order) is None for order in orders) or (final_answers := answers(rows)) is None:
            continue
        return _counterexample(rows, final_answers, databases)
    if refusals and not is_buildable:
        raise SourceError(f"no small database with these tables can be built: {refusals[0]}")
    return None


def _counterexample(rows: Rows, answers: Pair, databases: CandidateDatabases) -> Counterexample:
    columns = {name: tuple(column.name for column in databases.tables[name].columns) for name in rows}
    return Counterexample(
        script=databases.script(rows),
        tables={name: Table(columns=columns[name], rows=table_rows) for name, table_rows in rows.items() if table_rows},
        gold=answers[0],
        predicted=answers[1],
    )


def _differ(gold: Execution, predicted: Execution, case: Case, session: Session) -> bool:
    """Return whether both have answers that differ by the policy; raise `SourceError` where one timed out."""
    for error in (gold.error, predicted.error):
        if error is not None and error.kind == "timeout":  # as it would in the next databases
            raise SourceError(f"a query does not end in a small database: {error.message}")
    if not isinstance(gold.answer, Table) or not isinstance(predicted.answer, Table):
        return False
    prediction = Prediction(content=QueryOrAnswer(query=predicted.query), predictor="counterexample")
    return Scoring(case, gold, predicted, prediction, session).value("execution_accuracy") != 1.0
