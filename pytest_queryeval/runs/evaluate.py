"""Evaluation without pytest, in this process or on an executor: of cases, and of pairs of gold and predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeAlias

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.cause import CauseMode
from pytest_queryeval.core.errors import ExecutorBroken, PredictorError, QueryEvalError, capture_error
from pytest_queryeval.core.mappings import not_none
from pytest_queryeval.core.model import Answer, Case, Failure, Outcome, Prediction, QueryOrAnswer, StoredPrediction
from pytest_queryeval.core.report import Report
from pytest_queryeval.core.table import Table
from pytest_queryeval.evaluation import CaseProgress, evaluate_case, fault_text, gold_error, score_prediction
from pytest_queryeval.evaluation.pool import PredictorPool
from pytest_queryeval.evaluation.prediction_call import SpendLimitReached
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import timing_conflict
from pytest_queryeval.predictors.answer import read_answer
from pytest_queryeval.results.case_json import case_json, redact_case, result_json
from pytest_queryeval.results.case_store import Cases, append_case
from pytest_queryeval.runs.options import RunOptions
from pytest_queryeval.runs.report import engine_versions, report_of_run
from pytest_queryeval.runs.workers import Dispatcher, Job, WorkerSession
from pytest_queryeval.suites.cases import case_of_settings
from pytest_queryeval.text.formatting import one_line
from pytest_queryeval.text.redaction import redact

POLL_SECONDS = 0.1  # between two polls of outstanding predictions
POLLED_CASES = 64  # in each poll
Pair: TypeAlias = tuple[object, object]  # gold and predicted


class NamedCase(NamedTuple):
    """A case with its node id and path, as reports name it."""

    case: Case
    nodeid: str
    path: str
    """The path of the file that holds the case."""


class PredictedCase(NamedTuple):
    """A case with the system's answers to it."""

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
    than that beyond the current case. An executor runs and scores queries.

    A case whose gold, source or predictor fails, or that kills several workers, is yielded with the outcome `error`.
    Raises `ExecutorBroken` if the executor no longer works, and `QueryEvalError` if metrics measure times, which
    workers would distort. `tell` is called with a line if a worker dies.
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
    dispatcher = Dispatcher(executor, job, failed=_failure_report, redacted=redact_case, tell=tell)
    for _, reports in dispatcher.run(_Predictions(session.predictors).of(to_run)):
        yield from reports


def evaluate_chunk(items: Sequence[PredictedCase], session: WorkerSession) -> list[CaseReport]:
    """Return the reports of cases whose predictions are known. Runs in a worker."""
    session.answers = {id(item.named_case.case): item.answers for item in items}
    session.at_hand = frozenset(id(item.named_case.case) for item in items if item.is_at_hand)
    session.prepare(item.named_case.case for item in items)
    return [evaluate_named_case(item.named_case, session) for item in items]


def _failure_report(predicted_case: PredictedCase, reason: str) -> CaseReport:
    case, nodeid, path = predicted_case.named_case
    return case_json(case, nodeid=nodeid, path=path, outcome="error", message=f"{reason} ({case.location})")


class _Predictions:
    """Yields cases with their predictions, in the order in which the answers arrive."""

    def __init__(self, predictors: PredictorPool) -> None:
        self._predictors = predictors
        self._ended: SimpleQueue[int] = SimpleQueue()  # identities of cases
        self._open_cases: dict[int, tuple[NamedCase, list[Prediction | QueryEvalError]]] = {}

    def of(self, cases: Sequence[NamedCase]) -> Iterator[PredictedCase | None]:
        """Request the predictions of cases, and yield each case once all its answers are there.

        Yields None while no case is ready.
        """
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
        """Take the answers of a case that have arrived; yield the case if they are complete.

        They are complete with the last trial, an error, or an answer that serves all trials.
        """
        named_case, answers = self._open_cases.get(key, (None, []))
        while named_case is not None and self._predictors.has_answer(named_case.case, len(answers) + 1):
            trial = len(answers) + 1
            answers.append(capture_error(partial(self._predictors.prediction, named_case.case, trial), QueryEvalError))
            is_last = trial == named_case.case.settings.trials
            if is_last or isinstance(answers[-1], QueryEvalError | StoredPrediction):
                del self._open_cases[key]
                case_for_worker = named_case._replace(case=_without_predictor_settings(named_case.case))
                yield PredictedCase(case_for_worker, answers, self._predictors.is_at_hand(named_case.case))
                return


