"""Several trials of one case: their mean scores, the rule that decides the verdict, and when it is decided early.

Sequential tests decide from some of the scores whether the mean of all meets its limits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from math import comb, fsum

from pytest_queryeval.core.case_report import ViolationReport
from pytest_queryeval.core.model import (
    ALPHA,
    PASS_RATE,
    SCORE_TOLERANCE,
    TRIALS_SCORES,
    Case,
    CaseResult,
    StoredPrediction,
    Threshold,
    Trial,
    TrialsRule,
)
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import METRICS

ALTERNATIVES = 12  # means on each side of a limit that are bet on


class MeanTest:
    """Decides from the scores drawn so far whether the mean of `n` scores from 0 to 1 meets a threshold.

    The scores have to come in random order. `result` is None until it is decided, and then stays. A decided result is
    certain, or wrong with a probability of at most `alpha` for each limit, however often one looks and whenever one
    stops.

    Each limit is tested by betting against it, as in Waudby-Smith and Ramdas (2024), "Estimating means of bounded
    random variables by betting", for draws without replacement. If the mean of all scores is the limit m, then after t
    draws with the sum S the expected next score is (n m - S) / (n - t). One capital bets that scores are higher than
    that, another that they are lower; the expected growth of a capital that bets wrongly is at most 0. By Ville's
    inequality, it ever reaches 1 / alpha with a probability of at most alpha. At most one of the two can bet wrongly,
    the first if the mean is below the limit, the second if it is not, so alpha is not divided between them.

    Each capital is shared among means on its side, close together near the limit and far apart away from it, and bets
    by the likelihood ratio of scores of 0 and 1, which is valid for all scores from 0 to 1.
    """

    def __init__(self, threshold: Threshold, n: int, alpha: float) -> None:
        # A mean of at most m is a mean of 1 - score of at least 1 - m.
        self._min_test = None if threshold.minimum is None else _LeastMean(threshold.minimum, n, alpha)
        self._max_test = None if threshold.maximum is None else _LeastMean(1.0 - threshold.maximum, n, alpha)

    @property
    def result(self) -> bool | None:
        """Whether the threshold is met (True) or missed (False); None while that is open."""
        outcomes = {side.result for side in (self._min_test, self._max_test) if side is not None}
        return False if False in outcomes else None if None in outcomes else True

    def add(self, score: float | None) -> None:
        """Add the next score; None stands for a case without a score, which neither raises nor lowers the mean."""
        if self._min_test is not None:
            self._min_test.add(score)
        if self._max_test is not None:
            self._max_test.add(None if score is None else 1.0 - score)


class _LeastMean:
    """A test whether the mean of `n` scores is at least a limit; `result` is None while that is open."""

    def __init__(self, limit: float, n: int, alpha: float) -> None:
        self.result: bool | None = None
        self._limit = limit - SCORE_TOLERANCE
        self._n = n
        self._goal = 1.0 / alpha
        self._drawn = 0
        self._sum = 0.0
        share = 1.0 / ALTERNATIVES
        self._higher = {self._limit + distance: share for distance in distances(1.0 - self._limit, n)}
        self._lower = {self._limit - distance: share for distance in distances(self._limit, n)}
        self._look()

    def add(self, score: float | None) -> None:
        if self.result is not None:
            return
        draws_left = self._n - self._drawn
        null = min((self._n * self._limit - self._sum) / draws_left, 1.0 - SCORE_TOLERANCE)
        drawn_score = self._limit if score is None else score
        for capital in (self._higher, self._lower):
            for mean, stake in capital.items():
                expected = min(max((self._n * mean - self._sum) / draws_left, 0.0), 1.0)
                capital[mean] = stake * (
                    drawn_score * expected / null + (1.0 - drawn_score) * (1.0 - expected) / (1.0 - null)
                )
        self._drawn += 1
        self._sum += drawn_score
        self._look()

    def _look(self) -> None:
        needed = self._n * self._limit
        if self._sum >= needed:
            self.result = True
        elif self._sum + self._n - self._drawn < needed:
            self.result = False
        elif sum(self._higher.values()) >= self._goal:
            self.result = True
        elif sum(self._lower.values()) >= self._goal:
            self.result = False


def distances(room: float, n: int) -> list[float]:
    """Return the distances of ALTERNATIVES means from a limit, up to `room`, in a geometric sequence.

    The smallest distance is at most half of `room`; fewer than `n` scores cannot show smaller distances.
    """
    smallest_distance = min(0.5 / math.sqrt(n), room / 2.0)
    return [
        smallest_distance * (room / smallest_distance) ** (step / (ALTERNATIVES - 1)) for step in range(ALTERNATIVES)
    ]


def result_of(case: Case, trials: Sequence[Trial], gold_answers: str | None = None) -> CaseResult:
    """Return the result of a case: its scores are means over the trials, and `trials_rule` decides whether it fails.

    By `mean`, the means have to meet the thresholds, and at least one prediction must not have failed. By `all`, `any`
    or a share, so many trials have to pass by themselves. With several trials and thresholds, the scores include
    `pass_at_k` and `pass_hat_k`, where k is the number of trials; if trials may stop early, only the score that is the
    verdict. A `StoredPrediction` has neither. `gold_answers` is the digest of the answers of all golds.
    """
    scores, violations, fails = verdict_of(case, trials)
    shown_trial = _shown(trials)
    gold = shown_trial.nearest_answer or shown_trial.gold.answer
    predicted, difference = shown_trial.predicted.answer, None
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
        gold_answers_digest=gold_answers,
    )


def verdict_of(case: Case, trials: Sequence[Trial]) -> tuple[dict[str, float | None], Sequence[ViolationReport], bool]:
    """Return the scores of a case, its violations, and whether it fails, by the rules of `result_of`.

    A score is None if its metric applies to no trial.
    """
    shown_trial = _shown(trials)
    scores, violations = dict(trials[0].scores), trials[0].violations
    if len(trials) > 1:
        scores = {name: _mean([trial.scores[name] for trial in trials]) for name in scores}
        violations = threshold_violations(scores, case)
    n, passed = len(trials), [trial.passed for trial in trials].count(True)
    if case.settings.trials_rule == "mean" or not case.settings.thresholds:
        is_unanswered = None not in [trial.predicted.error for trial in trials]
        fails = bool(violations) or (is_unanswered and bool(case.settings.thresholds))
    else:
        fails = not meets_rule(case.settings.trials_rule, passed, n)
        violations = shown_trial.violations if fails else []
    if not isinstance(shown_trial.prediction, StoredPrediction):
        scores |= {name: _OF_TRIALS[name](n, n, passed) for name in case.settings.trials_scores}
    return scores, violations, fails


def _shown(trials: Sequence[Trial]) -> Trial:
    return next((trial for trial in trials if trial.passed is False), trials[0])


class TrialsTest:
    """Decides from the trials so far, a sample of all trials, whether the verdict of a case is known.

    A verdict is certain, or wrong with a probability of at most `ALPHA`, which all limits share equally. Without
    thresholds there is nothing to decide. Metrics with scores outside of 0 to 1 are decided only by all trials.
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

    def add_trial(self, trial: Trial) -> bool:
        """Add a trial, and return whether the remaining trials are not needed."""
        self._is_answered |= trial.predicted.error is None
        for name, test in self._tests.items():
            test.add(float(trial.passed is True) if self._counts_passes else trial.scores[name])
        outcomes = {test.result for test in self._tests.values()}
        is_met = outcomes == {True} and not self._has_untested_threshold and (self._counts_passes or self._is_answered)
        return False in outcomes or is_met


