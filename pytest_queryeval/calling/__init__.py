"""The predictors of a run, opened once, and what each case is answered by."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_queryeval.calling.background import Background
from pytest_queryeval.calling.caller import Call, Caller
from pytest_queryeval.errors import PredictorError, QueryEvalError
from pytest_queryeval.model import Case, Prediction, PredictorSpec
from pytest_queryeval.opening import opened, or_raise
from pytest_queryeval.predictors import PREDICTORS, Expecting, Predictor
from pytest_queryeval.predictors.hook import Hook

if TYPE_CHECKING:
    from pytest_queryeval.recording import Recording

_INLINE = PredictorSpec(kind="inline", settings={}, folder=Path())


class Calls:
    """Calls of all predictors of a run; close it."""

    def __init__(
        self, tell: Callable[[str], None], *, recording: Recording | None, hook: Callable[[Case], object] | None
    ) -> None:
        self._tell = tell
        self._recording = recording
        self._hook = hook
        self._background = Background()
        self._callers: dict[tuple[str, str], Caller | PredictorError] = {}

    def prediction(self, case: Case, trial: int) -> Prediction:
        """The answer to a case; raises `PredictorError`."""
        spec = _spec(case)
        found = self._recorded(case, spec, trial)
        return found or self._caller(spec).prediction(case, trial, self._tell)

    def expect(self, cases: Iterable[Case]) -> None:
        """Tell predictors that want to know it which cases will come; their faults are told by each case."""
        for spec, own in _by_predictor(cases):
            if self._is_replayed(spec):
                continue
            with suppress(QueryEvalError):
                predictor = self._caller(spec).predictor
                if isinstance(predictor, Expecting):
                    predictor.expect(own)

    def ahead(self, cases: Iterable[Case]) -> None:
        """Begin to call as many cases at once as their predictors allow, in this order."""
        for spec, own in _by_predictor(cases):
            calls: list[Call] = [(case, trial) for case in own for trial in range(1, case.trials + 1)]
            with suppress(QueryEvalError):  # told by each case
                if not self._is_replayed(spec):
                    self._caller(spec).ahead([call for call in calls if not self._is_known(call, spec)])

    def concurrency(self, case: Case) -> int | None:
        """How many calls its predictor may have under way; None where nothing is called, or it cannot be opened."""
        spec = _spec(case)
        with suppress(QueryEvalError):
            if PREDICTORS[spec.kind].calls and not self._is_replayed(spec):
                return self._caller(spec).concurrency
        return None

    def unused(self) -> list[str]:
        """A sentence for each predictor that has answers which no expected case asked for."""
        predictors = [caller.predictor for caller in self._callers.values() if isinstance(caller, Caller)]
        return [said for predictor in predictors if isinstance(predictor, Expecting) for said in predictor.unused()]

    def stop(self) -> None:
        """Cancel all calls under way and begin no more."""
        self._background.cancel()

    def close(self) -> None:
        """Cancel all calls and close the predictors; may be called again."""
        self.stop()
        callers = [caller for caller in self._callers.values() if isinstance(caller, Caller)]
        self._callers.clear()
        try:
            for caller in callers:
                caller.close()
        finally:
            self._background.close()

    def _is_replayed(self, spec: PredictorSpec) -> bool:
        return self._recording is not None and self._recording.replay and PREDICTORS[spec.kind].calls

    def _is_known(self, call: Call, spec: PredictorSpec) -> bool:
        """Whether nothing has to be asked: an answer is recorded, or a fault that its case will tell."""
        try:
            return self._recorded(call[0], spec, call[1]) is not None
        except QueryEvalError:
            return True

    def _recorded(self, case: Case, spec: PredictorSpec, trial: int) -> Prediction | None:
        if self._recording is None or not PREDICTORS[spec.kind].calls:
            return None
        return self._recording.prediction(case, spec, trial)

    def _caller(self, spec: PredictorSpec) -> Caller:
        if spec.key not in self._callers:
            self._callers[spec.key] = opened(lambda: self._opened(spec), PredictorError)
        return or_raise(self._callers[spec.key])

    def _opened(self, spec: PredictorSpec) -> Caller:
        def keep(case: Case, trial: int, prediction: Prediction) -> None:
            if self._recording is not None and PREDICTORS[spec.kind].calls:
                self._recording.keep_prediction(case, spec, trial, prediction)

        return Caller(self._predictor(spec), spec, self._background, keep)

    def _predictor(self, spec: PredictorSpec) -> Predictor:
        if spec.kind == "hook" and self._hook is not None:
            return Hook(self._hook)
        return PREDICTORS[spec.kind].opener(spec)


def _spec(case: Case) -> PredictorSpec:
    if case.predictor is None or (case.predicted is not None and case.predictor.kind == "inline"):
        return _INLINE
    return case.predictor


def _by_predictor(cases: Iterable[Case]) -> list[tuple[PredictorSpec, list[Case]]]:
    """The cases of each predictor, in their order."""
    found: dict[tuple[str, str], tuple[PredictorSpec, list[Case]]] = {}
    for case in cases:
        spec = _spec(case)
        if PREDICTORS[spec.kind] is not PREDICTORS["inline"]:
            found.setdefault(spec.key, (spec, []))[1].append(case)
    return list(found.values())
