"""From a case to its scores: gold and predicted are executed, then compared by every metric that is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_queryeval.errors import GoldError, QueryEvalError
from pytest_queryeval.kinds import KINDS
from pytest_queryeval.model import Case, CaseResult, Execution, Missed, Prediction, Stated, Trial
from pytest_queryeval.scoring import Scoring
from pytest_queryeval.session import Session
from pytest_queryeval.trials import result_of, thresholds_missed


def evaluate_case(case: Case, session: Session) -> CaseResult:
    """Execute and score one case, as often as it has trials.

    Raises `GoldError` where a gold does not run, `SourceError` where the source cannot answer, `PredictorError` where
    the system under test gives no answer, and `QueryEvalError` where a metric raises, gives no number, or gives None
    and has a threshold; what was predicted by then is the error's `prediction`. A predicted query that fails is not an
    error: it scores 0 on metrics that need its answer.
    """
    golds = [_checked_gold(stated, case, session) for stated in case.golds]
    return result_of(case, [_trial(case, golds, session, number) for number in range(1, case.trials + 1)])


def _checked_gold(stated: Stated, case: Case, session: Session) -> Execution:
    gold = session.execute_once(stated, case)
    if gold.error is not None:
        raise GoldError(f"gold query failed ({gold.error.kind}): {gold.error.message}")
    return gold


def _trial(case: Case, golds: Sequence[Execution], session: Session, number: int) -> Trial:
    prediction = None
    try:
        prediction = session.predict(case, number)
        return _scored(case, golds, prediction, session)
    except QueryEvalError as error:
        error.prediction = prediction
        raise


def _scored(case: Case, golds: Sequence[Execution], prediction: Prediction, session: Session) -> Trial:
    predicted = _executed(prediction.stated, case, session)
    names = tuple(dict.fromkeys((*case.metrics, *case.thresholds)))
    candidates = [Scoring(case, gold, predicted, prediction, session) for gold in golds]
    index = _best(candidates, names, case)
    best = candidates[index]
    scores = {name: best.value(name) for name in names}
    best.tell_what_is_unproven()
    missed = _missed(scores, case, best.reasons)
    return Trial(
        gold=best.gold,
        gold_index=index,
        prediction=prediction,
        predicted=predicted,
        scores=scores,
        missed=missed,
        details=best.details,
        passed=not missed and predicted.error is None if case.thresholds else None,
    )


def _executed(stated: Stated, case: Case, session: Session) -> Execution:
    """What comes of a prediction, once what a model says around a query is taken off."""
    if stated.query is None or stated.answer is not None:
        return session.execute(stated, case)
    query, note = KINDS[case.kind].unwrapped(stated.query)
    execution = session.execute(Stated(query=query), case)
    return replace(execution, note="; ".join(filter(None, (note, execution.note)))) if note else execution


def _best(candidates: Sequence[Scoring], names: Sequence[str], case: Case) -> int:
    """Which of several golds counts: the first one with the highest value of the kind's first default metric.

    Where nothing is executed, the first metric that was asked for decides.
    """
    if len(candidates) == 1:
        return 0
    deciding = KINDS[case.kind].default_metrics[0]
    if case.source is None and candidates[0].gold.answer is None and names:
        deciding = names[0]
    values = [candidate.value(deciding) or 0.0 for candidate in candidates]
    return values.index(max(values))


def _missed(scores: Mapping[str, float | None], case: Case, reasons: Mapping[str, str]) -> tuple[Missed, ...]:
    """The thresholds that are missed; raises `QueryEvalError` for one on a metric that does not apply."""
    for name in case.thresholds:
        if scores[name] is None:
            why = f": {reasons[name]}" if reasons.get(name) else ""
            raise QueryEvalError(f"metric '{name}' does not apply to this case, but has a threshold{why}")
    return thresholds_missed(scores, case)
