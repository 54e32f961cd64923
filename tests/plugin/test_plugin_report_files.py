"""Where reports go: a disk that is full, pipes and links in the place of files."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from openpyxl import load_workbook
from singers import WRONG, case

# No file may grow beyond this: as on a full disk, a part of it is written before that is told.
SMALL_DISK = "import resource\n\nresource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))\n"
LARGE_JUNIT = "def test_large(record_property):\n    record_property('text', 'x' * 100_000)\n"


@pytest.mark.feature("page")
def test_full_disk_leaves_report_json_and_the_summary(pytester, suite, write, report_of):
    write("conftest.py", SMALL_DISK)
    write("test_large.py", LARGE_JUNIT)
    suite(case("good"))

    result = pytester.runpytest_subprocess("--queryeval-report=reports")

    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "=* query evaluation *=",
            "report: reports/report.json",
            "report */reports/report.html cannot be written: File too large",
            "report */reports/junit.xml cannot be written: File too large",
            "queryeval: FAILED: report */reports/report.html cannot be written: File too large",
        ]
    )
    assert report_of(pytester.path / "reports" / "report.json")["totals"]["passed"] == 1
    assert not (pytester.path / "reports" / "junit.xml").exists()


@pytest.mark.feature("excel")
def test_report_json_is_written_before_all_others(pytester, suite, run, monkeypatch):
    suite(case("good"))

    result = run("--queryeval-report=a.csv", "--queryeval-report=b.json", "--queryeval-report=c.md")

    assert [line for line in result.outlines if line.startswith("report: ")] == [
        f"report: {name}" for name in ("b.json", "a.csv", "c.md")
    ]


def test_junit_file_of_the_user_that_cannot_be_written_costs_nothing_else(pytester, suite, run):
    suite(case("good"))

    result = run("--junitxml=/dev/full", "--queryeval-report=report.json")

    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["report /dev/full cannot be written: No space left on device"])
    assert (pytester.path / "report.json").exists()


@pytest.mark.parametrize("on_miss", ["fail", "xfail"])
def test_cases_that_failed_last_are_known_where_no_junit_file_can_be_written(suite, write, run, on_miss):
    write("queryeval.yaml", "gates: [{metric: execution_accuracy, min: 0.5}]")
    suite(case("good"), case("bad", WRONG), on_miss=on_miss)
    run("--junitxml=/dev/full")

    result = run("--lf", "--collect-only", "-q")

    assert [line for line in result.outlines if "::" in line] == ["a.queryeval.yaml::bad"]


def test_junit_file_that_can_be_neither_written_nor_removed_is_told(pytester, suite, run, monkeypatch):
    def write_in_part(junit):
        Path(junit.logfile).write_text("<testsuites>", encoding="utf-8")
        raise OSError(errno.ENOSPC, "No space left on device")

    def refuse(path):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("_pytest.junitxml.LogXML.pytest_sessionfinish", write_in_part)
    monkeypatch.setattr(Path, "unlink", refuse)
    suite(case("good"))

    result = run("--junitxml=cut.xml")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["report cut.xml cannot be written: No space left on device"])


@pytest.mark.feature("ci")
@pytest.mark.parametrize(
    ("pipe", "target"),
    [
        ("report.json", "report.json"),
        ("reports/report.md", "reports"),
        ("reports/junit.xml", "reports"),
        ("reports", "reports"),
    ],
)
def test_pipe_is_refused(pytester, suite, run, pipe, target):
    suite(case("good"))
    (pytester.path / pipe).parent.mkdir(exist_ok=True)
    os.mkfifo(pytester.path / pipe)

    result = run(f"--queryeval-report={target}")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --queryeval-report: report *{target}* cannot be written: *"])
    (pytester.path / pipe).unlink()


@pytest.mark.feature("ci")
@pytest.mark.parametrize("name", ["report.md", "junit.xml"])
def test_folder_in_the_place_of_a_report_is_refused_before_any_case_runs(pytester, suite, run, name):
    suite(case("good"))
    (pytester.path / "reports" / name).mkdir(parents=True)

    result = run("--queryeval-report=reports")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = f"report */reports/{name} cannot be written: a folder is in its place: remove it, or write elsewhere"
    result.stderr.fnmatch_lines([f"ERROR: --queryeval-report: {said}"])
    (pytester.path / "reports" / name).rmdir()


def test_links_are_followed(pytester, suite, run, report_of):
    suite(case("good"))
    (pytester.path / "latest.json").symlink_to("runs/monday.json")
    (pytester.path / "latest").symlink_to("folder")
    pytester.mkdir("folder")

    result = run("--queryeval-report=latest.json", "--queryeval-report=latest")

    assert result.ret == 0
    assert (pytester.path / "latest.json").is_symlink()
    assert report_of(pytester.path / "runs" / "monday.json")["totals"]["passed"] == 1
    assert (pytester.path / "folder" / "report.json").exists()
    assert (pytester.path / "folder" / "junit.xml").exists()


@pytest.mark.feature("excel")
def test_the_layout_of_workbooks_is_a_setting(suite, pytester, run):
    suite(case("good"))
    pytester.makeini("[pytest]\nqueryeval_excel_layout = plain")

    assert run("--queryeval-report=report.xlsx").ret == 0

    assert load_workbook(pytester.path / "report.xlsx").sheetnames == ["Cases", "Run", "Statistics"]


def test_an_unknown_layout_of_workbooks_is_a_usage_error(suite, pytester, run):
    suite(case("good"))
    pytester.makeini("[pytest]\nqueryeval_excel_layout = wide")

    result = run("--queryeval-report=report.xlsx")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: queryeval_excel_layout: expected published or plain, found 'wide'"])
