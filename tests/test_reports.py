import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import report_maker
from hypothesis import given
from hypothesis import strategies as st
from report_maker import plain_report, with_baseline
from samples import entry
from trees import trees

from pytest_queryeval import reports
from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.features.ci import annotation_lines
from pytest_queryeval.reports import REPORTS, ReportFormat, check_target, files_of, is_folder, render_json, write_report

OLD = b"the report of the last run"


def make_report(*cases, **about):
    return plain_report(*cases, created="2024-01-01", **about)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@given(st.lists(st.dictionaries(st.text(), trees, max_size=3), max_size=4), trees)
def test_report_json_reads_back_as_the_report(details, metadata):
    report = make_report(*(entry(id=str(number), details=item) for number, item in enumerate(details)), extra=metadata)

    assert json.loads(render_json(report)) == report


def test_report_json_has_a_line_for_each_case():
    report = make_report(entry(id="one", question="a\nb\u2028c"), entry(id="two"))

    lines = render_json(report).decode().split("\n")

    assert [json.loads(line.rstrip(","))["id"] for line in lines if line.startswith('{"')] == ["one", "two"]
    assert lines[-1] == ""


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("place", ["case", "head"])
def test_nan_is_never_written(tmp_path, value, place):
    report = make_report(entry(scores={})) | ({"extra": value} if place == "head" else {})
    report["cases"][0]["scores"] = {"f1": value} if place == "case" else {}

    with pytest.raises(ReportError, match=r"report .*report\.json cannot be made: ValueError"):
        write_report(report, tmp_path / "report.json")

    assert names(tmp_path) == []


def test_a_folder_gets_every_format_that_is_known(tmp_path, monkeypatch):
    monkeypatch.setitem(REPORTS._members, "txt", ReportFormat(render=lambda report: b"text"))

    files = files_of(tmp_path / "reports")
    for path in files:
        write_report(make_report(), path)

    assert {path.name for path in files} == {f"report.{name}" for name in REPORTS.names()} >= {"report.txt"}
    assert (tmp_path / "reports" / "report.txt").read_bytes() == b"text"


def test_a_folder_that_is_there_is_a_folder_whatever_its_suffix(tmp_path):
    target = tmp_path / "v1.json"
    target.mkdir()

    check_target(target)

    assert is_folder(target)
    assert sorted(path.name for path in files_of(target)) == sorted(f"report.{name}" for name in REPORTS.names())
    assert {path.parent for path in files_of(target)} == {target}


def test_a_report_can_be_read_by_those_who_may_read_other_new_files(tmp_path):
    (tmp_path / "other").write_bytes(b"")

    write_report(make_report(), tmp_path / "report.json")

    assert stat.S_IMODE((tmp_path / "report.json").stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)


def test_an_interrupted_report_leaves_no_half_written_file(tmp_path, monkeypatch):
    def interrupt(self, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)

    with pytest.raises(KeyboardInterrupt):
        write_report(make_report(), tmp_path / "report.json")

    assert names(tmp_path) == []


def test_a_renderer_that_raises_is_a_report_error_and_keeps_the_earlier_report(tmp_path, monkeypatch):
    def broken(report):
        raise KeyError("metrics")

    monkeypatch.setitem(REPORTS._members, "txt", ReportFormat(render=broken))
    target = tmp_path / "report.txt"
    target.write_bytes(OLD)

    with pytest.raises(ReportError, match=r"report\.txt cannot be made: KeyError: 'metrics'"):
        write_report(make_report(), target)

    assert target.read_bytes() == OLD


