"""Predictors without settings: predictions in the suite itself, under `predicted`, and the hook of pytest.

In a suite stands a query, an answer, or gold in the language of the source; the hook is
`pytest_queryeval_predict(case, config)`.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from pytest_queryeval.core.errors import PredictorError
from pytest_queryeval.core.model import (
    Case,
    GoldTranslation,
    Prediction,
    PredictorSpec,
    QueryOrAnswer,
    StoredPrediction,
)
from pytest_queryeval.languages import KINDS
from pytest_queryeval.predictors import CaseView, Predictor, PredictorType
from pytest_queryeval.predictors.answer import prediction_of, refuse_awaitable, wrap_predictor_errors

TRANSLATION = "translation of gold"
HOOK_NAME = "pytest_queryeval_predict"


class Inline:
    """Answers cases with their own `predicted`."""

    def predict(self, case: Case, trial: int) -> Prediction:
        """Return the case's own prediction for all trials.

        If `predicted` asks for a translation, the first gold query is translated from gold's dialect. Raises
        `PredictorError` if the case has no prediction, or gold cannot be translated.
        """
        if case.predicted is None:
            raise PredictorError(f"'{case.id}' has no `predicted`")
        if not isinstance(case.predicted, GoldTranslation):
            return StoredPrediction(case.predicted, predictor="inline")
        settings, location = case.settings, case.predicted.location
        query = next((gold.query for gold in case.golds if gold.query is not None), None)
        try:
            if query is None:  # reviewers put answers in the place of the suite's golds
                raise ValueError("it is an answer, not a query")
            if settings.gold_source is not None:
                query = settings.gold_source.rewritten(query)
            query = KINDS[settings.kind].translate(query, settings.gold_settings.dialect, settings.dialect)
        except ValueError as problem:
            error = PredictorError(f"the gold query cannot be translated: {problem}: write the query under `predicted`")
            error.location = location
            raise error from problem
        return StoredPrediction(QueryOrAnswer(query=query, location=location), predictor=TRANSLATION)

    def close(self) -> None:
        """Do nothing."""


def open_inline(spec: PredictorSpec) -> Inline:
    """Return a predictor that answers from the suite; the settings are not used."""
    return Inline()


INLINE = PredictorType(opener=open_inline, calls=False)


class Hook:
    """Answers cases by calling the pytest hook, which only a run of pytest has."""

    concurrency = 1
    retries = 0

    def __init__(self, call: Callable[[CaseView], object]) -> None:
        self._call = call

    def predict(self, case: CaseView, trial: int) -> Prediction:
        """Return the answer of the first hook implementation that gives one; raises `PredictorError` if none does."""
        start = perf_counter()
        with wrap_predictor_errors(HOOK_NAME):
            answer = self._call(case)
        refuse_awaitable(answer, HOOK_NAME, instead="a hook cannot be async, name the function as `predictor`")
        return prediction_of(answer, case.kind, by=HOOK_NAME, predictor="hook", seconds=perf_counter() - start)

    def close(self) -> None:
        """Do nothing."""


def open_hook(spec: PredictorSpec) -> Predictor:
    """Raise `PredictorError`: no hook is defined. Runs with a hook create `Hook` themselves."""
    raise PredictorError(f"no conftest.py or plugin defines {HOOK_NAME}(case, config): add it to a conftest.py")


HOOK = PredictorType(opener=open_hook, threads=False)
