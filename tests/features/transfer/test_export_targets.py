"""`queryeval export --to`: which service gets a report."""

import json
from pathlib import Path

import pytest
from report_maker import make_report

from pytest_queryeval.cli import main

pytestmark = pytest.mark.feature("mlflow", "otlp")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("report.json").write_text(json.dumps(make_report(3)), encoding="utf-8")


def problem(capsys, *arguments):
    """What an export that fails prints."""
    with pytest.raises(SystemExit) as ended:
        main(["export", "report.json", *arguments])
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("http://localhost:5000", "http://localhost:5000"),
        ("mlfow:http://localhost:5000", "mlfow:http://localhost:5000"),
        ("mlflow", "mlflow:"),
        ("mlflow:", "mlflow:"),
        ("", ":"),
        ("mlfow:http://me:pw@localhost:5000", "mlfow:http://localhost:5000"),
        ("http://me:pw@localhost:5000", "http:…"),
        ("a\nb:::set-env", "a b:::set-env"),
    ],
)
def test_a_target_that_is_not_known_or_has_no_address_is_named_without_its_password(capsys, target, shown):
    text = problem(capsys, "--to", target)

    assert text == f"--to: expected mlflow:ADDRESS or otlp:ADDRESS, found '{shown}'\n"


@pytest.mark.parametrize("option", [("-o", "out.txt"), ("--force",)])
def test_options_of_files_are_refused_with_a_target(capsys, option):
    text = problem(capsys, "--to", "mlflow:http://localhost:5000", *option)

    assert text == "--to sends the report and writes no file: leave out --output and --force\n"


@pytest.mark.parametrize("arguments", [(), ("-f", "spider", "--to", "mlflow:http://localhost:5000")])
def test_an_export_has_a_format_or_a_target(capsys, arguments):
    text = problem(capsys, *arguments)

    assert "--format" in text
    assert "--to" in text
    assert text.count("\n") == 1
