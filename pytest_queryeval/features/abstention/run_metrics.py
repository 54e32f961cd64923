"""How much of a run the system answers, how much of that is right, and how often it decides wrongly to answer or not.

`coverage` and the accuracy of what is answered are those of El-Yaniv and Wiener (2010), "On the foundations of
noise-free selective classification".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from pytest_queryeval.core.case_report import CaseReport, TrialReport
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.run_metrics import RunMetric
from pytest_queryeval.languages import KINDS

INSTEAD = "a case without an answer is decided by `abstention`, others by their `thresholds`"


class _Answer(NamedTuple):
    """What the system said in one trial."""

    is_abstention: bool
    is_right: bool | None
    """Whether the trial passed; where nothing is required, whether it meets the default thresholds of its kind."""


def is_unanswerable(case: CaseReport) -> bool:
    """Return whether no answer to the question of a case is right."""
    return not case.get("answerable", True)


def concerns(case: CaseReport) -> bool:
    """Return whether the system should have abstained, or did."""
    predictions = [case["prediction"], *(trial["prediction"] for trial in case["trials"])]
    return is_unanswerable(case) or any(prediction and prediction.get("abstained") for prediction in predictions)


def _mean_over_trials(score: Callable[[CaseReport, _Answer], float | None], case: CaseReport) -> float | None:
    """Return the mean score of the trials of a case; None where no trial has one, and for a case in error."""
    scores = [value for answer in _answers(case) if (value := score(case, answer)) is not None]
    return sum(scores) / len(scores) if scores else None


def _answers(case: CaseReport) -> Iterator[_Answer]:
    if case["outcome"] in ("error", "skipped", "not_run") or case["prediction"] is None:
        return
    if not case["trials"]:
        is_required = case["fingerprint"] is None or case["fingerprint"]["thresholds"]
        passed = case["outcome"] in ("passed", "xpassed") if is_required else None
        yield _Answer(case["prediction"].get("abstained", False), _is_right(case, case, passed))
    for trial in case["trials"]:
        yield _Answer(trial["prediction"].get("abstained", False), _is_right(case, trial, trial["passed"]))


def _is_right(case: CaseReport, scored: CaseReport | TrialReport, passed: bool | None) -> bool | None:
    """Return whether an answer is right; None where nothing is required and its scores do not tell."""
    if is_unanswerable(case):
        return False
    if passed is not None:
        return passed
    with suppress(QueryEvalError):  # of a kind that is not installed here
        minima = KINDS[case["kind"] or ""].default_thresholds
        scores = {name: score for name in minima if (score := scored["scores"].get(name)) is not None}
        if scores.keys() == minima.keys():
            return all(scores[name] >= minimum for name, minimum in minima.items())
    return None


def _coverage(case: CaseReport, answer: _Answer) -> float:
    return float(not answer.is_abstention)


def _selective_accuracy(case: CaseReport, answer: _Answer) -> float | None:
    return None if answer.is_abstention or answer.is_right is None else float(answer.is_right)


def _answered_unanswerable(case: CaseReport, answer: _Answer) -> float | None:
    return float(not answer.is_abstention) if is_unanswerable(case) else None


def _abstained_answerable(case: CaseReport, answer: _Answer) -> float | None:
    return None if is_unanswerable(case) else float(answer.is_abstention)


COVERAGE = RunMetric(score=partial(_mean_over_trials, _coverage), instead=INSTEAD, concerns=concerns)
SELECTIVE_ACCURACY = RunMetric(
    score=partial(_mean_over_trials, _selective_accuracy), instead=INSTEAD, concerns=concerns
)
ANSWERED_UNANSWERABLE = RunMetric(
    score=partial(_mean_over_trials, _answered_unanswerable), instead=INSTEAD, better="lower", concerns=concerns
)
ABSTAINED_ANSWERABLE = RunMetric(
    score=partial(_mean_over_trials, _abstained_answerable), instead=INSTEAD, better="lower", concerns=concerns
)
