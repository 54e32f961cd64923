"""From cases to their reports, without pytest: in this process, or on an executor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from itertools import islice
from queue import Empty, SimpleQueue
from typing import NamedTuple

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import QueryEvalError, capture_error
from pytest_queryeval.core.model import Case, Outcome, Prediction
from pytest_queryeval.evaluation import CaseProgress, evaluate_case, fault_text
from pytest_queryeval.evaluation.pool import PredictorPool
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.evaluation.spend_limit import SpendLimitReached
from pytest_queryeval.metrics import timing_conflict
from pytest_queryeval.results.case_json import case_json, redacted, result_json
from pytest_queryeval.runs.workers import Dispatcher, Job, WorkerSession
from pytest_queryeval.text.formatting import one_line

POLL_SECONDS = 0.1  # between two polls of outstanding predictions
POLLED_CASES = 64  # in each poll


class NamedCase(NamedTuple):
    """A case with the names that its report has."""

    case: Case
    nodeid: str
    path: str
    """The path of the file that holds the case."""


class PredictedCase(NamedTuple):
    """A case with the answers of the system."""

    named_case: NamedCase
    answers: Sequence[Prediction | QueryEvalError]
    """One for each trial, up to the first error."""
    is_at_hand: bool
    """Whether the answers needed no call."""


def evaluate_cases(
    cases: Sequence[NamedCase],
    session: Session,
    *,
    executor: Executor | None = None,
    by_batch: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[CaseReport]:
    """Yield the reports of cases as soon as they are ready: in order, or, with an `executor`, as they are done.

    Predictions are requested ahead in this process, as many at once as their predictors allow; with `by_batch`, no more
    than that beyond the current case. An executor runs and scores queries. A case whose gold, source or predictor
    fails, or that kills several workers, is yielded with the outcome `error`. Raise `ExecutorBroken` if the executor no
    longer works, and `QueryEvalError` for metrics that workers cannot measure. `tell` is called with a line if a worker
    dies.
    """
    to_run = [named_case for named_case in cases if named_case.case.skip is None]
    if executor is not None and (conflict := timing_conflict((named_case.case for named_case in to_run), "executor")):
        raise QueryEvalError(conflict)
    session.register_cases([named_case.case for named_case in cases])
    if executor is None:
        session.predictors.prefetch([named_case.case for named_case in to_run], by_batch=by_batch)
        session.prepare(named_case.case for named_case in to_run)
        for named_case in cases:
            yield evaluate_named_case(named_case, session)
        return
    for named_case in cases:
        if named_case.case.skip is not None:
            yield evaluate_named_case(named_case, session)
    job = Job(work=evaluate_chunk, cause=session.cause_mode, recording=session.recording)
    dispatcher = Dispatcher(executor, job, failed=_failure_report, redacted=redacted, tell=tell)
    for _, reports in dispatcher.run(_Predictions(session.predictors).of(to_run)):
        yield from reports


def evaluate_chunk(items: Sequence[PredictedCase], session: WorkerSession) -> list[CaseReport]:
    """Return the reports of cases whose predictions are known, in a worker."""
    session.answers = {id(item.named_case.case): item.answers for item in items}
    session.at_hand = frozenset(id(item.named_case.case) for item in items if item.is_at_hand)
    session.prepare(item.named_case.case for item in items)
    return [evaluate_named_case(item.named_case, session) for item in items]


def _failure_report(predicted_case: PredictedCase, reason: str) -> CaseReport:
    case, nodeid, path = predicted_case.named_case
    return case_json(case, nodeid=nodeid, path=path, outcome="error", message=f"{reason} ({case.location})")


class _Predictions:
    """Predictions of cases in the order in which the answers arrive."""

    def __init__(self, predictors: PredictorPool) -> None:
        self._predictors = predictors
        self._ended: SimpleQueue[int] = SimpleQueue()  # identities of cases
        self._open_cases: dict[int, tuple[NamedCase, list[Prediction | QueryEvalError]]] = {}

    def of(self, cases: Sequence[NamedCase]) -> Iterator[PredictedCase | None]:
        """Yield cases with their predictions, and None while none is ready."""
        self._predictors.prefetch(
            [named_case.case for named_case in cases], all_trials=True, on_answer=lambda case: self._ended.put(id(case))
        )
        for named_case in cases:
            if id(named_case.case) in self._open_cases:  # the same object is listed twice
                named_case = named_case._replace(case=replace(named_case.case))
            self._open_cases[id(named_case.case)] = named_case, []
            yield from self._take_if_answered(id(named_case.case))
            while not self._ended.empty():
                yield from self._take_if_answered(self._ended.get())
        while self._open_cases:
            try:
                keys = [self._ended.get(timeout=POLL_SECONDS)]
            except Empty:
                yield None
                self._predictors.tell_progress()
                keys = list(islice(self._open_cases, POLLED_CASES))  # a predictor may block its event loop
            for key in keys:
                yield from self._take_if_answered(key)

    def _take_if_answered(self, key: int) -> Iterator[PredictedCase]:
        """Yield a case once all its answers are there."""
        named_case, answers = self._open_cases.get(key, (None, []))
        while named_case is not None and self._predictors.has_answer(named_case.case, len(answers) + 1):
            trial = len(answers) + 1
            answers.append(capture_error(partial(self._predictors.prediction, named_case.case, trial), QueryEvalError))
            if trial == named_case.case.settings.trials or isinstance(answers[-1], QueryEvalError):
                del self._open_cases[key]
                case_for_worker = named_case._replace(case=_without_predictor_settings(named_case.case))
                yield PredictedCase(case_for_worker, answers, self._predictors.is_at_hand(named_case.case))
                return


def _without_predictor_settings(case: Case) -> Case:
    """Return a case without the settings of its predictor, which no worker may see; `abstain` stays."""
    predictor = case.settings.predictor
    if predictor is None:
        return case
    return replace(case, settings=replace(case.settings, predictor=replace(predictor, settings={})))


def evaluate_named_case(named_case: NamedCase, session: Session) -> CaseReport:
    """Return the report of a case."""
    case, nodeid, path = named_case
    if case.skip is not None:
        return case_json(case, nodeid=nodeid, path=path, outcome="skipped", message=one_line(case.skip))
    source_states = session.source_states(case)
    progress = CaseProgress()
    try:
        result = evaluate_case(case, session, progress)
    except SpendLimitReached as reached:
        outcome: Outcome = "skipped" if case.withdrawal else "not_run"
        return case_json(case, nodeid=nodeid, path=path, outcome=outcome, message=case.withdrawal or str(reached))
    except QueryEvalError as error:
        return case_json(
            case,
            nodeid=nodeid,
            path=path,
            outcome="skipped" if case.withdrawal else "error",
            message=case.withdrawal or fault_text(case, error),
            progress=progress,
            source_states=source_states,
        )
    return result_json(
        result, nodeid=nodeid, path=path, outcome=result.outcome, message=case.withdrawal, source_states=source_states
    )
