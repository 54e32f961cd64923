"""`queryeval history`: runs over time, since when something is worse, and cases that flip."""

import json
import os
import re
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_maker import HOSTILE, make_report
from report_parts import command, part, refusal, write
from samples import FINGERPRINT, entry

from pytest_queryeval.cli import main
from pytest_queryeval.reports import write_report

pytestmark = pytest.mark.feature("report_files")

START = datetime(2025, 3, 1, 9, 30, tzinfo=UTC)
OUTCOMES = {"1": "passed", "0": "failed", "e": "error", "s": "skipped", "x": "xfailed", "n": "not_run"}
SCORES = {"1": {"f1": 1.0}, "0": {"f1": 0.0}}
IS_RIGHT = {"1": True, "0": False, "e": False, "x": False}
GATE = {"type": "limits", "folder": "music", "metric": "pass_rate", "where": {}, "min": 0.6, "max": None}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    return tmp_path


def cases_of(letters, **changes):
    """A case for each letter; a space is a case that is not there."""
    return [
        entry(**{"id": f"c{n:02}", "outcome": OUTCOMES[letter], "scores": SCORES.get(letter, {})} | changes)
        for n, letter in enumerate(letters)
        if letter != " "
    ]


def add_run(day, letters, **about):
    """Write the report of a day."""
    head = {"created": (START + timedelta(days=day)).isoformat(), "name": f"model {day}"} | about
    return write(f"runs/{day}.json", *cases_of(letters, **head.pop("changes", {})), **head)


def history(*outcomes, by="pass_rate", **about):
    """The history of a run a day: its data, and its lines."""
    for day, letters in enumerate(outcomes):
        add_run(day, letters, **about)
    return command("history", "runs", "--by", by, "-o", "out.html")


# Since when


GOOD = "1" * 20


@pytest.mark.parametrize(
    ("outcomes", "fall"),
    [
        # one-sided, 10 of 10, for each run before the last
        (["1" * 18 + "00", GOOD, GOOD, "1" * 10 + "0" * 10, "1" * 10 + "0" * 10], (2, 3, 1.0, 0.5, 4 * 0.5**10)),
        # a run of the fall needs no more than a test against the best one: 1 / 64, which times 4 is above 0.05
        ([GOOD, GOOD, "0" * 6 + "1" * 14, *["0" * 10 + "1" * 10] * 2], (1, 2, 1.0, 0.7, 4 * 0.5**10)),
        ([GOOD, "0" * 20, GOOD], None),
        ([GOOD, "0" * 5 + "1" * 15], (0, 1, 1.0, 0.75, 0.5**5)),
        ([GOOD, "0" * 5 + "1" * 15, "0" * 5 + "1" * 15], None),  # of many runs one is better by chance: 2 / 32
        ([GOOD + "ss", "1" * 10 + "0" * 10 + "1 "], (0, 1, 1.0, 0.5, 0.5**10)),  # only 20 cases are in both
        (["01"], None),
    ],
)
def test_the_first_run_of_a_lasting_fall_is_found(outcomes, fall):
    found = history(*outcomes).data["fall"]

    names = ("best", "since", "before", "after", "p")
    assert (found and tuple(found[name] for name in names)) == (fall and pytest.approx(fall))


def test_a_fall_is_said_with_its_runs_its_changes_and_what_changed_in_the_suite():
    bad = "1" * 10 + "0" * 10

    printed = history("1" * 18 + "00", GOOD, GOOD, bad, bad)

    assert printed.text.splitlines()[0] == (
        "pass_rate fell from 1.000 in model 2 of 2025-03-03 09:30 to 0.500 in model 3 of 2025-03-04 09:30 over 20 "
        "cases, and has not recovered (p 0.004); against the run before it has 0 fixes, 10 regressions; the suite "
        "did not change"
    )


def test_a_run_that_was_stopped_is_no_last_run():
    for day, (letters, stopped) in enumerate(((GOOD, False), ("0" * 20, False), ("1", True))):
        add_run(day, letters, stopped=stopped)

    found = command("history", "runs").data

    assert found["fall"]["since"] == 1
    assert found["runs"][2]["state"] == "INTERRUPTED"


@pytest.mark.parametrize(
    ("metric", "sentence"),
    [
        ("prediction_seconds", "prediction_seconds rose from 0.000 in model 0"),
        ("f1", "f1 of the last run is not significantly below"),
    ],
)
def test_of_a_cost_a_rise_is_worse(metric, sentence):
    for day, value in enumerate((0.0, 1.0)):
        add_run(day, GOOD, changes={"scores": {metric: value}})

    printed = command("history", "runs", "--by", metric)

    assert (printed.data["fall"] is not None) is (metric != "f1")
    assert printed.text.startswith(sentence)


