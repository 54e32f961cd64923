"""Metrics of abstention: how often the system answers, is right when it answers, and abstains wrongly.

`coverage` and `selective_accuracy` are defined as in El-Yaniv and Wiener (2010), "On the foundations of noise-free
selective classification".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pytest_queryeval.core.case_report import CaseReport, TrialReport
from pytest_queryeval.core.errors import SettingError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.metric import Better, RunMetric
from pytest_queryeval.core.model import Case
from pytest_queryeval.results.verdict import answer_passes

PENALIZED, PENALTY = "penalized_accuracy", "penalty"
MAX_PENALTY = 1_000
# One trial of a case, or the case itself if it has only one.
_Answer: TypeAlias = CaseReport | TrialReport


def is_unanswerable(case: CaseReport) -> bool:
    """Return whether the case is marked as unanswerable, so that any answer to its question is wrong."""
    return not case.get("answerable", True)


def concerns(case: CaseReport) -> bool:
    """Return whether a case is unanswerable, or the system abstained in it or in one of its trials."""
    return is_unanswerable(case) or is_abstention(case) or any(map(is_abstention, case["trials"]))


def is_abstention(answer: _Answer) -> bool:
    """Return whether the system abstained in this trial or case."""
    return answer["prediction"] is not None and answer["prediction"].get("abstained", False)


def is_missing(answer: _Answer) -> bool:
    """Return whether the file of predictions has no prediction for this trial or case, which counts as a failure."""
    return answer["prediction"] is not None and answer["prediction"].get("missing", False)


def _selective_accuracy(case: CaseReport, answer: _Answer) -> float | None:
    """Return 1.0 if an answer is right, 0.0 if it is wrong; None for an abstention or an answer without a verdict.

    An answer is right if it passes, or meets the default thresholds if the case requires nothing. Any answer to an
    unanswerable question is wrong.
    """
    if is_abstention(answer):
        return None
    if is_unanswerable(case):
        return 0.0
    passes = answer_passes(case, answer)
    return None if passes is None else float(passes)


def _penalized_accuracy(case: CaseReport, answer: _Answer) -> float | None:
    """Return 1 for a right answer and for a right abstention, 0 for a wrong abstention, -`penalty` for a wrong answer.

    Without a stated penalty, a wrong answer scores -1. The result is None for an answer without a verdict.
    """
    if is_abstention(answer):
        return float(is_unanswerable(case))
    is_right = _selective_accuracy(case, answer)
    penalty = _penalty(case)
    return -(1.0 if penalty is None else penalty) if is_right == 0.0 else is_right


def _penalty(case: CaseReport) -> float | None:
    """Return the option `penalty` of the metric as the case states it, a number; None if it is not stated."""
    options = case["fingerprint"]["options"] if case["fingerprint"] is not None else {}
    penalty = options.get(PENALIZED, {}).get(PENALTY)
    return penalty if isinstance(penalty, int | float) else None


def _check_penalty(options: Mapping[str, JsonValue]) -> None:
    penalty = options.get(PENALTY, 1.0)
    if isinstance(penalty, bool) or not isinstance(penalty, int | float) or not 0 <= penalty <= MAX_PENALTY:
        raise SettingError(PENALTY, f"'{PENALTY}' must be a number from 0 to {MAX_PENALTY:,}, found {penalty!r:.60}")


def _run_metric(
    score: Callable[[CaseReport, _Answer], float | None],
    better: Better = "higher",
    *,
    concerns: Callable[[CaseReport], bool] = concerns,
    judges: Callable[[Case], bool] = lambda _: True,
    **facts: Any,
) -> RunMetric:
    """Return a run metric whose value for a case is the mean of `score` over the trials that have one.

    A case in error, skipped or not run has no value, nor has a case without a prediction. `facts` are other fields of
    `RunMetric`.
    """

    def mean_over_trials(case: CaseReport) -> float | None:
        if case["outcome"] in ("error", "skipped", "not_run") or case["prediction"] is None:
            return None
        if not case["trials"]:
            return score(case, case)
        scores = [value for trial in case["trials"] if (value := score(case, trial)) is not None]
        return sum(scores) / len(scores) if scores else None

    return RunMetric(score=mean_over_trials, better=better, concerns=concerns, judges=judges, **facts)


COVERAGE = _run_metric(
    lambda case, answer: float(not is_abstention(answer) and not is_missing(answer)), judges=lambda _: False
)
SELECTIVE_ACCURACY = _run_metric(_selective_accuracy)
PENALIZED_ACCURACY = _run_metric(
    _penalized_accuracy,
    concerns=lambda case: concerns(case) or _penalty(case) is not None,
    least=-math.inf,
    options={PENALTY: {"type": "number", "minimum": 0, "maximum": MAX_PENALTY}},
    check=_check_penalty,
)
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
