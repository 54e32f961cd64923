"""The example suite runs as its README promises: plain `pytest example_suite`, from the folder above it."""

import json
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent / "example_suite"


def run(folder, *arguments):
    command = [sys.executable, "-m", "pytest", "example_suite", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.fixture
def copy(tmp_path):
    ignored = shutil.ignore_patterns("reports", "__pycache__")
    shutil.copytree(EXAMPLE, tmp_path / "example_suite", ignore=ignored)
    return tmp_path


@pytest.mark.parametrize("arguments", [[], ["-n2", "--queryeval-concurrency=2"]], ids=["alone", "xdist"])
def test_it_is_green_and_writes_its_reports_without_being_asked(copy, arguments):
    result = run(copy, *arguments)

    assert result.returncode == 0, result.stdout + result.stderr
    report = json.loads((copy / "example_suite/reports/report.json").read_text(encoding="utf-8"))
    totals = {name: number for name, number in report["totals"].items() if number}
    assert totals == {"cases": 92, "passed": 75, "missed": 8, "skipped": 6, "xfailed": 3}
    assert [gate["ok"] for gate in report["gates"]] == [True] * 10
    junit = ET.parse(copy / "example_suite/reports/junit.xml")
    assert len(junit.findall(".//testcase")) == 92
    assert junit.findall(".//property[@name='queryeval.brevity']")


def test_the_summary_names_metrics_gates_and_reports(copy):
    result = run(copy)

    for text in ("execution_accuracy", "brevity", "gate met: pass_rate", "report.json", "junit.xml"):
        assert text in result.stdout


def test_a_missed_gate_alone_fails_the_run(copy):
    settings = copy / "example_suite/sql/queryeval.yaml"
    settings.write_text(settings.read_text(encoding="utf-8").replace("min: 0.75", "min: 0.9"), encoding="utf-8")

    result = run(copy)

    assert result.returncode == 1
    assert "gate MISSED: execution_accuracy at least 0.9 in sql: 0.789 over 19" in result.stdout


@pytest.mark.parametrize(
    ("selection", "passed"), [(["-m", "fleet"], 7), (["-m", "easy and not fleet"], 16), (["-k", "two_longest"], 0)]
)
def test_tags_and_difficulties_select_cases(copy, selection, passed):
    result = run(copy, *selection)

    outcome = f"{passed} passed" if passed else "92 deselected"
    assert outcome in result.stdout.splitlines()[-1]


def test_what_its_comments_call_right_is_right_for_the_reason_they_give(copy):
    run(copy)
    report = json.loads((copy / "example_suite/reports/report.json").read_text(encoding="utf-8"))
    cases = {case["id"]: case for case in report["cases"]}

    assert cases["most-docks"]["gold"]["index"] == 1
    assert cases["riders-per-plan"]["gold"]["query"] is None
    assert cases["bikes-before-2020"]["gold"]["row_count"] == 0
    assert cases["two-longest"]["gold"]["sample"] != cases["two-longest"]["predicted"]["sample"]
    assert cases["trips-per-station"]["scores"]["execution_accuracy"] == 0
    assert cases["trips-per-station"]["outcome"] == "passed"
    assert cases["last-repair"]["predicted"]["error"]["kind"] == "invalid"
    assert cases["repaired-twice"]["prediction"]["metadata"] == {"tokens": 187}
