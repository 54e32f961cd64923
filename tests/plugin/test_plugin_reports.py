"""What the reports of a run hold."""

from __future__ import annotations

import re

import pytest
from singers import EMPTY, FIRST_LINE, GOLD, INVALID, WRONG, case

TIMES = ("created", "seconds", "measures")


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in TIMES}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def test_cases_come_by_path_then_line(suite, run_and_parse):
    suite(case("z"), case("a"), name="b.queryeval.yaml")
    suite(case("y"), name="a/c.queryeval.yaml")

    run = run_and_parse("b.queryeval.yaml", "a")

    places = [(case["nodeid"], case["line"]) for case in run.report["cases"]]
    assert places == [
        ("a/c.queryeval.yaml::y", FIRST_LINE),
        ("b.queryeval.yaml::z", FIRST_LINE),
        ("b.queryeval.yaml::a", FIRST_LINE + 1),
    ]


def test_case_tells_what_was_asked_answered_and_compared(suite, run_and_parse):
    suite(case("bad", WRONG, question="How many?", difficulty="hard", tags=["own"]), tags=["all"])

    run = run_and_parse()

    entry = without_times(run.case("bad"))
    assert {key: entry[key] for key in ("kind", "tags", "difficulty", "source", "question", "path")} == {
        "kind": "sql",
        "tags": ["all", "own"],
        "difficulty": "hard",
        "source": "singers.sql",
        "question": "How many?",
        "path": "a.queryeval.yaml",
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


def test_times_are_those_of_the_engine_and_of_the_predictor(suite, write, run_and_parse):
    write("predict.py", f"import time\n\ndef predict(case):\n    time.sleep(0.2)\n    return {GOLD!r}\n")
    suite({"id": "slow", "question": "How many?", "gold": GOLD}, predictor="predict.py:predict")

    run = run_and_parse()

    assert run.case("slow")["prediction"]["seconds"] >= 0.2
    assert 0 < run.case("slow")["gold"]["seconds"] < 0.2


def test_samples_keep_as_many_rows_and_characters_as_allowed(suite, run_and_parse):
    names = "SELECT name, hex(zeroblob(200)) FROM singer"
    suite(case("kept", names, gold=names), report_rows=2)
    suite(case("private", WRONG), name="b.queryeval.yaml", report_rows=0)

    run = run_and_parse()

    sample = run.case("kept")["gold"]["sample"]
    assert [len(cell) for row in sample for cell in row] == [3, 200, 2, 200]
    assert run.case("kept")["gold"]["row_count"] == 3
    private = run.case("private")
    assert private["gold"]["sample"] == private["predicted"]["sample"] == private["difference"]["changed"] == []


def test_values_that_json_does_not_know_become_text(suite, run_and_parse):
    odd = "SELECT 9e999 AS inf, -9e999, x'00ff', NULL, 9223372036854775807, 1.5"
    suite(case("odd", "SELECT 1", gold=odd))

    run = run_and_parse()

    assert run.case("odd")["gold"]["sample"] == [["inf", "-inf", "x'00ff'", None, 9223372036854775807, 1.5]]


def test_metrics_and_groups_are_means_over_their_cases(suite, run_and_parse):
    suite(case("good", tags=["a"]), case("half", WRONG, tags=["a", "b"]), case("error", gold=INVALID, tags=["b"]))

    run = run_and_parse()

    statistics = run.report["metrics"]["row_matching_f1"]
    assert (statistics["mean"], statistics["n"], statistics["min"], statistics["max"]) == (0.75, 2, 0.5, 1.0)
    tags = run.report["groups"]["tag"]
    assert {tag: group["totals"]["cases"] for tag, group in tags.items()} == {"a": 2, "b": 2}
    assert tags["b"]["metrics"]["row_matching_f1"]["mean"] == 0.5
    assert tags["b"]["totals"]["errors"] == 1


def test_environment_tells_versions(suite, run_and_parse):
    suite(case("good"))

    run = run_and_parse()

    assert run.report["environment"].keys() == {"python", "pytest", "pytest_queryeval", "platform", "engines"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", run.report["created"])
    assert run.report["predictor"] == {"sources": ["inline"]}


@pytest.mark.feature("causes")
def test_summary_names_means_groups_and_the_worst_cases(suite, run_and_parse, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    suite(
        case("good", difficulty="easy"),
        case("bad", WRONG, difficulty="hard"),
        case("error", gold=INVALID, difficulty="hard"),
    )

    run = run_and_parse()

    run.result.stdout.fnmatch_lines(
        [
            "* query evaluation *",
            "inline · 3 cases: 1 passed, 1 failed, 1 error",
            "metric * mean * 95 % interval  n  missed",
            "execution_accuracy  0.500  * to *  2       1",
            "difficulty  cases  passed  execution_accuracy *",
            "easy            1       1               1.000 *",
            "hard            2       0               0.000 *",
            "worst cases (2 of 2)",
            "  a.queryeval.yaml::error  gold query failed *",
            "  a.queryeval.yaml::bad    SELECT: 1 → COUNT(*) (wrong-aggregate); missing 1 of 2 rows, 1 extra; *",
            "report: report.json",
        ]
    )


def test_report_holds_no_case_where_none_ran(suite, run_and_parse):
    suite(case("empty", EMPTY, gold=EMPTY, allow_empty=True))

    run = run_and_parse("-k", "nothing")

    assert run.result.ret == 5
    assert run.report["cases"] == []
    run.result.stdout.fnmatch_lines(["0 cases: none ran"])


def test_progress_is_told_between_the_lines_of_pytest(suite, run_and_parse, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.plugin.collector.PROGRESS_SECONDS", 0)
    suite(case("good"), case("bad", WRONG), case("better"))

    run = run_and_parse("-v")

    run.result.stdout.fnmatch_lines(
        [
            "a.queryeval.yaml::good PASSED *",
            "queryeval: 1 of 3 cases, 1 passed, about * s left",
            "a.queryeval.yaml::bad FAILED *",
            "queryeval: 2 of 3 cases, 1 passed, about * s left",
            "a.queryeval.yaml::better PASSED *",
            "queryeval: 3 of 3 cases, 2 passed, about 0 s left",
        ]
    )


def test_progress_counts_cases_and_no_other_tests(suite, write, run_and_parse, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.plugin.collector.PROGRESS_SECONDS", 0)  # to be 30 again behind this test
    write("conftest.py", "from pytest_queryeval.plugin import collector\n\ncollector.PROGRESS_SECONDS = 0\n")
    write("test_other.py", "def test_one(): pass\n\n\ndef test_two(): pass\n")
    suite(case("good"), case("better"))

    run = run_and_parse("-q")

    run.result.stdout.fnmatch_lines(["queryeval: 2 of 2 cases, 2 passed, about 0 s left"])


@pytest.mark.feature("ci", "page")
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


def test_an_empty_name_is_a_usage_error(suite, pytester):
    suite(case("good"))

    result = pytester.runpytest("--queryeval-name=")

    result.stderr.fnmatch_lines(["ERROR: --queryeval-name: expected a value, found nothing"])
