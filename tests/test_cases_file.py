"""Reports of more cases than fit in memory: report.json, and its cases in a file beside it."""

import base64
import json
import os
import re
import zlib
from functools import partial
from pathlib import Path

import jsonschema
import pytest
import report_maker
from samples import HEAD, entry

from pytest_queryeval.cli import main
from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.features.ci import annotation_lines
from pytest_queryeval.features.excel.csv import render_csv
from pytest_queryeval.features.page import render_html
from pytest_queryeval.features.report_files.merge_command import merge
from pytest_queryeval.features.review.named_case import find_reported, read_reported
from pytest_queryeval.reports import REPORTS, write_files, write_report
from pytest_queryeval.reports.summary import summary_lines
from pytest_queryeval.results import case_store, report_file
from pytest_queryeval.results.aggregation import aggregate
from pytest_queryeval.results.baseline.comparison import compare_reports
from pytest_queryeval.results.case_store import StoredCases
from pytest_queryeval.results.gates import evaluate_gates
from pytest_queryeval.results.report_file import read_report
from pytest_queryeval.results.report_schema import report_schema
from pytest_queryeval.results.verdict import with_worst_cases


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """More than five cases are kept in a file."""
    monkeypatch.setattr(case_store, "MAX_IN_MEMORY", 5)


def made(size):
    return report_maker.make_report(size)


def whole(report):
    return report | {"cases": [*report["cases"]]}


@pytest.fixture
def written(tmp_path):
    """The path of a report of eight cases."""
    path = tmp_path / "report.json"
    write_report(made(8), path)
    return path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def refusal(path):
    with pytest.raises(ReportError) as caught:
        read_report(path)
    text = str(caught.value)
    assert "\n" not in text
    return text


def change(path, **changes):
    """Change what a report says about the file of its cases."""
    report = json.loads(path.read_bytes())
    path.write_text(json.dumps(report | {"cases": report["cases"] | changes}))


def test_many_cases_are_lines_of_a_file_beside_the_report(written):
    report = json.loads(written.read_bytes())
    content = (written.parent / "report.cases.jsonl").read_bytes()

    assert names(written.parent) == ["report.cases.jsonl", "report.json"]
    assert (report["cases"]["file"], report["cases"]["count"]) == ("report.cases.jsonl", 8)
    assert [json.loads(line) for line in content.splitlines()] == [*made(8)["cases"]]
    assert report | {"cases": None} == json.loads(json.dumps(made(8) | {"cases": None}))
    jsonschema.Draft202012Validator(report_schema()).validate(report)


def test_few_cases_are_in_the_report(tmp_path):
    write_report(made(5), tmp_path / "report.json")

    assert names(tmp_path) == ["report.json"]
    assert len(json.loads((tmp_path / "report.json").read_bytes())["cases"]) == 5


def test_such_a_report_is_read_back_as_it_was(written):
    report = read_report(written)

    assert isinstance(report["cases"], StoredCases)
    assert whole(report) == whole(made(8))


def test_cases_in_a_file_of_their_own_are_not_all_in_memory_however_few_they_are(written, monkeypatch):
    expected = whole(made(8))
    monkeypatch.setattr(case_store, "MAX_IN_MEMORY", 50)

    report = read_report(written)

    assert isinstance(report["cases"], StoredCases)
    assert whole(report) == expected


def test_a_report_that_has_many_cases_in_one_file_is_read_and_written_as_two(tmp_path):
    (tmp_path / "one.json").write_text(json.dumps(whole(made(9))))

    write_report(read_report(tmp_path / "one.json"), tmp_path / "two.json")

    assert names(tmp_path) == ["one.json", "two.cases.jsonl", "two.json"]
    assert whole(read_report(tmp_path / "two.json")) == whole(made(9))


def test_a_report_may_be_written_over_the_one_it_was_read_from(written):
    report = read_report(written)

    write_report(report, written)

    assert whole(read_report(written)) == whole(made(8))


