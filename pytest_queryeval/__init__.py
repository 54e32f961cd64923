"""Tells whether queries that a model wrote are right: `load_cases`, `evaluate`, and a pytest plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_queryeval.core.errors import ExecutorBroken, PredictorError, QueryEvalError, QueryEvalWarning
    from pytest_queryeval.core.model import Abstention, Case, Prediction, QueryOrAnswer, Step
    from pytest_queryeval.metrics import METRICS
    from pytest_queryeval.predictors import CaseView
    from pytest_queryeval.runs.evaluate import PairScore, evaluate, score_pairs
    from pytest_queryeval.suites import load_cases
    from pytest_queryeval.text.redaction import register_secret

_HOMES = {
    "Abstention": "core.model",
    "Case": "core.model",
    "CaseView": "predictors",
    "ExecutorBroken": "core.errors",
    "METRICS": "metrics",
    "PairScore": "runs.evaluate",
    "Prediction": "core.model",
    "PredictorError": "core.errors",
    "QueryEvalError": "core.errors",
    "QueryEvalWarning": "core.errors",
    "QueryOrAnswer": "core.model",
    "Step": "core.model",
    "evaluate": "runs.evaluate",
    "load_cases": "suites",
    "register_secret": "text.redaction",
    "score_pairs": "runs.evaluate",
}

__all__ = [
    "METRICS",
    "Abstention",
    "Case",
    "CaseView",
    "ExecutorBroken",
    "PairScore",
    "Prediction",
    "PredictorError",
    "QueryEvalError",
    "QueryEvalWarning",
    "QueryOrAnswer",
    "Step",
    "evaluate",
    "load_cases",
    "register_secret",
    "score_pairs",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use; raise `AttributeError` for any other name.

    Names are not imported earlier, because pytest imports this package at every start, also where no suite is run.
    """
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
