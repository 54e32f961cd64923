"""`queryeval export --to mlflow:URI`: sends a report to MLflow as a run.

The run gets the metrics, parameters and tags of the report, and report.json and report.html as artifacts. Names in
MLflow have only the characters that MLflow allows.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, cast

import requests

from pytest_queryeval.cli.output import Result
from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.core.files import ScratchFolder
from pytest_queryeval.core.report import Report, ScoreStatistics
from pytest_queryeval.reports import REPORTS, write_report
from pytest_queryeval.reports.sections import pass_rate
from pytest_queryeval.results.verdict import verdict
from pytest_queryeval.text.formatting import one_line, pluralize
from pytest_queryeval.text.redaction import mask_credentials

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

EXPERIMENT = "MLFLOW_EXPERIMENT_NAME"  # MLflow's own variable
DEFAULT_EXPERIMENT = "pytest-queryeval"
REPORT_TAG = "queryeval.report"
MAX_BATCH = 1000  # metrics that the server takes at once
REASON_CHARACTERS = 300
VALUE_CHARACTERS = 500  # of a parameter and of a tag
# MLflow's own settings, unless the user set them: it reports its use to its makers, tries a server that is not there
# for four minutes, and prints an address to standard output.
SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
_INVALID = re.compile(r"[^\w. -]|(?<!\w)\.")  # a point at the beginning of a part would be a folder
_REFUSAL = re.compile(r"error code (?P<status>40[13])|PERMISSION_DENIED|UNAUTHENTICATED")


def send_to_mlflow(report: Report, address: str) -> Result:
    """Write a report to MLflow as a run, and return the lines and data that the command prints.

    An earlier run of the same report is updated instead of a new one. MLflow's settings in SETTINGS are set as
    environment variables unless the user set them. Raise `ReportError` in these cases:

    - mlflow is not installed
    - `address` is not the address of a server
    - the server cannot be reached, or refuses the run
    """
    if find_spec("mlflow") is None:
        raise ReportError("--to mlflow needs mlflow: pip install 'pytest-queryeval[mlflow]'")
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
        raise ReportError(f"mlflow:{one_line(mask_credentials(address))}: {_error_text(error)}") from error


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
        with ScratchFolder() as folder:
            # Without the feature `page` there is no page.
            paths = [folder / f"report.{suffix}" for suffix in ("html", "json") if suffix in REPORTS.available()]
            written_paths = chain.from_iterable((path, write_report(report, path)) for path in paths)
            files = [path.name for path in written_paths if path is not None]
            client.log_artifacts(run_id, str(folder))
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
    """Return the run that an earlier export of the same report made, else a new run, and whether it is new.

    The experiment is created if it does not exist.
    """
    known_experiment = client.get_experiment_by_name(experiment)
    experiment_id = known_experiment.experiment_id if known_experiment else client.create_experiment(experiment)
    # Fields that identify the run, and that no later computation changes.
    times = report["measures"].get("prediction_seconds")
    identifying_fields = [report["name"], report["created"], report["requested_paths"], report["collected"], times]
    identity = sha256(json.dumps(identifying_fields, sort_keys=True).encode()).hexdigest()
    runs = client.search_runs([experiment_id], f"tags.`{REPORT_TAG}` = '{identity}'", max_results=1)
    if runs:
        return runs[0], False
    return client.create_run(experiment_id, tags={REPORT_TAG: identity}, run_name=report["name"] or None), True


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


def _error_text(error: Exception) -> str:
    """Return the reason why MLflow raised an error, in words, with a remedy where one is known."""
    causes: list[BaseException] = [error]
    while cause := causes[-1].__cause__ or causes[-1].__context__:
        causes.append(cause)
    if any(isinstance(cause, requests.ConnectionError) for cause in causes):
        return "no server answers there: start one with `mlflow server`, or correct the address"
    if type(error).__name__ == "UnsupportedModelRegistryStoreURIException":  # without SQLAlchemy, also of databases
        return "MLflow has no such store here: a server is http://…, and a store in a database needs pip install mlflow"
    text = str(error)
    if "error code 404" in text or "not in a valid JSON format" in text:
        return "the server there has none of MLflow's addresses: correct it to that of `mlflow server`"
    if refusal := _REFUSAL.search(text):
        reason = f"error {refusal['status']}" if refusal["status"] else one_line(text, REASON_CHARACTERS)
        variables = "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN"
        return f"the server refuses the run: {reason}: set {variables} for an account that may write runs"
    if "Max retries exceeded" in text:
        return "the server answers with errors: its log says why"
    if "maintenance mode" in text:
        return "MLflow no longer writes runs to folders: name a server, or a database as in mlflow:sqlite:///mlflow.db"
    if isinstance(error, ModuleNotFoundError):
        return f"needs {error.name}, which comes with mlflow and not with mlflow-skinny: pip install mlflow"
    return f"the report was not exported: {one_line(text, REASON_CHARACTERS)}"


def run_metrics(report: Report) -> dict[str, float]:
    """Return the numbers of a report by their names in MLflow.

    They are means of metrics with `.n` and the ends of their intervals, the pass rate, measures, and counts of cases
    and causes.
    """
    values: dict[str, float] = {}
    for name, statistics in report["metrics"].items():
        values |= _score_metrics(metric_name(name), statistics)
    if (rate := pass_rate(report["totals"], report["groups"]["source"])) is not None:
        values |= _score_metrics("pass_rate", rate)
    for name, measure in report["measures"].items():
        measure_name = metric_name(name)
        values |= {f"{measure_name}.mean": measure["mean"], f"{measure_name}.p95": measure["p95"]}
        values[f"{measure_name}.sum"] = measure["sum"]
    totals = cast("dict[str, int]", report["totals"])
    values |= {f"cases.{name}": float(number) for name, number in totals.items()}
    values |= {f"causes.{metric_name(label)}": float(number) for label, number in report["causes"].items()}
    return values


def _score_metrics(name: str, statistics: ScoreStatistics) -> dict[str, float]:
    values = {name: statistics["mean"], f"{name}.n": float(statistics["n"])}
    if statistics["ci95"] is not None:
        values[f"{name}.ci95_low"], values[f"{name}.ci95_high"] = statistics["ci95"]
    return values


def metric_name(name: str) -> str:
    """Return a name with only the characters that MLflow allows.

    A bracket becomes a slash. Any other character that MLflow does not allow becomes its code point between
    underscores.

    >>> metric_name("recall[COUNTRY]")
    'recall/COUNTRY'
    >>> metric_name("metadata[cost/call]")
    'metadata/cost_2f_call'
    """
    family, bracket, parameter = name.partition("[")
    parts = (family, parameter.removesuffix("]")) if bracket else (family,)
    return "/".join(_INVALID.sub(lambda match: f"_{ord(match[0]):x}_", part) for part in parts)


def parameters(report: Report) -> dict[str, str]:
    """Return the parameters of MLflow's run: predictor, paths and versions, without empty values.

    MLflow refuses to change a parameter, so all of them are the same in another export of the report.
    """
    environment = report["environment"]
    values = {
        "predictor": ", ".join(report["predictor"]["sources"]),
        "paths": ", ".join(report["requested_paths"]["paths"]),
        "python": environment.get("python", ""),
        "pytest_queryeval": environment.get("pytest_queryeval", ""),
        **{f"engine.{metric_name(name)}": version for name, version in environment.get("engines", {}).items()},
    }
    return {name: one_line(value, VALUE_CHARACTERS) for name, value in values.items() if value}


def tags(report: Report) -> dict[str, str]:
    """Return the tags of MLflow's run: the verdict, its summary line, and when the report was created."""
    run_verdict = verdict(report)
    return {
        "queryeval.verdict": run_verdict.state,
        "queryeval.summary": one_line(run_verdict.line.removeprefix("queryeval: "), VALUE_CHARACTERS),
        "queryeval.created": report["created"],
    }
