"""Why a case failed, in one line: the first of its failure text, and its message in all reports."""

from __future__ import annotations

from pytest_queryeval.core.model import CaseResult
from pytest_queryeval.text.formatting import format_score, limits_text, pluralize
from pytest_queryeval.text.truncation import one_line

LINE_CHARACTERS = 160
REMEDIES = {
    "timeout": ": raise `timeout` if a right query may take longer",
    "empty": ": check why the system returned no text",
}  # by the kind of the failure


def failure_text(kind: str, message: str) -> str:
    """Return why a prediction has no answer."""
    if kind == "abstained":
        return f"the system abstained from a question that has an answer: {message}"
    return f"prediction failed ({kind}): {message}{REMEDIES.get(kind, '')}"


def headline(result: CaseResult) -> str:
    """Return one line: the failure of the prediction if there is one, else how the answers differ, and what was missed.

    With several trials it begins with how many passed, and the rule by which that is not enough.
    """
    error = result.shown.predicted.error
    if error is not None:
        reason = failure_text(error.kind, one_line(error.message, LINE_CHARACTERS))
    elif not result.case.answerable:
        reason = "the system answered a question that has no answer"
    else:
        reason = ", ".join(
            f"{missed.metric} {format_score(missed.value)}"
            f" (needs {limits_text(missed.threshold.minimum, missed.threshold.maximum)})"
            for missed in result.violations
        )
        if result.difference is not None and result.difference.summary:
            reason = f"{one_line(result.difference.summary, LINE_CHARACTERS)}; {reason}"
    if result.case.settings.trials == 1:
        return reason
    passed, rule = sum(bool(trial.passed) for trial in result.trials), result.case.settings.trials_rule
    rule_text = rule if isinstance(rule, str) else f"{{rate: {rule:g}}}"
    trials_text = pluralize(len(result.trials), "trial")
    is_early = result.case.settings.stops_trials and len(result.trials) < result.case.settings.trials
    early = f", decided after {len(result.trials)} of {result.case.settings.trials}" if is_early else ""
    return f"{passed} of {trials_text} passed{early} (`trials_rule: {rule_text}`): {reason}"