@pytest.mark.parametrize(
    ("outcomes", "since", "sentence"),
    [
        (
            ["01", "11", "01", "01"],
            (2, 1),
            "the gate pass_rate in music: 0.500, needs at least 0.6 (2 cases), was last met in model 1 of 2025-03-02 *",
        ),
        (
            ["00", "n1", "01"],
            (0, None),
            "no run has met the gate pass_rate in music: 0.000, needs at least 0.6 (2 cases)",
        ),
        (["00", "11"], None, "pass_rate of the last run is not significantly below that of any run before"),
    ],
)
def test_a_gate_is_missed_since_the_first_of_the_last_runs_that_were_evaluated(outcomes, since, sentence):
    printed = history(*outcomes, gates=[GATE | {"cases": 2}])

    missed = printed.data["missed_gates"]
    assert [(gate["since"], gate["met"]) for gate in missed] == ([since] if since else [])
    assert fnmatchcase(printed.text.splitlines()[0], sentence)


def test_a_gate_with_another_limit_is_the_same_one_and_one_that_is_gone_is_not_missed():
    add_run(0, "01", gates=[GATE, GATE | {"metric": "f1"}])
    add_run(1, "01", gates=[GATE | {"min": 0.7}])

    missed = command("history", "runs").data["missed_gates"]

    assert [(gate["since"], gate["gate"]["min"]) for gate in missed] == [(0, 0.6)]


# Cases


@given(st.lists(st.text("10exsn ", min_size=4, max_size=4), min_size=1, max_size=5))
def test_a_case_flips_between_right_and_wrong_and_an_error_is_wrong(outcomes):
    for path in Path().glob("runs/*.json"):
        path.unlink()

    found = history(*outcomes).data

    histories = {f"c{n:02}": [letters[n] for letters in outcomes] for n in range(4)}
    rights = {id_: [IS_RIGHT[letter] for letter in own if letter in IS_RIGHT] for id_, own in histories.items()}
    flips = {id_: sum(one is not two for one, two in pairwise(own)) for id_, own in rights.items()}
    expected = sorted((-number, rights[id_][-1], id_) for id_, number in flips.items() if number)
    assert [(-own["flips"], own["nodeid"].rpartition("::")[2]) for own in found["cases"]] == [
        (number, id_) for number, _, id_ in expected
    ]
    assert [own["outcomes"] for own in found["cases"]] == [
        [OUTCOMES.get(letter) for letter in histories[id_]] for _, _, id_ in expected
    ]


def test_of_many_cases_that_flip_the_first_are_kept_and_all_are_counted(monkeypatch):
    monkeypatch.setattr("pytest_queryeval.features.history.past_runs.MAX_CASES", 5)

    found = history("1" * 8, "0" * 8).data

    assert (found["flipped"], len(found["cases"])) == (8, 5)


def test_outcomes_are_shown_as_letters_which_are_explained():
    lines = history("11", "0n", "1x", " 1").text.splitlines()

    start = next(number for number, line in enumerate(lines) if "::" in line)
    assert [line.split()[-1] for line in lines[start : start + 2]] == [".F.-", ".-x."]
    assert lines[start + 2] == "outcomes, the latest to the right: . passed, F failed, x xfailed, - not run"


def test_changes_besides_the_system_are_named_with_each_run():
    for day, (golds, version) in enumerate((("one", "3.45"), ("other", "3.46"))):
        changes = {"fingerprint": FINGERPRINT | {"golds": golds}}
        add_run(day, "1", changes=changes, environment={"engines": {"sqlite": version}})

    step = command("history", "runs").data["runs"][1]["step"]

    assert [(change["what"], len(change["cases"])) for change in step["changes"]] == [
        ("gold edited", 1),
        ("sqlite 3.45 became 3.46", 0),
    ]


def test_runs_without_a_case_in_common_are_not_compared():
    printed = history("11", "  00")

    step = printed.data["runs"][1]["step"]
    assert printed.data["fall"] is None
    assert (step["common"], step["change"], step["p"]) == (0, None, None)
    assert [[nodeid[-3:] for nodeid in step[name]] for name in ("added", "removed")] == [["c02", "c03"], ["c00", "c01"]]
    assert "no case is in both runs" in Path("out.html").read_text()


