"""Reports of more cases than fit in memory: report.json, and its cases in a file next to it."""

import base64
import json
import os
import re
import resource
import tempfile
import zlib
from functools import partial
from pathlib import Path

import jsonschema
import pytest
import report_maker
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from samples import HEAD, entry
from suites import write
from trees import trees

import pytest_queryeval
from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.cli import main
from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.reports import REPORTS, write_files, write_report

pytestmark = pytest.mark.feature("report_files")
MAX_IN_MEMORY = "pytest_queryeval.results.case_store.MAX_IN_MEMORY"


@pytest.fixture(autouse=True)
def few(tmp_path, monkeypatch):
    """More than five cases are kept in a file."""
    monkeypatch.setattr(MAX_IN_MEMORY, 5)
    monkeypatch.chdir(tmp_path)


def made(size):
    return report_maker.make_report(size)


def whole(report):
    return report | {"cases": [*report["cases"]]}


def parsed(path):
    """A report as its files state it, with its cases."""
    report = json.loads(Path(path).read_bytes())
    if isinstance(report["cases"], dict):
        lines = Path(path).resolve().with_name(report["cases"]["file"]).read_bytes().splitlines()
        report["cases"] = [json.loads(line) for line in lines]
    return report


def read(path):
    """A report as a command reads it."""
    assert main(["render", str(path), "-o", "copy/copy.json"]) == 0
    return parsed("copy/copy.json")


def refusal(path, capsys):
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["render", str(path), "-o", "copy.json"])
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.fixture
def written():
    """The path of a report of eight cases."""
    write_report(made(8), Path("report.json"))
    return Path("report.json")


FILE = Path("report.cases.jsonl")


def change(path, **changes):
    """Change what a report says about the file of its cases."""
    report = json.loads(path.read_bytes())
    path.write_text(json.dumps(report | {"cases": report["cases"] | changes}))


def names(folder="."):
    return sorted(path.name for path in Path(folder).iterdir())


# Both forms say the same


@pytest.mark.parametrize("size", [5, 6, 12])
def test_more_cases_than_fit_are_lines_of_a_file_beside_the_report(size):
    write_report(made(size), Path("report.json"))
    report = json.loads(Path("report.json").read_bytes())

    assert names() == (["report.json"] if size == 5 else ["report.cases.jsonl", "report.json"])
    if size > 5:
        assert (report["cases"]["file"], report["cases"]["count"]) == ("report.cases.jsonl", size)
    schema = Path(pytest_queryeval.__file__).with_name("report.schema.json")
    jsonschema.Draft202012Validator(json.loads(schema.read_bytes())).validate(report)
    assert read("report.json") == parsed("report.json") == json.loads(json.dumps(whole(made(size))))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.text(), trees, max_size=4), st.text())
def test_cases_in_a_file_are_what_was_stored(details, text):
    first = entry(id=text, path=os.fsdecode(b"caf\xe9"), question=f"a\r\nb\u2028c\x85{text}", details=details)
    stored = report_maker.report_of([first, *(entry(id=f"{n}", nodeid=f"z::{n}") for n in range(6))])

    assert next(iter(stored["cases"])) == stored["cases"][0] == first
    assert repr(stored["cases"][0]) == repr(first)


def test_stored_cases_are_a_sequence():
    cases, stored = whole(made(9))["cases"], made(9)["cases"]

    assert (stored[0], stored[-1], len(stored)) == (cases[0], cases[8], 9)
    assert [*stored[2:7:2]] == cases[2:7:2]
    assert [*reversed(stored)] == cases[::-1]
    assert [*zip(stored, stored, strict=True)] == [*zip(cases, cases, strict=True)]
    with pytest.raises(IndexError):
        stored[9]


@pytest.mark.feature("json", "sdmx")
@pytest.mark.parametrize("name", REPORTS.installed())
def test_every_format_of_stored_cases_is_that_of_cases_in_memory(name):
    stored = made(40)
    Path("some").mkdir()

    write_report(stored, Path(f"some/report.{name}"))

    assert not isinstance(stored["cases"], list)
    assert REPORTS[name].render(stored) == REPORTS[name].render(whole(stored))
    if name in ("csv", "md"):
        assert Path(f"some/report.{name}").read_bytes() == REPORTS[name].render(whole(stored))


