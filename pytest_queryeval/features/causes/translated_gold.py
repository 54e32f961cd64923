"""Gold of another source, translated, so that edits can lead to it from a prediction."""

from __future__ import annotations

from dataclasses import replace

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Case, Execution, Prediction, QueryOrAnswer, Trial
from pytest_queryeval.evaluation.scoring import Scoring
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.languages import KINDS


def with_translated_gold(case: Case, trial: Trial, session: Session) -> tuple[Case, Trial]:
    """Return a case and its trial as if gold, translated, had run on the source of the prediction.

    Where gold has no translation that gives its answer there, the trial has a gold without a query, to which no edits
    lead. Raise `SourceError` if the source cannot be queried, unless the prediction failed: that is a cause by itself.
    """
    try:
        gold = _translated_gold(case, trial, session)
    except SourceError:
        if trial.predicted.error is None:
            raise
        gold = None
    if gold is None:
        return case, replace(trial, gold=replace(trial.gold, query=None))
    settings = replace(case.settings, gold_source=None, gold_dialect="")
    golds = (QueryOrAnswer(query=gold.query),)
    return replace(case, golds=golds, settings=settings), replace(trial, gold=gold, gold_index=0)


def _translated_gold(case: Case, trial: Trial, session: Session) -> Execution | None:
    """Run gold, translated, on the source of the prediction; None if that does not give gold's answer."""
    gold = session.execute_cached(case.golds[trial.gold_index], case.on_gold_source)
    if gold.query is None or gold.answer is None:
        return None
    try:
        query = KINDS[case.settings.kind].translate(gold.query, case.settings.gold_dialect, case.settings.dialect)
    except ValueError:
        return None
    translation = QueryOrAnswer(query=query)
    execution = session.execute_cached(translation, case, is_derived=True)
    if execution.answer is None:
        return None
    prediction = Prediction(content=translation, predictor="translation")
    is_right = Scoring(case, gold, execution, prediction, session).value("execution_accuracy") == 1.0
    return execution if is_right else None
