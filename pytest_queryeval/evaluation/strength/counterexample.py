"""Looks for a small database in which two queries differ that agree on the source: the proof that they are not one.

The search is random and counts candidates, not seconds, so that it finds the same on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Case, Execution, Prediction, QueryOrAnswer
from pytest_queryeval.core.table import Table
from pytest_queryeval.evaluation.scoring import Scoring
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.evaluation.strength.candidates import CandidateDatabases
from pytest_queryeval.evaluation.strength.rows import Rows

BUDGET = 120  # candidates, and attempts to leave rows out of one
PLAIN_SHARE = 1 / 3  # of them, the first ones: few rows, and no NULL where one can do without
PLAIN_SIZES = (4, 8)
SHUFFLES = 2

Pair: TypeAlias = tuple[Execution, Execution]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A database, the script that makes it, and the answers that differ there; `tables` are those that have rows."""

    script: str
    tables: dict[str, Table]
    gold: Execution
    predicted: Execution


def find_counterexample(
    case: Case, gold: str, predicted: str, session: Session, *, seed: int = 0
) -> Counterexample | None:
    """Return a database in which two queries differ by the policy of the case, of as few rows as are found.

    Both answer there, all declared keys hold, and they differ in whatever order the rows were inserted. None means that
    no such database was found, not that there is none. Raise `SourceError` where the source cannot list its tables,
    where no small database with them can be built, and where a query does not end in one.
    """
    random = Random(seed)  # noqa: S311 - no secret depends on it
    databases = CandidateDatabases(case, session)
    generator = databases.generator([databases.compared(query) for query in (gold, predicted)])
    refusals: list[str] = []
    is_buildable = False

    def difference(rows: Rows) -> Pair | None:
        """Return what both queries answer in a database of these rows; None unless both do, and differ."""
        nonlocal is_buildable
        try:
            here = replace(case, settings=replace(case.settings, source=databases.source_of(rows)))
            pair = (
                session.execute(QueryOrAnswer(query=gold), here),
                session.execute(QueryOrAnswer(query=predicted), here),
            )
        except SourceError as error:
            refusals.append(str(error))
            return None
        is_buildable = True
        return pair if _differ(*pair, here, session) else None

    def answers(rows: Rows) -> Pair | None:
        """Return both answers in a database of these rows if they differ there, also with its rows reversed."""
        last_first = {name: own[::-1] for name, own in rows.items()}
        pair = difference(rows)
        return pair if pair is not None and (last_first == rows or difference(last_first) is not None) else None

    for number in range(BUDGET if databases.tables else 0):
        is_plain = number < PLAIN_SHARE * BUDGET
        rows = generator.rows(random, sizes=PLAIN_SIZES, null_shares=(0.0,)) if is_plain else generator.rows(random)
        if answers(rows) is None:
            continue
        rows = databases.reduced(rows, lambda fewer: answers(fewer) is not None, BUDGET)
        # Each row comes first once, besides other orders.
        turns = range(1, max(map(len, rows.values())))
        orders = [{name: own[at:] + own[:at] for name, own in rows.items()} for at in turns]
        orders += ({name: random.sample(own, len(own)) for name, own in rows.items()} for _ in range(SHUFFLES))
        if any(answers(each) is None for each in orders) or (found := answers(rows)) is None:
            continue
        columns = {name: tuple(column.name for column in databases.tables[name].columns) for name in rows}
        return Counterexample(
            script=databases.script(rows),
            tables={name: Table(columns=columns[name], rows=own) for name, own in rows.items() if own},
            gold=found[0],
            predicted=found[1],
        )
    if refusals and not is_buildable:
        raise SourceError(f"no small database with these tables can be built: {refusals[0]}")
    return None


def _differ(gold: Execution, predicted: Execution, case: Case, session: Session) -> bool:
    """Return whether both have answers, which differ by the policy; raise `SourceError` where one did not end."""
    for error in (gold.error, predicted.error):
        if error is not None and error.kind == "timeout":  # as it would in the next databases
            raise SourceError(f"a query does not end in a small database: {error.message}")
    if not isinstance(gold.answer, Table) or not isinstance(predicted.answer, Table):
        return False
    prediction = Prediction(content=QueryOrAnswer(query=predicted.query), predictor="counterexample")
    return Scoring(case, gold, predicted, prediction, session).value("execution_accuracy") != 1.0