def test_the_file_of_the_cases_is_listed_behind_its_report(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "latest.json").symlink_to(tmp_path / "runs/1.json")
    targets = [tmp_path / name for name in ("report.json", "report.csv", "report.md", "latest.json")]

    large, small = (write_files(targets, partial(write_report, made(size))) for size in (8, 5))

    assert [path.relative_to(tmp_path).as_posix() for path in large.paths] == [
        *("report.json", "report.cases.jsonl", "report.csv", "report.md", "latest.json", "runs/1.cases.jsonl")
    ]
    assert small.paths == targets


def test_a_smaller_report_removes_the_cases_of_the_one_in_its_place(written):
    write_report(made(5), written)

    assert names(written.parent) == ["report.json"]
    assert len(read_report(written)["cases"]) == 5


@pytest.mark.parametrize("earlier", ["none", "small", "of another file", "garbage"])
def test_a_file_that_is_not_of_the_report_in_its_place_stays(tmp_path, earlier):
    path, file = tmp_path / "report.json", tmp_path / "report.cases.jsonl"
    match earlier:
        case "small":
            write_report(report_maker.report_of([entry(question='\n "cases": {"file": "report.cases.jsonl"')]), path)
        case "of another file":
            write_report(made(8), path)
            path.write_bytes(path.read_bytes().replace(b"report.cases.jsonl", b"other.cases.jsonl"))
        case "garbage":
            path.write_bytes(b"\x00")
    file.write_text("mine")

    write_report(made(5), path)

    assert file.read_text() == "mine"
    assert len(read_report(path)["cases"]) == 5


def test_a_smaller_report_that_cannot_be_written_leaves_the_cases(written, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pytest_queryeval.reports.write_atomically", full)

    with pytest.raises(ReportError, match="No space left on device"):
        write_report(made(5), written)

    assert len(read_report(written)["cases"]) == 8


def test_texts_with_line_ends_come_back(tmp_path):
    cases = [entry(id=str(number), question="é a\r\nb\u2028c\x85") for number in range(7)]

    write_report(aggregate(cases, gates=(), about=HEAD | {"created": "2025-01-01"}), tmp_path / "report.json")

    assert [*read_report(tmp_path / "report.json")["cases"]] == cases


def test_parts_of_either_form_are_merged(tmp_path):
    every = made(12)["cases"]
    for name, cases in (("large", every[:8]), ("small", every[8:])):
        write_report(report_maker.report_of([*cases]), tmp_path / f"{name}.json")

    parts = {name: read_report(tmp_path / f"{name}.json") for name in ("large", "small")}

    assert isinstance(parts["small"]["cases"], list)
    assert [*merge(parts)["cases"]] == [*every]


def test_a_symbolic_link_to_a_report_leads_to_its_cases_as_well(written, tmp_path):
    folder = tmp_path / "links"
    folder.mkdir()
    (folder / "latest.json").symlink_to(written)

    write_report(made(9), folder / "latest.json")

    assert names(folder) == ["latest.json"]
    assert len(read_report(folder / "latest.json")["cases"]) == 9 == len(read_report(written)["cases"])


def test_a_link_in_place_of_the_cases_is_replaced_and_what_it_leads_to_stays(tmp_path):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "report.cases.jsonl").symlink_to(tmp_path / "precious")

    write_report(made(8), tmp_path / "report.json")

    assert (tmp_path / "precious").read_text() == "mine"
    assert len(read_report(tmp_path / "report.json")["cases"]) == 8


def test_without_the_file_of_its_cases_a_report_is_refused(written):
    (written.parent / "report.cases.jsonl").unlink()

    assert refusal(written) == (
        f"{written.parent / 'report.cases.jsonl'}: no such file: report.json has its cases there: copy both"
    )


