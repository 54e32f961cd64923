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


def test_a_run_has_the_numbers_of_the_report_and_its_files(folder, capsys, url, client):
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
    names = [file.path for file in client.list_artifacts(printed["run_id"])]
    assert sorted(names) == ["report.html", "report.json"] == sorted(printed["files"])
    local = Path(client.download_artifacts(printed["run_id"], "", str(folder)))
    assert json.loads((local / "report.json").read_bytes()) == report
    assert (local / "report.html").read_bytes() == REPORTS["html"].render(report)


def test_a_second_export_updates_a_run_and_another_run_is_one_of_the_experiment_that_a_variable_names(
    folder, capsys, url, client, monkeypatch
):
    scores = {"recall[COUNTRY]": 0.5, "recall[=€]": 0.25, "recall[.]": 0.75, "recall[A/B]": 1.0}
    later = report_of([entry(scores=scores)], name="nightly", created="2025-03-02T09:30:00+00:00", interrupted=True)
    report = make_report(12, name="nightly")
    _, first = export(capsys, report, url)
    rescored = [case | {"scores": dict.fromkeys(case["scores"], 0.25)} for case in report["cases"]]
    _, again = export(capsys, report_of(rescored, name="nightly"), url)
    assert (first["created"], again["created"], again["run_id"]) == (True, False, first["run_id"])
    assert client.get_run(first["run_id"]).data.metrics["execution_accuracy"] == 0.25
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "text-to-sql")

    _, second = export(capsys, later, url)

    assert second["created"]
    assert second["run_id"] != first["run_id"]
    run = client.get_run(second["run_id"])
    assert run.info.experiment_id == client.get_experiment_by_name("text-to-sql").experiment_id
    assert run.info.status == "KILLED"
    names = ("recall/COUNTRY", "recall/_3d__20ac_", "recall/_2e_", "recall/A_2f_B")  # other characters are not allowed
    assert [run.data.metrics[name] for name in names] == [0.5, 0.25, 0.75, 1.0]


def test_hundreds_of_cases_and_metrics_are_a_few_requests(folder, capsys):
    report = report_of([entry(id=str(number), scores={f"recall[{number}]": 1.0}) for number in range(400)])
    assert len(run_metrics(report)) > 1200

    with serving(TrackingService(), path="") as service:
        export(capsys, report, service.url)

    paths = [request.path.rpartition("/")[2] for request in service.asked]
    assert paths.count("log-batch") == 1 + len(run_metrics(report)) // 1000 + 1
    assert len(paths) < 20


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


REFUSAL = {"error_code": "PERMISSION_DENIED", "message": "swordfish-swordfish may not\nwrite"}
NOT_OF_MLFLOW = "the server there has none of MLflow's addresses: correct it to that of `mlflow server`"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (Said("<html>Welcome</html>", 200, "text/html"), NOT_OF_MLFLOW),
        (Said("<html>Welcome</html>", 404, "text/html"), NOT_OF_MLFLOW),
        (Said(REFUSAL, 403), f"the server refuses the run: PERMISSION_DENIED: [redacted] may not write: {LOGIN}"),
        (Said("<html>Sorry</html>", 401, "text/html"), f"the server refuses the run: error 401: {LOGIN}"),
        (Said("<html>Sorry</html>", 403, "text/html"), f"the server refuses the run: error 403: {LOGIN}"),
        (Said("<html>Sorry</html>", 500, "text/html"), "the server answers with errors: its log says why"),
    ],
)
def test_a_server_that_takes_no_run_is_told_with_what_to_do_and_without_secrets(
    folder, capsys, monkeypatch, said, message
):
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "swordfish-swordfish")
    with serving(lambda _: said, path="") as service:
        assert problem(capsys, service.url) == f"mlflow:{service.url}: {message}\n"


ADDRESS = "expected the address of a server, as in mlflow:http://localhost:5000"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (
            f"http://me:pw@{HOST}:PORT",
            "no server answers there: start one with `mlflow server`, or correct the address",
        ),
        ("file:///runs", "MLflow no longer writes runs to folders: name a server, or a database as in mlflow:sqlite:"),
        ("htp://localhost:5000", "MLflow has no such store here: a server is http://…"),
        *((address, ADDRESS) for address in ("localhost:5000", "mlruns", "./mlruns")),
    ],
)
def test_an_address_of_no_server_is_refused_without_its_password(folder, capsys, address, message):
    address = address.replace("PORT", str(free_port()))

    assert problem(capsys, address).startswith(f"mlflow:{address.replace('me:pw@', '')}: {message}")


def test_a_missing_package_is_named_with_its_extra(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)

    assert problem(capsys, "http://localhost:5000") == (
        "--to mlflow needs mlflow: pip install 'pytest-queryeval[mlflow]'\n"
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


@pytest.mark.process
def test_mlflow_is_not_imported_before_it_is_used():
    program = "import sys; from pytest_queryeval.cli import main; main(['export', '--help'])"
    check = f"import atexit, sys; atexit.register(lambda: sys.stderr.write(str('mlflow' in sys.modules))); {program}"

    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=120)

    assert (done.returncode, done.stderr) == (0, "False")
