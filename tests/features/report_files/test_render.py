"""`queryeval render`: other formats, and runs of the same cases joined; where all commands on reports write."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from openpyxl import load_workbook
from report_maker import make_report
from report_parts import command, part, refusal, write
from samples import FINGERPRINT, entry

from pytest_queryeval.cli import main
from pytest_queryeval.reports import write_report

pytestmark = pytest.mark.usefixtures("working_folder")

F1, VES = {"soft_f1": 0.5}, {"ves": 0.9}
CALLS = [["compare", "good.json", "other.json"], ["merge", "good.json"], ["render", "good.json"]]
by_command = pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0])
SIDE = {"query": "SELECT 1", "columns": None, "row_count": None, "sample": [], "seconds": 0.0}


def case(id_="a", **changes):
    return entry(**{"id": id_, "gold": SIDE | {"index": 0}, "predicted": SIDE | {"error": None}} | changes)


def joined(*runs, **gates):
    """The report of several runs, each a list of cases; `gates` are those of the runs a, b and c."""
    paths = []
    for name, cases in zip("abc", runs, strict=False):
        Path(f"{name}.json").write_text(json.dumps(part(*cases, gates=gates.get(name, ()))))
        paths.append(f"{name}.json")
    command("render", *paths, "-o", "all.json")
    return json.loads(Path("all.json").read_bytes())


def test_a_case_has_the_scores_of_all_runs_and_the_report_says_which_metric_is_from_which():
    both = [case(scores=F1 | {"ves": None}), case("b", scores=F1)]

    report = joined(both, [case(scores=VES)], [case(scores=F1 | VES)])

    assert [own["scores"] for own in report["cases"]] == [F1 | VES, F1]
    assert {name: statistics["n"] for name, statistics in report["metrics"].items()} == {"soft_f1": 2, "ves": 1}
    assert [(run["name"], run["cases"], run["metrics"]) for run in report["joined"]] == [
        ("a.json", 2, ["soft_f1"]),
        ("b.json", 1, ["ves"]),
        ("c.json", 1, []),
    ]


@pytest.mark.parametrize(
    ("one", "other", "worst"),
    [("passed", "failed", "failed"), ("failed", "error", "error"), ("skipped", "passed", "passed")],
)
def test_the_outcome_of_a_case_is_its_worst_one_with_its_message(one, other, worst):
    runs = [[case(scores={}, outcome=outcome, message=outcome)] for outcome in (one, other)]

    for report in (joined(*runs), joined(*reversed(runs))):
        assert [(own["outcome"], own["message"]) for own in report["cases"]] == [(worst, worst)]


def test_a_case_that_only_one_run_reached_keeps_its_answers():
    skipped = case(scores={}, outcome="skipped", predicted=None, gold=None)
    prediction = {"source": "p", "seconds": 3.0, "metadata": {}}

    (own,) = joined([skipped], [case(scores=VES, prediction=prediction)])["cases"]

    assert (own["outcome"], own["prediction"]["seconds"], own["scores"]) == ("passed", 3.0, VES)


def test_a_case_that_failed_in_several_runs_has_all_messages_thresholds_and_violations():
    def failed(metric):
        violation = {"metric": metric, "min": 1.0, "max": None, "value": 0.5}
        fingerprint = FINGERPRINT | {"metrics": [metric], "thresholds": {metric: {"min": 1.0, "max": None}}}
        fields = {"message": f"{metric} 0.500", "violations": [violation], "fingerprint": fingerprint}
        return [case(scores={metric: 0.5}, outcome="failed", details={"notes": [metric]}, **fields)]

    (own,) = joined(failed("soft_f1"), failed("ves"), failed("ves"))["cases"]

    assert own["message"] == "soft_f1 0.500\nves 0.500"
    assert [violation["metric"] for violation in own["violations"]] == ["soft_f1", "ves"]
    assert own["fingerprint"]["metrics"] == list(own["fingerprint"]["thresholds"]) == ["soft_f1", "ves"]
    assert own["details"]["notes"] == ["soft_f1", "ves"]


def trials_of(metric, *passed):
    prediction = {"source": "p", "seconds": 1.0, "metadata": {}}
    predicted = {"query": "SELECT 1", "error": None, "seconds": 0.0}
    shared = {"prediction": prediction, "predicted": predicted, "violations": [], "scores": {metric: 1.0}}
    return [case(scores={metric: 1.0}, trials=[shared | {"passed": verdict} for verdict in passed])]


def test_trials_have_the_scores_of_all_runs_and_pass_if_they_do_in_each():
    (own,) = joined(trials_of("soft_f1", True, None), trials_of("ves", False, None))["cases"]

    assert [(trial["passed"], trial["scores"]) for trial in own["trials"]] == [
        (False, {"soft_f1": 1.0, "ves": 1.0}),
        (None, {"soft_f1": 1.0, "ves": 1.0}),
    ]


def test_gates_of_all_runs_are_evaluated_on_the_joined_cases():
    gate = {"type": "limits", "folder": "", "where": {}, "max": None, "cases": 1}

    gates = joined(
        [case(scores=F1)],
        [case(scores=VES)],
        a=[gate | {"metric": "soft_f1", "min": 0.4}],
        b=[gate | {"metric": "ves", "min": 0.95}],
    )["gates"]

    assert [(own["metric"], own["value"], own["ok"]) for own in gates] == [("soft_f1", 0.5, True), ("ves", 0.9, False)]


@pytest.mark.parametrize(
    ("runs", "problem"),
    [
        (
            [[case()], [case(question="Who?")]],
            "b.json: *has another question than in a.json: join runs of one state of the",
        ),
        ([[case()], [case(gold=SIDE | {"query": "x", "index": 0})]], "b.json: *has another gold than in a.json"),
        (
            [[case()], [case(predicted=SIDE | {"query": "x", "error": None})]],
            "has another prediction than in a.json: score",
        ),
        ([trials_of("ves", True), trials_of("soft_f1", True, True)], "has another prediction than in a.json"),
        (
            [[case(scores=F1)], [case(scores={"soft_f1": 0.25})]],
            "has 0.25 for metric soft_f1, but 0.5 in a.json: request the metric in one of the runs only",
        ),
        (
            [[case(scores=F1)], [case(scores=VES)], [case(scores={"ves": 1.0})]],
            "c.json: *has 1 for metric ves, but 0.9 in b.json",
        ),
        (
            [[case(fingerprint=FINGERPRINT)], [case(fingerprint=FINGERPRINT | {"golds": "x"})]],
            "has another gold than in a.json",
        ),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else "",
)
def test_runs_of_which_a_case_differs_are_refused_and_nothing_is_written(runs, problem):
    for name, cases in zip("abc", runs, strict=False):
        Path(f"{name}.json").write_text(json.dumps(part(*cases)))

    message = refusal("render", *(f"{name}.json" for name, _ in zip("abc", runs, strict=False)), "-o", "all.md")

    assert all(words in message for words in problem.split("*"))
    assert not Path("all.md").exists()


def test_golds_of_cases_with_fingerprints_are_compared_by_these():
    """The gold that predicted came nearest to may be another one by another metric."""
    runs = [
        [case(fingerprint=FINGERPRINT, gold=SIDE | {"query": query, "index": 0})] for query in ("SELECT 1", "SELECT 9")
    ]

    assert joined(*runs)["cases"]


@pytest.mark.feature("excel")
def test_a_joined_workbook_says_what_is_from_which_run():
    joined([case(scores=F1)], [case(scores=VES)])

    command("render", "a.json", "b.json", "-o", "all.xlsx", "--excel-layout", "plain")

    workbook = load_workbook("all.xlsx")
    assert workbook.sheetnames == ["Cases", "Run", "Statistics"]
    header, row = workbook["Cases"].iter_rows(values_only=True)
    assert {name: row[header.index(name)] for name in ("soft_f1", "ves")} == F1 | VES
    runs = [[row[0], row[3]] for row in workbook["Run"].iter_rows(values_only=True)]
    assert ["a.json", "soft_f1"] in runs
    assert ["b.json", "ves"] in runs


def test_a_joined_report_of_hostile_texts_is_a_report():
    hostile = make_report(12, hostile=True)
    for name in "ab":
        write_report(hostile, Path(f"{name}.json"))

    command("render", "a.json", "b.json", "-o", "all.json")

    assert json.loads(Path("all.json").read_bytes())["totals"] == hostile["totals"]


# Rendering


def test_render_makes_the_same_bytes_as_the_run_also_with_a_baseline():
    write("base.json", case(scores=F1))
    write("run.json", case(outcome="failed", scores=F1), case("b", scores={}))
    command("merge", "run.json", "--baseline", "base.json", "-o", "all.json", "-o", "all.md")

    printed = command("render", "all.json", "-o", "again.json", "-o", "deep/again.md")

    assert (printed.status, printed.data["reports"]) == (0, ["again.json", "deep/again.md"])
    assert Path("again.json").read_bytes() == Path("all.json").read_bytes()
    assert Path("deep/again.md").read_bytes() == Path("all.md").read_bytes()
    assert "0 fixes, 1 regression" in Path("all.md").read_text(encoding="utf-8")


def test_the_step_summary_is_no_target_of_the_console_script():
    write("good.json", case())

    assert "'github' is for `--queryeval-report` only" in refusal("render", "good.json", "-o", "github")


@by_command
def test_json_is_one_object_on_standard_output_and_the_lines_go_to_standard_error(call, capsys):
    write("good.json", case())
    write("other.json", case(outcome="failed"))

    assert main([*call, "-o", "out.md", "--json"]) == 0

    out, err = capsys.readouterr()
    assert out.count("\n") == 1
    assert json.loads(out)["reports"] == ["out.md"]
    assert "report: out.md\n" in err


@by_command
def test_a_target_that_cannot_be_written_keeps_no_other_from_being_written(capsys, call, monkeypatch):
    def on_a_full_disk(path, content):
        if path.parent.name == "full":
            raise OSError(28, "No space left on device")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)

    write("good.json", case())
    write("other.json", case(outcome="failed"))
    monkeypatch.setattr("pytest_queryeval.reports.write_atomically", on_a_full_disk)

    status = main([*call, "-o", "first.md", "-o", "full/report.md", "-o", "last.json"])

    out = capsys.readouterr().out
    assert status == 1
    assert (Path("first.md").stat().st_size > 0, Path("last.json").stat().st_size > 0) == (True, True)
    assert "report: last.json\nreport full/report.md cannot be written: No space left on device" in out
    assert ("queryeval: FAILED: report full/report.md" in out) is (call[0] == "merge")


@by_command
@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("taken.md", "report taken.md"),
        ("locked/out.md", "report locked/out.md cannot be written: locked is not a folder that can be written to"),
    ],
)
def test_a_target_that_can_never_be_written_is_refused_before_anything_is(call, target, problem, monkeypatch):
    write("good.json", case())
    write("other.json", case())
    Path("taken.md/report.md").mkdir(parents=True)
    Path("locked").mkdir()
    monkeypatch.setattr("pytest_queryeval.reports.os.access", lambda path, mode: Path(path).name != "locked")

    assert problem in refusal(*call, "-o", "first.md", "-o", target)
    assert not Path("first.md").exists()


def test_where_nobody_listens_the_files_are_written_all_the_same(monkeypatch):
    write("good.json", case())
    monkeypatch.setattr("sys.stdout", None)

    assert main(["render", "good.json", "-o", "good.md"]) == 0
    assert Path("good.md").stat().st_size > 0


@pytest.mark.process
def test_a_full_device_behind_standard_output_is_one_line():
    write("good.json", case())
    code = "import sys; from pytest_queryeval.cli import main; sys.exit(main(['render', 'good.json', '-o', 'good.md']))"
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, check=False)

    assert (done.returncode, done.stderr) == (2, b"standard output cannot be written to: No space left on device\n")


@pytest.mark.parametrize(
    ("option", "text"), [("--version", f"pytest-queryeval {version('pytest-queryeval')}\n"), ("--help", "merge")]
)
def test_the_console_script_says_its_version_and_its_commands(capsys, option, text):
    with pytest.raises(SystemExit) as stop:
        main([option])

    assert stop.value.code == 0
    assert text in capsys.readouterr().out
