"""Several trials of one case: their mean scores, and the rule that decides the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb, fsum

from pytest_queryeval.core.model import (
    ALPHA,
    OF_TRIALS,
    PASS_RATE,
    SCORE_TOLERANCE,
    Case,
    CaseResult,
    Threshold,
    ThresholdViolation,
    Trial,
)
from pytest_queryeval.evaluation.sequential import MeanTest
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import METRICS


def result_of(case: Case, trials: Sequence[Trial]) -> CaseResult:
    """Return the result of a case: its scores are the means over the trials, `trials_rule` decides whether it fails.

    By `mean` the means have to meet the thresholds, and one prediction at least must not have failed; by `all`, `any`
    or a share the trials have to pass that do so by themselves. With several trials and thresholds the scores include
    `pass_at_k` and `pass_hat_k`, where k is the number of trials; if trials may stop early,
    only the one that is the verdict.
    """
    shown_trial = next((trial for trial in trials if trial.passed is False), trials[0])
    scores, violations = dict(trials[0].scores), trials[0].violations
    if len(trials) > 1:
        scores = {name: _mean([trial.scores[name] for trial in trials]) for name in scores}
        violations = threshold_violations(scores, case)
    n, passed = len(trials), [trial.passed for trial in trials].count(True)
    if case.settings.trials_rule == "mean" or not case.settings.thresholds:
        is_unanswered = None not in [trial.predicted.error for trial in trials]
        fails = bool(violations) or (is_unanswered and bool(case.settings.thresholds))
    else:
        fails = not _is_met(case, passed, n)
        violations = shown_trial.violations if fails else ()
    for name in case.settings.trials_scores:
        scores[name] = _OF_TRIALS[name](n, n, passed)
    gold, predicted, difference = shown_trial.gold.answer, shown_trial.predicted.answer, None
    if gold is not None and predicted is not None and violations:
        difference = KINDS[case.settings.kind].difference(gold, predicted, case, limit=case.settings.report_rows)
    return CaseResult(
        case=case,
        trials=tuple(trials),
        shown=shown_trial,
        scores=scores,
        violations=violations,
        fails=fails,
        difference=difference,
    )


class TrialsTest:
    """Decides from the trials so far, a sample of all trials, whether the verdict of a case is known.

    A verdict is certain, or wrong with a probability of at most `ALPHA`, since each limit is tested at an equal share.
    Without thresholds there is nothing to decide. Metrics whose scores are not from 0 to 1 are decided by all trials.
    """

    def __init__(self, case: Case) -> None:
        self._is_answered = False
        self._counts_passes = case.settings.trials_rule != "mean"
        required = case.settings.thresholds
        if self._counts_passes and required:
            share = {"all": 1.0, "any": 1.0 / case.settings.trials}.get(
                str(case.settings.trials_rule), case.settings.trials_rule
            )
            required = {PASS_RATE: Threshold(minimum=float(share))}
        limits = sum(
            (threshold.minimum is not None) + (threshold.maximum is not None) for threshold in required.values()
        )
        self._tests = {
            name: MeanTest(threshold, case.settings.trials, ALPHA / limits)
            for name, threshold in required.items()
            if self._counts_passes or METRICS[name].max_score == 1
        }
        self._has_untested_threshold = not required or len(self._tests) < len(required)

    def is_decided_by(self, trial: Trial) -> bool:
        """Count a trial, and return whether the remaining trials are not needed."""
        self._is_answered |= trial.predicted.error is None
        for name, test in self._tests.items():
            test.add(float(trial.passed is True) if self._counts_passes else trial.scores[name])
        outcomes = {test.result for test in self._tests.values()}
        is_met = outcomes == {True} and not self._has_untested_threshold and (self._counts_passes or self._is_answered)
        return False in outcomes or is_met


def threshold_violations(scores: Mapping[str, float | None], case: Case) -> tuple[ThresholdViolation, ...]:
    """Return the thresholds of a case that scores do not meet; metrics without a score are left out."""
    return tuple(
        [
            ThresholdViolation(metric=name, threshold=threshold, value=score)
            for name, threshold in case.settings.thresholds.items()
            if (score := scores[name]) is not None and not threshold.admits(score)
        ]
    )


def pass_at(k: int, trials: int, passed: int) -> float:
    """Return the probability that at least one of k trials passes, drawn from `trials` of which `passed` did.

    1 - C(n - c, k) / C(n, k), k at most n: the unbiased estimator of Chen et al. (2021), "Evaluating Large Language
    Models Trained on Code".

    >>> pass_at(1, 4, 1), pass_at(2, 4, 1), pass_at(4, 4, 1)
    (0.25, 0.5, 1.0)
    """
    return 1.0 - comb(trials - passed, k) / comb(trials, k)


def pass_hat(k: int, trials: int, passed: int) -> float:
    """Return the probability that all of k trials pass, drawn from `trials` of which `passed` did.

    C(c, k) / C(n, k), k at most n, as in Yao et al. (2024), "tau-bench".

    >>> pass_hat(1, 4, 2), pass_hat(2, 4, 2)
    (0.5, 0.16666666666666666)
    """
    return comb(passed, k) / comb(trials, k)


_OF_TRIALS = dict(zip(OF_TRIALS, (pass_at, pass_hat), strict=True))


def _is_met(case: Case, passed: int, trials: int) -> bool:
    match case.settings.trials_rule:
        case "all":
            return passed == trials
        case "any":
            return passed > 0
        case share:
            return passed / trials >= float(share) - SCORE_TOLERANCE


def _mean(scores: Sequence[float | None]) -> float | None:
    numbers = [score for score in scores if score is not None]
    if len(set(numbers)) == 1:  # a mean of equal numbers may differ from them in the last digit
        return numbers[0]
    return fsum(numbers) / len(numbers) if numbers else None
