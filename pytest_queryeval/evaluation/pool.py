"""The predictors of a run: opened once, called ahead of the tests that wait for their answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pytest_queryeval.core.errors import PredictorError, QueryEvalError, capture_error, unwrap
from pytest_queryeval.core.model import Case, Prediction, PredictorSpec
from pytest_queryeval.evaluation.prediction_call import (
    PREDICTOR_LABEL,
    PredictionCall,
    SchemaTexts,
    SpendLimit,
    progress_line,
    with_plain_contents,
)
from pytest_queryeval.predictors import PREDICTORS, CaseView, Predictor, RegistersCases, StoredPredictions
from pytest_queryeval.predictors.answer import wrap_predictor_errors
from pytest_queryeval.predictors.inline import Hook
from pytest_queryeval.text.redaction import register_secrets

if TYPE_CHECKING:
    from pytest_queryeval.evaluation.extensions import Recording
    from pytest_queryeval.evaluation.runner import PredictorRunner

PROGRESS_SECONDS = 10.0
END_SECONDS = 2.0  # for calls under way to end
_INLINE = PredictorSpec(kind="inline", settings={}, folder=Path())


class PredictorPool:
    """The predictors of a run, opened on first use; `close` ends them.

    While a caller waits for answers, `tell` is called with a progress line every PROGRESS_SECONDS. If `one_at_a_time`
    is true, as in a worker of pytest-xdist, functions are called in the thread of the caller. `hook` is the function
    that the predictor `hook` calls. `schemas` are the schemas that predictors see. `spend` limits what calls may cost
    together.
    """

    def __init__(
        self,
        tell: Callable[[str], None] = lambda _: None,
        *,
        recording: Recording | None = None,
        hook: Callable[[CaseView], object] | None = None,
        one_at_a_time: bool = False,
        schemas: SchemaTexts | None = None,
        spend: SpendLimit | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._told_at = clock()
        self._recording = recording
        self._is_replay = recording is not None and recording.replay
        self._hook = hook
        self._one_at_a_time = one_at_a_time
        self._schemas = schemas or SchemaTexts()
        self._spend = spend
        self._is_stopped = False
        self._runners: dict[tuple[str, str], PredictorRunner | PredictorError] = {}
        self._stored: dict[tuple[str, str], StoredPredictions | PredictorError] = {}

    def prediction(self, case: Case, trial: int) -> Prediction:
        """Return the answer to a trial of a case: as stated by the suite, from the recording, or from a call.

        Raise `PredictorError` if there is no answer, and `SpendLimitReached` if the spend limit forbids a call.
        """
        spec = _spec_of(case)
        if not PREDICTORS[spec.kind].calls:
            with wrap_predictor_errors(PREDICTOR_LABEL):
                return with_plain_contents(self._stored_predictions(spec).predict(case, trial))
        if self._is_stopped:
            raise PredictorError("the run was stopped before there was an answer")
        if self._lacks_question(case):
            error = PredictorError(case.no_question)
            error.location = case.row
            raise error
        call = self._call(case, trial)
        if self._is_replay:
            return cast("Prediction", call.find_recorded())  # raises if there is no recorded prediction
        answer = self._runner(spec).prediction(call, self.tell_progress)
        self.tell_progress()
        return answer

    def check_spend(self, case: Case) -> None:
        """Raise `SpendLimitReached` if the first trial of a case needs a call that may not begin any more."""
        spec = _spec_of(case)
        if self._spend is None or not self._spend.is_reached or not self._is_called(spec):
            return
        with suppress(QueryEvalError):  # raised again by `prediction`
            if not self._runner(spec).has_begun(case, 1):
                self._call(case, 1).begin()

    def is_at_hand(self, case: Case) -> bool:
        """Return whether the answer to a case needs no call, because it is stored or replayed."""
        return not self._is_called(_spec_of(case))

    def prediction_at_hand(self, case: Case) -> Prediction | None:
        """Return the answer to the first trial of a case if it needs no call.

        None if it does, or if there is no answer.
        """
        if not self.is_at_hand(case):
            return None
        with suppress(QueryEvalError):
            return self.prediction(case, 1)
        return None

    def register_cases(self, cases: Iterable[Case]) -> None:
        """Open the predictors of all cases of the run, and pass their cases to predictors with stored answers.

        A failure is not raised here, but again for each case.
        """
        for spec, predictor_cases in _by_predictor(cases):
            with suppress(QueryEvalError):
                if self._is_called(spec):
                    concurrencies = [
                        concurrency
                        for case in predictor_cases
                        if (concurrency := _spec_of(case).concurrency) is not None
                    ]
                    self._runner(replace(spec, concurrency=min(concurrencies)) if concurrencies else spec)
                elif not PREDICTORS[spec.kind].calls:
                    predictor = self._stored_predictions(spec)
                    if isinstance(predictor, RegistersCases):
                        predictor.register_cases(predictor_cases)

    def prefetch(
        self,
        cases: Iterable[Case],
        *,
        by_batch: bool = False,
        all_trials: bool = False,
        on_answer: Callable[[Case], None] | None = None,
    ) -> None:
        """Start to call the predictors of cases, in this order, and as many at once as a predictor allows.

        All calls are started, or with `by_batch` only as many beyond the awaited call as the predictor makes at once.
        If trials may stop early, only the first trial is called, unless `all_trials` are needed. `on_answer` is called
        with a case, in another thread, when one of its calls ends. With `one_at_a_time`, nothing is started.
        """
        if self._one_at_a_time:  # a worker of pytest-xdist knows only its next case, others may get the rest
            return
        for spec, predictor_cases in _by_predictor(cases):
            with suppress(QueryEvalError):  # raised again for each case
                if self._is_called(spec):
                    calls = (
                        self._call(case, trial + 1)
                        for case in predictor_cases
                        if not case.no_question
                        for trial in range(case.settings.trials if all_trials or not case.settings.stops_trials else 1)
                    )
                    self._runner(spec).prefetch(calls, by_batch=by_batch, on_answer=on_answer)

    def has_answer(self, case: Case, trial: int) -> bool:
        """Return whether `prediction` would return without waiting for a prefetched call."""
        runner = self._runners.get(_spec_of(case).key)
        if runner is None or isinstance(runner, PredictorError) or self._lacks_question(case):
            return True
        return runner.has_answer(case, trial)

    def concurrency(self, case: Case) -> int | None:
        """Return how many calls of the case's predictor are made at once.

        None if it is not called or cannot be opened.
        """
        spec = _spec_of(case)
        with suppress(QueryEvalError):
            if self._is_called(spec):
                return self._runner(spec).progress.concurrency
        return None

    def remarks(self) -> list[str]:
        """Return sentences on stored answers that belong to no registered case, or seem to."""
        stored = [predictor for predictor in self._stored.values() if isinstance(predictor, RegistersCases)]
        return [sentence for predictor in stored for sentence in predictor.remarks()]

    def stop(self) -> None:
        """Cancel all calls and begin no more, without waiting for their end."""
        self._is_stopped = True
        for runner in self._opened_runners():
            runner.stop()

    def close(self) -> None:
        """Cancel all calls and close all predictors, even if one of them raises; wait a little for their end.

        Idempotent.
        """
        deadline = time.monotonic() + END_SECONDS
        runners = self._opened_runners()
        stored = [predictor for predictor in self._stored.values() if not isinstance(predictor, PredictorError)]
        self._runners.clear()
        self._stored.clear()
        with ExitStack() as stack:  # which calls the last one first
            for runner in runners:
                stack.callback(runner.join, deadline)
            for close in (*(runner.shutdown for runner in runners), *(predictor.close for predictor in stored)):
                stack.callback(close)

    def _lacks_question(self, case: Case) -> bool:
        return bool(case.no_question) and self._is_called(_spec_of(case))

    def _is_called(self, spec: PredictorSpec) -> bool:
        return PREDICTORS[spec.kind].calls and not self._is_replay

    def _opened_runners(self) -> list[PredictorRunner]:
        return [runner for runner in self._runners.values() if not isinstance(runner, PredictorError)]

    def _call(self, case: Case, trial: int) -> PredictionCall:
        spec, schema = _spec_of(case), self._schemas.of(case)
        predictor = PREDICTORS[spec.kind]
        recorded = None if self._recording is None else self._recording.call(case, spec, trial, schema)
        is_sent_or_recorded = predictor.sends is not None or recorded is not None
        return PredictionCall(
            case=case,
            trial=trial,
            spec=spec,
            schema_text=schema,
            needs_schema=is_sent_or_recorded and "schema" in predictor.sees(spec.settings),
            recorded=recorded,
            spend=self._spend,
        )

    def _runner(self, spec: PredictorSpec) -> PredictorRunner:
        """Return the runner of a predictor, opened once; raise the same `PredictorError` every time if that failed."""
        if spec.key not in self._runners:
            self._runners[spec.key] = capture_error(lambda: self._open_runner(spec), PredictorError)
        return unwrap(self._runners[spec.key])

    def _open_runner(self, spec: PredictorSpec) -> PredictorRunner:
        from pytest_queryeval.evaluation.runner import PredictorRunner  # and asyncio with it

        predictor = cast("Predictor", self._open(spec))
        concurrency = spec.concurrency or predictor.concurrency
        in_main_thread = concurrency == 1 or self._one_at_a_time or not PREDICTORS[spec.kind].threads
        return PredictorRunner(
            predictor, concurrency=concurrency, in_main_thread=in_main_thread, clock=self._schemas.clock
        )

    def _stored_predictions(self, spec: PredictorSpec) -> StoredPredictions:
        """Return the stored answers of a predictor, opened once.

        Raise the same `PredictorError` every time if that failed.
        """
        if spec.key not in self._stored:
            self._stored[spec.key] = capture_error(lambda: cast("StoredPredictions", self._open(spec)), PredictorError)
        return unwrap(self._stored[spec.key])

    def _open(self, spec: PredictorSpec) -> Predictor | StoredPredictions:
        register_secrets(spec.settings)
        if spec.kind == "hook" and self._hook is not None:
            return Hook(self._hook)
        try:
            with wrap_predictor_errors(PREDICTOR_LABEL):
                return PREDICTORS[spec.kind].opener(spec)
        except PredictorError as error:
            error.location = spec.location
            raise

    def tell_progress(self) -> None:
        """Call `tell` with the progress of all calls, at most once every PROGRESS_SECONDS."""
        now = self._clock()
        if now - self._told_at >= PROGRESS_SECONDS:
            self._told_at = now
            self._tell(progress_line([runner.progress for runner in self._opened_runners()]))


def _spec_of(case: Case) -> PredictorSpec:
    if case.settings.predictor is None or (case.predicted is not None and case.settings.predictor.kind == "inline"):
        return _INLINE
    return case.settings.predictor


def _by_predictor(cases: Iterable[Case]) -> list[tuple[PredictorSpec, list[Case]]]:
    """Return each predictor of the cases with its cases, both in the order of the cases."""
    groups: dict[tuple[str, str], tuple[PredictorSpec, list[Case]]] = {}
    for case in cases:
        spec = _spec_of(case)
        groups.setdefault(spec.key, (spec, []))[1].append(case)
    return list(groups.values())
