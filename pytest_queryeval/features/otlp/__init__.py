"""`queryeval export --to otlp:URL`: sends the scores of a report to a collector of OpenTelemetry."""

from __future__ import annotations

from urllib.parse import urlsplit

from pytest_queryeval.cli.output import Result
from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.core.report import Report
from pytest_queryeval.results.report_file import moment_of
from pytest_queryeval.text.formatting import one_line, pluralize
from pytest_queryeval.text.redaction import mask_credentials

LOGS_PATH = "/v1/logs"  # of OTLP, behind the address of a collector
OK, REJECTED = 0, 1


def send_to_collector(report: Report, address: str) -> Result:
    """Send the scores of a report as events to the collector at `address`, and return what the command prints.

    `/v1/logs` is added to the path of the address if it is not there. The status is 1 if the collector rejects events.
    Raise `ReportError` if OpenTelemetry's packages are missing, if the address is not an HTTP URL, or if the collector
    takes no events.
    """
    shown_address = f"otlp:{one_line(mask_credentials(address))}"
    url = urlsplit(address)
    if url.scheme not in ("http", "https"):
        raise ReportError(f"{shown_address}: expected a URL, as in otlp:http://localhost:4318")
    try:
        from pytest_queryeval.features.otlp.sending import evaluation_events, send_events
    except ImportError as error:
        packages = "OpenTelemetry's SDK and exporter"
        raise ReportError(f"--to otlp needs {packages}: pip install 'pytest-queryeval[otlp]'") from error
    path = url.path.rstrip("/").removesuffix(LOGS_PATH) + LOGS_PATH
    created = int(moment_of(report["created"]).timestamp())
    try:
        events = evaluation_events(report)
        delivery = send_events(events, url._replace(path=path).geturl(), timestamp=created * 1_000_000_000)
    except ReportError as error:
        raise ReportError(f"{shown_address}: {error}") from error
    lines = [f"otlp: {pluralize(delivery.sent, 'event')} sent"]
    if delivery.rejected:
        reasons = "; ".join(dict.fromkeys(filter(None, delivery.reasons))) or "no reason is given"
        lines.append(f"the collector rejected {delivery.rejected:,} of them: {one_line(reasons)}")
    data = {"sent": delivery.sent, "rejected": delivery.rejected}
    return Result(status=REJECTED if delivery.rejected else OK, lines=lines, data=data)
