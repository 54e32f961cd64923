"""The scores of a report as events, sent to a collector by OpenTelemetry's SDK and its exporter for OTLP over HTTP.

The events are `gen_ai.evaluation.result` of OpenTelemetry's conventions for generative AI:
https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-events.md
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from typing import Any, TypeAlias

import requests
from google.protobuf.message import DecodeError
from opentelemetry._logs import SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import (
    InMemoryLogRecordExporter,
    LogRecordExportResult,
    SimpleLogRecordProcessor,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from pytest_queryeval.core.case_report import CaseReport, TrialReport
from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.core.report import Report
from pytest_queryeval.reports.story import failure_summary
from pytest_queryeval.text.formatting import one_line

BATCH = 512  # events of a request
SERVICE = "pytest-queryeval"
EXPLANATION_CHARACTERS = 500
NAME = "gen_ai.evaluation.result"
# What a system states about its call, by which an event is found next to it.
RESPONSE_ID, TRACE_PARENT = "response_id", "traceparent"
UNNAMED_ERROR = "_OTHER"  # of the conventions: an error without a class
AttributeValue: TypeAlias = str | int | float | list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationEvent:
    """An event about one metric of one answer: its score, or the error of a case that has no score."""

    attributes: Mapping[str, AttributeValue]
    trace_parent: str
    """The header `traceparent` of the call that was scored; empty if the system did not state it."""


def evaluation_events(report: Report) -> Iterator[EvaluationEvent]:
    """Yield an event for each metric of each answer; every trial of a case with trials is an answer.

    A metric without a score has no event unless the case is in error. Then each requested metric without a score has an
    event with an error type.
    """
    for case in report["cases"]:
        attributes: dict[str, AttributeValue] = {
            "test.case.name": case["nodeid"],
            "test.suite.name": case["path"],
            "queryeval.outcome": case["outcome"],
            "queryeval.run": report["name"],
            **{f"queryeval.group.{name}": values for name, values in case.get("groups", {}).items()},
        }
        for number, trial in enumerate(case["trials"], start=1):
            yield from _answer_events(case, trial, attributes | {"queryeval.trial": number})
        if not case["trials"]:
            yield from _answer_events(case, case, attributes)


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
    explanation = {"gen_ai.evaluation.explanation": one_line(failure_summary(case), EXPLANATION_CHARACTERS)}
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


@dataclass(slots=True)
class Delivery:
    """How many events were sent to a collector, and how many it rejected."""

    sent: int = 0
    rejected: int = 0
    """The number of events that were sent and that the collector did not take."""
    reasons: list[str] = field(default_factory=list)
    """The messages with which the collector rejected events; they may be empty or repeat."""


class _Session(requests.Session):
    """A session that records why its last request failed, and adds rejected events to `delivery`.

    `failure` is empty if the last request succeeded.
    """

    def __init__(self, delivery: Delivery) -> None:
        super().__init__()
        self.failure = ""
        self._delivery = delivery

    def send(self, request: requests.PreparedRequest, **settings: Any) -> requests.Response:
        try:
            response = super().send(request, **settings)
        except requests.RequestException as error:
            unreachable = "no collector answers there: it has to receive OTLP over HTTP, by default on port 4318"
            self.failure = unreachable if isinstance(error, requests.ConnectionError) else str(error)
            raise
        if not response.ok:
            self.failure = f"the collector answered {response.status_code} {response.reason}"
            return response
        self.failure = ""
        try:
            partial_success = ExportLogsServiceResponse.FromString(response.content).partial_success
        except DecodeError as error:
            self.failure = "the answer is not that of a collector"
            raise requests.RequestException(self.failure) from error
        if partial_success.rejected_log_records:
            self._delivery.rejected += partial_success.rejected_log_records
            self._delivery.reasons.append(partial_success.error_message)
        return response


def send_events(events: Iterable[EvaluationEvent], endpoint: str, *, timestamp: int) -> Delivery:
    """Send events in batches of BATCH, and return how many were sent and rejected.

    `timestamp` is when the events happened, in nanoseconds since 1970. Raise `ReportError` if the collector does not
    answer, or answers with an error.
    """
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # failures are raised
    delivery = Delivery()
    session = _Session(delivery)
    exporter = OTLPLogExporter(endpoint=endpoint, session=session)
    records = InMemoryLogRecordExporter()
    resource = Resource({"service.name": SERVICE}).merge(OTELResourceDetector().detect())
    provider = LoggerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(records))
    logger = provider.get_logger(SERVICE, version(SERVICE))
    propagator = TraceContextTextMapPropagator()
    remaining_events = iter(events)
    while batch := list(islice(remaining_events, BATCH)):
        for event in batch:
            logger.emit(
                timestamp=timestamp,
                context=propagator.extract({"traceparent": event.trace_parent}),
                severity_number=SeverityNumber.INFO,
                attributes=event.attributes,
                event_name=NAME,
            )
        try:
            is_sent = exporter.export(records.get_finished_logs()) is LogRecordExportResult.SUCCESS
        except requests.RequestException:  # some versions of the exporter raise what others return
            is_sent = False
        if not is_sent:
            before = f"; {delivery.sent:,} events were sent before" if delivery.sent else ""
            raise ReportError(f"{session.failure or 'the events could not be sent'}{before}")
        records.clear()
        delivery.sent += len(batch)
    return delivery