@pytest.mark.parametrize("damage", ["another run", "a line less", "a byte more", "another count"])
def test_cases_of_another_report_are_refused(written, tmp_path, damage):
    file = tmp_path / "report.cases.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    match damage:
        case "another run":
            file.write_bytes(b"".join(lines).replace(b'"passed"', b'"failed"', 1))
        case "a line less":
            file.write_bytes(b"".join(lines[:-1]))
        case "a byte more":
            file.write_bytes(b"".join(lines).removesuffix(b"\n") + b" \n")
        case "another count":
            change(written, count=7)

    assert refusal(written) == (
        f"{file}: is not a file of cases: not the one that was written with report.json: copy both of one run"
    )


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"id": "a"}', "line 3: 'nodeid' is missing"),
        (b'{"id": 1}', "line 3: id: expected a text"),
        (b"5", "line 3: expected an object"),
        (b"{", "line 3: not JSON: it ends too early"),
        (b"", "line 3: not JSON: a value is missing"),
        (b'{"id": 1, "id": 2}', "line 3: duplicate key 'id'"),
        (b"NaN", "line 3: NaN is not JSON"),
        (b"[" * 200 + b"]" * 200, "line 3: nested too deeply"),
        (b"\xff", "line 3: 'utf-8' codec can't decode"),
        (b"x" * 2**11, "line 3: longer than 0 MiB"),
    ],
    ids=["no case", "wrong", "number", "cut", "empty", "duplicate", "nan", "deep", "no text", "long"],
)
def test_the_first_line_that_is_no_case_is_named(written, tmp_path, line, problem, monkeypatch):
    file = tmp_path / "report.cases.jsonl"
    if problem.endswith("MiB"):
        monkeypatch.setattr(report_file, "MAX_LINE_BYTES", 2**11 - 1)
        write_report(report_maker.report_of([entry(id=str(number)) for number in range(8)]), written)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:2], line + b"\n", *lines[3:]]))

    assert problem in refusal(written)


def test_of_two_wrong_lines_the_first_is_named(tmp_path):
    path, file = tmp_path / "report.json", tmp_path / "report.cases.jsonl"
    write_report(made(40), path)
    assert [*read_report(path)["cases"]] == [*made(40)["cases"]]
    lines = file.read_bytes().splitlines(keepends=True)
    lines[29], lines[33] = lines[29].replace(b'"scores"', b'"score"'), b"{"
    file.write_bytes(b"".join(lines))

    assert refusal(path) == f"{file}: is not a file of cases: line 30: 'scores' is missing"


@pytest.mark.parametrize(
    "name", ["../report.cases.jsonl", "/etc/passwd", "a/b", "a\\b", "..", ".", "", "C:x", "~/x/y", "\\\\host\\share\\x"]
)
def test_cases_are_read_from_the_folder_of_the_report_only(written, name):
    (written.parent.parent / "report.cases.jsonl").write_bytes((written.parent / "report.cases.jsonl").read_bytes())
    change(written, file=name)

    assert refusal(written) == f"{written}: cases.file: expected the name of a file in the folder of the report"


@pytest.mark.parametrize("what", ["link", "folder", "pipe"])
def test_cases_are_read_from_a_regular_file_only(written, tmp_path, what):
    file = tmp_path / "report.cases.jsonl"
    file.rename(tmp_path / "elsewhere")
    match what:
        case "link":
            file.symlink_to(tmp_path / "elsewhere")
        case "folder":
            file.mkdir()
        case "pipe" if hasattr(os, "mkfifo"):
            os.mkfifo(file)
        case _:
            pytest.skip("there are no pipes here")

    assert "a symbolic link may lead anywhere" in refusal(written) or "not a regular file" in refusal(written)


def test_a_report_whose_cases_cannot_be_written_leaves_the_earlier_one_whole(written, tmp_path, monkeypatch):
    def full(lines):
        next(iter(lines))
        raise OSError(28, "No space left on device")

    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    later = made(9)
    monkeypatch.setattr("pytest_queryeval.reports.case_lines", lambda cases: full(later["cases"]))

    with pytest.raises(ReportError, match=r"report .*report\.cases\.jsonl cannot be written: No space left on device"):
        write_report(later, written)

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_csv_is_written_in_parts_that_make_the_same_file(tmp_path, monkeypatch):
    report = made(40)
    monkeypatch.setattr("pytest_queryeval.features.excel.csv.PART_CHARACTERS", 100)

    write_report(report, tmp_path / "report.csv")

    monkeypatch.undo()
    assert (tmp_path / "report.csv").read_bytes() == render_csv(whole(report))


