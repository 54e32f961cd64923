"""From a case to its scores: predictions, executed queries, metrics, trials."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from time import perf_counter

from pytest_queryeval.core.answer_json import answer_digest
from pytest_queryeval.core.case_report import UnreviewedReport
from pytest_queryeval.core.errors import (
    GoldColumnError,
    GoldError,
    Location,
    MissingFeatureError,
    PredictorError,
    QueryEvalError,
    SourceError,
)
from pytest_queryeval.core.features import feature
from pytest_queryeval.core.model import (
    Abstention,
    AddedAnswer,
    Case,
    CaseResult,
    Execution,
    Failure,
    Prediction,
    QueryOrAnswer,
    StoredPrediction,
    Trial,
)
from pytest_queryeval.evaluation.scoring import Scoring
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.evaluation.trials import TrialsTest, result_of, threshold_violations
from pytest_queryeval.languages import KINDS
from pytest_queryeval.languages.extract_query import AFTER_PROSE, ENDS_WITH_PROSE, STARTS_WITH_PROSE
from pytest_queryeval.metrics import DECIDING_METRIC, METRICS
from pytest_queryeval.text.formatting import log_line, terminal_safe, truncate_middle

MESSAGE_CHARACTERS = 200
FAULT_CHARACTERS = 2_000


@dataclass(slots=True)
class CaseProgress:
    """How far an evaluation has come; the report of a case that ends in an error shows it."""

    gold: Execution | None = None
    """The gold at `gold_index`: as the suite states it, or with its answer once all golds have run."""
    gold_index: int = 0
    gold_answers: str | None = None
    """A digest of the answers of all golds, once they have run."""
    prediction: Prediction | None = None
    """The prediction of the current trial."""


def evaluate_case(case: Case, session: Session, progress: CaseProgress | None = None) -> CaseResult:
    """Execute and score the trials of a case, and return its result with the cause of a wrong answer, if found.

    With `stops_trials`, there are trials only until the verdict is decided; a `StoredPrediction` has only one trial. A
    predicted query that fails is not an error: it has the worst score on metrics that need its answer. `progress` is
    updated, so that it contains the state up to an error. Errors are:

    - `GoldError`: a gold query does not run.
    - `SourceError`: the source cannot answer.
    - `PredictorError`: the system under test gives no answer.
    - `QueryEvalError`: a metric raises, gives no number, or has a threshold but does not apply.
    - `EngineError`: an analysis shows that the engine is at fault.
    - `SpendLimitReached`: a call may not begin any more.
    """
    session.predictors.check_spend(case)
    progress = progress or CaseProgress()
    golds = _execute_golds(case, session, progress)
    trials: list[Trial] = []
    test = TrialsTest(case) if case.settings.stops_trials else None
    for number in range(1, case.settings.trials + 1):
        progress.prediction = None
        progress.prediction = _predict(case, session, number)
        trials.append(score_prediction(case, golds, progress.prediction, session))
        if isinstance(progress.prediction, StoredPrediction) or (test is not None and test.add_trial(trials[-1])):
            break
    result = result_of(case, trials, progress.gold_answers)
    if case.withdrawal:
        return _withdrawn(result)
    if case.without_review is not case:
        result = replace(result, unreviewed=_unreviewed(case, trials, session))
    if session.cause_mode == "off" or result.shown.scores.get(DECIDING_METRIC):
        return result
    try:
        explained: CaseResult = feature("causes.search").add_cause(result, session)
    except MissingFeatureError:
        return result
    return explained


def _withdrawn(result: CaseResult) -> CaseResult:
    """Return the result of a case whose golds were found wrong without a replacement: without scores and violations.

    `unreviewed` keeps what the suite's golds gave.
    """
    case = replace(result.case, review=None)
    return replace(
        result,
        unreviewed={"outcome": replace(result, case=case).outcome, "scores": {**result.scores}},
        shown=_without_scores(result.shown),
        trials=tuple(map(_without_scores, result.trials)),
        scores={},
        violations=(),
        fails=False,
        difference=None,
    )


def _without_scores(trial: Trial) -> Trial:
    return replace(trial, scores={}, violations=(), details={}, passed=None, depends_on_tie=False, challenge=None)


def _unreviewed(case: Case, trials: Sequence[Trial], session: Session) -> UnreviewedReport:
    """Return the outcome and the scores of the trials by the golds of the suite, without the reviewers' decision.

    The outcome is `error` if that fails.
    """
    unreviewed_case = case.without_review
    try:
        gold_case = unreviewed_case.on_gold_source
        golds = [session.execute_cached(content, gold_case, is_derived=True) for content in gold_case.golds]
        if any(gold.error is not None for gold in golds):
            return {"outcome": "error", "scores": {}}
        unreviewed_trials = [
            _scored_trial(unreviewed_case, golds, trial.prediction, trial.predicted, session)
            if case.answerable  # else nothing was executed
            else score_prediction(unreviewed_case, golds, trial.prediction, session)
            for trial in trials
        ]
        result = result_of(unreviewed_case, unreviewed_trials)
    except QueryEvalError:
        return {"outcome": "error", "scores": {}}
    return {"outcome": result.outcome, "scores": {**result.scores}}


def fault_location(case: Case, fault: Exception) -> Location:
    """Return the place in a suite where a fault can be fixed: the source, gold or setting at fault, else the case."""
    place = None
    if isinstance(fault, GoldError):
        place = fault.location
    elif isinstance(fault, SourceError) and case.settings.source is not None:
        place = fault.location or case.settings.source.location
    elif isinstance(fault, GoldColumnError):
        place = case.settings.gold_columns_location
    elif isinstance(fault, PredictorError):
        place = fault.location
    return place or case.location


def fault_text(case: Case, fault: Exception) -> str:
    """Return the message of a fault, shortened and without secrets, with the place where it can be fixed.

    Further lines are indented so that CI services do not obey them.
    """
    text = truncate_middle(str(fault), FAULT_CHARACTERS)
    first_line, *more_lines = terminal_safe(text).splitlines() or [""]
    return "\n".join(
        (f"{log_line(first_line)} ({fault_location(case, fault)})", *(f"  | {line}" for line in more_lines))
    )


def _execute_golds(case: Case, session: Session, progress: CaseProgress) -> Sequence[Execution]:
    """Return the executions of all golds of a case, and record them in `progress`.

    A case without golds has one execution without query and answer. If a gold fails, raise `GoldError` after the system
    is called, because its answer belongs in the report and in a recording. If the source is at fault, raise
    `SourceError`, and keep only a prediction that needs no call: no other case can be scored either.
    """
    if not case.golds:
        return [Execution(query=None)]
    golds: list[Execution] = []
    gold_case = case.on_gold_source
    try:
        for index, content in enumerate(case.golds):
            progress.gold, progress.gold_index = Execution(query=content.query, answer=content.answer), index
            golds.append(session.execute_cached(content, gold_case))
            if (failure := golds[index].error) is not None:
                progress.gold = replace(progress.gold, seconds=golds[index].seconds)
                raise gold_error(failure, gold_case, index, session)
    except GoldError as error:
        try:
            progress.prediction = _predict(case, session)
        except QueryEvalError as prediction_error:
            raise GoldError(f"{error}; and there is no prediction: {prediction_error}", error.location) from error
        raise
    except SourceError as error:
        progress.prediction = session.prediction_at_hand(case)
        if case.settings.gold_source is None:
            raise
        located_error = copy(error)  # other cases may name the source in another place
        located_error.location = case.settings.gold_source.location
        raise located_error from error
    progress.gold, progress.gold_index = golds[0], 0
    in_order = case.settings.policy.row_order == "strict"
    answers = [gold.answer for gold in golds if gold.answer is not None]
    answers = [answer.stable_part(case) if isinstance(answer, AddedAnswer) else answer for answer in answers]
    progress.gold_answers = answer_digest(answers, in_order=in_order)
    return golds


def _predict(case: Case, session: Session, trial: int = 1) -> Prediction:
    return session.recognize_abstention(session.predict(case, trial), case)


def gold_error(error: Failure, case: Case, index: int, session: Session) -> GoldError:
    """Return, without raising it, the error of a case whose gold at `index` did not run, with a remedy if known."""
    content, source, kind = case.golds[index], case.settings.source, KINDS[case.settings.kind]
    query, message, hint = content.query or "", error.message, ""
    if error.kind == "invalid" and kind.extract_query(query)[0] != query:
        message = (
            "the gold query is in a code fence: write the query alone"
            if "```" in query or "~~~" in query
            else ("the gold query has other text around it: write the query alone")
        )
    elif error.kind == "invalid":
        text_hint = kind.text_hint(query)
        hint = f" ({text_hint})" if text_hint else ""
        if text_hint in (STARTS_WITH_PROSE, ENDS_WITH_PROSE):
            hint += ": write the query alone"
        with suppress(SourceError, ValueError):  # a query that cannot be rewritten has a message of its own
            rewritten_query = query if source is None else source.rewritten(query)
            hint += kind.name_hint(rewritten_query, message, session.schema(case))
    elif error.kind == "unsafe":
        hint = f": {kind.refusal_remedy(query, message, case)}"
    elif error.kind == "timeout":
        hint = ": raise `timeout`, or write a faster query"
    golds = case.golds if case.review is None else case.review.golds
    name = f"gold_any[{index}]" if len(golds) > 1 else "gold"
    if content not in golds:
        name = "a reviewer's"
    return GoldError(f"{name} query failed ({error.kind}): {message}{hint}", content.location)


def score_prediction(case: Case, golds: Sequence[Execution], prediction: Prediction, session: Session) -> Trial:
    """Execute a prediction, and return it as a trial, scored against golds that ran.

    Raise `SourceError`, `PredictorError` and `QueryEvalError` as `evaluate_case` does.
    """
    return _scored_trial(case, golds, prediction, _execute_prediction(prediction.content, case, session), session)


def _scored_trial(
    case: Case, golds: Sequence[Execution], prediction: Prediction, predicted: Execution, session: Session
) -> Trial:
    """Return a prediction that was executed as a trial, scored against the gold with the best score.

    Raise `QueryEvalError` for a metric as `evaluate_case` does.
    """
    began = perf_counter()
    names = case.settings.requested_metrics
    candidates = [Scoring(case, gold, predicted, prediction, session) for gold in golds]
    index = _best_gold_index(candidates, names, case)
    best = candidates[index]
    scores = {name: best.value(name) for name in names}
    best.note_unproven_alignment()
    for name, threshold in case.settings.thresholds.items():
        if scores[name] is not None:
            continue
        metric = METRICS[name]
        if predicted.error is None or (metric.worst_score is not None and metric.input != "predictions"):
            place = f"{threshold.option}: " if threshold.option else ""
            reason = best.reasons.get(name, "").removeprefix(f"{name}: ")
            why, remedy = (f": {reason}", "change this, or remove") if reason else ("", "remove")
            problem = f"metric '{name}' does not apply to this case, but has a threshold"
            raise QueryEvalError(f"{place}{problem}{why}: {remedy} the threshold")
    violations = threshold_violations(scores, case)
    gold_answer, kind = best.gold.answer, KINDS[case.settings.kind]
    return Trial(
        gold=best.gold,
        gold_index=index,
        prediction=prediction,
        predicted=best.predicted,
        scores=scores,
        violations=violations,
        details=best.details,
        depends_on_tie=best.depends_on_tie,
        challenge=best.challenge,
        nearest_answer=best.nearest_answer,
        field_scores={} if gold_answer is None else kind.field_scores(gold_answer, best.predicted.answer, case),
        scoring_seconds=perf_counter() - began,
        passed=not violations and predicted.error is None if case.settings.thresholds else None,
    )


def _execute_prediction(content: QueryOrAnswer | Abstention | Failure, case: Case, session: Session) -> Execution:
    """Return the execution of a prediction, without the text that a model wrote around its query.

    A missing prediction and an abstention are failures. If the case is not answerable, nothing is run, and an
    abstention is no failure.
    """
    if isinstance(content, Failure):
        return Execution(query="", error=content)
    if isinstance(content, Abstention):
        failure = Failure(kind="abstained", message=content.reason or "without a reason")
        return Execution(query="", error=failure) if case.answerable else Execution(query=None)
    if not case.answerable:
        return Execution(query=content.query, answer=content.answer)
    if content.query is None or content.answer is not None:
        return session.execute(content, case)
    kind = KINDS[case.settings.kind]
    query, note = kind.extract_query(content.query)
    if not note and (behind_prose := kind.after_prose(query, case.settings.dialect)):
        query, note = behind_prose, AFTER_PROSE
    execution = session.execute(QueryOrAnswer(query=query), case)
    error = execution.error
    if error is not None and error.kind == "invalid" and (hint := kind.text_hint(query)):
        execution = replace(execution, error=replace(error, message=f"{error.message} ({hint})"))
    run_note = kind.run_note(query, case.settings.source) if case.settings.source else ""
    return replace(execution, note="; ".join(filter(None, (note, run_note, execution.note))))


def _best_gold_index(candidates: Sequence[Scoring], names: Sequence[str], case: Case) -> int:
    """Return the index of the gold that predicted is scored against: the first gold with the best deciding score.

    The deciding metric is the first default metric of the kind; if nothing is executed, the first requested metric.
    """
    if len(candidates) == 1:
        return 0
    deciding = KINDS[case.settings.kind].default_metrics[0]
    if case.settings.source is None and candidates[0].gold.answer is None and names:
        deciding = names[0]
    scores = [candidate.value(deciding) or 0.0 for candidate in candidates]
    return scores.index(max(scores))