def test_after_a_run_that_was_stopped_no_case_is_added():
    for day, letters in enumerate(("1", "11", "111")):
        add_run(day, letters, stopped=day == 0)

    runs = command("history", "runs").data["runs"]

    assert [len(run["step"]["added"]) for run in runs[1:]] == [0, 1]


# Reports


def test_runs_are_in_the_order_of_their_times_whatever_their_zones_and_files_and_a_copy_counts_once():
    times = {"a": "2025-03-01T10:00:00+02:00", "b": "2025-03-01T09:00:00+00:00", "c": "2025-03-01T07:00:00"}
    for name, created in times.items():
        write(f"runs/{name}.json", *cases_of("1"), name=name, created=created)
    write("runs/copy.json", *cases_of("1"), name="a", created=times["a"])

    found = command("history", "runs").data

    assert [run["name"] for run in found["runs"]] == ["c", "a", "b"]
    assert found["repeated"] == ["runs/copy.json"]


def test_files_that_are_no_reports_are_named_and_the_others_count():
    add_run(0, "1")
    for name, text in (
        ("half", '{"schema": 2, "cases": ['),
        ("note", '{"a": 1}'),
        ("old", '{"schema": 1, "cases": []}'),
    ):
        Path(f"runs/{name}.json").write_text(text)
    os.mkfifo("runs/pipe.json")

    printed = command("history", "runs")

    assert [run["name"] for run in printed.data["runs"]] == ["model 0"]
    assert [text.partition(": ")[0] for text in printed.data["skipped"]] == [
        f"runs/{name}.json" for name in ("half", "note", "old")
    ]
    assert "\nskipped: runs/half.json: is not a report: not JSON" in printed.text


def test_reports_with_their_cases_in_files_of_their_own_are_shown(monkeypatch):
    monkeypatch.setattr("pytest_queryeval.results.case_store.MAX_IN_MEMORY", 5)
    for day, letters in enumerate((GOOD, "0" * 20)):
        head = {"created": (START + timedelta(days=day)).isoformat()}
        Path("part.json").write_text(json.dumps(part(*cases_of(letters), **head)))
        command("merge", "part.json", "-o", f"large/{day}.json")

    found = command("history", "large").data

    assert len([*Path("large").iterdir()]) == 4
    assert (found["skipped"], found["fall"]["since"], found["flipped"]) == ([], 1, 20)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing"], "missing: no such file or folder"),
        (["empty"], "no report below empty"),
        (["empty", "a.json"], "no report below empty or a.json; skipped: a.json: is not a report"),
        (["runs", "-o", "h.pdf"], "no history as '.pdf' for h.pdf"),
        (["runs", "--by", "f2"], "no report has a score of 'f2': choose from f1, pass_rate"),
        (["runs", "-o", "runs/0.json"], "runs/0.json: is a report of the history, and would be"),
    ],
)
def test_what_has_no_history_is_refused_in_one_line(arguments, message):
    add_run(0, "1")
    Path("empty").mkdir()
    Path("a.json").write_text("{}")
    before = Path("runs/0.json").read_bytes()

    assert refusal("history", *arguments).startswith(message)
    assert Path("runs/0.json").read_bytes() == before


def test_every_form_is_written_with_a_row_for_each_run_and_an_earlier_history_is_replaced(capsys):
    for day, letters in enumerate((GOOD, "1" * 8 + "0" * 12)):
        add_run(day, letters, gates=[GATE | {"min": 0.9}])
    call = ["history", "runs/0.json", "runs", *(p for s in ("html", "md", "json") for p in ("-o", f"runs/history.{s}"))]

    assert main(call) == main(call) == 0

    out = capsys.readouterr().out
    assert "skipped" not in out
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert "model 1 2025-03-02 09:30 FAILED 20 0.400 0.219 to 0.613 -0.600 < 0.001 0 12 0 1 of 1 0" in rows
    assert "| `model 1` | 2025-03-02 09:30 | FAILED |" in Path("runs/history.md").read_text()
    assert json.loads(Path("runs/history.json").read_bytes())["fall"]["since"] == 1
    assert Path("runs/history.html").read_text().startswith("<!doctype html>")


