"""What is left of the package without a feature, or without all of them."""

import json
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


def run_without(features, program, *arguments):
    command = [sys.executable, "-c", program, " ".join(features), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


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


def test_a_command_of_a_feature_that_is_not_installed_is_named_with_it():
    done = run_without(["history"], COMMAND, "compare", "a.json", "b.json")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "command 'compare' needs the feature history, which is not installed\n"


def test_an_export_target_of_a_feature_that_is_not_installed_is_named_with_it(tmp_path):
    report = tmp_path / "report.json"
    report.write_text(json.dumps(report_of([])), encoding="utf-8")

    done = run_without(["mlflow"], COMMAND, "export", str(report), "--to", "mlflow:http://localhost:5000")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "export target 'mlflow' needs the feature mlflow, which is not installed\n"


def test_the_other_commands_are_there():
    done = run_without(FEATURES, COMMAND, "schema", "suite")

    assert done.returncode == 0, done.stderr


def test_the_section_of_a_feature_that_is_not_installed_is_named_with_it(tmp_path):
    report = tmp_path / "report.json"
    report.write_text(json.dumps(report_of([])), encoding="utf-8")

    done = run_without(["strength"], COMMAND, "render", str(report), "--strength", "a.json", "-o", f"{tmp_path}/b.json")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "report section 'strength' needs the feature strength, which is not installed\n"


def test_a_report_of_a_feature_that_is_not_installed_is_named_with_it(tmp_path):
    done = run_without(["excel"], PYTEST, "example_suite/sql", "-q", f"--queryeval-report={tmp_path}/report.xlsx")

    assert done.returncode == 4
    assert "report format 'xlsx' needs the feature excel, which is not installed" in done.stderr


def test_a_suite_that_needs_a_feature_that_is_not_installed_names_it(tmp_path):
    suite = "kind: json\npredictor: inline\ncases:\n  - {id: a, gold: {a: 1}, predicted: {a: 1}}\n"
    (tmp_path / "a.queryeval.yaml").write_text(suite, encoding="utf-8")

    done = run_without(["json"], PYTEST, tmp_path, "-q", "-p", "no:cacheprovider")

    assert done.returncode == 2
    assert "a.queryeval.yaml:1: kind 'json' needs the feature json, which is not installed" in done.stdout


def test_a_metric_that_needs_a_feature_that_is_not_installed_names_it(tmp_path):
    suite = """\
kind: json
predictor: inline
metrics: [semantic_similarity]
thresholds: {}
cases:
  - {id: a, gold: {a: 1}, predicted: {a: 2}}
"""
    (tmp_path / "a.queryeval.yaml").write_text(suite, encoding="utf-8")

    done = run_without(["embeddings"], PYTEST, tmp_path, "-q", "-p", "no:cacheprovider")

    assert done.returncode == 1
    assert "the feature embeddings is not installed" in done.stdout


def test_a_predictor_of_a_feature_that_is_not_installed_is_named_with_it(tmp_path):
    suite = "kind: sql\nsource: a.db\npredictor: {command: [ask]}\ncases:\n  - {id: a, gold: SELECT 1}\n"
    (tmp_path / "a.queryeval.yaml").write_text(suite, encoding="utf-8")

    done = run_without(["command_predictor"], PYTEST, tmp_path, "-q", "-p", "no:cacheprovider")

    assert done.returncode == 2
    assert "predictor 'command' needs the feature command_predictor, which is not installed" in done.stdout


def test_an_option_that_needs_a_feature_that_is_not_installed_names_it(tmp_path):
    done = run_without(["recording"], PYTEST, "example_suite/sql", "-q", f"--queryeval-record={tmp_path}")

    assert done.returncode == 4
    assert "--queryeval-record: the feature recording is not installed" in done.stderr


def test_causes_that_are_asked_for_without_their_feature_are_a_usage_error():
    done = run_without(["causes"], PYTEST, "example_suite/sql", "-q", "--queryeval-cause=full")

    assert done.returncode == 4
    assert "--queryeval-cause=full: the feature causes is not installed" in done.stderr


def test_challenges_that_are_asked_for_without_their_feature_are_a_usage_error():
    done = run_without(["challenge"], PYTEST, "example_suite/sql", "-q", "--queryeval-challenge")

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--queryeval-challenge: the feature challenge is not installed" in done.stderr


@pytest.mark.parametrize(
    ("feature", "status", "problem"),
    [
        ("challenge", 2, "metric 'challenged_accuracy' needs the feature challenge, which is not installed"),
        ("strength", 1, "the feature strength is not installed"),
    ],
)
def test_challenged_accuracy_without_a_feature_that_it_needs_is_an_error(tmp_path, feature, status, problem):
    (tmp_path / "a.sql").write_text("create table singer (n); insert into singer values (1), (2);", encoding="utf-8")
    case = "{id: a, gold: SELECT n FROM singer, predicted: SELECT DISTINCT n FROM singer}"
    suite = f"kind: sql\nsource: {{sqlite: {{script: a.sql}}}}\nmetrics: [challenged_accuracy]\ncases: [{case}]\n"
    (tmp_path / "a.queryeval.yaml").write_text(suite, encoding="utf-8")

    done = run_without([feature], COMMAND, "evaluate", str(tmp_path))

    assert done.returncode == status
    assert problem in done.stdout + done.stderr
