"""Whether a failed case would pass with other settings of `compare`, for hints that name such a setting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pytest_queryeval.core.metric import Score
from pytest_queryeval.core.model import AddedAnswer, Case, CaseResult, Trial
from pytest_queryeval.evaluation.trials import threshold_violations, verdict_of
from pytest_queryeval.metrics import DECIDING_METRIC, metric_of


def passes_with(result: CaseResult, **compare: Any) -> bool:
    """Return whether the trials of a case would pass with these settings of `compare`.

    No query is run again: a metric that runs queries again keeps its score. False for settings that would be refused.
    """
    policy = replace(result.case.settings.policy, **compare)
    if policy.has_ordered_set:
        return False
    case = replace(result.case, settings=replace(result.case.settings, policy=policy))
    trials = [_scored_again(trial, case) for trial in result.trials]
    return not verdict_of(case, trials)[2]


def _scored_again(trial: Trial, case: Case) -> Trial:
    scores = {name: _score(name, trial, case) for name in {**trial.scores, **case.settings.thresholds}}
    violations = threshold_violations(scores, case)
    passed = not violations and trial.predicted.error is None if case.settings.thresholds else None
    return replace(trial, scores=scores, violations=violations, passed=passed)


def _score(name: str, trial: Trial, case: Case) -> float | None:
    """Return the score under the settings of `case`; the earlier one of a metric that does not follow them alone."""
    earlier_score, gold, predicted = trial.scores.get(name), trial.gold, trial.predicted
    if name not in case.settings.thresholds or gold.answer is None or predicted.answer is None:
        return earlier_score
    if isinstance(gold.answer, AddedAnswer):
        return float(gold.answer.equals(predicted.answer, case)) if name == DECIDING_METRIC else earlier_score
    metric, options = metric_of(case.settings, name)
    if metric.published or metric.injected != {"policy"}:
        return earlier_score
    inputs = (gold, predicted) if metric.input == "executions" else (gold.answer, predicted.answer)
    try:
        score = metric.function(*inputs, **options, policy=case.settings.policy)
    except Exception:  # noqa: BLE001 - a metric of the user's may raise anything
        return earlier_score
    value = score.value if isinstance(score, Score) else score
    return earlier_score if value is None else value
