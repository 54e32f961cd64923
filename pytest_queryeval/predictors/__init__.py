"""The ways to ask the system under test: `Case -> Prediction`."""

from __future__ import annotations

import json
from typing import Any, Protocol

from pytest_queryeval.metric import TABLE_KINDS
from pytest_queryeval.model import Case, Prediction, PredictorSpec
from pytest_queryeval.registry import Registry


class Predictor(Protocol):
    """Something that answers cases; opened once a session, closed at its end."""

    def predict(self, case: Case) -> Prediction:
        """The system's answer; raises `PredictorError` where there is none."""

    def close(self) -> None:
        """Free what the predictor holds."""


class PredictorOpener(Protocol):
    """Opens a predictor from its settings; raises `PredictorError` where they do not work."""

    def __call__(self, spec: PredictorSpec) -> Predictor:
        """Open it."""


def text_of(answer: Any, case: Case) -> str | None:
    """An answer as text: itself, or a value as JSON where the case's answers are values; None for anything else."""
    if isinstance(answer, str):
        return answer
    if case.kind in TABLE_KINDS or not isinstance(answer, dict | list | int | float):
        return None
    try:
        return json.dumps(answer, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return None


PREDICTORS: Registry[PredictorOpener] = Registry(
    "predictor",
    group="pytest_queryeval.predictors",
    members={
        "inline": f"{__name__}.inline:open_inline",
        "file": f"{__name__}.file:open_file",
        "python": f"{__name__}.python:open_python",
    },
)
