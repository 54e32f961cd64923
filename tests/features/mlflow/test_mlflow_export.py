"""`queryeval export --to mlflow:URI`, on a service that speaks MLflow's protocol and on MLflow's own server."""

import json
import os
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from http_services import Said, serving
from mlflow_service import TrackingService
from report_maker import make_report, report_of
from samples import entry
from servers import HOST, free_port, server

from pytest_queryeval.cli import main
from pytest_queryeval.features.mlflow import metric_name, run_metrics
from pytest_queryeval.reports import REPORTS

SERVER = Path(os.environ.get("MLFLOW_SERVER", Path(__file__).parents[3] / ".venv-mlflow/bin/mlflow"))
VARIABLES = "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN"
LOGIN = f"set {VARIABLES} for an account that may write runs"
pytestmark = pytest.mark.long


@contextmanager
def tracking_server(folder):
    """MLflow's own server, with a database and artifacts in a folder."""
    url = f"http://{HOST}:{free_port()}"
    command = [
        *(str(SERVER), "server", "--workers", "1", "--host", HOST, "--port", url.rpartition(":")[2]),
        *("--backend-store-uri", f"sqlite:///{folder}/runs.db", "--artifacts-destination", str(folder / "artifacts")),
    ]
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with server(command, lambda: opener.open(f"{url}/health", timeout=5), OSError, seconds=300):
        yield url


