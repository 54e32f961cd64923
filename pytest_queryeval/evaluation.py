"""From a case to its scores: gold and predicted are executed, then compared by every metric that is asked for."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar

from pytest_queryeval.comparison.pairing import pair
from pytest_queryeval.engines import ENGINES, Engine
from pytest_queryeval.engines.host import Hosts
from pytest_queryeval.errors import GoldError, PredictorError, QueryEvalError, SourceError
from pytest_queryeval.kinds import KINDS
from pytest_queryeval.metric import Metric
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.model import Case, CaseResult, Execution, Missed, Prediction, PredictorSpec, Source, Stated
from pytest_queryeval.predictors import PREDICTORS, Predictor
from pytest_queryeval.row_order import settled_order
from pytest_queryeval.table import Table

Opened = TypeVar("Opened")
Fault = TypeVar("Fault", bound=QueryEvalError)

CACHE_CELLS = 1_000_000
UNPROVEN = "alignment: the search for columns, rows or blank nodes stopped at its budget, so scores may be too low"
_INLINE = PredictorSpec(kind="inline", settings={}, folder=Path())


class Session:
    """What cases of one run share: open engines, open predictors, and queries that were executed before.

    Close it, or use it as a context manager.
    """

    def __init__(self) -> None:
        self._hosts = Hosts()
        self._engines: dict[tuple[str, str], Engine | SourceError] = {}
        self._predictors: dict[tuple[str, str], Predictor | PredictorError] = {}
        self._executions: OrderedDict[tuple[object, ...], Execution] = OrderedDict()
        self._cached_cells = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop every child process and free every file, also where one of them raises; may be called again."""
        with ExitStack() as stack:
            stack.callback(self._hosts.close)
            for opened in (*self._engines.values(), *self._predictors.values()):
                if not isinstance(opened, Exception):
                    stack.callback(opened.close)
            self._engines.clear()
            self._predictors.clear()
            self._executions.clear()
            self._cached_cells = 0

    def engine(self, source: Source | None) -> Engine:
        """The engine of a source, opened once; raises `SourceError`, the same one every time."""
        if source is None:
            raise SourceError("the case has a query and no source to run it on")
        key = source.key
        if key not in self._engines:
            self._engines[key] = _opened(lambda: ENGINES[source.engine].open(source, self._hosts), SourceError)
        return _or_raise(self._engines[key])

    def predict(self, case: Case) -> Prediction:
        """The system's answer; raises `PredictorError`."""
        spec = case.predictor
        if spec is None or (case.predicted is not None and spec.kind == "inline"):
            return PREDICTORS["inline"](_INLINE).predict(case)
        key = (spec.kind, f"{spec.folder}\0{sorted(spec.settings.items(), key=str)!r}")
        if key not in self._predictors:
            self._predictors[key] = _opened(lambda: PREDICTORS[spec.kind](spec), PredictorError)
        return _or_raise(self._predictors[key]).predict(case)

    def execute(self, stated: Stated, case: Case) -> Execution:
        """Run a query, or take a stated answer as it is; raises `SourceError`."""
        if stated.query is None:
            return Execution(query=None, answer=stated.answer)
        return self.engine(case.source).execute(stated.query, timeout=case.timeout, max_rows=case.max_rows)

    def execute_once(self, stated: Stated, case: Case) -> Execution:
        """`execute`, remembered for queries that come again; at most CACHE_CELLS cells are kept."""
        if stated.query is None or case.source is None:
            return self.execute(stated, case)
        key = (case.source.key, stated.query, case.timeout, case.max_rows)
        if key in self._executions:
            self._executions.move_to_end(key)
            return self._executions[key]
        execution = self.execute(stated, case)
        self._remember(key, execution)
        return execution

    def _remember(self, key: tuple[object, ...], execution: Execution) -> None:
        self._executions[key] = execution
        self._cached_cells += _cells(execution)
        while self._cached_cells > CACHE_CELLS:
            self._cached_cells -= _cells(self._executions.popitem(last=False)[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The scores against one of several golds."""

    index: int
    gold: Execution
    scores: Mapping[str, float | None]
    details: Mapping[str, Any]


def evaluate_case(case: Case, session: Session) -> CaseResult:
    """Execute and score one case.

    Raises `GoldError` where a gold does not run, `SourceError` where the source cannot answer, `PredictorError` where
    the system under test gives no answer, and `QueryEvalError` where a metric raises, gives no number, or gives None
    and has a threshold; what was predicted by then is the error's `prediction`. A predicted query that fails is not an
    error: it scores 0.
    """
    prediction = None
    try:
        golds = [_checked_gold(stated, case, session) for stated in case.golds]
        prediction = session.predict(case)
        return _evaluated(case, golds, prediction, session)
    except QueryEvalError as error:
        error.prediction = prediction
        raise


def _evaluated(case: Case, golds: Sequence[Execution], prediction: Prediction, session: Session) -> CaseResult:
    predicted = session.execute(prediction.stated, case)
    best = max(
        (_score(index, gold, predicted, case, session) for index, gold in enumerate(golds)),
        key=lambda scored: (_first_score(scored, case), -scored.index),
    )
    return CaseResult(
        case=case,
        gold=best.gold,
        gold_index=best.index,
        prediction=prediction,
        predicted=predicted,
        scores=best.scores,
        missed=_missed(best.scores, case),
        details=best.details,
    )


def _checked_gold(stated: Stated, case: Case, session: Session) -> Execution:
    gold = session.execute_once(stated, case)
    if gold.error is not None:
        raise GoldError(f"gold query failed ({gold.error.kind}): {gold.error.message}")
    return gold


def _first_score(scored: Scored, case: Case) -> float:
    """The value that tells which of several golds counts: the kind's first default metric, else the first asked for."""
    names = (KINDS[case.kind].default_metrics[0], *scored.scores)
    return next((value for name in names if (value := scored.scores.get(name)) is not None), 0.0)


def _score(index: int, gold: Execution, predicted: Execution, case: Case, session: Session) -> Scored:
    details: dict[str, Any] = {}
    if isinstance(gold.answer, Table) and not gold.answer.rows and not case.allow_empty:
        details["empty_gold"] = True
    if notes := [f"{name}: {run.note}" for name, run in (("gold", gold), ("predicted", predicted)) if run.note]:
        details["notes"] = notes
        details["answered_by"] = {"gold": gold.engine, "predicted": predicted.engine}
    gold = _with_order(gold, predicted, case, session, details)
    names = dict.fromkeys((*case.metrics, *case.thresholds))
    scores = {name: _value(name, gold, predicted, case, session) for name in names}
    if _is_unproven(gold, predicted, case):
        details.setdefault("notes", []).append(UNPROVEN)
    return Scored(index=index, gold=gold, scores=scores, details=details)


def _is_unproven(gold: Execution, predicted: Execution, case: Case) -> bool:
    if not isinstance(gold.answer, Table) or not isinstance(predicted.answer, Table):
        return False
    return pair(gold.answer, predicted.answer, case.policy).unproven


def _with_order(
    gold: Execution, predicted: Execution, case: Case, session: Session, details: dict[str, Any]
) -> Execution:
    if not isinstance(gold.answer, Table) or not isinstance(predicted.answer, Table) or gold.query is None:
        return gold
    query, answer = gold.query, gold.answer
    table, notes = settled_order(
        answer,
        predicted.answer,
        case.policy,
        planned=lambda: KINDS[case.kind].order_plan(query, answer, session.engine(case.source).dialect),
        run=lambda rewritten: session.execute_once(Stated(query=rewritten), case).answer,
    )
    if notes:
        details.setdefault("notes", []).extend(notes)
    return gold if table is gold.answer else replace(gold, answer=table)


def _value(name: str, gold: Execution, predicted: Execution, case: Case, session: Session) -> float | None:
    """The score of one metric; 0 where the prediction failed."""
    metric = METRICS[name]
    if metric.rewrite is not None:
        gold = _rewritten(gold, metric.rewrite[0], case, session)
        predicted = _rewritten(predicted, metric.rewrite[1], case, session)
    if predicted.error is not None:
        return 0.0
    try:
        value = _call(metric, gold, predicted, case, case.options.get(name, {}))
    except Exception as error:  # a metric of the user's may raise anything
        raise QueryEvalError(f"metric '{name}' raised {type(error).__name__}: {error}") from error
    return None if value is None else _finite(name, value)


def _finite(name: str, value: Any) -> float:
    """Return a score as a float; raises `QueryEvalError` where it is NaN, an infinity, or no number at all."""
    try:
        if math.isfinite(value):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        value = type(value).__name__
    raise QueryEvalError(f"metric '{name}' gave {value}, no finite number; a metric that does not apply gives None")


def _rewritten(execution: Execution, rewrite: Callable[[str], str], case: Case, session: Session) -> Execution:
    if execution.query is None:
        return execution
    query = rewrite(execution.query)
    return execution if query == execution.query else session.execute_once(Stated(query=query), case)


def _call(
    metric: Metric, gold: Execution, predicted: Execution, case: Case, options: Mapping[str, Any]
) -> float | None:
    extra = {**options, "policy": case.policy} if metric.takes_policy else options
    if metric.reads == "executions":
        return metric.function(gold, predicted, **extra)
    return metric.function(gold.answer, predicted.answer, **extra)


def _missed(scores: Mapping[str, float | None], case: Case) -> tuple[Missed, ...]:
    missed = []
    for name, threshold in case.thresholds.items():
        value = scores[name]
        if value is None:
            raise QueryEvalError(f"metric '{name}' does not apply to this case, but has a threshold")
        if not threshold.admits(value):
            missed.append(Missed(metric=name, threshold=threshold, value=value))
    return tuple(missed)


def _cells(execution: Execution) -> int:
    table = execution.answer
    return 1 + (len(table.rows) * len(table.columns) if isinstance(table, Table) else 0)


def _opened(open_it: Callable[[], Opened], fault: type[Fault]) -> Opened | Fault:
    """What `open_it` returns, or the fault that it raises, kept so that it is raised for every case alike."""
    try:
        return open_it()
    except fault as error:
        return error


def _or_raise(opened: Opened | SourceError | PredictorError) -> Opened:
    if isinstance(opened, SourceError | PredictorError):
        raise opened.with_traceback(None)  # or each raise would add to the traceback of the one before
    return opened