@pytest.mark.long
@pytest.mark.feature("excel", "history", "transfer", "json", "sdmx")
@pytest.mark.parametrize(
    "command",
    [
        "merge later.json --baseline earlier.json",
        "merge part-1.json part-2.json",
        "render later.json -o out.json -o out.csv -o out.md",
        "compare earlier.json later.json",
        "history earlier.json later.json",
        "explain later.json invoices-2",
        "export sql.json -f bird -o out",
    ],
)
def test_commands_read_both_forms_alike(command, tmp_path, monkeypatch, capsys):
    earlier, later = made(40), report_maker.make_compared(40)
    sql = report_maker.report_of([case for case in earlier["cases"] if case["kind"] == "sql"])
    every = [*later["cases"]]
    monkeypatch.setattr("pytest_queryeval.features.excel.csv.PART_CHARACTERS", 100)
    printed, written = [], []
    for limit, folder in ((5, tmp_path / "stored"), (500, tmp_path / "inline")):
        folder.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setattr(MAX_IN_MEMORY, limit)
        write_report(earlier, folder / "earlier.json")
        write_report(later | {"created": "2025-06-01T00:00:00+00:00"}, folder / "later.json")
        write_report(sql, folder / "sql.json")
        for number, cases in enumerate((every[:20], every[20:]), start=1):
            write_report(report_maker.report_of(cases), folder / f"part-{number}.json")
        status = main(command.split())
        printed.append((status, *capsys.readouterr()))
        written.append({path.name: path.read_bytes() for path in folder.glob("out*") if "json" not in path.name})

    (status, out, err), inline = printed
    more = ("report: out.cases.jsonl\n", "queryeval compare: comparing 80 cases\n")  # which only stored ones have
    assert (more[0] in out, more[1] in err) == ("out.json" in command, command.startswith("compare"))
    assert (status, out.replace(more[0], ""), err.replace(more[1], "")) == inline
    assert written[0] == written[1]
    assert {path.name for path in (tmp_path / "stored").glob("*.jsonl")} >= {"earlier.cases.jsonl", "later.cases.jsonl"}


