"""`queryeval export --to otlp:URL`, on a collector that decodes what OpenTelemetry's own exporter sends."""

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from http_services import Said, serving
from otlp_collector import Collector
from report_maker import make_report, report_of
from samples import FINGERPRINT, entry
from servers import HOST, free_port

from pytest_queryeval.cli import main

RESPONSE, TRACE, SPAN = "chatcmpl-123", "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PREDICTION = {
    "source": "python:predict.py:predict",
    "seconds": 0.5,
    "metadata": {"response_id": RESPONSE, "traceparent": f"00-{TRACE}-{SPAN}-01"},
}
REQUIRED = FINGERPRINT | {
    "metrics": ["execution_accuracy", "row_matching_f1"],
    "thresholds": {"execution_accuracy": {"min": 1.0, "max": None}},
}
MISSED = {"metric": "execution_accuracy", "min": 1.0, "max": None, "value": 0.0}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder to work in, where no variable of OpenTelemetry but the time limit is set."""
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_EXPORTER_OTLP_HEADERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(report):
    Path("report.json").write_text(json.dumps(report), encoding="utf-8")


def received(*cases, status=0, **about):
    """The events that a collector gets for these cases."""
    write(report_of(list(cases), **about))
    collector = Collector()
    with serving(collector, path="") as service:
        assert main(["export", "report.json", "--to", f"otlp:{service.url}"]) == status
    return collector.events


def problem(capsys, address):
    """What an export that fails prints."""
    write(report_of([entry(id=str(number), scores={"valid_query": 1.0}) for number in range(600)]))
    with pytest.raises(SystemExit) as ended:
        main(["export", "report.json", "--to", f"otlp:{address}"])
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_each_score_is_an_event_with_the_attributes_of_the_conventions():
    case = entry(
        scores={"execution_accuracy": 0.0, "row_matching_f1": 0.5, "recall[A]": None},
        outcome="failed",
        message="1 row is missing",
        violations=[MISSED],
        fingerprint=REQUIRED,
        prediction=PREDICTION,
        difficulty="hard",
    )

    accuracy, overlap = received(case, name="model-b")

    shared = {
        "gen_ai.response.id": RESPONSE,
        "test.case.name": "music/s.queryeval.yaml::a",
        "test.suite.name": "music/s.queryeval.yaml",
        "queryeval.outcome": "failed",
        "queryeval.run": "model-b",
        "queryeval.group.kind": ["sql"],
        "queryeval.group.difficulty": ["hard"],
        "queryeval.group.source": ["concerts.db"],
        "queryeval.group.file": ["music/s.queryeval.yaml"],
    }
    assert accuracy.attributes == shared | {
        "gen_ai.evaluation.name": "execution_accuracy",
        "gen_ai.evaluation.score.value": 0.0,
        "gen_ai.evaluation.score.label": "fail",
        "gen_ai.evaluation.explanation": "1 row is missing",
    }
    assert overlap.attributes == shared | {
        "gen_ai.evaluation.name": "row_matching_f1",
        "gen_ai.evaluation.score.value": 0.5,
    }


@pytest.fixture
def tokyo(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("tokyo")
@pytest.mark.parametrize("written", ["2025-03-01T09:30:00+00:00", "2025-03-01T09:30:00"])
def test_every_event_has_its_name_time_severity_and_service(written):
    events = received(*make_report(6)["cases"], created=written)

    created = int(datetime(2025, 3, 1, 9, 30, tzinfo=UTC).timestamp()) * 1_000_000_000
    assert len(events) > 6
    assert {(event.name, event.timestamp, event.severity, event.scope) for event in events} == {
        ("gen_ai.evaluation.result", created, 9, "pytest-queryeval")
    }
    assert {event.resource["service.name"] for event in events} == {"pytest-queryeval"}


def test_the_scores_of_the_events_are_those_of_the_report():
    report = make_report(40)

    events = received(*report["cases"])

    scores = {
        (event.attributes["test.case.name"], event.attributes["gen_ai.evaluation.name"]): event.attributes[
            "gen_ai.evaluation.score.value"
        ]
        for event in events
        if "gen_ai.evaluation.score.value" in event.attributes
    }
    assert scores == {
        (case["nodeid"], metric): score
        for case in report["cases"]
        for metric, score in case["scores"].items()
        if score is not None
    }


@pytest.mark.parametrize(
    ("parent", "call"),
    [
        (PREDICTION["metadata"]["traceparent"], (TRACE, SPAN)),
        *((parent, ("", "")) for parent in (None, "", 7, "nonsense", f"00-{'0' * 32}-{SPAN}-01", ["a"])),
    ],
)
def test_an_event_belongs_to_the_call_that_the_system_names(parent, call):
    prediction = PREDICTION | {"metadata": {"traceparent": parent}}

    (event,) = received(entry(scores={"valid_query": 1.0}, prediction=prediction))

    assert (event.trace_id, event.span_id) == call
    assert "gen_ai.response.id" not in event.attributes


def test_each_trial_is_an_answer():
    def trial(score, metadata):
        return {
            "passed": score == 1.0,
            "scores": {"execution_accuracy": score},
            "violations": [] if score == 1.0 else [MISSED],
            "predicted": {"query": "SELECT 1", "error": None, "seconds": 0.0},
            "prediction": PREDICTION | {"metadata": metadata},
        }

    trials = [trial(1.0, {"response_id": "one"}), trial(0.0, {"response_id": "two"})]
    case = entry(scores={"execution_accuracy": 0.5}, trials=trials, fingerprint=REQUIRED, message="1 of 2 passed")

    events = received(case)

    names = ("gen_ai.response.id", "gen_ai.evaluation.score.value", "gen_ai.evaluation.score.label", "queryeval.trial")
    assert [[event.attributes[name] for name in names] for event in events] == [
        ["one", 1.0, "pass", 1],
        ["two", 0.0, "fail", 2],
    ]


def test_a_case_in_error_has_an_event_without_a_score_for_each_metric():
    case = entry(outcome="error", message="the source does not open", scores={}, fingerprint=REQUIRED)

    events = received(case)

    assert [event.attributes["gen_ai.evaluation.name"] for event in events] == REQUIRED["metrics"]
    for event in events:
        assert event.attributes["error.type"] == "_OTHER"
        assert event.attributes["gen_ai.evaluation.explanation"] == "the source does not open"
        assert "gen_ai.evaluation.score.value" not in event.attributes

    assert received(entry(outcome="skipped", scores={}, fingerprint=REQUIRED)) == []  # it did not run


def test_events_are_sent_in_batches(capsys):
    write(report_of([entry(id=str(number), scores={"valid_query": 1.0}) for number in range(1300)]))
    collector = Collector()

    with serving(collector, path="") as service:
        status = main(["export", "report.json", "--to", f"otlp:{service.url}", "--json"])

    assert (status, json.loads(capsys.readouterr().out)) == (0, {"sent": 1300, "rejected": 0})
    assert [len(batch) for batch in collector.batches] == [512, 512, 276]


@pytest.mark.parametrize("path", ["", "/", "/v1/logs", "/v1/logs/"])
def test_the_address_is_that_of_the_collector_or_of_its_logs_and_rejected_events_are_counted(capsys, path):
    write(report_of([entry(scores={"valid_query": 1.0, "soft_f1": 0.5})]))

    for collector, status, lines in (
        (Collector(), 0, []),
        (Collector(rejected=1, reason="too\nlarge"), 1, ["the collector rejected 1 of them: too large"]),
    ):
        with serving(collector, path=path) as service:
            assert main(["export", "report.json", "--to", f"otlp:{service.url}"]) == status
        assert capsys.readouterr().out.splitlines() == ["otlp: 2 events sent", *lines]


GOOD = Said("", content_type="application/x-protobuf")


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([Said("no", 401)], "the collector answered 401 Unauthorized"),
        ([Said("<html>Welcome</html>")], "the answer is not that of a collector"),
        ([GOOD, Said("", 400)], "the collector answered 400 Bad Request; 512 events were sent before"),
    ],
)
def test_a_collector_that_takes_no_events_is_told(capsys, answers, message):
    replies = iter(answers)
    with serving(lambda _: next(replies), path="") as service:
        assert problem(capsys, service.url) == f"otlp:{service.url}: {message}\n"


NO_COLLECTOR = "no collector answers there: it has to receive OTLP over HTTP, by default on port 4318"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (f"http://me:pw@{HOST}:PORT", NO_COLLECTOR),
        *(
            (address, "expected a URL, as in otlp:http://localhost:4318")
            for address in ("localhost:4318", "grpc://localhost:4317", "collector")
        ),
    ],
)
def test_an_address_of_no_collector_is_refused_without_its_password(capsys, address, message):
    address = address.replace("PORT", str(free_port()))

    assert problem(capsys, address) == f"otlp:{address.replace('me:pw@', '')}: {message}\n"


def test_the_variables_of_opentelemetry_name_the_service_and_add_headers(monkeypatch):
    monkeypatch.setenv("OTEL_SERVICE_NAME", "text-to-sql")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=staging")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20swordfish")
    write(report_of([entry(scores={"valid_query": 1.0})]))
    collector = Collector()

    with serving(collector, path="") as service:
        main(["export", "report.json", "--to", f"otlp:{service.url}"])

    assert collector.events[0].resource == {"service.name": "text-to-sql", "deployment.environment.name": "staging"}
    assert service.asked[0].headers["authorization"] == "Bearer swordfish"


def test_a_missing_package_is_named_with_its_extra(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk._logs", None)
    monkeypatch.delitem(sys.modules, "pytest_queryeval.features.otlp.sending", raising=False)

    said = problem(capsys, "http://localhost:4318")
    assert said == "--to otlp needs OpenTelemetry's SDK and exporter: pip install 'pytest-queryeval[otlp]'\n"
