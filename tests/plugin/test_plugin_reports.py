"""What the reports of a run hold."""

from __future__ import annotations

import re
import sqlite3
from importlib.metadata import version

import pytest
from singers import EMPTY, FIRST_LINE, GOLD, INVALID, WRONG, case, unpredicted

NAMES = "SELECT name, hex(zeroblob(200)) FROM singer"
GRAPH = "SELECT ?s WHERE { ?s ?p 1 }"


@pytest.fixture(scope="module")
def reported(shared_project):
    """A run of suites in two folders, on several engines."""
    suite, write = shared_project.suite, shared_project.write
    suite(case("bad", WRONG), case("error", gold=INVALID), name="b.queryeval.yaml")
    suite(case("kept", NAMES, gold=NAMES), name="k.queryeval.yaml", report_rows=2)
    suite(case("private", WRONG), name="p.queryeval.yaml", report_rows=0)
    write("a/predict.py", f"import time\n\ndef predict(case):\n    time.sleep(0.2)\n    return {GOLD!r}\n")
    suite(unpredicted("slow"), name="a/c.queryeval.yaml", predictor="predict.py:predict")
    duck = {"duckdb": {"script": "singers.sql"}}
    suite(case("other", GOLD, skip="later"), name="a/d.queryeval.yaml", source=duck)
    write("people.ttl", "<http://a/b> <http://a/c> 1 .")
    triples = {"kind": "sparql", "source": {"rdf": {"files": "people.ttl", "engine": "rdflib"}}}
    suite({"id": "graph", "gold": GRAPH, "predicted": GRAPH}, name="g.queryeval.yaml", **triples)
    return shared_project.run_and_parse(*(f"{name}.queryeval.yaml" for name in "pkgb"), "a")


@pytest.mark.feature("duckdb")
def test_cases_come_by_path_then_line(reported):
    places = [(case["nodeid"], case["line"]) for case in reported.report["cases"]]

    assert places[:4] == [
        ("a/c.queryeval.yaml::slow", FIRST_LINE + 1),
        ("a/d.queryeval.yaml::other", FIRST_LINE),
        ("b.queryeval.yaml::bad", FIRST_LINE),
        ("b.queryeval.yaml::error", FIRST_LINE + 1),
    ]


@pytest.mark.feature("duckdb")
def test_times_are_those_of_the_engine_and_of_the_predictor(reported):
    slow = reported.case("slow")

    assert slow["prediction"]["seconds"] >= 0.2
    assert 0 < slow["gold"]["seconds"] < slow["prediction"]["seconds"]


@pytest.mark.feature("duckdb")
def test_samples_keep_as_many_rows_and_characters_as_allowed(reported):
    kept, private = reported.case("kept"), reported.case("private")

    assert [len(cell) for row in kept["gold"]["sample"] for cell in row] == [3, 200, 2, 200]
    assert kept["gold"]["row_count"] == 3
    assert private["gold"]["sample"] == private["predicted"]["sample"] == private["difference"]["changed"] == []


@pytest.mark.feature("duckdb")
def test_environment_tells_versions_and_the_engines_that_ran(reported):
    environment = reported.report["environment"]

    assert environment.keys() == {"python", "pytest", "pytest_queryeval", "platform", "engines"}
    assert environment["engines"]["sqlite"] == sqlite3.sqlite_version
    assert environment["engines"]["rdflib"] == version("rdflib")
    assert "duckdb" not in environment["engines"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", reported.report["created"])
    assert reported.report["predictor"] == {"sources": ["inline", "python:predict.py:predict"]}


def test_environment_names_no_engine_where_no_query_ran(suite, run_and_parse):
    suite({"id": "a", "gold": {"a": 1}, "predicted": "{}"}, kind="json", source="none.db")
    suite(case("later", skip="no gold yet"), name="b.queryeval.yaml")

    assert run_and_parse().report["environment"]["engines"] == {}


def test_report_holds_no_case_where_none_ran(suite, run_and_parse):
    suite(case("empty", EMPTY, gold=EMPTY, allow_empty=True))

    run = run_and_parse("-k", "nothing")

    assert run.result.ret == 5
    assert run.report["cases"] == []
    run.result.stdout.fnmatch_lines(["0 cases: none ran"])


@pytest.mark.feature("ci", "excel", "page")
def test_a_format_that_breaks_keeps_no_other_of_its_folder_from_being_written(pytester, suite, write, run):
    write(
        "conftest.py",
        "from pytest_queryeval.reports import REPORTS\n\n"
        "def broken(report):\n    raise ValueError('no ink')\n\n"
        "def pytest_configure():\n    REPORTS.register('csv', broken)\n",
    )
    suite(case("good"))

    result = run("--queryeval-report=all")

    assert result.ret == 1
    result.stdout.fnmatch_lines(["report: all/report.md", "report */all/report.csv cannot be made: ValueError: no ink"])
    assert {"report.json", "report.md", "report.html"} <= {path.name for path in (pytester.path / "all").iterdir()}


def test_the_name_of_a_run_is_in_report_and_terminal(suite, write, run_and_parse):
    suite(case("good"))

    default = run_and_parse()
    write("pytest.ini", "[pytest]\nqueryeval_name = nightly\n")
    configured, given = run_and_parse(), run_and_parse("--queryeval-name=fix: joins")

    assert [run.report["name"] for run in (default, configured, given)] == ["inline", "nightly", "fix: joins"]
    given.result.stdout.fnmatch_lines(["fix: joins · 1 case: 1 passed"])


@pytest.mark.parametrize("option", ["-v", "-q", "-qq"])
def test_progress_counts_cases_on_lines_of_its_own_unless_a_run_is_quieter(suite, write, run, monkeypatch, option):
    monkeypatch.setattr("pytest_queryeval.plugin.collector.PROGRESS_SECONDS", 0)  # to be 30 again behind this test
    write("conftest.py", "from pytest_queryeval.plugin import collector\n\ncollector.PROGRESS_SECONDS = 0\n")
    write("test_other.py", "def test_one(): pass\n\n\ndef test_two(): pass\n")
    suite(case("good"), case("bad", WRONG), case("better"))

    lines = run(option).outlines

    progress = [f"queryeval: {n} of 3 cases, {passed} passed, about" for n, passed in ((1, 1), (2, 1), (3, 2))]
    shown = [line.rpartition(" about ")[0] + " about" for line in lines if line.endswith(" s left")]
    assert [*dict.fromkeys(shown)] == ([] if option == "-qq" else progress)
