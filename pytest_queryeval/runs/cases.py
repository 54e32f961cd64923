"""From cases to their reports, without pytest: in this process, or on an executor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from itertools import islice
from queue import Empty, SimpleQueue
from typing import NamedTuple

from pytest_queryeval.core.capture import capture_error
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.model import Case, Outcome, Prediction
from pytest_queryeval.core.report import CaseReport
from pytest_queryeval.evaluation.calls.pool import PredictorPool
from pytest_queryeval.evaluation.evaluation import CaseProgress, evaluate_case, fault_text
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.metrics import timing_conflict
from pytest_queryeval.results.case_json import case_json, redacted, result_json
from pytest_queryeval.runs.workers.chunks import Job, WorkerSession
from pytest_queryeval.runs.workers.dispatch import Dispatcher
from pytest_queryeval.text.truncation import one_line

POLL_SECONDS = 0.1  # between two looks at predictions that nobody answers
POLLED_CASES = 64  # at each look


class NamedCase(NamedTuple):
    """A case with the names that its report has: the node id, and the path of the file that holds it."""

    case: Case
    nodeid: str
    path: str


class PredictedCase(NamedTuple):
    """A case with the answers of the system to its trials, up to the first error; `is_at_hand` if none was called."""

    named: NamedCase
    answers: Sequence[Prediction | QueryEvalError]
    is_at_hand: bool


def evaluate_cases(
    cases: Sequence[NamedCase],
    session: Session,
    *,
    executor: Executor | None = None,
    by_batch: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[CaseReport]:
    """Yield the report of each case as soon as it is there: in their order, but with an `executor` as they are done.

    Predictions are asked for ahead in this process, as many at once as their predictors allow, `by_batch` no more than
    that beyond the case at hand; an executor runs and scores queries. A case whose gold, source or predictor fails, or
    that costs several workers, is yielded with the outcome `error`. Raise `ExecutorBroken` where the executor does no
    more work, and `QueryEvalError` for metrics that workers cannot measure. `tell` is called with a line where a worker
    dies.
    """
    to_run = [each for each in cases if each.case.skip is None]
    if executor is not None and (conflict := timing_conflict((each.case for each in to_run), "executor")):
        raise QueryEvalError(conflict)
    session.register_cases([each.case for each in cases])
    if executor is None:
        session.predictors.prefetch([each.case for each in to_run], by_batch=by_batch)
        session.prepare(each.case for each in to_run)
        for each in cases:
            yield evaluated(each, session)
        return
    for each in cases:
        if each.case.skip is not None:
            yield evaluated(each, session)
    job = Job(work=evaluate_chunk, cause=session.cause_mode, recording=session.recording)
    dispatcher = Dispatcher(executor, job, failed=_failed, redacted=redacted, tell=tell)
    for _, reports in dispatcher.run(_Predictions(session.predictors).of(to_run)):
        yield from reports


def evaluate_chunk(items: Sequence[PredictedCase], session: WorkerSession) -> list[CaseReport]:
    """Return the reports of cases whose predictions are known, in a worker."""
    session.given = {id(item.named.case): item.answers for item in items}
    session.at_hand = frozenset(id(item.named.case) for item in items if item.is_at_hand)
    session.prepare(item.named.case for item in items)
    return [evaluated(item.named, session) for item in items]


def _failed(item: PredictedCase, reason: str) -> CaseReport:
    case, nodeid, path = item.named
    return case_json(case, nodeid=nodeid, path=path, outcome="error", message=f"{reason} ({case.location})")


class _Predictions:
    """Predictions of cases in the order in which the answers come."""

    def __init__(self, predictors: PredictorPool) -> None:
        self._predictors = predictors
        self._ended: SimpleQueue[int] = SimpleQueue()  # identities of cases
        self._waiting: dict[int, tuple[NamedCase, list[Prediction | QueryEvalError]]] = {}

    def of(self, cases: Sequence[NamedCase]) -> Iterator[PredictedCase | None]:
        """Yield cases with their predictions, and None where one has to be waited for."""
        self._predictors.prefetch(
            [each.case for each in cases], all_trials=True, on_answer=lambda case: self._ended.put(id(case))
        )
        for named in cases:
            if id(named.case) in self._waiting:  # the same object is listed twice
                named = named._replace(case=replace(named.case))
            self._waiting[id(named.case)] = named, []
            yield from self._answered(id(named.case))
            while not self._ended.empty():
                yield from self._answered(self._ended.get())
        while self._waiting:
            try:
                keys = [self._ended.get(timeout=POLL_SECONDS)]
            except Empty:
                yield None
                self._predictors.tell_progress()
                keys = list(islice(self._waiting, POLLED_CASES))  # a predictor may block its event loop
            for key in keys:
                yield from self._answered(key)

    def _answered(self, key: int) -> Iterator[PredictedCase]:
        """Yield a case once, when it has all its answers."""
        named, answers = self._waiting.get(key, (None, []))
        while named is not None and self._predictors.has_answer(named.case, len(answers) + 1):
            trial = len(answers) + 1
            answers.append(capture_error(partial(self._predictors.prediction, named.case, trial), QueryEvalError))
            if trial == named.case.settings.trials or isinstance(answers[-1], QueryEvalError):
                del self._waiting[key]
                # Without the predictor, whose settings are for no worker.
                sent = named._replace(case=replace(named.case, settings=replace(named.case.settings, predictor=None)))
                yield PredictedCase(sent, answers, self._predictors.is_at_hand(named.case))
                return


def evaluated(named: NamedCase, session: Session) -> CaseReport:
    """Return the report of a case."""
    case, nodeid, path = named
    if case.skip is not None:
        return case_json(case, nodeid=nodeid, path=path, outcome="skipped", message=one_line(case.skip))
    source_state = session.source_state(case.settings.source)
    progress = CaseProgress()
    try:
        result = evaluate_case(case, session, progress)
    except QueryEvalError as error:
        return case_json(
            case,
            nodeid=nodeid,
            path=path,
            outcome="error",
            message=fault_text(case, error),
            progress=progress,
            source_state=source_state,
        )
    return result_json(
        result, nodeid=nodeid, path=path, outcome=_outcome(case, missed=result.fails), source_state=source_state
    )


def _outcome(case: Case, *, missed: bool) -> Outcome:
    if case.xfail is not None:
        return "xfailed" if missed else "xpassed"
    if not missed:
        return "passed"
    return "missed" if case.settings.on_miss == "xfail" else "failed"
