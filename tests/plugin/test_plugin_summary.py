"""Where short reports go: the terminal at every verbosity, and the step summary of GitHub Actions."""

from __future__ import annotations

import os
import re

import pytest
from singers import WRONG, case

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


@pytest.mark.parametrize("options", [(), ("-q",)])
def test_github_appends_the_report_and_annotates_failed_cases_once(
    pytester, suite, run, step_summary, monkeypatch, options
):
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    suite(case("good"), case("bad", WRONG, question="::error::taken"), case("hard", WRONG, on_miss="xfail"))

    result = run("--queryeval-report=github", "--queryeval-name=bot", *options)

    text = step_summary.read_text(encoding="utf-8")
    failed = "**FAILED: 3 cases: 1 passed, 1 failed, 1 missed** (1 case failed)"
    assert text.startswith(f"{OLD}\n\n## `bot`\n\n{failed}\n")
    assert "| `::error::taken`<br>`a.queryeval.yaml::bad` | failed |" in text
    assert not (pytester.path / "github").exists()
    result.stdout.fnmatch_lines(["report: summary of the step"])
    (command,) = [line for line in result.outlines if line.startswith("::")]
    place = "file=a.queryeval.yaml,line=5,title=failed%3A a.queryeval.yaml%3A%3Abad"
    finding = "SELECT: 1 → COUNT(*) (wrong-aggregate); count(*) differs in 1 of 2 rows: 2 → 1 (country FR); "
    assert command.startswith(f"::error {place}::{finding}")
    assert result.outlines[-1].startswith("queryeval: FAILED")


@pytest.mark.parametrize("options", [("--queryeval-report=out",), ("--queryeval-report=github", "--no-summary")])
def test_other_reports_and_a_run_without_summary_annotate_nothing(suite, run, step_summary, options):
    suite(case("bad", WRONG))

    assert "\n::" not in run(*options).stdout.str()


def test_every_run_of_a_step_adds_its_report_below_a_heading_of_its_own(pytester, suite, run, step_summary):
    suite(case("good"))
    suite(case("good"), name="more/a.queryeval.yaml")

    run("--queryeval-report=github", "--queryeval-name=first", "a.queryeval.yaml")
    pytester.makeini("[pytest]\nqueryeval_report =\n    out\n    github\n")
    run("--queryeval-name=second", "more")

    text = step_summary.read_text(encoding="utf-8")
    assert text.count("**PASSED: 1 case: 1 passed**") == 2
    headings = re.findall(r"^\n## .*", text, re.MULTILINE)
    assert headings == ["\n## `first` in `a.queryeval.yaml`", "\n## `second` in `more`"]
    assert (pytester.path / "out" / "report.md").exists()


@pytest.mark.parametrize("kind", ["not set", "not set, ini", "no folder", "a long name", "a queue", "a folder"])
def test_a_step_summary_that_can_be_no_file_is_refused_in_one_line_before_any_case_runs(
    pytester, suite, run, monkeypatch, kind
):
    odd = "odd\x1b[31m\nsummary"
    path = pytester.path / {"no folder": "nowhere/summary", "a long name": "n" * 300}.get(kind, odd)
    if kind == "a queue":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    if not kind.startswith("not set"):
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    suite(case("good"))
    setting = "queryeval_report" if "ini" in kind else "--queryeval-report"
    if "ini" in kind:
        pytester.makeini("[pytest]\nqueryeval_report = github\n")

    result = run(*([] if "ini" in kind else ["--queryeval-report=github"]))

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (said,) = [line for line in result.errlines if line]
    fault = "GITHUB_STEP_SUMMARY is not set" if kind.startswith("not") else "cannot be written to"
    assert said.startswith(f"ERROR: {setting}: report github: ")
    assert fault in said
    assert "\x1b" not in said


def test_step_summary_keeps_within_what_github_shows_and_one_that_is_full_fails_the_run(suite, run, step_summary):
    old = "x" * (MAX_SUMMARY_BYTES - 20_000)
    step_summary.write_text(old, encoding="utf-8")
    suite(*(case(f"bad-{number}" + "y" * 200, WRONG) for number in range(60)))

    run("--queryeval-report=github", "--queryeval-name=bot")
    content = step_summary.read_text(encoding="utf-8")
    full = "x" * (MAX_SUMMARY_BYTES - 100)
    step_summary.write_text(full, encoding="utf-8")
    suite(case("good"))
    result = run("--queryeval-report=github")

    assert len(content.encode()) <= MAX_SUMMARY_BYTES
    assert content.startswith(f"{old}\n\n## `bot`\n\n**FAILED: 60 cases")
    assert re.search(r"^… and \d+ more$", content, re.MULTILINE)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["report github: * has 1,048,476 bytes already, and GitHub shows 1,048,576"])
    assert step_summary.read_text(encoding="utf-8") == full


def test_quiet_run_leaves_groups_out_and_a_quieter_one_all_but_missed_gates(suite, write, run, monkeypatch):
    write("queryeval.yaml", GATE)
    suite(case("good", difficulty="easy"), case("bad", WRONG, difficulty="hard", on_miss="xfail"))

    usual, quiet, quieter, coloured = (
        run(*options).stdout.str() for options in ((), ("-q",), ("-qq",), ("-v", "--color=yes"))
    )
    monkeypatch.setenv("NO_COLOR", "1")
    refused = run("-v").stdout.str()

    assert "difficulty  cases" in usual
    assert "difficulty  cases" not in quiet
    assert "worst cases (1 of 1)" in quiet
    assert "gate MISSED: execution_accuracy" in quiet
    assert "query evaluation" not in quieter
    assert "worst" not in quieter
    assert "queryeval: FAILED" not in quieter
    assert "GATE queryeval.yaml - execution_accuracy is 0.500 (2 cases); this gate needs at least 1" in quieter
    assert "\x1b[1mmetric " in coloured
    assert "\x1b" not in usual + refused


@pytest.mark.parametrize(
    ("on", "words"), [(False, ("Off", "FALSE", "no", "0")), (True, ("complete", "On", "YES", "1"))]
)
def test_gates_are_on_and_off_by_any_word_for_it(suite, write, run, on, words):
    write("queryeval.yaml", GATE)
    suite(case("bad", WRONG, on_miss="xfail"))

    for word in words:
        result = run("-o", f"queryeval_gates={word}")

        assert result.ret == on, word
        assert ("gate not evaluated: execution_accuracy: gates are off" in result.stdout.str()) == (not on), word
