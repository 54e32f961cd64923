"""Where short reports go: the terminal at every verbosity, and the step summary of GitHub Actions."""

from __future__ import annotations

import os
import re
import sqlite3
from importlib.metadata import version

import pytest
from singers import GOLD, WRONG, case

from pytest_queryeval.features.ci import MAX_SUMMARY_BYTES

GATE = "gates: [{metric: execution_accuracy, min: 1}]"
OLD = "what the step wrote before\n"


@pytest.fixture
def step_summary(pytester, monkeypatch):
    """The file of the step summary, with something in it."""
    path = pytester.path / "summary of the step"
    path.write_text(OLD, encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    return path


def test_github_appends_the_report_to_the_step_summary(pytester, suite, run, step_summary):
    suite(case("good"), case("bad", WRONG))

    result = run("--queryeval-report=github", "--queryeval-name=bot")

    text = step_summary.read_text(encoding="utf-8")
    assert text.startswith(f"{OLD}\n\n## `bot`\n\n**FAILED: 2 cases: 1 passed, 1 failed** (1 case failed)\n")
    assert "| `a.queryeval.yaml::bad` | failed |" in text
    assert not (pytester.path / "github").exists()
    result.stdout.fnmatch_lines(["report: summary of the step"])


@pytest.mark.parametrize("options", [(), ("-q",)])
def test_github_annotates_failed_cases_once_and_the_verdict_stays_last(suite, run, step_summary, monkeypatch, options):
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    suite(case("good"), case("bad", WRONG, question="::error::taken"), case("hard", WRONG, on_miss="xfail"))

    result = run("--queryeval-report=github", *options)

    (command,) = [line for line in result.outlines if line.startswith("::")]
    place = "file=a.queryeval.yaml,line=5,title=failed%3A a.queryeval.yaml%3A%3Abad"
    finding = "SELECT: 1 → COUNT(*) (wrong-aggregate); missing 1 of 2 rows, 1 extra; execution_accuracy 0.000"
    assert command.startswith(f"::error {place}::{finding}")
    assert result.outlines[-1].startswith("queryeval: FAILED")


@pytest.mark.parametrize("options", [("--queryeval-report=out",), ("--queryeval-report=github", "--no-summary")])
def test_other_reports_and_a_run_without_summary_annotate_nothing(suite, run, step_summary, options):
    suite(case("bad", WRONG))

    assert "\n::" not in run(*options).stdout.str()


def test_every_run_of_a_step_adds_its_report_below_a_heading_of_its_own(suite, run, step_summary):
    suite(case("good"))
    suite(case("good"), name="more/a.queryeval.yaml")

    run("--queryeval-report=github", "--queryeval-name=first", "a.queryeval.yaml")
    run("--queryeval-report=github", "--queryeval-name=second", "--queryeval-report=other.md", "more")

    text = step_summary.read_text(encoding="utf-8")
    assert text.count("**PASSED: 1 case: 1 passed**") == 2
    headings = re.findall(r"^\n## .*", text, re.MULTILINE)
    assert headings == ["\n## `first` in `a.queryeval.yaml`", "\n## `second` in `more`"]


def test_ini_names_the_step_summary_beside_other_reports(pytester, suite, run, step_summary):
    pytester.makeini("[pytest]\nqueryeval_report =\n    out\n    github\n")
    suite(case("good"))

    result = run()

    assert result.ret == 0
    assert "**PASSED" in step_summary.read_text(encoding="utf-8")
    assert (pytester.path / "out" / "report.md").exists()


@pytest.mark.parametrize("place", ["option", "ini"])
def test_github_without_a_step_summary_is_a_usage_error_that_says_so(pytester, suite, run, place):
    suite(case("good"))
    if place == "ini":
        pytester.makeini("[pytest]\nqueryeval_report = github\n")

    result = run(*(["--queryeval-report=github"] if place == "option" else []))

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    setting = "--queryeval-report" if place == "option" else "queryeval_report"
    result.stderr.fnmatch_lines(
        [f"ERROR: {setting}: report github: the environment variable GITHUB_STEP_SUMMARY is not set: *"]
    )


def test_step_summary_in_no_folder_is_refused_before_any_case_runs(pytester, suite, run, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "nowhere" / "summary"))
    suite(case("good"))

    result = run("--queryeval-report=github")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --queryeval-report: report github: * cannot be written to"])


