"""Predictions in the suite itself, under `predicted`: a query, an answer, or gold in the language of the source."""

from __future__ import annotations

from pytest_queryeval.core.errors import PredictorError
from pytest_queryeval.core.model import Case, GoldTranslation, Prediction, PredictorSpec, QueryOrAnswer
from pytest_queryeval.languages import KINDS
from pytest_queryeval.predictors import PredictorType

TRANSLATION = "translation of gold"


class Inline:
    """Answers each case with its own `predicted`."""

    def predict(self, case: Case, trial: int) -> Prediction:
        """Return the case's own prediction; raise `PredictorError` if it has none, or gold cannot be translated."""
        if case.predicted is None:
            raise PredictorError(f"'{case.id}' has no `predicted`")
        if isinstance(case.predicted, GoldTranslation):
            return Prediction(content=_translated_gold(case, case.predicted), predictor=TRANSLATION)
        return Prediction(content=case.predicted, predictor="inline")

    def close(self) -> None:
        """Do nothing."""


def _translated_gold(case: Case, translation: GoldTranslation) -> QueryOrAnswer:
    """Return the first gold that is a query in the language of the source; raise `PredictorError`."""
    settings, query = case.settings, next((gold.query for gold in case.golds if gold.query is not None), None)
    try:
        if query is None:  # reviewers put answers in the place of the suite's golds
            raise ValueError("it is an answer, not a query")
        return QueryOrAnswer(
            query=KINDS[settings.kind].translate(query, settings.of_golds.dialect, settings.dialect),
            location=translation.location,
        )
    except ValueError as problem:
        error = PredictorError(f"gold cannot be translated: {problem}: write the query under `predicted`")
        error.location = translation.location
        raise error from problem


def open_inline(spec: PredictorSpec) -> Inline:
    """Open it; it has no settings."""
    return Inline()


INLINE = PredictorType(opener=open_inline, calls=False)