def test_reading_many_reports_tells_its_progress_on_standard_error(capsys, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.cli.output.PROGRESS_SECONDS", 0)

    main(["history", *(add_run(day, "1") for day in range(3))])

    assert capsys.readouterr().err.startswith("queryeval history: 1 of 3 reports, about ")


# The page


class Tags(HTMLParser):
    def __init__(self, path="out.html"):
        super().__init__()
        self.found, self.texts = [], []
        self.feed(Path(path).read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)

    def of(self, tag):
        return [attrs for name, attrs in self.found if name == tag]


def test_no_text_of_a_report_becomes_markup_and_nothing_is_loaded_from_elsewhere():
    first, second = (make_report(60, hostile=True) for _ in range(2))
    for number, case in enumerate(second["cases"]):
        case["fingerprint"] |= {"golds": "other"} if case["fingerprint"] else {}
        case["outcome"] = "failed" if case["outcome"] == "passed" and number % 2 else case["outcome"]
    later = {"created": "2025-04-01T09:30:00+00:00", "name": HOSTILE[1]}
    for number, report in enumerate((first | {"name": HOSTILE[0]}, second | later)):
        write_report(report, Path(f"runs/{number}.json"))

    command("history", "runs", "-o", "out.html")

    tags, text = Tags(), Path("out.html").read_text(encoding="utf-8")
    assert len(tags.of("script")) == 1
    assert not tags.of("img")
    names = [(tag, name) for tag, attrs in tags.found for name in attrs]
    assert not [name for _, name in names if name.startswith("on") or name in ("src", "style")]
    assert all(attrs["href"].startswith(("#", "data:image/svg+xml,")) for _, attrs in tags.found if "href" in attrs)
    assert HOSTILE[0] in tags.texts
    assert not any(character in text for character in "\u202e\u200b\x1b\x00")
    policy = next(attrs["content"] for attrs in tags.of("meta") if "content" in attrs)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")


def test_each_chart_says_its_numbers_and_each_run_its_own():
    history("11", "01", "11")

    tags = Tags()
    names = [attrs["aria-label"] for attrs in tags.of("svg")]
    assert names[0] == "pass_rate over 3 runs: 1.000 in the first, 1.000 in the last, 0.500 to 1.000 in all"
    assert names[-1] == "passed 1, failed 1, passed 1"
    assert "2025-03-02 09:30 model 1: 0.500 (0.095 to 0.905)" in tags.texts
    assert "failed: 2025-03-02 09:30 model 1 (1 run)" in tags.texts


def test_cases_that_a_run_had_no_need_of_are_named_and_not_counted():
    printed = history("11", "01", "n1")

    tags = Tags()
    rows = [line.split() for line in printed.text.splitlines() if line.startswith("model")]
    assert [row[5] for row in rows] == ["2", "2", "1"]
    assert re.findall(r'data-name="cases">(\d+)<', Path("out.html").read_text()) == ["1", "2", "2"]
    assert "not run" in tags.texts
    assert not [text for text in tags.texts if text.startswith("not_run")]
    assert "passed 1, failed 1, not run 1" in [attrs.get("aria-label") for attrs in tags.of("svg")]


def test_a_run_without_a_metric_is_a_gap_in_its_line():
    history("1", "1", "s", "1", "0")

    paths = [attrs["d"] for attrs in Tags().of("path")]
    assert "M10.0 0.0L30.0 0.0" in paths
    assert any(path.startswith("M70.0") for path in paths)


def test_runs_that_left_cases_out_are_pale_and_the_first_bad_one_of_the_metric_and_of_gates_is_red():
    for day, letters in enumerate((GOOD, GOOD, GOOD, "0" * 20)):
        selection = {"selected": day == 0, "stopped": day == 1, "collected": {"music/s.queryeval.yaml": 21}}
        changes = {"scores": {"f1": float(letters[0]), "other": float(letters[0])}}
        head = {
            "created": (START + timedelta(days=day)).isoformat(),
            "name": f"model {day}",
            "gates": [GATE | {"metric": "f1"}],
        }
        write(f"runs/{day}.json", *(case | changes for case in cases_of(letters)), **selection, **head)

    command("history", "runs", "-o", "out.html")

    classes = [attrs.get("class", "").split() for attrs in Tags().of("path")]
    dots = [names[1:] for names in classes if "dot" in names]
    assert dots[:4] == [["partial"], ["partial"], [], ["worse"]]
    charts = dict(re.findall(r'role="img" aria-label="(\S+) over(.*?)</svg>', Path("out.html").read_text(), re.DOTALL))
    assert {name for name, chart in charts.items() if "dot worse" in chart} == {"pass_rate", "f1"}
    assert "other" in charts


def test_a_gate_that_was_never_met_makes_no_run_the_first_bad_one():
    history("0", "0", gates=[GATE])

    page = Path("out.html").read_text()
    assert ">No run has met the gate <strong>pass_rate" in page
    assert "worse since here" not in page


def test_a_page_of_a_single_empty_run_is_made():
    history("", name="")

    page = Path("out.html").read_text()
    assert "only one run" in page
    assert "0.json" in page