@pytest.mark.parametrize("kind", ["a long name", "a queue", "a folder"])
def test_a_step_summary_that_can_be_no_file_is_refused_in_one_line(pytester, suite, run, monkeypatch, kind):
    path = pytester.path / ("n" * 300 if kind == "a long name" else "odd\x1b[31m\nsummary")
    if kind == "a queue":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    suite(case("good"))

    result = run("--queryeval-report=github")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = [line for line in result.errlines if line]
    assert len(said) == 1
    assert "GITHUB_STEP_SUMMARY names, cannot be written to" in said[0]
    assert "\x1b" not in said[0]


def test_folder_that_is_called_github_is_written_with_its_place(pytester, suite, run):
    suite(case("good"))

    result = run("--queryeval-report=./github")

    assert result.ret == 0
    assert (pytester.path / "github" / "report.md").exists()


def test_step_summary_keeps_within_what_github_shows(suite, run, step_summary):
    old = "x" * (MAX_SUMMARY_BYTES - 20_000)
    step_summary.write_text(old, encoding="utf-8")
    suite(*(case(f"bad-{number}" + "y" * 200, WRONG) for number in range(100)))

    run("--queryeval-report=github", "--queryeval-name=bot")

    content = step_summary.read_text(encoding="utf-8")
    assert len(content.encode()) <= MAX_SUMMARY_BYTES
    assert content.startswith(f"{old}\n\n## `bot`\n\n**FAILED: 100 cases")
    assert re.search(r"^… and \d+ more$", content, re.MULTILINE)


def test_step_summary_that_is_full_stays_as_it_is_and_fails_the_run(suite, run, step_summary):
    old = "x" * (MAX_SUMMARY_BYTES - 100)
    step_summary.write_text(old, encoding="utf-8")
    suite(case("good"))

    result = run("--queryeval-report=github")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["report github: * has 1,048,476 bytes already, and GitHub shows 1,048,576"])
    assert step_summary.read_text(encoding="utf-8") == old


def test_quiet_run_leaves_groups_out_and_a_quieter_one_all_but_missed_gates(suite, write, run):
    write("queryeval.yaml", GATE)
    suite(case("good", difficulty="easy"), case("bad", WRONG, difficulty="hard", on_miss="xfail"))

    usual, quiet, quieter = (run(*options).stdout.str() for options in ((), ("-q",), ("-qq",)))

    assert "difficulty  cases" in usual
    assert "difficulty  cases" not in quiet
    assert "worst cases (1 of 1)" in quiet
    assert "gate MISSED: execution_accuracy" in quiet
    assert "query evaluation" not in quieter
    assert "worst" not in quieter
    assert "queryeval: FAILED" not in quieter
    assert "GATE queryeval.yaml - execution_accuracy: 0.500, needs at least 1 (2 cases)" in quieter


def test_output_into_a_pipe_is_plain_and_colour_is_pytests_to_give(suite, run, monkeypatch):
    suite(case("good"), case("bad", WRONG))

    piped = run("-v").stdout.str()
    coloured = run("-v", "--color=yes").stdout.str()
    monkeypatch.setenv("NO_COLOR", "1")
    refused = run("-v").stdout.str()

    assert "\x1b" not in piped
    assert "\x1b[1mmetric " in coloured
    assert "\x1b" not in refused


@pytest.mark.parametrize("word", ["off", "Off", "FALSE", "no", "0"])
def test_gates_are_off_by_any_word_for_it(pytester, suite, write, run, word):
    pytester.makeini(f"[pytest]\nqueryeval_gates = {word}")
    write("queryeval.yaml", GATE)
    suite(case("bad", WRONG, on_miss="xfail"))

    result = run()

    assert result.ret == 0
    result.stdout.fnmatch_lines(["gate not evaluated: *: gates are off"])


@pytest.mark.parametrize("word", ["complete", "On", "true", "YES", "1"])
def test_gates_are_on_by_any_word_for_it(pytester, suite, write, run, word):
    pytester.makeini(f"[pytest]\nqueryeval_gates = {word}")
    write("queryeval.yaml", GATE)
    suite(case("bad", WRONG, on_miss="xfail"))

    assert run().ret == pytest.ExitCode.TESTS_FAILED


def test_gates_that_are_neither_complete_nor_off_are_a_usage_error(pytester, suite, run):
    pytester.makeini("[pytest]\nqueryeval_gates = maybe")
    suite(case("good"))

    result = run()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: queryeval_gates: expected complete, selection or off, found 'maybe'"])


