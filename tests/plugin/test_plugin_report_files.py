"""Where reports go: files and folders, those of the ini file, full disks, pipes and links in the place of files."""

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


@pytest.mark.feature("ci", "excel")
def test_a_report_is_written_to_every_file_and_folder_that_is_named_the_json_first(
    pytester, suite, run, write, report_of
):
    suite(case("good"))
    (pytester.path / "out.d").mkdir()
    (pytester.path / "latest.json").symlink_to("runs/monday.json")
    write("one.json", "an older one")
    targets = ("a.csv", "one.json", "deep/er/two.json", "out", "out.d", "latest.json", "./github", "c.md")

    mistaken = run("--queryeval-report=one.json", "nowhere")
    older = (pytester.path / "one.json").read_text(encoding="utf-8")
    result = run(*(f"--queryeval-report={target}" for target in targets))

    assert (mistaken.ret, older, result.ret) == (pytest.ExitCode.USAGE_ERROR, "an older one", 0)
    written = [line for line in result.outlines if line.startswith("report: ")]
    assert written[:2] == ["report: one.json", "report: deep/er/two.json"]
    assert written.index("report: latest.json") < written.index("report: a.csv") < written.index("report: c.md")
    files = ("one.json", "deep/er/two.json", "out/report.json", "out.d/report.json", "runs/monday.json")
    first, *others = (report_of(pytester.path / file) for file in files)
    assert first["totals"]["passed"] == 1
    assert others == [first] * 4
    assert (pytester.path / "latest.json").is_symlink()
    assert 'tests="1"' in (pytester.path / "out/junit.xml").read_text(encoding="utf-8")
    assert {path.name for path in (pytester.path / "github").iterdir()} >= {"report.json", "report.md"}


@pytest.mark.parametrize("option", [[], ["--queryeval-report=mine.json"]], ids=["ini", "option"])
def test_ini_names_reports_relative_to_its_own_folder_and_an_option_replaces_them(
    pytester, suite, write, run, monkeypatch, option
):
    write("pytest.ini", "[pytest]\nqueryeval_report = out\n")
    suite(case("good"), name="suites/a.queryeval.yaml")
    monkeypatch.chdir(pytester.path / "suites")

    result = run("--junitxml=own.xml", *option)

    assert result.ret == 0
    assert (pytester.path / "out/report.json").exists() == (not option)
    assert (pytester.path / "suites/mine.json").exists() == bool(option)
    assert (pytester.path / "suites/own.xml").exists()
    assert not (pytester.path / "out/junit.xml").exists()  # the user's own wins


def test_report_that_cannot_be_written_fails_the_run_and_leaves_no_half_file(pytester, suite, write, run, report_of):
    blocks = "import pathlib\n\ndef pytest_runtest_teardown():\n    pathlib.Path('late').write_text('mine')\n"
    write("conftest.py", blocks)
    suite(case("good"))

    result = run("--queryeval-report=late/report.json", "--queryeval-report=other.json")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["report */late/report.json cannot be written: *"])
    result.stdout.fnmatch_lines(["queryeval: FAILED: report */late/report.json cannot be written: *"])
    result.stdout.no_fnmatch_line("*Traceback*")
    assert report_of(pytester.path / "other.json")["totals"]["passed"] == 1
    assert not [path for path in pytester.path.rglob("*") if path.name.startswith(".report")]


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


@pytest.mark.parametrize("on_miss", ["fail", "xfail"])
def test_junit_file_of_the_user_that_cannot_be_written_costs_nothing_else(pytester, suite, write, run, on_miss):
    write("queryeval.yaml", "gates: [{metric: execution_accuracy, min: 0.5}]")
    suite(case("good"), case("bad", WRONG), on_miss=on_miss)

    result = run("--junitxml=/dev/full", "--queryeval-report=report.json")
    again = run("--lf", "--collect-only", "-q")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["report /dev/full cannot be written: No space left on device"])
    assert (pytester.path / "report.json").exists()
    assert [line for line in again.outlines if "::" in line] == ["a.queryeval.yaml::bad"]


def test_junit_file_that_can_be_neither_written_nor_removed_is_told(suite, run, monkeypatch):
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
@pytest.mark.parametrize("pipe", ["reports/report.md", "reports/junit.xml", "reports"])
def test_pipe_is_refused(pytester, suite, run, pipe):
    suite(case("good"))
    (pytester.path / pipe).parent.mkdir(exist_ok=True)
    os.mkfifo(pytester.path / pipe)

    result = run("--queryeval-report=reports")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --queryeval-report: report *reports* cannot be written: *"])
    (pytester.path / pipe).unlink()


@pytest.mark.feature("excel")
def test_the_layout_of_workbooks_is_a_setting(suite, pytester, run):
    suite(case("good"))
    pytester.makeini("[pytest]\nqueryeval_excel_layout = plain")

    assert run("--queryeval-report=report.xlsx").ret == 0

    assert load_workbook(pytester.path / "report.xlsx").sheetnames == ["Cases", "Run", "Statistics"]
