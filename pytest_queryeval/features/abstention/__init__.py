"""How many questions the system answers, how many of the answers are right, and how often it decides wrongly.

`coverage` and `selective_accuracy` are defined as in El-Yaniv and Wiener (2010), "On the foundations of
noise-free selective classification".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pytest_queryeval.core.case_report import CaseReport, TrialReport
from pytest_queryeval.core.metric import Better, RunMetric
from pytest_queryeval.core.model import Case
from pytest_queryeval.results.verdict import answer_passes

# One trial of a case, or the case itself if it has only one.
_Answer: TypeAlias = CaseReport | TrialReport


def is_unanswerable(case: CaseReport) -> bool:
    """Return whether no answer to the question of a case is right."""
    return not case.get("answerable", True)


def concerns(case: CaseReport) -> bool:
    """Return whether the system should have abstained, or did."""
    return is_unanswerable(case) or is_abstention(case) or any(map(is_abstention, case["trials"]))


def is_abstention(answer: _Answer) -> bool:
    """Return whether the system abstained."""
    return answer["prediction"] is not None and answer["prediction"].get("abstained", False)


def is_missing(answer: _Answer) -> bool:
    """Return whether a file of predictions has none, which counts as a failure."""
    return answer["prediction"] is not None and answer["prediction"].get("missing", False)


def _selective_accuracy(case: CaseReport, answer: _Answer) -> float | None:
    """Return whether an answer is right: whether it passes, or meets the default thresholds if nothing is required."""
    if is_abstention(answer):
        return None
    if is_unanswerable(case):
        return 0.0
    passes = answer_passes(case, answer)
    return None if passes is None else float(passes)


def _run_metric(
    score: Callable[[CaseReport, _Answer], float | None],
    better: Better = "higher",
    *,
    judges: Callable[[Case], bool] = lambda _: True,
) -> RunMetric:
    """Return the metric by the mean score of the trials of a case."""

    def mean_over_trials(case: CaseReport) -> float | None:
        if case["outcome"] in ("error", "skipped", "not_run") or case["prediction"] is None:
            return None
        if not case["trials"]:
            return score(case, case)
        scores = [value for trial in case["trials"] if (value := score(case, trial)) is not None]
        return sum(scores) / len(scores) if scores else None

    return RunMetric(score=mean_over_trials, better=better, concerns=concerns, judges=judges)


COVERAGE = _run_metric(
    lambda case, answer: float(not is_abstention(answer) and not is_missing(answer)), judges=lambda _: False
)
SELECTIVE_ACCURACY = _run_metric(_selective_accuracy)
ANSWERED_UNANSWERABLE = _run_metric(
    lambda case, answer: float(not is_abstention(answer)) if is_unanswerable(case) else None,
    better="lower",
    judges=lambda case: not case.answerable,
)
ABSTAINED_ANSWERABLE = _run_metric(
    lambda case, answer: None if is_unanswerable(case) else float(is_abstention(answer)),
    better="lower",
    judges=lambda _: False,
)