@pytest.mark.long
def test_more_than_fifty_thousand_cases_go_to_a_file(tmp_path, monkeypatch):
    monkeypatch.undo()
    many = (entry(id=str(number), nodeid=f"a::{number}") for number in range(50_001))

    write_report(aggregate(many, gates=(), about=HEAD | {"created": "2025-01-01"}), tmp_path / "report.json")

    report = json.loads((tmp_path / "report.json").read_bytes())
    assert (report["totals"]["cases"], report["cases"]["count"]) == (50_001, 50_001)
    with (tmp_path / report["cases"]["file"]).open("rb") as lines:
        assert sum(1 for _ in lines) == 50_001


@pytest.fixture
def listed(monkeypatch):
    """A page of a report with more than five cases lists four of them."""
    monkeypatch.setattr("pytest_queryeval.features.page.page.CASES_LISTED", 4)


OUTCOMES = ("passed", "passed", "failed", "passed", "error", "passed", "missed", "passed", "failed")


def mixed():
    cases = [entry(id=str(number), nodeid=f"a::{number}", outcome=outcome) for number, outcome in enumerate(OUTCOMES)]
    return aggregate(cases, gates=(), about=HEAD | {"created": "2025-01-01"})


def listed_ids(page):
    packed = re.search(r'<script type="text/plain"[^>]*>([^<]+)', page)[1]
    return json.loads(zlib.decompress(base64.b64decode(packed)))["id"]


@pytest.mark.parametrize(("number", "places"), [(2, 2), (4, 4), (6, 6), (9, 9), (20, 9)])
def test_the_worst_cases_of_a_report_are_listed_in_its_order(number, places):
    report = mixed()

    actual = with_worst_cases(report, number)

    ids = [case["id"] for case in actual["cases"]]
    assert len(ids) == places
    assert ids == sorted(ids)
    assert {"2", "4", "6", "8"} <= set(ids) or set(ids) <= {"2", "4", "6", "8"}
    assert actual | {"cases": None} == report | {"cases": None}


def test_a_page_lists_the_worst_cases_and_says_of_how_many(listed):
    page = render_html(mixed()).decode()

    assert "The worst 4 of 9 cases are listed; report.json has all of them." in page
    assert listed_ids(page) == ["2", "4", "6", "8"]
    assert "9 cases" in page


def test_a_page_of_few_cases_lists_all(listed, monkeypatch):
    monkeypatch.setattr(case_store, "MAX_IN_MEMORY", 9)

    page = render_html(mixed()).decode()

    assert "cases are listed" not in page
    assert len(listed_ids(page)) == 9


@pytest.mark.parametrize("name", REPORTS.installed())
def test_every_format_of_stored_cases_is_that_of_cases_in_memory(name, monkeypatch):
    stored = made(40)

    actual = REPORTS[name].render(stored)

    monkeypatch.undo()
    assert isinstance(stored["cases"], StoredCases)
    assert actual == REPORTS[name].render(whole(stored))


def test_the_summary_of_stored_cases_is_that_of_cases_in_memory():
    stored = made(40)

    assert [*summary_lines(stored, width=100, verbosity=1)] == [*summary_lines(whole(stored), width=100, verbosity=1)]
    assert [*annotation_lines(stored, Path())] == [*annotation_lines(whole(stored), Path())]


def test_a_baseline_of_stored_cases_is_compared_as_one_in_memory(monkeypatch):
    earlier = made(60)
    now = {"tags": [], "outcome": "passed"}
    later = report_maker.report_of([case | (now if place % 3 else {}) for place, case in enumerate(earlier["cases"])])
    gates = [
        report_maker.make_gate(type="max_regressions", min=None, max_regressions=0),
        report_maker.make_gate(
            type="no_regression", min=None, better="higher", no_regression={"alpha": 0.05, "max_drop": 0.0}
        ),
    ]
    changes = compare_reports(earlier, later, path="main.json")
    results = evaluate_gates(gates, later["cases"], baseline=earlier)

    monkeypatch.undo()
    assert type(earlier["cases"]) is type(later["cases"]) is StoredCases
    assert changes == compare_reports(whole(earlier), whole(later), path="main.json")
    assert results == evaluate_gates(gates, whole(later)["cases"], baseline=whole(earlier))
    assert (changes["fixes"], changes["changes"]) != ([], [])


