"""Sends events to a collector, by OpenTelemetry's SDK and its exporter for OTLP over HTTP."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from typing import Any

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

from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.features.otlp.events import NAME, EvaluationEvent

BATCH = 512  # events of a request
SERVICE = "pytest-queryeval"


@dataclass(slots=True)
class Delivery:
    """What became of events."""

    sent: int = 0
    rejected: int = 0
    """How many of those that were sent the collector did not take."""
    reasons: list[str] = field(default_factory=list)
    """Why it did not."""


class _Session(requests.Session):
    """A session that keeps why its last request failed, and what the collector did not take of the others."""

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
        self.failure = "" if response.ok else f"the collector answered {response.status_code} {response.reason}"
        if response.ok:
            self._keep_rejection(response.content)
        return response

    def _keep_rejection(self, content: bytes) -> None:
        try:
            partial_success = ExportLogsServiceResponse.FromString(content).partial_success
        except DecodeError as error:
            self.failure = "the answer is not that of a collector"
            raise requests.RequestException(self.failure) from error
        if partial_success.rejected_log_records:
            self._delivery.rejected += partial_success.rejected_log_records
            self._delivery.reasons.append(partial_success.error_message)


def send_events(events: Iterable[EvaluationEvent], endpoint: str, *, timestamp: int) -> Delivery:
    """Send events in batches; `timestamp` is when they happened, in nanoseconds since 1970.

    Raise `ReportError` if the collector does not answer, or answers with an error.
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
    for batch in _batches(events):
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


def _batches(events: Iterable[EvaluationEvent]) -> Iterator[list[EvaluationEvent]]:
    iterator = iter(events)
    while batch := list(islice(iterator, BATCH)):
        yield batch
