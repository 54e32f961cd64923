"""Whether the verdict says that an answer is right, whatever its suite requires."""

from __future__ import annotations

from contextlib import suppress

from pytest_queryeval.core.case_report import CaseReport, TrialReport
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.languages import KINDS


def answer_passes(case: CaseReport, answer: CaseReport | TrialReport) -> bool | None:
    """Return whether an answer to a case that was scored passes; `answer` is one of its trials, else the case.

    Where nothing is required, it does if it meets the default thresholds of its kind; None if these have no scores.
    """
    passed = answer.get("passed") if case["trials"] else _passed(case)
    if passed is not None:
        return bool(passed)
    with suppress(QueryEvalError):  # of a kind that is not installed here
        minima = KINDS[case["kind"] or ""].default_thresholds
        scores = {name: score for name in minima if (score := answer["scores"].get(name)) is not None}
        if scores.keys() == minima.keys():
            return all(scores[name] >= minimum for name, minimum in minima.items())
    return None


def _passed(case: CaseReport) -> bool | None:
    """Return whether a case passed; None if nothing is required."""
    is_required = case["fingerprint"] is None or bool(case["fingerprint"]["thresholds"])
    return case["outcome"] in ("passed", "xpassed") if is_required else None