def threshold_violations(scores: Mapping[str, float | None], case: Case) -> list[ViolationReport]:
    """Return a violation for each threshold of a case that its score does not meet.

    `scores` has an entry for each metric with a threshold; metrics whose score is None are left out.
    """
    return [
        {"metric": name, "min": threshold.minimum, "max": threshold.maximum, "value": score}
        for name, threshold in case.settings.thresholds.items()
        if (score := scores[name]) is not None and not threshold.admits(score)
    ]


def pass_at(k: int, trials: int, passed: int) -> float:
    """Return the estimated probability that at least one of k trials passes, given `trials`, of which `passed` passed.

    1 - C(n - c, k) / C(n, k) for n trials of which c passed, with k at most n: the unbiased estimator of Chen et al.
    (2021), "Evaluating Large Language Models Trained on Code".

    >>> pass_at(1, 4, 1), pass_at(2, 4, 1), pass_at(4, 4, 1)
    (0.25, 0.5, 1.0)
    """
    return 1.0 - comb(trials - passed, k) / comb(trials, k)


def pass_hat(k: int, trials: int, passed: int) -> float:
    """Return the estimated probability that all of k trials pass, given `trials`, of which `passed` passed.

    C(c, k) / C(n, k) for n trials of which c passed, with k at most n, as in Yao et al. (2024), "tau-bench".

    >>> pass_hat(1, 4, 2), pass_hat(2, 4, 2)
    (0.5, 0.16666666666666666)
    """
    return comb(passed, k) / comb(trials, k)


_OF_TRIALS = dict(zip(TRIALS_SCORES, (pass_at, pass_hat), strict=True))


def meets_rule(rule: TrialsRule, passed: int, trials: int) -> bool:
    """Return whether `passed` of `trials` trials are enough by the rule `all`, `any` or a least share."""
    match rule:
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