def _without_predictor_settings(case: Case) -> Case:
    """Return a case without the settings of its predictor, which no worker may see; its other fields stay."""
    predictor = case.settings.predictor
    if predictor is None:
        return case
    return replace(case, settings=replace(case.settings, predictor=replace(predictor, settings={})))


def evaluate_named_case(named_case: NamedCase, session: Session) -> CaseReport:
    """Return the report of a case: skipped, not run, an error, or the result of its evaluation.

    Errors of gold, source and predictor are reported, not raised.
    """
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


def evaluate(
    cases: Iterable[Case], *, name: str = "", cause: CauseMode = "auto", executor: Executor | None = None
) -> Report:
    """Execute and score cases, and return the content of report.json, without gates.

    `name` is the name of the run in reports; by default the predictors and the commit. Predictions are requested ahead,
    as many at once as their predictors allow. `cause` says on which sources the causes of wrong answers are looked for:
    `auto` on local ones, `full` on all.

    Queries are run and scored in turn, or by the workers of an `executor`, such as a
    `concurrent.futures.ProcessPoolExecutor`: see [Many cases](scale.md). The caller closes it. If it breaks,
    `ExecutorBroken` is raised, with the report of the cases that are done.

    A case whose gold, source or predictor fails is in the report with the outcome `error`; nothing is raised for it.
    Raises `TypeError` for a path instead of cases.
    """
    if isinstance(cases, str | Path):
        raise TypeError(f"expected cases, found a path: use `evaluate(load_cases({str(cases)!r}))`")
    named_cases = [
        NamedCase(
            case,
            nodeid=f"{(case.suite or case.location.path).as_posix()}::{case.id}",
            path=case.location.path.as_posix(),
        )
        for case in cases
    ]
    engines = engine_versions(named_case.case for named_case in named_cases if named_case.case.skip is None)
    reports: Cases = []
    with Session(cause_mode=cause) as session:
        try:
            for report in evaluate_cases(named_cases, session, executor=executor):
                reports = append_case(reports, report)
        except ExecutorBroken as error:
            error.report = _report(reports, name, engines, interrupted=True)
            raise
    return _report(reports, name, engines)


def _report(cases: Sequence[CaseReport], name: str, engines: dict[str, str], *, interrupted: bool = False) -> Report:
    folder = Path.cwd()
    return report_of_run(
        cases,
        (),
        RunOptions(prefix="", folder=folder, root=folder, name=name),
        environment={"engines": engines},
        requested_paths={"paths": ["."], "ignored": []},
        collected={},
        unreadable_files=(),
        selected=False,
        stopped=False,
        interrupted=interrupted,
    )


@dataclass(frozen=True, slots=True)
class PairScore:
    """The scores of a predicted query or answer."""

    scores: Mapping[str, float | None]
    """By metric; None for a metric that does not apply."""
    failure: Failure | None = None
    """Why the predicted query has no answer, which metrics of answers score as 0."""
    error: str = ""
    """Why there is no score at all, as when gold does not run, the source cannot be reached, or a metric raises; else
    empty."""


def score_pairs(
    pairs: Iterable[Pair],
    source: str | Path | Mapping[str, Any] | None = None,
    metrics: Sequence[str] | None = None,
    *,
    executor: Executor | None = None,
    **settings: Any,
) -> Iterator[PairScore]:
    """Yield the scores of each pair of gold and predicted, in their order, while the pairs are read.

    A pair is a tuple or a list. Each side is the text of a query, or an answer: a `Table`, a mapping `{"columns":
    [...], "rows": [...]}`, or for kinds without queries a value. `source` is what suites write under `source`, with
    paths relative to the current folder; pairs of answers need none. `metrics` are those of the kind by default.
    `settings` are other keys of suites: `kind` (`sql` by default), `compare`, `options`, `timeout`, `max_rows` and so
    on.

    With an `executor` its workers do the work, and pairs are read ahead; the caller closes it. Raises `QueryEvalError`
    for invalid settings, and `ExecutorBroken` while scores are read, if the executor breaks.
    """
    suite_keys: dict[str, Any] = {"kind": "sql", "source": source, "metrics": metrics, **settings}
    case = case_of_settings(not_none(suite_keys), Path.cwd())
    if executor is not None and (conflict := timing_conflict([case], "executor")):
        raise QueryEvalError(conflict)
    return _score_here(pairs, case) if executor is None else _score_on(executor, pairs, case)