@pytest.mark.parametrize(
    ("selection", "ran"),
    [
        (["--lf"], ["bad-1", "bad-2"]),
        (["--ff"], ["bad-1", "bad-2"]),
        (["-k", "bad"], ["bad-1", "bad-2"]),
        (["-m", "late"], ["bad-2", "good-2"]),
        ([], ["good-1", "bad-1"]),
    ],
)
def test_limit_counts_the_cases_that_are_left_by_other_selections(suite, run, run_and_parse, selection, ran):
    suite(
        case("good-1"),
        case("bad-1", WRONG),
        case("bad-2", WRONG, tags=["late"]),
        case("good-2", tags=["late"]),
        case("bad-3", WRONG),
    )
    run()

    limited = run_and_parse("--queryeval-limit=2", *selection)

    assert sorted(limited.outcomes) == sorted(ran)


@pytest.mark.feature("duckdb")
def test_environment_tells_the_engines_that_ran(suite, write, run_and_parse):
    suite(case("one"))
    suite(case("other", GOLD, skip="later"), name="b.queryeval.yaml", source={"duckdb": {"script": "singers.sql"}})
    write("people.ttl", "<http://a/b> <http://a/c> 1 .")
    query_text = "SELECT ?s WHERE { ?s ?p 1 }"
    triples = {"kind": "sparql", "source": {"rdf": {"files": "people.ttl", "engine": "rdflib"}}}
    suite({"id": "graph", "gold": query_text, "predicted": query_text}, name="c.queryeval.yaml", **triples)

    engines = run_and_parse().report["environment"]["engines"]

    assert engines["sqlite"] == sqlite3.sqlite_version
    assert engines["rdflib"] == version("rdflib")
    assert "duckdb" not in engines


def test_environment_names_no_engine_where_no_query_ran(suite, run_and_parse):
    suite({"id": "a", "gold": {"a": 1}, "predicted": "{}"}, kind="json", source="none.db")
    suite(case("later", skip="no gold yet"), name="b.queryeval.yaml")

    assert run_and_parse().report["environment"]["engines"] == {}


@pytest.mark.parametrize(
    ("metric", "limit", "reach"),
    [
        ("execution_accuracy", 85, "from 0 to 1"),
        ("row_matching_f1", "{min: -0.5}", "from 0 to 1"),
        ("soft_f1", "{max: 1.5}", "from 0 to 1"),
        ("r_ves", 1.2, "from 0 to 1.11803"),
        ("ves", -1, "from 0 on"),
    ],
)
def test_threshold_that_no_score_reaches_is_a_collection_error_with_its_place(suite, write, run, metric, limit, reach):
    path = suite(case("good"))
    path.write_text(
        path.read_text(encoding="utf-8").replace("cases:", f"thresholds:\n  {metric}: {limit}\ncases:"),
        encoding="utf-8",
    )

    result = run()

    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines([f"a.queryeval.yaml:4: expected a limit {reach} for '{metric}', found *"])


def test_gate_that_no_score_reaches_is_a_collection_error(suite, write, run):
    write("queryeval.yaml", "gates: [{metric: pass_rate, min: 85}]")
    suite(case("good"))

    result = run()

    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(
        ["queryeval.yaml:1: expected a limit from 0 to 1 for 'pass_rate', found 85: write 0.85"]
    )


def test_threshold_of_the_command_line_that_no_score_reaches_is_a_usage_error(suite, run):
    suite(case("good"))

    result = run("--queryeval-threshold=execution_accuracy=85")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --queryeval-threshold: expected a limit from 0 to 1 for 'execution_accuracy', found 85*"]
    )


def test_threshold_of_a_metric_of_ones_own_may_be_any_number(suite, write, run):
    write(
        "conftest.py",
        "import math\nfrom pytest_queryeval import METRICS\nfrom pytest_queryeval.core.metric import metric\n\n"
        "METRICS.register('points', lambda gold, predicted: 50.0)\n"
        "METRICS.register('marks', metric(max_score=math.inf)(lambda gold, predicted: 50.0))\n",
    )
    suite(case("good"), thresholds={"points": 42, "marks": {"min": 42, "max": 99}})

    assert run().ret == 0


@pytest.mark.parametrize("option", ["-v", "-q"])
def test_progress_in_a_pipe_has_lines_of_its_own(suite, run, monkeypatch, option):
    monkeypatch.setattr("pytest_queryeval.plugin.collector.PROGRESS_SECONDS", 0)
    suite(*(case(f"case-{number}") for number in range(3)))

    result = run(option)

    lines = [line for line in result.outlines if "queryeval: " in line and " s left" in line]
    assert len(lines) >= 3
    assert all(line.startswith("queryeval: ") for line in lines)


def test_quieter_run_tells_no_progress(suite, run, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.plugin.collector.PROGRESS_SECONDS", 0)
    suite(case("good"))

    assert "s left" not in run("-qq").stdout.str()
