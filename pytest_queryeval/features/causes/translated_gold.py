"""Gold of another source, translated, so that edits can lead to it from a prediction."""

from __future__ import annotations

from dataclasses import replace

from pytest_queryeval.core.model import Case, Prediction, QueryOrAnswer, Trial
from pytest_queryeval.evaluation.scoring import Scoring
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.languages import KINDS


def with_translated_gold(case: Case, trial: Trial, session: Session) -> tuple[Case, Trial]:
    """Return a case and its trial as if gold, translated, had run on the source of the prediction.

    Where gold has no translation that gives its answer there, the trial has a gold without a query, to which no edits
    lead. Raise `SourceError` if the source cannot be queried.
    """
    settings, without_query = case.settings, replace(trial, gold=replace(trial.gold, query=None))
    gold = session.execute_cached(case.golds[trial.gold_index], case.on_gold_source)
    if gold.query is None or gold.answer is None:
        return case, without_query
    try:
        query = KINDS[settings.kind].translate(gold.query, settings.gold_dialect, settings.dialect)
    except ValueError:
        return case, without_query
    translation = QueryOrAnswer(query=query)
    execution = session.execute_cached(translation, case, is_derived=True)
    prediction = Prediction(content=translation, predictor="translation")
    if (
        execution.answer is None
        or Scoring(case, gold, execution, prediction, session).value("execution_accuracy") != 1.0
    ):
        return case, without_query
    one_source = replace(settings, gold_source=None, gold_dialect="")
    return replace(case, golds=(translation,), settings=one_source), replace(trial, gold=execution, gold_index=0)