def test_a_run_keeps_more_cases_than_fit_in_a_file_that_is_gone_with_its_last_reader(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    table = "{columns: [n], rows: [[1]]}"
    cases = [f"- {{id: c{n}, gold_table: {table}, predicted_table: {table}}}\n" for n in range(9)]
    write(f"kind: sql\ncases:\n{''.join(cases)}")

    report = evaluate(load_cases("."))
    part = report["cases"][2:4]
    del report

    assert [case["id"] for case in part] == ["c2", "c3"]
    del part
    assert [*(tmp_path / "temporary").iterdir()] == []


def test_the_last_case_of_a_node_id_counts_in_its_first_place():
    cases = [entry(nodeid=f"a::{number % 7}", message=str(number)) for number in range(20)]
    for number in range(0, 20, 4):
        write_report(report_maker.report_of(cases[number : number + 4]), Path(f"part-{number:02}.json"))

    main(["merge", *(path.name for path in sorted(Path().glob("part-*.json"))), "-o", "all.json"])

    assert [(case["nodeid"], case["message"]) for case in parsed("all.json")["cases"]] == [
        (f"a::{n}", str(max(number for number in range(20) if number % 7 == n))) for n in range(7)
    ]


@pytest.mark.feature("page")
@pytest.mark.parametrize("in_memory", [False, True])
def test_a_page_lists_the_worst_of_many_cases_and_says_of_how_many(monkeypatch, in_memory):
    monkeypatch.setattr("pytest_queryeval.features.page.page.CASES_LISTED", 4)
    monkeypatch.setattr(MAX_IN_MEMORY, 9 if in_memory else 5)
    outcomes = ("passed", "passed", "failed", "passed", "error", "passed", "missed", "passed", "failed")
    cases = [entry(id=str(number), nodeid=f"a::{number}", outcome=outcome) for number, outcome in enumerate(outcomes)]

    page = REPORTS["html"].render(report_maker.report_of(cases)).decode()

    packed = re.search(r'<script type="text/plain"[^>]*>([^<]+)', page)[1]
    listed = json.loads(zlib.decompress(base64.b64decode(packed)))["id"]
    assert "9 cases" in page
    assert ("The worst 4 of 9 cases are listed; report.json has all of them." in page) == (not in_memory)
    assert listed == [*"012345678"] if in_memory else ["2", "4", "6", "8"]


@pytest.mark.slow
def test_more_than_fifty_thousand_cases_go_to_a_file(monkeypatch):
    monkeypatch.undo()
    folder = Path(tempfile.mkdtemp())
    many = (entry(id=str(number), nodeid=f"a::{number}") for number in range(50_001))

    report = report_maker.aggregate(many, gates=(), about=HEAD)
    write_report(report, folder / "report.json")

    report = json.loads((folder / "report.json").read_bytes())
    assert (report["totals"]["cases"], report["cases"]["count"]) == (50_001, 50_001)
    with (folder / report["cases"]["file"]).open("rb") as lines:
        assert sum(1 for _ in lines) == 50_001


# Which files are written, and which stay


def test_the_file_of_the_cases_is_listed_behind_its_report():
    Path("runs").mkdir()
    Path("latest.json").symlink_to("runs/1.json")
    targets = [Path(name).absolute() for name in ("report.json", "report.csv", "report.md", "latest.json")]

    large, small = (write_files(targets, partial(write_report, made(size))) for size in (8, 5))

    assert [path.relative_to(Path.cwd()).as_posix() for path in large.paths] == [
        *("report.json", "report.cases.jsonl", "report.csv", "report.md", "latest.json", "runs/1.cases.jsonl")
    ]
    assert small.paths == targets


def test_a_smaller_report_removes_the_cases_of_the_one_in_its_place(written):
    write_report(made(5), written)

    assert names() == ["report.json"]
    assert len(parsed(written)["cases"]) == 5


@pytest.mark.parametrize("earlier", ["none", "small", "of another file", "garbage", "a link"])
def test_a_file_that_is_not_of_the_report_in_its_place_stays(earlier):
    path = Path("report.json")
    match earlier:
        case "small":
            write_report(report_maker.report_of([entry(question='\n "cases": {"file": "report.cases.jsonl"')]), path)
        case "of another file":
            write_report(made(8), path)
            path.write_bytes(path.read_bytes().replace(b"report.cases.jsonl", b"other.cases.jsonl"))
        case "garbage":
            path.write_bytes(b"\x00")
    mine = Path("precious") if earlier == "a link" else FILE
    mine.write_text("mine")
    if earlier == "a link":
        FILE.symlink_to(mine)

    write_report(made(8 if earlier == "a link" else 5), path)

    assert mine.read_text() == "mine"
    assert len(parsed(path)["cases"]) == (8 if earlier == "a link" else 5)


def test_a_symbolic_link_to_a_report_leads_to_its_cases_as_well(written):
    Path("links").mkdir()
    Path("links/latest.json").symlink_to(written.absolute())

    write_report(made(9), Path("links/latest.json"))

    assert names("links") == ["latest.json"]
    assert len(read("links/latest.json")["cases"]) == 9 == len(read(written)["cases"])


@pytest.mark.parametrize(("function", "size"), [("write_atomically", 5), ("case_lines", 9)])
def test_a_report_that_cannot_be_written_leaves_the_earlier_one_whole(written, monkeypatch, function, size):
    def full(*_):
        raise OSError(28, "No space left on device")

    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    monkeypatch.setattr(f"pytest_queryeval.reports.{function}", full)

    with pytest.raises(ReportError, match="cannot be written: No space left on device"):
        write_report(made(size), written)

    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


def test_a_report_may_be_written_over_the_one_it_was_read_from(written):
    before = parsed(written)

    assert main(["render", str(written), "-o", str(written)]) == 0

    assert parsed(written) == before


# Stored cases that cannot be kept


def test_a_full_disk_is_an_error_that_names_the_folder():
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:  # a part of the line is written, as on a full disk
        with pytest.raises(ReportError, match=r"cases cannot be kept in .*: File too large: .*TMPDIR"):
            made(40)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_no_folder_of_temporary_files_is_an_error_with_its_remedy(monkeypatch):
    def missing(**_):
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.TemporaryFile", missing)

    with pytest.raises(ReportError, match=r"cases cannot be kept in .*: No usable temporary directory .*TMPDIR"):
        made(8)


# Files of cases that are refused


def test_without_the_file_of_its_cases_a_report_is_refused(written, capsys):
    FILE.unlink()

    assert f"{FILE}: no such file: report.json has its cases there: copy both" in refusal(written, capsys)


@pytest.mark.parametrize("damage", ["another run", "a line less", "a byte more", "another count"])
def test_cases_of_another_report_are_refused(written, capsys, damage):
    lines = FILE.read_bytes().splitlines(keepends=True)
    match damage:
        case "another run":
            FILE.write_bytes(b"".join(lines).replace(b'"passed"', b'"failed"', 1))
        case "a line less":
            FILE.write_bytes(b"".join(lines[:-1]))
        case "a byte more":
            FILE.write_bytes(b"".join(lines).removesuffix(b"\n") + b" \n")
        case "another count":
            change(written, count=7)

    said = "is not a file of cases: not the one that was written with report.json: copy both of one run"
    assert f"{FILE}: {said}" in refusal(written, capsys)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"id": "a"}', "line 3: 'scores' is missing"),
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
def test_the_first_line_that_is_no_case_is_named(written, capsys, line, problem, monkeypatch):
    if problem.endswith("MiB"):
        monkeypatch.setattr("pytest_queryeval.results.report_file.MAX_LINE_BYTES", 2**11 - 1)
        write_report(report_maker.report_of([entry(id=str(number)) for number in range(8)]), written)
    lines = FILE.read_bytes().splitlines(keepends=True)
    FILE.write_bytes(b"".join([*lines[:2], line + b"\n", *lines[3:6], b"{\n", *lines[7:]]))

    assert problem in refusal(written, capsys)


