"""Predictions in the suite itself, under `predicted`."""

from __future__ import annotations

from pytest_queryeval.core.errors import PredictorError
from pytest_queryeval.core.model import Case, Prediction, PredictorSpec
from pytest_queryeval.predictors import PredictorType


class Inline:
    """Answers each case with its own `predicted`."""

    def predict(self, case: Case, trial: int) -> Prediction:
        """Return the case's own prediction; raises `PredictorError` if it has none."""
        if case.predicted is None:
            raise PredictorError(f"'{case.id}' has no `predicted`")
        return Prediction(content=case.predicted, predictor="inline")

    def close(self) -> None:
        """Do nothing."""


def open_inline(spec: PredictorSpec) -> Inline:
    """Open it; it has no settings."""
    return Inline()


INLINE = PredictorType(opener=open_inline, calls=False)
