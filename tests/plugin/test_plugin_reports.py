"""What the reports of a run hold."""

from __future__ import annotations

import re
import sqlite3
from importlib.metadata import version

import pytest
from singers import EMPTY, FIRST_LINE, GOLD, INVALID, WRONG, case, unpredicted

TIMES = ("created", "seconds", "measures")
NAMES = "SELECT name, hex(zeroblob(200)) FROM singer"
ODD = "SELECT 9e999 AS inf, -9e999, x'00ff', NULL, 9223372036854775807, 1.5"
GRAPH = "SELECT ?s WHERE { ?s ?p 1 }"


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in TIMES}
    return [without_times(item) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def reported(shared_project):
    """A run of suites in two folders, on several engines."""
    suite, write = shared_project.suite, shared_project.write
    suite(
        case("bad", WRONG, question="How many?", difficulty="hard", tags=["own", "a"]),
        case("odd", "SELECT 1", gold=ODD, thresholds={}),
        case("good", tags=["a", "b"], difficulty="easy"),
        case("error", gold=INVALID, tags=["b"], difficulty="hard"),
        tags=["all"],
        name="b.queryeval.yaml",
    )
    suite(case("kept", NAMES, gold=NAMES), name="k.queryeval.yaml", report_rows=2)
    suite(case("private", WRONG), name="p.queryeval.yaml", report_rows=0)
    write("a/predict.py", f"import time\n\ndef predict(case):\n    time.sleep(0.2)\n    return {GOLD!r}\n")
    suite(unpredicted("slow"), name="a/c.queryeval.yaml", predictor="predict.py:predict")
    duck = {"duckdb": {"script": "singers.sql"}}
    suite(case("other", GOLD, skip="later"), name="a/d.queryeval.yaml", source=duck)
    write("people.ttl", "<http://a/b> <http://a/c> 1 .")
    triples = {"kind": "sparql", "source": {"rdf": {"files": "people.ttl", "engine": "rdflib"}}}
    suite({"id": "graph", "gold": GRAPH, "predicted": GRAPH}, name="g.queryeval.yaml", **triples)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "120")
        return shared_project.run_and_parse(*(f"{name}.queryeval.yaml" for name in "pkgb"), "a")


@pytest.mark.feature("duckdb")
def test_cases_come_by_path_then_line(reported):
    places = [(case["nodeid"], case["line"]) for case in reported.report["cases"]]

    assert places[:4] == [
        ("a/c.queryeval.yaml::slow", FIRST_LINE + 1),
        ("a/d.queryeval.yaml::other", FIRST_LINE),
        ("b.queryeval.yaml::bad", FIRST_LINE + 1),
        ("b.queryeval.yaml::odd", FIRST_LINE + 2),
    ]


def test_case_tells_what_was_asked_answered_and_compared(reported):
    entry = without_times(reported.case("bad"))

    assert {key: entry[key] for key in ("kind", "tags", "difficulty", "source", "question", "path")} == {
        "kind": "sql",
        "tags": ["all", "own", "a"],
        "difficulty": "hard",
        "source": "singers.sql",
        "question": "How many?",
        "path": "b.queryeval.yaml",
    }
    assert entry["gold"] == {
        "query": GOLD,
        "index": 0,
        "columns": ["country", "count(*)"],
        "row_count": 2,
        "sample": [["DE", 1], ["FR", 2]],
    }
    assert entry["predicted"]["sample"] == [["DE", 1], ["FR", 1]]
    assert entry["predicted"]["error"] is None
    assert (entry["difference"]["missing"], entry["difference"]["extra"]) == ([], [])
    assert entry["difference"]["changed"] == [{"gold": ["FR", 2], "predicted": ["FR", 1]}]


def test_times_are_those_of_the_engine_and_of_the_predictor(reported):
    slow = reported.case("slow")

    assert slow["prediction"]["seconds"] >= 0.2
    assert 0 < slow["gold"]["seconds"] < 0.2


def test_samples_keep_as_many_rows_and_characters_as_allowed(reported):
    kept, private = reported.case("kept"), reported.case("private")

    assert [len(cell) for row in kept["gold"]["sample"] for cell in row] == [3, 200, 2, 200]
    assert kept["gold"]["row_count"] == 3
    assert private["gold"]["sample"] == private["predicted"]["sample"] == private["difference"]["changed"] == []


def test_values_that_json_does_not_know_become_text(reported):
    assert reported.case("odd")["gold"]["sample"] == [["inf", "-inf", "x'00ff'", None, 9223372036854775807, 1.5]]


def test_metrics_and_groups_are_means_over_their_cases(reported):
    tags = reported.report["groups"]["tag"]

    assert {tag: group["totals"]["cases"] for tag, group in tags.items()} == {"all": 4, "own": 1, "a": 2, "b": 2}
    statistics = tags["a"]["metrics"]["row_matching_f1"]
    assert (statistics["mean"], statistics["n"], statistics["min"], statistics["max"]) == (0.75, 2, 0.5, 1.0)
    assert tags["b"]["metrics"]["row_matching_f1"]["mean"] == 1.0
    assert tags["b"]["totals"]["errors"] == 1


def test_environment_tells_versions_and_the_engines_that_ran(reported):
    environment = reported.report["environment"]

    assert environment.keys() == {"python", "pytest", "pytest_queryeval", "platform", "engines"}
    assert environment["engines"]["sqlite"] == sqlite3.sqlite_version
    assert environment["engines"]["rdflib"] == version("rdflib")
    assert "duckdb" not in environment["engines"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", reported.report["created"])
    assert reported.report["predictor"] == {"sources": ["inline", "python:predict.py:predict"]}


@pytest.mark.feature("causes", "duckdb")
def test_summary_names_means_groups_and_the_worst_cases(reported):
    reported.result.stdout.fnmatch_lines(
        [
            "* query evaluation *",
            "inline, python:predict.py:predict · 9 cases: 5 passed, 2 failed, 1 error, 1 skipped",
            "metric * mean * 95 % interval * n  missed",
            "execution_accuracy  0.571  * to *  7  *   2",
            "difficulty  cases  passed  execution_accuracy *",
            "easy  *",
            "hard            2       0               0.000 *",
            "worst cases (3 of 3)",
            "  b.queryeval.yaml::error  * gold query failed *",
            "  b.queryeval.yaml::bad * SELECT: 1 → COUNT(*) (wrong-aggregate); missing 1 of 2 rows, 1 extra; *",
            "report: report.json",
        ]
    )


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