@pytest.mark.parametrize(
    "name", ["../report.cases.jsonl", "/etc/passwd", "a/b", "a\\b", "..", ".", "", "C:x", "~/x/y", "\\\\host\\share\\x"]
)
def test_cases_are_read_from_the_folder_of_the_report_only(written, capsys, name):
    (written.absolute().parents[1] / FILE.name).write_bytes(FILE.read_bytes())
    change(written, file=name)

    said = "cases.file: expected the name of a file in the folder of the report"
    assert f"{written}: {said}" in refusal(written, capsys)


@pytest.mark.parametrize("what", ["link", "folder", "pipe"])
def test_cases_are_read_from_a_regular_file_only(written, capsys, what):
    FILE.rename("elsewhere")
    make = {"link": lambda: FILE.symlink_to("elsewhere"), "folder": FILE.mkdir, "pipe": lambda: os.mkfifo(FILE)}
    make[what]()

    said = refusal(written, capsys)

    assert "a symbolic link may lead anywhere" in said or "not a regular file" in said


# One case of many


@pytest.mark.feature("review")
@pytest.mark.parametrize("text", ["plain", 'a "b" \\ c', "é\u2028\n", os.fsdecode(b"caf\xe9")], ids=ascii)
def test_a_case_is_found_by_its_id_and_its_node_id(text, capsys):
    cases = [entry(id=id_, nodeid=f"suite::{id_}") for id_ in (text, *map(str, range(7)))]
    write_report(report_maker.report_of(cases), Path("report.json"))

    for name in (text, f"suite::{text}"):
        assert main(["explain", "report.json", name, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["case"]["id"] == text


@pytest.mark.feature("review")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("caze", "no case 'caze': did you mean 'case'?"),
        ("case", "'case' is the id of several cases: write a::case or b::case"),
    ],
)
def test_a_name_of_no_case_or_of_several_is_told_as_of_any_report(name, problem, capsys):
    nodeids = ["a::case", "b::case", *(f"a::{number}" for number in range(6))]
    cases = [entry(id=nodeid.partition("::")[2], nodeid=nodeid) for nodeid in nodeids]
    write_report(report_maker.report_of(cases), Path("report.json"))

    with pytest.raises(SystemExit):
        main(["explain", "report.json", name])

    assert problem in capsys.readouterr().err


@pytest.mark.feature("review")
@pytest.mark.parametrize("damage", ["another line", "another count"])
def test_the_other_cases_have_to_be_those_that_were_written(written, damage, capsys):
    first, *remaining = (case["id"] for case in made(8)["cases"])
    if damage == "another count":
        change(written, count=9)
    else:
        FILE.write_bytes(FILE.read_bytes().replace(remaining[-1].encode(), b"x"))

    with pytest.raises(SystemExit):
        main(["explain", "report.json", first])

    assert "not the one that was written with report.json" in capsys.readouterr().err
