"""The example suite runs as the README promises: plain `pytest example_suite`, from the folder above it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

pytestmark = [
    pytest.mark.process,
    pytest.mark.feature(
        "abstention",
        "command_predictor",
        "conversations",
        "dbt",
        "duckdb",
        "json",
        "review",
        "sdmx",
        "sparql_endpoint",
        "writes",
    ),
]

EXAMPLE = Path(__file__).parent.parent / "example_suite"
MISSED = {"trees-of-red", "largest-plot", "never-picked", "repaired-twice", "last-repair", "repair-cost", "next-year"}
MISSED |= {"repairs.4"}  # of a conversation


def run(folder, *arguments):
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The suite but for the cases that load an embedding model, which `plugin/test_plugin_semantic.py` runs."""
    folder = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("reports", "__pycache__", "semantic")
    shutil.copytree(EXAMPLE, folder / "example_suite", ignore=ignored)
    return folder


@pytest.fixture(scope="module")
def ran(copy):
    """The one run of all cases, and its report."""
    result = run(copy, "example_suite")
    assert result.returncode == 0, result.stdout + result.stderr
    reports = copy / "example_suite/reports"
    report = json.loads((reports / "report.json").read_text(encoding="utf-8"))
    return SimpleNamespace(stdout=result.stdout, report=report, junit=ElementTree.parse(reports / "junit.xml"))


def cases(ran):
    return {case["id"]: case for case in ran.report["cases"]}


def test_it_is_green_and_writes_its_reports_without_being_asked(ran):
    totals = ran.report["totals"]
    assert totals["failed"] == totals["errors"] == totals["xpassed"] == 0
    assert {id_ for id_, case in cases(ran).items() if case["outcome"] == "missed"} == MISSED
    assert totals["passed"] > totals["cases"] / 2
    assert {gate["ok"] for gate in ran.report["gates"]} == {True}
    testcases = {suite.get("name"): suite.findall("testcase") for suite in ran.junit.iter("testsuite")}
    assert len(testcases["pytest"]) == totals["cases"] == len(ran.report["cases"])
    assert len(testcases["queryeval.gates"]) == len(ran.report["gates"])
    assert ran.junit.findall(".//property[@name='queryeval.brevity']")


def test_the_summary_names_metrics_gates_and_reports(ran):
    for text in ("execution_accuracy", "brevity", "gate met: pass_rate", "report.json", "junit.xml"):
        assert text in ran.stdout


def test_what_its_comments_call_right_is_right_for_the_reason_they_give(ran):
    actual = cases(ran)

    assert actual["most-docks"]["gold"]["index"] == 1
    assert actual["riders-per-plan"]["gold"]["query"] is None
    assert actual["bikes-before-2020"]["gold"]["row_count"] == 0
    assert actual["two-longest"]["gold"]["sample"] != actual["two-longest"]["predicted"]["sample"]
    assert actual["trips-per-station"]["scores"]["execution_accuracy"] == 0
    assert actual["trips-per-station"]["outcome"] == "passed"
    assert actual["last-repair"]["predicted"]["error"]["kind"] == "invalid"
    assert actual["repaired-twice"]["prediction"]["metadata"] == {"tokens": 187}


def test_cases_in_tables_have_the_rows_of_a_spreadsheet(ran):
    rows = {
        (Path(case["path"]).name.partition(".")[0], case["id"]): case["row"]
        for case in ran.report["cases"]
        if "row" in case
    }

    assert rows == {
        **{("stations", id_): row for id_, row in (("small-stations", 2), ("row-3", 3), ("row-4", 4))},
        **{("riders", id_): row for id_, row in (("riders", 2), ("trip-by-trip", 3), ("2024", 5), ("longest", 6))},
    }


def test_agents_abstain_take_steps_converse_migrate_and_write(ran):
    agents = [case for case in ran.report["cases"] if case["path"].startswith("agents/")]

    assert sum(case.get("answerable") is False for case in agents) == 10
    assert sum("steps" in case["prediction"] for case in agents if case["prediction"]) == 8
    assert len({case["turn"]["conversation"] for case in agents if "turn" in case}) == 4
    assert sum("gold_source" in case for case in agents) == 8
    writes = [case for case in agents if case["path"].endswith("writes.queryeval.yaml")]
    assert [case["outcome"] for case in writes] == ["passed"] * 4 + ["xfailed"] * 2
    assert len(agents) == 40


def test_decisions_on_golds_are_counted(ran):
    assert ran.report["errata"]["by_decision"] == {"right": 1, "ambiguous": 1}
    small_stations = cases(ran)["small-stations"]
    assert small_stations["review"]["notes"] == ["names may not be unique"]
    assert small_stations["unreviewed"]["outcome"] == small_stations["outcome"] == "passed"
    assert f"2 of {ran.report['totals']['cases']} cases reviewed, chosen by disagreement" in ran.stdout


def test_tags_and_difficulties_select_cases(copy, ran):
    result = run(copy, "example_suite", "--collect-only", "-q", "-m", "easy and not fleet")

    selected = {line.rpartition("::")[2] for line in result.stdout.splitlines() if "::" in line}
    easy = {id_ for id_, case in cases(ran).items() if case["difficulty"] == "easy"}
    assert selected == {id_ for id_ in easy if "fleet" not in cases(ran)[id_]["tags"]}
    assert len(selected) < len(easy)


def test_a_missed_gate_alone_fails_the_run(copy, tmp_path):
    shutil.copytree(copy / "example_suite", tmp_path / "example_suite")
    settings = tmp_path / "example_suite/sql/queryeval.yaml"
    settings.write_text(settings.read_text(encoding="utf-8").replace("min: 0.75}", "min: 0.9}"), encoding="utf-8")

    result = run(tmp_path, "example_suite/sql")

    assert result.returncode == 1
    about = "execution_accuracy of all but texts cases in sql"
    assert f"gate MISSED: {about}: 0.789, needs at least 0.9 (19 cases)" in result.stdout
