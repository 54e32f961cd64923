"""The scores of a report as events of OpenTelemetry's conventions for generative AI, `gen_ai.evaluation.result`.

Source: https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-events.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pytest_queryeval.core.case_report import CaseReport, TrialReport
from pytest_queryeval.core.report import Report
from pytest_queryeval.reports.story import finding
from pytest_queryeval.text.formatting import one_line

EXPLANATION_CHARACTERS = 500
NAME = "gen_ai.evaluation.result"
# What a system states about its call, by which an event is found beside it.
RESPONSE_ID, TRACE_PARENT = "response_id", "traceparent"
UNNAMED_ERROR = "_OTHER"  # of the conventions: an error without a class
AttributeValue: TypeAlias = str | int | float | list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationEvent:
    """A score of an answer, or a case in error that has none."""

    attributes: Mapping[str, AttributeValue]
    trace_parent: str
    """The header `traceparent` of the call that was scored; empty if the system did not state it."""


def evaluation_events(report: Report) -> Iterator[EvaluationEvent]:
    """Yield an event for each score of each answer; of several trials, each is an answer.

    A metric that does not apply to a case has no event. A case in error has one, without a score, for each metric that
    is requested and has no score.
    """
    for case in report["cases"]:
        attributes = _case_attributes(case) | {"queryeval.run": report["name"]}
        for number, trial in enumerate(case["trials"], start=1):
            yield from _answer_events(case, trial, attributes | {"queryeval.trial": number})
        if not case["trials"]:
            yield from _answer_events(case, case, attributes)


def _case_attributes(case: CaseReport) -> dict[str, AttributeValue]:
    groups = case.get("groups", {})
    return {
        "test.case.name": case["nodeid"],
        "test.suite.name": case["path"],
        "queryeval.outcome": case["outcome"],
        **{f"queryeval.group.{name}": values for name, values in groups.items()},
    }


def _answer_events(
    case: CaseReport, answer: CaseReport | TrialReport, attributes: Mapping[str, AttributeValue]
) -> Iterator[EvaluationEvent]:
    prediction, fingerprint = answer["prediction"], case["fingerprint"]
    metadata = prediction["metadata"] if prediction is not None else {}
    trace_parent = metadata.get(TRACE_PARENT)
    if RESPONSE_ID in metadata:
        attributes = {**attributes, "gen_ai.response.id": str(metadata[RESPONSE_ID])}
    thresholds = fingerprint["thresholds"] if fingerprint is not None else {}
    requested_metrics = fingerprint["metrics"] if fingerprint is not None else []
    missed_metrics = {violation["metric"] for violation in answer["violations"]}
    explanation = {"gen_ai.evaluation.explanation": one_line(finding(case), EXPLANATION_CHARACTERS)}
    for metric in dict.fromkeys((*requested_metrics, *answer["scores"])):
        score = answer["scores"].get(metric)
        evaluation: dict[str, AttributeValue] = {"gen_ai.evaluation.name": metric}
        if score is not None:
            evaluation["gen_ai.evaluation.score.value"] = float(score)
            if metric in thresholds:
                evaluation["gen_ai.evaluation.score.label"] = "fail" if metric in missed_metrics else "pass"
            if metric in missed_metrics:
                evaluation |= explanation
        elif case["outcome"] == "error":
            evaluation |= {"error.type": UNNAMED_ERROR, **explanation}
        else:
            continue
        yield EvaluationEvent(
            attributes={**evaluation, **attributes},
            trace_parent=trace_parent if isinstance(trace_parent, str) else "",
        )
