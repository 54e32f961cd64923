"""What is left of the package without a feature, or without all of them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from report_maker import report_of

import pytest_queryeval.features

ROOT = Path(__file__).parents[2]
FEATURES = sorted(
    path.name for path in Path(pytest_queryeval.features.__file__).parent.iterdir() if (path / "__init__.py").exists()
)
# An import of a module that is None fails as if it were not there.
WITHOUT = (
    "import sys; names = sys.argv.pop(1).split(); "
    "sys.modules.update(dict.fromkeys([f'pytest_queryeval.features.{name}' for name in names])); "
)
PYTEST = f"{WITHOUT}import pytest; sys.exit(pytest.main(sys.argv[1:]))"
COMMAND = f"{WITHOUT}from pytest_queryeval import cli; sys.exit(cli.main(sys.argv[1:]))"


def run_without(features, program, *arguments, folder=ROOT):
    command = [sys.executable, "-c", program, " ".join(features), *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def test_every_feature_says_what_it_is_for():
    folder = Path(pytest_queryeval.features.__file__).parent

    assert FEATURES
    assert [name for name in FEATURES if not (folder / name / "README.md").is_file()] == []


@pytest.mark.parametrize(
    "features", [FEATURES, *(pytest.param([name], marks=pytest.mark.slow) for name in FEATURES)], ids=" ".join
)
def test_a_sql_suite_runs_without_features(tmp_path, features):
    reports = tmp_path / "reports"

    done = run_without(
        features, PYTEST, "example_suite/sql", "-q", "-p", "no:cacheprovider", f"--queryeval-report={reports}"
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert (reports / "report.json").is_file()
    assert (reports / "report.xlsx").is_file() == ("excel" not in features)


SQL = "{kind: sql, source: {sqlite: {script: a.sql}}, cases: [{id: a, gold: SELECT n FROM t, predicted: SELECT 1}]}"
ASKED = SQL.replace("cases", "predictor: {command: [ask]}, cases").replace(", predicted: SELECT 1", "")
JSON = "{kind: json, cases: [{id: a, gold: {a: 1}, predicted: {a: 2}}]}"
FILES = {
    "report.json": json.dumps(report_of([])),
    "a.sql": "create table t (n); insert into t values (1), (2);",
    "sql.queryeval.yaml": SQL,
    "json.queryeval.yaml": JSON,
    "similar.queryeval.yaml": JSON.replace("cases", "metrics: [semantic_similarity], thresholds: {}, cases"),
    "asked.queryeval.yaml": ASKED,
    "challenged.queryeval.yaml": SQL.replace("cases", "metrics: [challenged_accuracy], cases").replace(
        "predicted: SELECT 1", "predicted: SELECT DISTINCT n FROM t"
    ),
}
NOT_INSTALLED = "which is not installed"


@pytest.mark.parametrize(
    ("feature", "program", "arguments", "status", "problem"),
    [
        ("history", COMMAND, "compare a.json b.json", 2, "command 'compare' needs the feature history"),
        (
            "mlflow",
            COMMAND,
            "export report.json --to mlflow:http://a",
            2,
            "export target 'mlflow' needs the feature mlflow",
        ),
        (
            *("strength", COMMAND, "render report.json --strength a.json -o b.json", 2),
            "report section 'strength' needs the feature strength",
        ),
        ("excel", PYTEST, "sql --queryeval-report=r.xlsx", 4, "report format 'xlsx' needs the feature excel"),
        ("json", PYTEST, "json", 2, "json.queryeval.yaml:1: kind 'json' needs the feature json"),
        ("command_predictor", PYTEST, "asked", 2, "predictor 'command' needs the feature command_predictor"),
        ("embeddings", PYTEST, "similar", 1, "the feature embeddings is not installed"),
        (
            "recording",
            PYTEST,
            "sql --queryeval-record=r",
            4,
            "--queryeval-record: the feature recording is not installed",
        ),
        (
            "causes",
            PYTEST,
            "sql --queryeval-cause=full",
            4,
            "--queryeval-cause=full: the feature causes is not installed",
        ),
        (
            "challenge",
            PYTEST,
            "sql --queryeval-challenge",
            4,
            "--queryeval-challenge: the feature challenge is not installed",
        ),
        ("challenge", COMMAND, "evaluate challenged", 2, "metric 'challenged_accuracy' needs the feature challenge"),
        ("strength", COMMAND, "evaluate challenged", 1, "the feature strength is not installed"),
    ],
)
def test_what_needs_a_feature_that_is_not_installed_names_it(tmp_path, feature, program, arguments, status, problem):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    words = [f"{word}.queryeval.yaml" if f"{word}.queryeval.yaml" in FILES else word for word in arguments.split()]

    done = run_without([feature], program, *words, folder=tmp_path)

    text = problem if problem.endswith("installed") else f"{problem}, {NOT_INSTALLED}"
    assert done.returncode == status
    assert text in done.stdout + done.stderr
    if program == COMMAND and "evaluate" not in arguments:
        assert (done.stdout, done.stderr) == ("", f"{text}\n")


def test_the_other_commands_are_there():
    done = run_without(FEATURES, COMMAND, "schema", "suite")

    assert done.returncode == 0, done.stderr