def test_a_target_below_a_file_cannot_be_written(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    target = tmp_path / "file" / "report.json"

    with pytest.raises(ReportError, match="is not a folder that can be written to"):
        check_target(target)
    with pytest.raises(ReportError, match="cannot be written"):
        write_report(make_report(), target)


@pytest.mark.parametrize(
    ("place", "error", "problem"),
    [
        (
            (Path, "exists"),
            PermissionError(13, "Permission denied"),
            r"new/report\.json cannot be written: Permission denied",
        ),
        ((reports, "TemporaryFile"), FileNotFoundError(), "is not a folder that can be written to"),
    ],
    ids=["not to be looked into", "takes no files"],
)
def test_a_folder_of_no_use_is_refused_before_the_run(tmp_path, monkeypatch, place, error, problem):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(*place, refuse)

    with pytest.raises(ReportError, match=problem):
        check_target(tmp_path / ("new" if place[0] is Path else "") / "report.json")


def test_an_unknown_suffix_is_refused_with_the_nearest_format(tmp_path):
    with pytest.raises(ReportError, match=r"no report format '\.jsno' for .*report\.jsno: did you mean 'json'\?"):
        check_target(tmp_path / "report.jsno")


@pytest.mark.parametrize("target", ["report.json", "reports", "new/reports/report.json"])
def test_checking_a_target_writes_nothing(tmp_path, target):
    check_target(tmp_path / target)

    assert names(tmp_path) == []


SECRET = "singers-in-Bergen-2025"


def whole_report():
    """A report in which every part of every format has something to say, and a text that looks like a secret."""
    earlier = report_maker.make_report(40, created="2025-01-01T09:30:00+00:00")
    later = report_maker.make_report(36, hostile=True)
    case = later["cases"][0]
    cases = [case | {"question": SECRET, "message": SECRET, "outcome": "error"}, *later["cases"][1:], *earlier["cases"]]
    return with_baseline(plain_report(*cases, gates=later["gates"]), earlier | {"name": SECRET})


def rendered_apart(file, folder, **environment):
    """The files that `queryeval render` makes of a report in a process of its own, by their names."""
    folder.mkdir()
    program = "import sys; from pytest_queryeval.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "render", str(file), "-o", "all"]
    subprocess.run(command, cwd=folder, env=os.environ | environment, check=True, capture_output=True, timeout=300)
    return {path.name: path.read_bytes() for path in (folder / "all").iterdir()}


def test_a_stored_report_is_rendered_to_the_same_bytes_wherever_and_whenever(tmp_path):
    file = tmp_path / "report.json"
    file.write_bytes(render_json(whole_report()))

    here = rendered_apart(file, tmp_path / "here", PYTHONHASHSEED="1", TZ="UTC")
    there = rendered_apart(file, tmp_path / "there", PYTHONHASHSEED="2", TZ="Asia/Kathmandu", API_TOKEN=SECRET)

    assert here.keys() == {f"report.{name}" for name in REPORTS.names()}
    assert [name for name in here if here[name] != there[name]] == []
    assert here["report.json"] == file.read_bytes()
    assert all(SECRET.encode() in here[f"report.{name}"] for name in ("json", "md", "csv"))


@pytest.mark.parametrize("form", ["markdown", "annotations", "code quality"])
def test_a_finding_is_the_edit_that_repairs_the_answer_its_message_and_hints_and_stays_text(form, tmp_path):
    edit = {"label": "wrong-value", "clause": "WHERE", "change": "30 → 40\n::error::\x1b[1m|`"}
    cause = {"edits": [edit], "repaired_query": "SELECT 1"}
    hints = [{"kind": "factor", "text": "divide it\n::error::`", "compare": None}]
    failed = entry(outcome="failed", message="missing 1 row; m 0.000\nmore", nodeid="a::a", cause=cause, hints=hints)
    report = make_report(failed)

    text = {
        "markdown": lambda: REPORTS["md"].render(report).decode(),
        "annotations": lambda: "\n".join(annotation_lines(report, tmp_path)),
        "code quality": lambda: json.loads(REPORTS["codequality"].render(report))[0]["description"],
    }[form]()

    assert "WHERE: 30 → 40 ::error::" in text
    shown = [text.index(part) for part in ("(wrong-value)", "missing 1 row; m 0.000", "hint: divide it ::error::")]
    assert shown == sorted(shown)
    assert "\n::error::" not in text
    assert "\x1b" not in text
