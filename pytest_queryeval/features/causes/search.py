"""Why a prediction is wrong: the fewest edits after which it answers as gold does, found by running it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import islice

from pytest_queryeval.comparison.budget import shared_budget
from pytest_queryeval.core.cause import Cause, CausingEdit
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Case, CaseResult, Execution, QueryOrAnswer, Trial
from pytest_queryeval.core.table import Table
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.evaluation.scoring import Scoring
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.causes import EDITS
from pytest_queryeval.languages import KINDS
from pytest_queryeval.text.truncation import one_line

# For each case: counts, so that reports do not depend on the machine.
MAX_EXECUTIONS = 50
MAX_CELLS = 1_000_000  # of the answers of repaired queries together
MAX_COMBINATIONS = 500  # of edits, of which many may lead to the same query, or to none
EDIT_SECONDS = 1.0  # for a repaired query, unless all causes are asked for: a slow database has many wrong answers, too
DECIDING = "execution_accuracy"
MESSAGE_CHARACTERS = 200


def add_cause(result: CaseResult, session: Session) -> CaseResult:
    """Return the result with its cause."""
    return replace(result, cause=find_cause(result, session))


def find_cause(result: CaseResult, session: Session) -> Cause | None:
    """Return why the shown trial is wrong; None where it is right, and where no cause is known.

    The cause of a failure, and of an answer that is no table, follows from it. That of a wrong answer is the first
    combination of edits after which the query, run on the same source under the same limits, has gold's answer; unless
    all causes are asked for, it has EDIT_SECONDS at most.
    """
    case, trial = result.case, result.shown
    gold, predicted, kind = trial.gold, trial.predicted, KINDS[case.settings.kind]
    if session.cause_mode == "off":
        return None
    if predicted.error is not None:
        change = one_line(predicted.error.message, MESSAGE_CHARACTERS)
        return Cause(edits=(CausingEdit(label=kind.failure_label(predicted.error), clause="", change=change),))
    if gold.answer is None or predicted.answer is None:
        return None
    if not kind.has_queries:
        return kind.difference_cause(gold.answer, predicted.answer)
    if gold.query is None or predicted.query is None or case.settings.source is None:
        return None
    if case.settings.kind not in EDITS:
        return None
    is_local = bool(ENGINES[case.settings.source.engine].fingerprint.files(case.settings.source))
    if not is_local and session.cause_mode == "auto":
        return None
    with shared_budget(), suppress(SourceError):  # as in a replay, where nothing is recorded of a repaired query
        return _repaired(case, trial, gold.query, predicted.query, session)
    return None


def _repaired(case: Case, trial: Trial, gold_query: str, predicted_query: str, session: Session) -> Cause | None:
    gold = session.execute_cached(case.golds[trial.gold_index], case)

    def score(execution: Execution) -> float | None:
        if case.settings.policy.duplicates == "count" and _row_count(execution) != _row_count(gold):
            return 0.0
        return Scoring(case, gold, execution, trial.prediction, session).value(DECIDING)

    if (trial.scores[DECIDING] if DECIDING in trial.scores else score(trial.predicted)) != 0.0:
        return None
    limited = _with_less_time(case) if session.cause_mode == "auto" else case
    kind, dialect = case.settings.kind, case.settings.dialect
    found = EDITS[kind](predicted_query, gold_query, schema=session.schema(case), dialect=dialect)
    tried: set[str] = set()
    cells = 0
    for numbers in islice(found.combinations(), MAX_COMBINATIONS) if found is not None else ():
        query = found.applied(numbers) if found is not None else None
        if query is None or query in tried:
            continue
        if len(tried) == MAX_EXECUTIONS or cells > MAX_CELLS:
            break
        tried.add(query)
        execution = session.execute_cached(QueryOrAnswer(query=query), limited, is_derived=True)
        cells += _cell_count(execution)
        if execution.error is not None:
            if execution.error.kind == "timeout":
                break
        elif score(execution) == 1.0 and found is not None:
            return Cause(edits=tuple(found.edits[number] for number in numbers), repaired_query=query)
    return None


def _with_less_time(case: Case) -> Case:
    return replace(case, settings=replace(case.settings, timeout=min(case.settings.timeout, EDIT_SECONDS)))


def _cell_count(execution: Execution) -> int:
    return (_row_count(execution) or 0) * len(execution.answer.columns) if isinstance(execution.answer, Table) else 0


def _row_count(execution: Execution) -> int | None:
    return len(execution.answer.rows) if isinstance(execution.answer, Table) else None
