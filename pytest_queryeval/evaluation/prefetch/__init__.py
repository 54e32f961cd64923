"""The predictors of a run, opened once, and what each case is answered by."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pytest_queryeval.core.capture import capture_error, unwrap
from pytest_queryeval.core.case_view import CaseView
from pytest_queryeval.core.errors import PredictorError, QueryEvalError
from pytest_queryeval.core.model import Case, Prediction, PredictorSpec
from pytest_queryeval.evaluation.prefetch.prediction_call import Asked
from pytest_queryeval.evaluation.prefetch.runner import PREDICTOR, Caller
from pytest_queryeval.evaluation.prefetch.schema_text import SchemaTexts
from pytest_queryeval.predictors import PREDICTORS, Expecting, Predictor, StoredPredictions
from pytest_queryeval.predictors.answer import wrap_predictor_errors
from pytest_queryeval.predictors.hook import Hook
from pytest_queryeval.text.redaction import register_secrets

if TYPE_CHECKING:
    from pytest_queryeval.evaluation.recording import Recording

PROGRESS_SECONDS = 10.0
END_SECONDS = 2.0  # for everything to end that is under way
_INLINE = PredictorSpec(kind="inline", settings={}, folder=Path())


class Calls:
    """Calls of all predictors of a run; close it.

    `tell` is called with a line on the progress every PROGRESS_SECONDS while answers are waited for. Where calls are
    made `one_at_a_time`, as by a worker of pytest-xdist, functions are called in this thread. `hook` is what the
    predictor of that name calls, `schemas` are those that predictors see.
    """

    def __init__(
        self,
        tell: Callable[[str], None] = lambda _: None,
        *,
        recording: Recording | None = None,
        hook: Callable[[CaseView], object] | None = None,
        one_at_a_time: bool = False,
        schemas: SchemaTexts | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._told = clock()
        self._recording = recording
        self._hook = hook
        self._one_at_a_time = one_at_a_time
        self._schemas = schemas or SchemaTexts()
        self._is_stopped = False
        self._callers: dict[tuple[str, str], Caller | PredictorError] = {}
        self._holders: dict[tuple[str, str], StoredPredictions | PredictorError] = {}

    def prediction(self, case: Case, trial: int) -> Prediction:
        """The answer to a case; raises `PredictorError`."""
        spec = _spec(case)
        if not PREDICTORS[spec.kind].calls:
            with wrap_predictor_errors(PREDICTOR):
                return self._held(spec).predict(case, trial)
        if self._is_stopped:
            raise PredictorError("the run was stopped before there was an answer")
        if self._is_replayed:
            return _replayed(self._asked(case, spec, trial))
        caller = self._caller(spec)
        answer = caller.prediction(self._asked(case, spec, trial, caller), self._tell_progress)
        self._tell_progress()
        return answer

    def prediction_at_hand(self, case: Case) -> Prediction | None:
        """The first answer to a case where nothing is called for it; None where that is not so, or there is none."""
        if not self._is_replayed and PREDICTORS[_spec(case).kind].calls:
            return None
        with suppress(QueryEvalError):
            return self.prediction(case, 1)
        return None

    def expect(self, cases: Iterable[Case]) -> None:
        """Open the predictors of all cases of the run, whether they will be asked or not.

        Those that hold answers already are told which cases there are. Faults are told by each case.
        """
        for spec, own in _by_predictor(cases):
            with suppress(QueryEvalError):
                if PREDICTORS[spec.kind].calls:
                    _ = self._is_replayed or self._caller(_narrowest(spec, own))
                elif isinstance(predictor := self._held(spec), Expecting):
                    predictor.expect(own)

    def ahead(self, cases: Iterable[Case]) -> None:
        """Begin to call as many cases at once as their predictors allow, in this order."""
        if self._is_replayed or self._one_at_a_time:  # a worker knows only its next case, others may get the rest
            return
        for spec, own in _by_predictor(cases):
            with suppress(QueryEvalError):  # told by each case
                if PREDICTORS[spec.kind].calls:
                    caller = self._caller(spec)
                    calls = [(case, trial) for case in own for trial in range(1, case.trials + 1)]
                    caller.ahead(self._asked(case, _spec(case), trial, caller) for case, trial in calls)

    def concurrency(self, case: Case) -> int | None:
        """How many calls its predictor may have under way; None where nothing is called, or it cannot be opened."""
        spec = _spec(case)
        with suppress(QueryEvalError):
            if PREDICTORS[spec.kind].calls and not self._is_replayed:
                return self._caller(spec).concurrency
        return None

    def unused(self) -> list[str]:
        """A sentence for each predictor that has answers which no expected case asked for."""
        holders = [holder for holder in self._holders.values() if isinstance(holder, Expecting)]
        return [said for holder in holders for said in holder.unused()]

    def stop(self) -> None:
        """Cancel all calls under way and begin no more; waits for none of them."""
        self._is_stopped = True
        for caller in self._opened_callers():
            caller.stop()

    def close(self) -> None:
        """Cancel all calls and close the predictors, all of them; may be called again."""
        deadline = time.monotonic() + END_SECONDS
        callers = self._opened_callers()
        holders = [holder for holder in self._holders.values() if not isinstance(holder, PredictorError)]
        self._callers.clear()
        self._holders.clear()
        with ExitStack() as stack:
            for caller in callers:
                stack.callback(caller.wait_for_end, deadline)
            for close in (*(caller.begin_to_end for caller in callers), *(holder.close for holder in holders)):
                stack.callback(close)

    @property
    def _is_replayed(self) -> bool:
        return self._recording is not None and self._recording.replay

    def _opened_callers(self) -> list[Caller]:
        return [caller for caller in self._callers.values() if isinstance(caller, Caller)]

    def _asked(self, case: Case, spec: PredictorSpec, trial: int, caller: Caller | None = None) -> Asked:
        retries = caller.predictor.retries if caller is not None and spec.retries is None else spec.retries
        schema, predictor = self._schemas.of(case), PREDICTORS[spec.kind]
        recorded = None if self._recording is None else self._recording.call(case, spec, trial, schema)
        is_sent_or_recorded = predictor.sends is not None or recorded is not None
        return Asked(
            case=case,
            trial=trial,
            spec=spec,
            retries=retries or 0,
            list_schema=schema,
            lists_ahead=is_sent_or_recorded and "schema" in predictor.sees(spec.settings),
            recorded=recorded,
        )

    def _caller(self, spec: PredictorSpec) -> Caller:
        if spec.key not in self._callers:
            self._callers[spec.key] = capture_error(lambda: self._new_caller(spec), PredictorError)
        return unwrap(self._callers[spec.key])

    def _new_caller(self, spec: PredictorSpec) -> Caller:
        predictor = cast("Predictor", self._opened(spec))
        concurrency = spec.concurrency or predictor.concurrency
        in_turn = concurrency == 1 or self._one_at_a_time or not PREDICTORS[spec.kind].threads
        return Caller(predictor, concurrency=concurrency, in_turn=in_turn, clock=self._schemas.clock)

    def _held(self, spec: PredictorSpec) -> StoredPredictions:
        if spec.key not in self._holders:
            self._holders[spec.key] = capture_error(
                lambda: cast("StoredPredictions", self._opened(spec)), PredictorError
            )
        return unwrap(self._holders[spec.key])

    def _opened(self, spec: PredictorSpec) -> Predictor | StoredPredictions:
        register_secrets(spec.settings)
        if spec.kind == "hook" and self._hook is not None:
            return Hook(self._hook)
        with wrap_predictor_errors(PREDICTOR):
            return PREDICTORS[spec.kind].opener(spec)

    def _tell_progress(self) -> None:
        """A line on all calls, unless there was one just now."""
        now = self._clock()
        if now - self._told < PROGRESS_SECONDS:
            return
        self._told = now
        callers = self._opened_callers()
        asked, done, failed = (
            sum(getattr(caller.counts, name) for caller in callers) for name in ("asked", "done", "failed")
        )
        under_way = sum(caller.under_way for caller in callers)
        known = f", {_seconds_each(callers):.1f} s a call, about {_seconds_left(callers):.0f} s left" if done else ""
        self._tell(f"queryeval: {done:,} of {asked:,} predictions, {under_way:,} under way, {failed:,} failed{known}")


def _replayed(asked: Asked) -> Prediction:
    found = asked.found()
    if found is None:
        raise PredictorError("nothing is recorded")
    return found


def _seconds_each(callers: list[Caller]) -> float:
    return sum(caller.counts.seconds for caller in callers) / max(sum(caller.counts.done for caller in callers), 1)


def _seconds_left(callers: list[Caller]) -> float:
    """Until the last predictor is done."""
    left = (
        counts.seconds / max(counts.done, 1) * (counts.asked - counts.done) / caller.concurrency
        for caller in callers
        for counts in (caller.counts,)
    )
    return max(left, default=0.0)


def _spec(case: Case) -> PredictorSpec:
    if case.predictor is None or (case.predicted is not None and case.predictor.kind == "inline"):
        return _INLINE
    return case.predictor


def _narrowest(spec: PredictorSpec, cases: Iterable[Case]) -> PredictorSpec:
    """The specification with the least concurrency that the suites of its cases state."""
    stated = [own.concurrency for case in cases if (own := _spec(case)).concurrency is not None]
    return replace(spec, concurrency=min(stated)) if stated else spec


def _by_predictor(cases: Iterable[Case]) -> list[tuple[PredictorSpec, list[Case]]]:
    """The cases of each predictor, in their order."""
    found: dict[tuple[str, str], tuple[PredictorSpec, list[Case]]] = {}
    for case in cases:
        spec = _spec(case)
        found.setdefault(spec.key, (spec, []))[1].append(case)
    return list(found.values())
