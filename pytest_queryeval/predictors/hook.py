"""The pytest hook `pytest_queryeval_predict(case, config)` as the system under test."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from pytest_queryeval.core.case_view import CaseView
from pytest_queryeval.core.errors import PredictorError
from pytest_queryeval.core.model import Prediction, PredictorSpec
from pytest_queryeval.predictors import Predictor, PredictorType
from pytest_queryeval.predictors.answer import prediction_of, refuse_awaitable, wrap_predictor_errors

HOOK_NAME = "pytest_queryeval_predict"


class Hook:
    """Calls the hook, which only a run of pytest has."""

    concurrency = 1
    retries = 0

    def __init__(self, call: Callable[[CaseView], object]) -> None:
        self._call = call

    def predict(self, case: CaseView, trial: int) -> Prediction:
        """Return what the first implementation that answers gives back; raises `PredictorError` if none does."""
        start = perf_counter()
        with wrap_predictor_errors(HOOK_NAME):
            answer = self._call(case)
        refuse_awaitable(answer, HOOK_NAME, instead="a hook cannot be async, name the function as `predictor`")
        return prediction_of(answer, case.kind, by=HOOK_NAME, predictor="hook", seconds=perf_counter() - start)

    def close(self) -> None:
        """Do nothing."""


def open_hook(spec: PredictorSpec) -> Predictor:
    """Raise `PredictorError`: a `Hook` has to be made with the hook of the run."""
    raise PredictorError(f"no conftest.py or plugin defines {HOOK_NAME}(case, config): add it to a conftest.py")


HOOK = PredictorType(opener=open_hook, threads=False)