@pytest.fixture(scope="module", autouse=True)
def settings_of_mlflow():
    """Settings that the command makes do not outlive these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
        patch.setenv("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
        patch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        patch.setenv("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "false")  # six further processes
        patch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
        yield


@pytest.fixture(
    scope="module",
    params=["service", pytest.param("server", marks=(pytest.mark.slow, pytest.mark.server, pytest.mark.process))],
)
def url(request, tmp_path_factory):
    if request.param == "service":
        with serving(TrackingService(), path="") as service:
            yield service.url
    elif SERVER.exists():
        with tracking_server(tmp_path_factory.mktemp("mlflow")) as url:
            yield url
    else:
        pytest.skip("there is no MLflow server: `make test-engines` installs one")


@pytest.fixture
def client(url):
    from mlflow import MlflowClient

    return MlflowClient(url)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def export(capsys, report, url, *options):
    """The exit status of an export, and what it printed as JSON."""
    Path("report.json").write_text(json.dumps(report), encoding="utf-8")
    status = main(["export", "report.json", "--to", f"mlflow:{url}", "--json", *options])
    return status, json.loads(capsys.readouterr().out)


def problem(capsys, url, report=None):
    """What an export that fails prints."""
    Path("report.json").write_text(json.dumps(report or make_report(3)), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["export", "report.json", "--to", f"mlflow:{url}"])
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_a_run_has_the_numbers_of_the_report(folder, capsys, url, client):
    report = make_report(40, name="model-b 1a2b3c4", predictor={"sources": ["python:predict.py:predict"]})

    status, printed = export(capsys, report, url)

    run = client.get_run(printed["run_id"])
    assert (status, printed["created"], printed["metrics"]) == (0, True, run.data.metrics)
    assert {name: run.data.metrics[name] for name in report["metrics"]} == {
        name: statistics["mean"] for name, statistics in report["metrics"].items()
    }
    for name, statistics in report["metrics"].items():
        low, high = statistics["ci95"]
        assert run.data.metrics[f"{name}.n"] == statistics["n"]
        assert (run.data.metrics[f"{name}.ci95_low"], run.data.metrics[f"{name}.ci95_high"]) == (low, high)
    for name, number in report["totals"].items():
        assert run.data.metrics[f"cases.{name}"] == number
    for name, measure in report["measures"].items():
        assert run.data.metrics[f"{metric_name(name)}.sum"] == measure["sum"]
    assert run.data.params["predictor"] == "python:predict.py:predict"
    assert run.data.params["engine.sqlite"] == "3.45.1"
    assert run.data.tags["queryeval.verdict"] == "FAILED"
    assert run.data.tags["queryeval.summary"].startswith("FAILED: ")
    assert (run.info.run_name, run.info.status) == ("model-b 1a2b3c4", "FINISHED")
    assert client.get_experiment_by_name("pytest-queryeval").experiment_id == run.info.experiment_id


def test_the_reports_are_artifacts_of_the_run(folder, capsys, url, client):
    report = make_report(12, name="artifacts")

    _, printed = export(capsys, report, url)

    names = [file.path for file in client.list_artifacts(printed["run_id"])]
    assert sorted(names) == ["report.html", "report.json"] == sorted(printed["files"])
    local = Path(client.download_artifacts(printed["run_id"], "", str(folder)))
    assert json.loads((local / "report.json").read_bytes()) == report
    assert (local / "report.html").read_bytes() == REPORTS["html"].render(report)


def test_a_second_export_updates_the_run(folder, capsys, url, client):
    report = make_report(12, name="twice")
    _, first = export(capsys, report, url)
    rescored = [case | {"scores": dict.fromkeys(case["scores"], 0.25)} for case in report["cases"]]

    status, second = export(capsys, report_of(rescored, name="twice"), url)

    assert (status, first["created"], second["created"]) == (0, True, False)
    assert second["run_id"] == first["run_id"]
    assert client.get_run(first["run_id"]).data.metrics["execution_accuracy"] == 0.25


def test_another_run_of_the_same_suites_is_another_run(folder, capsys, url):
    _, first = export(capsys, make_report(12, name="nightly"), url)
    _, second = export(capsys, make_report(12, name="nightly", created="2025-03-02T09:30:00+00:00"), url)

    assert second["created"]
    assert second["run_id"] != first["run_id"]


def test_the_experiment_is_that_of_mlflows_own_variable(folder, capsys, url, client, monkeypatch):
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "text-to-sql")

    _, printed = export(capsys, make_report(3), url)

    experiment = client.get_experiment_by_name("text-to-sql")
    assert client.get_run(printed["run_id"]).info.experiment_id == experiment.experiment_id


def test_names_that_mlflow_does_not_allow_are_written_with_other_characters(folder, capsys, url, client):
    scores = {"recall[COUNTRY]": 0.5, "recall[=€]": 0.25, "recall[.]": 0.75, "recall[A/B]": 1.0}
    report = report_of([entry(scores=scores)], name="names")

    _, printed = export(capsys, report, url)

    metrics = client.get_run(printed["run_id"]).data.metrics
    names = ("recall/COUNTRY", "recall/_3d__20ac_", "recall/_2e_", "recall/A_2f_B")
    assert [metrics[name] for name in names] == [0.5, 0.25, 0.75, 1.0]


def test_a_thousand_cases_and_metrics_are_a_few_requests(folder, capsys):
    report = report_of([entry(id=str(number), scores={f"recall[{number}]": 1.0}) for number in range(1000)])
    assert len(run_metrics(report)) > 3000

    with serving(TrackingService(), path="") as service:
        export(capsys, report, service.url)

    paths = [request.path.rpartition("/")[2] for request in service.asked]
    assert paths.count("log-batch") == 1 + len(run_metrics(report)) // 1000 + 1
    assert len(paths) < 20


def test_an_interrupted_run_is_not_a_finished_one(folder, capsys, url, client):
    _, printed = export(capsys, make_report(3, name="interrupted", interrupted=True), url)

    assert client.get_run(printed["run_id"]).info.status == "KILLED"


def test_the_page_of_the_run_is_printed(folder, capsys):
    Path("report.json").write_text(json.dumps(make_report(3, name="page")), encoding="utf-8")
    tracking = TrackingService()
    with serving(tracking, path="") as service:
        assert main(["export", "report.json", "--to", f"mlflow:{service.url}/"]) == 0
        assert main(["export", "report.json", "--to", f"mlflow:{service.url}"]) == 0

    (run_id,) = tracking.runs
    number = len(run_metrics(make_report(3)))
    lines = [f"{number} metrics, report.html, report.json", f"{service.url}/#/experiments/1/runs/{run_id}"]
    assert capsys.readouterr().out.splitlines() == [
        *("mlflow: run 'page' created in experiment 'pytest-queryeval'", *lines),
        *("mlflow: run 'page' updated in experiment 'pytest-queryeval'", *lines),
    ]


def test_a_server_that_does_not_answer_is_named_without_its_password(folder, capsys):
    port = free_port()

    text = problem(capsys, f"http://me:pw@{HOST}:{port}")

    remedy = "start one with `mlflow server`, or correct the address"
    assert text == f"mlflow:http://{HOST}:{port}: no server answers there: {remedy}\n"


@pytest.mark.parametrize("status", [200, 404])
def test_a_server_that_is_not_of_mlflow_is_told(folder, capsys, status):
    with serving(lambda _: Said("<html>Welcome</html>", status, "text/html"), path="") as service:
        text = problem(capsys, service.url)

    remedy = "correct it to that of `mlflow server`"
    assert text == f"mlflow:{service.url}: the server there has none of MLflow's addresses: {remedy}\n"


def test_a_store_that_is_unknown_is_told_with_what_installs_databases(folder, capsys):
    text = problem(capsys, "htp://localhost:5000")

    assert text.startswith("mlflow:htp://localhost:5000: MLflow has no such store here: a server is http://…")
    assert text.endswith("needs pip install mlflow\n")


def test_what_a_server_refuses_is_told_in_its_words_without_secrets(folder, capsys, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "swordfish-swordfish")
    refusal = {"error_code": "PERMISSION_DENIED", "message": "swordfish-swordfish may not\nwrite"}

    with serving(lambda _: Said(refusal, 403), path="") as service:
        text = problem(capsys, service.url)

    assert text == (
        f"mlflow:{service.url}: the server refuses the run: PERMISSION_DENIED: [redacted] may not write: {LOGIN}\n"
    )


@pytest.mark.parametrize(
    ("status", "problem_of_server"),
    [
        (401, f"the server refuses the run: error 401: {LOGIN}"),
        (403, f"the server refuses the run: error 403: {LOGIN}"),
        (500, "the server answers with errors: its log says why"),
    ],
)
def test_a_server_that_answers_with_an_error_is_told_with_what_to_do(folder, capsys, status, problem_of_server):
    with serving(lambda _: Said("<html>Sorry</html>", status, "text/html"), path="") as service:
        text = problem(capsys, service.url)

    assert text == f"mlflow:{service.url}: {problem_of_server}\n"


def test_a_folder_is_no_store_any_more(folder, capsys):
    remedy = "name a server, or a database as in mlflow:sqlite:///mlflow.db"

    assert (
        problem(capsys, "file:///runs") == f"mlflow:file:///runs: MLflow no longer writes runs to folders: {remedy}\n"
    )


class FullService(TrackingService):
    """Has no room for artifacts as long as it is full."""

    full = True

    def _artifact(self, asked, name):
        return Said({"error_code": "PERMISSION_DENIED", "message": "no space"}, 403) if self.full else Said({})


def test_a_run_whose_artifacts_cannot_be_stored_is_failed_until_an_export_succeeds(folder, capsys):
    tracking = FullService()
    with serving(tracking, path="") as service:
        text = problem(capsys, service.url)
        (run,) = tracking.runs.values()
        statuses = [run["info"]["status"]]
        tracking.full = False
        _, printed = export(capsys, make_report(3), service.url)
        statuses.append(run["info"]["status"])
        tracking.full = True
        problem(capsys, service.url)
        statuses.append(run["info"]["status"])

    assert text.startswith(f"mlflow:{service.url}: the server refuses the run: ")
    assert (statuses, printed["created"]) == (["FAILED", "FINISHED", "FINISHED"], False)


@pytest.mark.parametrize("address", ["localhost:5000", "mlruns", "./mlruns"])
def test_an_address_that_is_not_of_a_server_is_refused(folder, capsys, address):
    expected = "expected the address of a server, as in mlflow:http://localhost:5000"

    assert problem(capsys, address) == f"mlflow:{address}: {expected}\n"


@pytest.mark.parametrize("package", ["mlflow", "jinja2"])
def test_a_missing_package_is_named_with_its_extra(folder, capsys, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)

    text = problem(capsys, "http://localhost:5000")

    assert text == f"--to mlflow needs {package}: pip install 'pytest-queryeval[mlflow]'\n"


@pytest.mark.process
def test_mlflow_is_not_imported_before_it_is_used():
    program = "import sys; from pytest_queryeval.cli import main; main(['export', '--help'])"
    check = f"import atexit, sys; atexit.register(lambda: sys.stderr.write(str('mlflow' in sys.modules))); {program}"

    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=120)

    assert (done.returncode, done.stderr) == (0, "False")