def _score_here(pairs: Iterable[Pair], case: Case) -> Iterator[PairScore]:
    with Session(cause_mode="off") as session:
        for pair in pairs:
            yield _score(pair, case, session)


def _score_on(executor: Executor, pairs: Iterable[Pair], case: Case) -> Iterator[PairScore]:
    job = Job(work=partial(score_chunk, case))
    dispatcher: Dispatcher[object, PairScore] = Dispatcher(
        executor, job, failed=lambda _, reason: PairScore({}, error=redact(reason)), redacted=_redact_score
    )
    sendable_pairs = (() if pair is None else pair for pair in pairs)  # to a dispatcher None means "no pair yet"
    scores_by_first: dict[int, Sequence[PairScore]] = {}  # by the number of their first pair
    expected = 0
    for first, scores in dispatcher.run(sendable_pairs):
        scores_by_first[first] = scores
        while expected in scores_by_first:
            pair_scores = scores_by_first.pop(expected)
            expected += len(pair_scores)
            yield from pair_scores


def score_chunk(case: Case, pairs: Sequence[object], session: Session) -> list[PairScore]:
    """Return the scores of pairs. Runs in a worker."""
    return [_score(pair, case, session) for pair in pairs]


def _score(pair: object, case: Case, session: Session) -> PairScore:
    try:
        if not isinstance(pair, tuple | list) or len(pair) != 2:  # such as a text, whose items would be characters
            raise PredictorError("expected a pair: a tuple or a list of gold and predicted")
        gold_content, predicted_content = (
            _read_side(side, case.settings.kind, by) for side, by in zip(pair, ("gold", "predicted"), strict=True)
        )
        gold = session.execute_cached(gold_content, case.on_gold_source)
        if gold.error is not None:
            raise gold_error(gold.error, replace(case.on_gold_source, golds=(gold_content,)), 0, session)
        trial = score_prediction(case, [gold], Prediction(predicted_content, predictor="pairs"), session)
    except QueryEvalError as error:
        return PairScore({}, error=redact(str(error)))
    return PairScore(trial.scores, trial.predicted.error)


def _read_side(side: object, kind: str, role: str) -> QueryOrAnswer:
    """Return one side of a pair as a query or an answer; raises `PredictorError` for any other object.

    `role` is "gold" or "predicted", for messages.
    """
    if isinstance(side, str):
        return QueryOrAnswer(query=side)
    if isinstance(side, Answer):
        return QueryOrAnswer(answer=side)
    if KINDS[kind].answer_type is not Table:
        return read_answer(side, kind, by=role)
    if not isinstance(side, Mapping) or side.keys() != {"columns", "rows"}:
        raise PredictorError(f"{role} is {type(side).__name__}, neither a query nor a table with `columns` and `rows`")
    if any(isinstance(rows, str | Mapping) for rows in side.values()):  # whose items would be characters or keys
        raise PredictorError(f"{role} has `columns` or `rows` that is not a list")
    try:
        columns, rows = tuple(side["columns"]), [tuple(row) for row in side["rows"]]
    except TypeError:
        raise PredictorError(f"{role} has `columns`, `rows` or a row that is not a list") from None
    if any(len(row) != len(columns) for row in rows):
        raise PredictorError(f"{role} has a row that is not as long as its columns")
    return QueryOrAnswer(answer=Table(columns=columns, rows=rows, has_header=bool(columns or rows)))


def _redact_score(score: PairScore) -> PairScore:
    failure = score.failure and replace(score.failure, message=redact(score.failure.message))
    return replace(score, failure=failure, error=redact(score.error))
