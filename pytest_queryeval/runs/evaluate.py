"""Evaluation from Python, without pytest: of cases, and of pairs of gold and predicted without suites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.cause import CauseMode
from pytest_queryeval.core.errors import ExecutorBroken, PredictorError, QueryEvalError
from pytest_queryeval.core.model import Answer, Case, Failure, Prediction, QueryOrAnswer
from pytest_queryeval.core.report import Report
from pytest_queryeval.core.table import Table
from pytest_queryeval.evaluation import gold_error, score_prediction
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import timing_conflict
from pytest_queryeval.predictors.answer import read_answer
from pytest_queryeval.results.case_store import Cases, with_case
from pytest_queryeval.runs.cases import NamedCase, evaluate_cases
from pytest_queryeval.runs.options import RunOptions
from pytest_queryeval.runs.report import engine_versions, report_of_run
from pytest_queryeval.runs.workers import Dispatcher, Job
from pytest_queryeval.suites.cases import case_of_settings
from pytest_queryeval.text.redaction import redact

Pair: TypeAlias = tuple[object, object]  # gold and predicted


def evaluate(
    cases: Iterable[Case], *, name: str = "", cause: CauseMode = "auto", executor: Executor | None = None
) -> Report:
    """Execute and score cases, and return the report as report.json holds it, without gates.

    `name` is that of the run in reports, the predictors and the commit by default.

    Predictions are requested ahead, as many at once as their predictors allow.

    `cause` says on which sources the causes of wrong answers are looked for: `auto` on local ones, `full` on all.

    Queries are run and scored one after the other, or by the workers of an `executor`, such as a
    `concurrent.futures.ProcessPoolExecutor`: see [Many cases](scale.md). The caller closes it.
    Raise `ExecutorBroken`, which has the report of what was done, where the executor breaks.

    A case whose gold, source or predictor fails is in the report with the outcome `error`; nothing is raised for it.
    Raise `TypeError` for a path in place of cases.
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
    with Session(cause=cause) as session:
        try:
            for report in evaluate_cases(named_cases, session, executor=executor):
                reports = with_case(reports, report)
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

    A pair is a tuple or a list. Each side is the text of a query, or an answer: a `Table`, a mapping
    `{"columns": [...], "rows": [...]}`, or for kinds without queries a value. `source` is what suites write under
    `source`, with paths relative to the current folder; pairs of answers need none. `metrics` are those of the kind by
    default. `settings` are other keys of suites: `kind` (`sql` by default), `compare`, `options`, `timeout`, `max_rows`
    and so on.

    With an `executor` its workers do the work, and pairs are read ahead; the caller closes it. Raise `QueryEvalError`
    for settings that cannot be right, and while scores are read `ExecutorBroken` if the executor breaks.
    """
    suite_keys: dict[str, Any] = {"kind": "sql", "source": source, "metrics": metrics, **settings}
    case = case_of_settings({name: setting for name, setting in suite_keys.items() if setting is not None}, Path.cwd())
    if executor is not None and (conflict := timing_conflict([case], "executor")):
        raise QueryEvalError(conflict)
    return _score_here(pairs, case) if executor is None else _score_on(executor, pairs, case)


def _score_here(pairs: Iterable[Pair], case: Case) -> Iterator[PairScore]:
    with Session(cause="off") as session:
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
    """Return the scores of pairs, in a worker."""
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
        trial = score_prediction(case, [gold], Prediction(content=predicted_content, predictor="pairs"), session)
    except QueryEvalError as error:
        return PairScore({}, error=redact(str(error)))
    return PairScore(trial.scores, trial.predicted.error)


def _read_side(side: object, kind: str, role: str) -> QueryOrAnswer:
    """Return one side of a pair as a query or an answer; raise `PredictorError` for other objects."""
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