@pytest.mark.long
@pytest.mark.parametrize(
    "command",
    [
        ["merge", "later.json"],
        ["merge", "later.json", "--baseline", "earlier.json"],
        ["render", "later.json", "-o", "out.json", "-o", "out.csv"],
        ["render", "later.json", "later.json", "-o", "out.md"],
        ["compare", "earlier.json", "later.json"],
        ["history", "earlier.json", "later.json"],
        ["export", "sql.json", "-f", "bird", "-o", "out"],
    ],
    ids=" ".join,
)
def test_commands_read_both_forms_alike(command, tmp_path, monkeypatch, capsys):
    earlier, later = made(40), report_maker.make_compared(40)
    sql = report_maker.report_of([case for case in earlier["cases"] if case["kind"] == "sql"])
    printed, written = [], []
    for limit, folder in ((5, tmp_path / "stored"), (500, tmp_path / "inline")):
        folder.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setattr(case_store, "MAX_IN_MEMORY", limit)
        write_report(earlier, folder / "earlier.json")
        write_report(later | {"created": "2025-06-01T00:00:00+00:00"}, folder / "later.json")
        write_report(sql, folder / "sql.json")
        status = main(command)
        printed.append((status, *capsys.readouterr()))
        written.append({path.name: path.read_bytes() for path in folder.glob("out*") if "json" not in path.name})

    (status, out, err), inline = printed
    more = ("report: out.cases.jsonl\n", "queryeval compare: comparing 80 cases\n")  # which only stored ones have
    assert (more[0] in out, more[1] in err) == ("out.json" in command, command[0] == "compare")
    assert (status, out.replace(more[0], ""), err.replace(more[1], "")) == inline
    assert written[0] == written[1]
    assert {path.name for path in (tmp_path / "stored").glob("*.jsonl")} >= {"earlier.cases.jsonl", "later.cases.jsonl"}


def test_a_case_is_found_by_its_id_in_either_form(written):
    case = made(8)["cases"][3]

    assert find_reported(read_report(written), case["id"]) == case


@pytest.mark.parametrize("text", ["plain", 'a "b" \\ c', "é\u2028\n", os.fsdecode(b"caf\xe9")], ids=ascii)
def test_a_case_is_read_by_its_name_without_the_others(tmp_path, monkeypatch, text):
    cases = [entry(id=id_, nodeid=f"suite::{id_}") for id_ in (text, *map(str, range(7)))]
    write_report(report_maker.report_of(cases), tmp_path / "report.json")
    read = []
    monkeypatch.setattr(report_file._JSON, "read", lambda line: read.append(json.loads(line)) or read[-1])

    assert read_reported(tmp_path / "report.json", text) == read_reported(tmp_path / "report.json", f"suite::{text}")

    assert [value["id"] for value in read if "id" in value] == [text, text]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("caze", "no case 'caze': did you mean 'case'?"),
        ("case", "'case' is the id of several cases: write a::case or b::case"),
    ],
)
def test_a_name_of_no_case_or_of_several_is_told_as_of_any_report(tmp_path, name, problem):
    nodeids = ["a::case", "b::case", *(f"a::{number}" for number in range(6))]
    cases = [entry(id=nodeid.partition("::")[2], nodeid=nodeid) for nodeid in nodeids]
    write_report(report_maker.report_of(cases), tmp_path / "report.json")

    with pytest.raises(ReportError) as caught:
        read_reported(tmp_path / "report.json", name)

    assert str(caught.value) == problem


@pytest.mark.parametrize("damage", ["another line", "another count"])
def test_the_other_cases_have_to_be_those_that_were_written(written, damage):
    first, *remaining = (case["id"] for case in made(8)["cases"])
    if damage == "another count":
        change(written, count=9)
    else:
        file = written.parent / "report.cases.jsonl"
        file.write_bytes(file.read_bytes().replace(remaining[-1].encode(), b"x"))

    with pytest.raises(ReportError, match=r"not the one that was written with report\.json"):
        read_reported(written, first)
