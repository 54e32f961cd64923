"""A collector that receives OTLP over HTTP, and decodes the events that it gets."""

from dataclasses import dataclass, field

from http_services import Said
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsPartialSuccess,
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)

PROTOBUF = "application/x-protobuf"


@dataclass(frozen=True)
class Event:
    """An event, with the attributes of its resource."""

    name: str
    attributes: dict
    resource: dict
    scope: str
    timestamp: int
    severity: int
    trace_id: str
    span_id: str


@dataclass
class Collector:
    """Keeps all events; a service of `http_services.serving`. Of each request it rejects `rejected` events."""

    rejected: int = 0
    reason: str = ""
    batches: list[list[Event]] = field(default_factory=list)

    def __call__(self, asked):
        assert (asked.method, asked.path, asked.headers["content-type"]) == ("POST", "/v1/logs", PROTOBUF)
        request = ExportLogsServiceRequest.FromString(asked.data)
        self.batches.append([*_events(request)])
        partial = ExportLogsPartialSuccess(rejected_log_records=self.rejected, error_message=self.reason)
        response = ExportLogsServiceResponse(partial_success=partial)
        return Said(response.SerializeToString(), content_type=PROTOBUF)

    @property
    def events(self):
        return [event for batch in self.batches for event in batch]


def _events(request):
    for resource_logs in request.resource_logs:
        for scope_logs in resource_logs.scope_logs:
            for record in scope_logs.log_records:
                yield Event(
                    name=record.event_name,
                    attributes=_mapping(record.attributes),
                    resource=_mapping(resource_logs.resource.attributes),
                    scope=scope_logs.scope.name,
                    timestamp=record.time_unix_nano,
                    severity=record.severity_number,
                    trace_id=record.trace_id.hex(),
                    span_id=record.span_id.hex(),
                )


def _mapping(attributes):
    return {attribute.key: _value(attribute.value) for attribute in attributes}


def _value(value):
    kind = value.WhichOneof("value")
    return [_value(item) for item in value.array_value.values] if kind == "array_value" else getattr(value, kind)
