"""Sends a report to MLflow: a run with its metrics, parameters and tags, and with report.json and report.html."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import requests

from pytest_queryeval.cli.output import Result
from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.core.report import Report
from pytest_queryeval.features.mlflow.run_values import parameters, run_metrics, tags
from pytest_queryeval.reports import REPORTS, write_report
from pytest_queryeval.text.formatting import one_line, pluralize
from pytest_queryeval.text.redaction import mask_credentials

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

PACKAGES = ("mlflow", "jinja2")
EXPERIMENT = "MLFLOW_EXPERIMENT_NAME"  # MLflow's own variable
DEFAULT_EXPERIMENT = "pytest-queryeval"
REPORT_TAG = "queryeval.report"
MAX_BATCH = 1000  # metrics that the server takes at once
REASON_CHARACTERS = 300
# MLflow's own settings, unless the user set them: it reports its use to its makers, tries a server that is not there
# for four minutes, and prints an address to standard output.
SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}


def send_to_mlflow(report: Report, address: str) -> Result:
    """Write the run of a report, or write it again where an earlier export of the same report made one.

    Raise `ReportError` if a package is missing, if it is not the address of a server, and if the server cannot be
    reached or refuses the run.
    """
    if missing := [name for name in PACKAGES if find_spec(name) is None]:
        raise ReportError(f"--to mlflow needs {' and '.join(missing)}: pip install 'pytest-queryeval[mlflow]'")
    if "://" not in address and not address.startswith("databricks"):
        hint = "expected the address of a server, as in mlflow:http://localhost:5000"
        raise ReportError(f"mlflow:{one_line(mask_credentials(address))}: {hint}")
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        return _send(report, address)
    except ReportError:
        raise
    except Exception as error:  # each store of MLflow raises what its driver raises
        raise ReportError(f"mlflow:{one_line(mask_credentials(address))}: {_problem(error)}") from error


def _send(report: Report, address: str) -> Result:
    import mlflow

    mlflow.set_tracking_uri(address)  # artifacts go there, too
    client = mlflow.MlflowClient()
    experiment = os.environ.get(EXPERIMENT) or DEFAULT_EXPERIMENT
    run, is_new = _run_of(report, client, experiment)
    run_id, experiment_id = run.info.run_id, run.info.experiment_id
    metrics = run_metrics(report)
    try:
        _log_values(client, run_id, report, metrics)
        with TemporaryDirectory() as folder:
            files = list(_write_files(report, Path(folder)))
            client.log_artifacts(run_id, folder)
    except BaseException:
        if is_new:  # else it would be running for ever
            with suppress(Exception):
                client.set_terminated(run_id, "FAILED")
        raise
    client.set_terminated(run_id, "KILLED" if report["interrupted"] else "FINISHED")
    place = f"{mask_credentials(address).rstrip('/')}/#/experiments/{experiment_id}/runs/{run_id}"
    lines = [
        f"mlflow: run '{run.info.run_name}' {'created' if is_new else 'updated'} in experiment '{experiment}'",
        f"{pluralize(len(metrics), 'metric')}, {', '.join(files)}",
        *([place] if address.startswith("http") else []),
    ]
    data = {
        "run_id": run_id,
        "experiment": experiment,
        "created": is_new,
        "metrics": metrics,
        "files": files,
    }
    return Result(status=0, lines=lines, data=data)


def _run_of(report: Report, client: MlflowClient, experiment: str) -> tuple[Run, bool]:
    """Return the run that an earlier export of the report made, else a new one, and whether it is new."""
    known_experiment = client.get_experiment_by_name(experiment)
    experiment_id = known_experiment.experiment_id if known_experiment else client.create_experiment(experiment)
    identity = _identity(report)
    runs = client.search_runs([experiment_id], f"tags.`{REPORT_TAG}` = '{identity}'", max_results=1)
    if runs:
        return runs[0], False
    return client.create_run(experiment_id, tags={REPORT_TAG: identity}, run_name=report["name"] or None), True


def _identity(report: Report) -> str:
    """Return a digest of what tells the run from every other run, whatever was computed of it since."""
    times = report["measures"].get("prediction_seconds")
    facts = [report["name"], report["created"], report["requested_paths"], report["collected"], times]
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _log_values(client: MlflowClient, run_id: str, report: Report, metrics: Mapping[str, float]) -> None:
    from mlflow.entities import Metric, Param, RunTag

    client.log_batch(
        run_id,
        params=[Param(name, value) for name, value in parameters(report).items()],
        tags=[RunTag(name, value) for name, value in tags(report).items()],
    )
    now = time.time_ns() // 1_000_000  # of two values of a metric, the later one counts
    values = [Metric(name, value, now, 0) for name, value in metrics.items()]
    for start in range(0, len(values), MAX_BATCH):
        client.log_batch(run_id, metrics=values[start : start + MAX_BATCH])


def _write_files(report: Report, folder: Path) -> Iterator[str]:
    """Write the report as a page and as JSON, and yield the names of the files."""
    for suffix in ("html", "json"):
        if suffix in REPORTS.available():  # without the feature `page` there is no page
            path = folder / f"report.{suffix}"
            companion = write_report(report, path)
            yield from (file.name for file in (path, companion) if file is not None)


def _problem(error: Exception) -> str:
    """Return why a run could not be written, with a remedy if the server is not there."""
    if any(isinstance(cause, requests.ConnectionError) for cause in _causes(error)):
        return "no server answers there: start one with `mlflow server`, or correct the address"
    if type(error).__name__ == "UnsupportedModelRegistryStoreURIException":  # without SQLAlchemy, also of databases
        return "MLflow has no such store here: a server is http://…, and a store in a database needs pip install mlflow"
    if "error code 404" in str(error):
        return "the server there has none of MLflow's addresses: correct it to that of `mlflow server`"
    if isinstance(error, ModuleNotFoundError):
        return f"needs {error.name}, which comes with mlflow and not with mlflow-skinny: pip install mlflow"
    return f"the report was not exported: {one_line(str(error), REASON_CHARACTERS)}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
