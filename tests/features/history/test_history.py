"""`queryeval history`: runs over time, since when something is worse, and cases that flip."""

import json
import os
import re
import weakref
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest
from report_maker import HOSTILE, evaluate_gate, make_gate, make_report
from samples import FINGERPRINT, HEAD, entry

from pytest_queryeval.cli import main
from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.features.history.history_command import (
    findings,
    history_blocks,
    history_page,
    letters,
    runs_table,
)
from pytest_queryeval.features.history.past_runs import MAX_CASES, history
from pytest_queryeval.reports import write_report
from pytest_queryeval.reports.blocks import text_lines, text_sentence
from pytest_queryeval.results import case_store
from pytest_queryeval.results.aggregation import aggregate

START = datetime(2025, 3, 1, 9, 30, tzinfo=UTC)
FAILS, PASSES = "0", "1"
OUTCOMES = {PASSES: "passed", FAILS: "failed", "e": "error", "s": "skipped", "x": "xfailed", "n": "not_run"}


def case(number, outcome, **changes):
    defaults = {
        "id": f"c{number}",
        "nodeid": f"music/s.queryeval.yaml::c{number}",
        "question": "",
        "message": "",
        "outcome": OUTCOMES[outcome],
        "scores": {"f1": float(outcome)} if outcome in "01" else {},
        **dict.fromkeys(("gold", "predicted", "difference", "prediction")),
    }
    return entry(**defaults | changes)


def run(day, outcomes, *, gates=(), better=None, **about):
    """The report of a day, with a case for each letter of `outcomes`; a space is a case that is not there."""
    cases = [case(number, letter) for number, letter in enumerate(outcomes) if letter != " "]
    head = HEAD | {"created": (START + timedelta(days=day)).isoformat(), "name": f"model {day}"} | about
    evaluated = [evaluate_gate(make_gate(folder="music", **gate), cases) for gate in gates]
    return aggregate(cases, gates=evaluated, about=head, better=better)


def runs(*outcomes, **about):
    """A history of a run a day."""
    return history(((f"{day}.json", run(day, own, **about)) for day, own in enumerate(outcomes)), "pass_rate")


def sentences(found):
    return [text_sentence(finding) for finding in findings(found)]


def test_runs_are_in_the_order_of_their_times_whatever_their_zones_and_names_are():
    reports = [
        ("a.json", run(0, "1", created="2025-03-01T10:00:00+02:00", name="second")),
        ("b.json", run(0, "1", created="2025-03-01T09:00:00+00:00", name="third")),
        ("c.json", run(0, "1", created="2025-03-01T07:00:00", name="first")),
    ]

    timeline = history(reports)

    assert [run["name"] for run in timeline["runs"]] == ["first", "second", "third"]


def test_one_report_at_a_time_is_held():
    class Held(dict):
        pass

    def reports():
        before = None
        for day in range(3):
            assert before is None or before() is None
            report = Held(run(day, "1"))
            before = weakref.ref(report)
            yield f"{day}.json", report
            del report

    assert len(history(reports())["runs"]) == 3


def test_a_copy_of_a_report_counts_once():
    timeline = history([("a.json", run(0, "1")), ("copy.json", run(0, "1")), ("b.json", run(1, "1"))])

    assert [run["path"] for run in timeline["runs"]] == ["a.json", "b.json"]
    assert timeline["repeated"] == ["copy.json"]


def test_the_first_run_of_a_lasting_fall_is_found():
    good, bad = "1" * 20, "1" * 10 + "0" * 10

    timeline = runs("1" * 18 + "00", good, good, bad, bad)

    assert (timeline["fall"]["best"], timeline["fall"]["since"]) == (2, 3)
    assert (timeline["fall"]["before"], timeline["fall"]["after"], timeline["fall"]["common"]) == (1.0, 0.5, 20)
    assert timeline["fall"]["p"] == pytest.approx(4 * 0.5**10)  # one-sided, 10 of 10, for each run before the last
    assert " ".join(sentences(timeline)) == (
        "pass_rate fell from 1.000 in model 2 of 2025-03-03 09:30 to 0.500 in model 3 of 2025-03-04 09:30 over 20 "
        "cases, and has not recovered (p 0.004); against the run before it has 0 fixes, 10 regressions; the suite "
        "did not change"
    )


def test_a_run_of_the_fall_needs_no_more_than_a_test_against_the_best_one():
    good, bad, worse = "1" * 20, "0" * 6 + "1" * 14, "0" * 10 + "1" * 10

    timeline = runs(good, good, bad, worse, worse)

    assert timeline["fall"]["since"] == 2  # 1 / 64, which times the 4 runs before the last is above 0.05
    assert timeline["fall"]["p"] == pytest.approx(4 * 0.5**10)


def test_a_fall_that_was_made_up_for_is_none():
    timeline = runs("1" * 20, "0" * 20, "1" * 20)

    assert timeline["fall"] is None
    assert timeline["runs"][1]["step"]["p"] < 0.001
    assert sentences(timeline) == ["pass_rate of the last run is not significantly below that of any run before"]


def test_of_many_runs_one_is_better_by_chance():
    bad, lucky = "1" * 20, "1" * 20
    bad = "0" * 5 + bad[5:]

    assert runs(lucky, bad)["fall"]["p"] == pytest.approx(0.5**5)
    assert runs(lucky, bad, bad)["fall"] is None  # 2 / 32 is above 0.05


def test_a_run_that_was_stopped_is_no_last_run():
    reports = [("0", run(0, "1" * 20)), ("1", run(1, "0" * 20)), ("2", run(2, "1", stopped=True))]

    timeline = history(reports)

    assert timeline["fall"]["since"] == 1
    assert timeline["runs"][2]["state"] == "INTERRUPTED"


@pytest.mark.parametrize(("better", "verb"), [("lower", "rose from 0.000"), (None, None)])
def test_of_a_cost_a_rise_is_worse(better, verb):
    reports = [(f"{day}", run(day, own, better={"f1": better})) for day, own in enumerate(("0" * 20, "1" * 20))]

    timeline = history(reports, "f1")

    assert timeline["better"] == (better or "higher")
    assert (timeline["fall"] is not None) is (better == "lower")
    assert verb is None or sentences(timeline)[0].startswith(f"f1 {verb} in model 0")


def test_cases_without_a_score_are_no_pairs():
    timeline = runs("1" * 20 + "ss", "1" * 10 + "0" * 10 + "1 ")

    assert timeline["fall"]["common"] == 20
    assert (timeline["fall"]["before"], timeline["fall"]["after"]) == (1.0, 0.5)


def test_a_gate_is_missed_since_the_first_run_of_the_last_ones():
    reports = [(str(day), run(day, own, gates=[{"min": 0.6}])) for day, own in enumerate(("01", "11", "01", "01"))]

    timeline = history(reports)

    assert [(gate["since"], gate["met"]) for gate in timeline["missed_gates"]] == [(2, 1)]
    assert sentences(timeline)[0] == (
        "the gate pass_rate in music: 0.500, needs at least 0.6 (2 cases), was last met in model 1 of 2025-03-02 09:30 "
        "and is missed since model 2 of 2025-03-03 09:30; against the run before it has 0 fixes, 1 regression; "
        "the suite did not change"
    )


def test_a_gate_that_was_not_evaluated_says_nothing():
    reports = [(str(day), run(day, own, gates=[{"min": 0.6}])) for day, own in enumerate(("00", "ss", "01"))]
    reports[1][1]["gates"][0] |= {"ok": None, "value": None, "reason": "1 of 2 cases ran"}

    timeline = history(reports)

    assert [(gate["since"], gate["met"]) for gate in timeline["missed_gates"]] == [(0, None)]
    assert sentences(timeline)[0] == "no run has met the gate pass_rate in music: 0.000, needs at least 0.6 (2 cases)"


def test_a_gate_that_is_met_again_or_gone_is_not_missed():
    met = [(str(day), run(day, own, gates=[{"min": 0.6}])) for day, own in enumerate(("00", "11"))]
    gone = [("0", run(0, "00", gates=[{"min": 0.6}])), ("1", run(1, "00"))]

    assert history(met)["missed_gates"] == history(gone)["missed_gates"] == []


def test_a_gate_with_another_limit_is_the_same_one():
    reports = [("0", run(0, "01", gates=[{"min": 0.6}])), ("1", run(1, "01", gates=[{"min": 0.7}]))]

    timeline = history(reports)

    assert [(gate["since"], gate["gate"]["min"]) for gate in timeline["missed_gates"]] == [(0, 0.6)]


def test_changes_besides_the_system_are_named():
    before, after = run(0, "11"), run(1, "11", environment={"engines": {"sqlite": "3.46"}})
    before["environment"] = {"engines": {"sqlite": "3.45"}}
    for report, golds in ((before, "one"), (after, "other")):
        report["cases"][0]["fingerprint"] = FINGERPRINT | {"golds": golds}

    step = history([("0", before), ("1", after)])["runs"][1]["step"]

    assert [change["what"] for change in step["changes"]] == ["gold edited", "sqlite 3.45 became 3.46"]
    assert step["changes"][0]["cases"] == ["music/s.queryeval.yaml::c0"]


def test_after_a_run_that_was_stopped_no_case_is_added():
    timeline = history([("0", run(0, "1", stopped=True)), ("1", run(1, "11")), ("2", run(2, "111"))])

    assert [len(run["step"]["added"]) for run in timeline["runs"][1:]] == [0, 1]


def test_runs_without_a_case_in_common_are_not_compared():
    timeline = history([("0", run(0, "11")), ("1", run(1, "  00"))])

    assert timeline["fall"] is None
    assert timeline["runs"][1]["step"] | {"changes": []} == {
        "common": 0,
        "change": None,
        "p": None,
        "regressions": [],
        "fixes": [],
        "errors": [],
        "added": ["music/s.queryeval.yaml::c2", "music/s.queryeval.yaml::c3"],
        "removed": ["music/s.queryeval.yaml::c0", "music/s.queryeval.yaml::c1"],
        "changes": [],
    }
    assert b"no case is in both runs" in history_page(timeline)


def test_a_case_flips_between_right_and_wrong_and_an_error_is_wrong():
    timeline = runs("0111", "1s11", "0 1e", "0111")

    assert [(case["nodeid"][-2:], case["flips"]) for case in timeline["cases"]] == [("c0", 2), ("c3", 2)]
    assert [case["outcomes"] for case in timeline["cases"]] == [
        ["failed", "passed", "failed", "failed"],
        ["passed", "passed", "error", "passed"],
    ]
    assert timeline["flipped"] == 2


def test_cases_that_flip_most_come_first_then_those_that_are_wrong_now():
    timeline = runs("1100", "0111", "1010")

    assert [case["nodeid"][-2:] for case in timeline["cases"]] == ["c3", "c0", "c1", "c2"]


def test_of_many_cases_the_first_are_kept_and_all_are_counted():
    timeline = runs("1" * (MAX_CASES + 5), "0" * (MAX_CASES + 5))

    assert (timeline["flipped"], len(timeline["cases"])) == (MAX_CASES + 5, MAX_CASES)


def test_the_letters_that_are_shown_are_explained():
    lines = list(text_lines(history_blocks(runs("11", "0n", "1x", " 1")), 200))

    strips = [line.split()[-1] for line in lines if "::" in line]
    assert strips == [".F.-", ".-x."]
    assert lines[-1] == "outcomes, the latest to the right: . passed, F failed, x xfailed, - not run"


def test_letters_are_those_of_pytest():
    assert letters(["passed", "failed", "missed", "error", "skipped", "xfailed", "xpassed", None]) == ".FMEsxX-"


def test_a_metric_that_no_report_has_is_refused_with_a_proposal():
    with pytest.raises(ReportError, match=r"no report has a score of 'f2': choose from f1, pass_rate"):
        history([("0", run(0, "1"))], "f2")


def test_a_single_run_is_a_history():
    assert sentences(runs("01")) == ["only one run, so there is none to compare it with"]


# The command


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    for day, outcomes in enumerate(("1" * 20, "1" * 20, "1" * 8 + "0" * 12)):
        write_report(run(day, outcomes, gates=[{"min": 0.9}]), Path(f"reports/{day}/report.json"))
    return tmp_path


def test_a_folder_is_shown_with_a_line_for_each_run(folder, capsys):
    status = main(["history", "reports"])

    first, second, header, *rows = capsys.readouterr().out.splitlines()
    assert status == 0
    assert first.startswith(
        "pass_rate fell from 1.000 in model 1 of 2025-03-02 09:30 to 0.400 in model 2 of 2025-03-03"
    )
    assert second.startswith("the gate pass_rate in music: 0.400, needs at least 0.9 (20 cases), was last met in")
    assert header.split()[:4] == ["run", "created", "verdict", "cases"]
    assert [" ".join(row.split()) for row in rows[1:3]] == [
        "model 1 2025-03-02 09:30 PASSED 20 1.000 0.839 to 1.000 0.000 1.000 0 0 0 0 of 1 0",
        "model 2 2025-03-03 09:30 FAILED 20 0.400 0.219 to 0.613 -0.600 < 0.001 0 12 0 1 of 1 0",
    ]


def test_reading_many_reports_tells_its_progress_on_standard_error(folder, capsys, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.cli.output.PROGRESS_SECONDS", 0)

    main(["history", "reports", "--json"])

    captured = capsys.readouterr()
    assert captured.err.startswith("queryeval history: 1 of 3 reports, about ")
    assert len(json.loads(captured.out)["runs"]) == 3


def test_reports_with_their_cases_in_files_of_their_own_are_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(case_store, "MAX_IN_MEMORY", 5)
    for day, outcomes in enumerate(("1" * 20, "0" * 20)):
        write_report(run(day, outcomes), tmp_path / f"{day}.json")

    assert main(["history", str(tmp_path), "--json"]) == 0

    output = json.loads(capsys.readouterr().out)
    assert len(list(tmp_path.iterdir())) == 4
    assert (output["skipped"], output["fall"]["since"], output["flipped"]) == ([], 1, 20)


def test_files_that_are_no_reports_are_named_and_the_others_count(folder, capsys):
    Path("reports/note.json").write_text('{"a": 1}')
    Path("reports/half.json").write_text('{"schema": 2, "cases": [')
    Path("reports/old.json").write_text('{"schema": 1, "cases": []}')
    os.mkfifo("reports/pipe.json")

    assert main(["history", "reports", "--json"]) == 0

    out = capsys.readouterr()
    output = json.loads(out.out)
    assert [run["name"] for run in output["runs"]] == ["model 0", "model 1", "model 2"]
    assert [text.partition(": ")[0] for text in output["skipped"]] == [
        "reports/half.json",
        "reports/note.json",
        "reports/old.json",
    ]
    assert "\nskipped: reports/half.json: is not a report: not JSON" in out.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing"], "missing: no such file or folder"),
        (["empty"], "no report below empty"),
        (["empty", "empty/a.json"], "no report below empty or empty/a.json; skipped: empty/a.json: is not a report"),
        (["reports", "-o", "h.pdf"], "no history as '.pdf' for h.pdf"),
        (["reports", "--by", "f2"], "no report has a score of 'f2': choose from f1, pass_rate"),
        (["reports", "-o", "reports/0/report.json"], "reports/0/report.json: is a report of the history, and would be"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(folder, capsys, arguments, message):
    Path("empty").mkdir()
    if "empty/a.json" in arguments:
        Path("empty/a.json").write_text("{}")
    before = Path("reports/0/report.json").read_bytes()

    with pytest.raises(SystemExit) as stopped:
        main(["history", *arguments])

    err = capsys.readouterr().err
    assert stopped.value.code == 2
    assert err.startswith(message)
    assert err.count("\n") == 1
    assert Path("reports/0/report.json").read_bytes() == before


def test_every_form_is_written_and_an_earlier_history_is_replaced(folder, capsys):
    targets = ("reports/history.html", "reports/history.md", "reports/history.json")
    command = ["history", "reports", *(part for target in targets for part in ("-o", target))]

    assert main(command) == main(command) == 0

    assert "skipped" not in capsys.readouterr().out
    assert "| `model 2` | 2025-03-03 09:30 | FAILED |" in Path(targets[1]).read_text()
    assert json.loads(Path(targets[2]).read_bytes())["fall"]["since"] == 2
    assert Path(targets[0]).read_text().startswith("<!doctype html>")


def test_several_paths_and_a_metric_are_given(folder, capsys):
    main(["history", "reports/0/report.json", "reports/2", "reports/0", "--by", "f1", "--json"])

    output = json.loads(capsys.readouterr().out)
    assert [run["name"] for run in output["runs"]] == ["model 0", "model 2"]
    assert output["metric"] == "f1"


# The page


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)

    def of(self, tag):
        return [attrs for name, attrs in self.found if name == tag]


@pytest.fixture(scope="module")
def hostile():
    """Runs all texts of which would like to act, the second with an edited gold, a lost gate and other outcomes."""
    first, second = (make_report(60, hostile=True) for _ in range(2))
    for number, case in enumerate(second["cases"]):
        case["fingerprint"] |= {"golds": "other"} if case["fingerprint"] else {}
        case["outcome"] = "failed" if case["outcome"] == "passed" and number % 2 else case["outcome"]
    head = {"created": "2025-04-01T09:30:00+00:00", "name": HOSTILE[1]}
    after = aggregate(second["cases"], gates=(), about=second | head)
    return history([(HOSTILE[0], first | {"name": HOSTILE[0]}), (HOSTILE[4], after)])


def test_no_text_of_a_report_becomes_markup(hostile):
    text = history_page(hostile).decode()
    tags = Tags(text)

    assert len(tags.of("script")) == 1
    assert not tags.of("img")
    assert not [name for _, attrs in tags.found for name in attrs if name.startswith("on")]
    assert all(attrs["href"].startswith(("#", "data:image/svg+xml,")) for _, attrs in tags.found if "href" in attrs)
    assert not any("src" in attrs or "style" in attrs for _, attrs in tags.found)
    assert HOSTILE[0] in tags.texts
    assert not any(character in text for character in "\u202e\u200b\x1b\x00")


def test_nothing_is_loaded_from_elsewhere(hostile):
    policy = next(attrs["content"] for attrs in Tags(history_page(hostile).decode()).of("meta") if "content" in attrs)

    assert policy.startswith("default-src 'none'; script-src 'sha256-")


def test_each_chart_says_its_numbers_and_each_run_its_own():
    text = history_page(runs("11", "01", "11"))
    tags = Tags(text.decode())

    names = [attrs["aria-label"] for attrs in tags.of("svg")]
    assert names[0] == "pass_rate over 3 runs: 1.000 in the first, 1.000 in the last, 0.500 to 1.000 in all"
    assert names[-1] == "passed 1, failed 1, passed 1"
    assert "2025-03-02 09:30 model 1: 0.500 (0.095 to 0.905)" in tags.texts
    assert "failed: 2025-03-02 09:30 model 1 (1 run)" in tags.texts


def test_cases_that_a_run_had_no_need_of_are_said_in_words_and_not_counted():
    timeline = runs("11", "01", "n1")
    page = history_page(timeline).decode()
    tags = Tags(page)

    assert [row[3] for row in runs_table(timeline).rows] == ["2", "2", "1"]
    assert re.findall(r'data-name="cases">(\d+)<', page) == ["1", "2", "2"]

    assert "not run" in tags.texts
    assert not [text for text in tags.texts if text.startswith("not_run")]
    assert "passed 1, failed 1, not run 1" in [attrs.get("aria-label") for attrs in tags.of("svg")]


def test_a_run_without_a_metric_is_a_gap_in_its_line():
    reports = [(str(day), run(day, own)) for day, own in enumerate(("1", "1", "s", "1", "0"))]

    paths = [attrs["d"] for attrs in Tags(history_page(history(reports)).decode()).of("path")]

    assert "M10.0 0.0L30.0 0.0" in paths
    assert any(path.startswith("M70.0") for path in paths)


def test_runs_that_left_cases_out_are_pale_and_the_first_bad_one_is_red():
    reports = [(str(day), run(day, "1" * 20, selected=day == 0, stopped=day == 1)) for day in range(3)]
    reports.append(("3", run(3, "0" * 20)))

    classes = [attrs.get("class", "").split() for attrs in Tags(history_page(history(reports)).decode()).of("path")]

    dots = [names[1:] for names in classes if "dot" in names]
    assert dots[:4] == [["partial"], ["partial"], [], ["worse"]]


def test_only_the_metric_and_those_of_gates_have_a_red_dot():
    gates = [{"metric": "f1", "min": 0.6}]
    reports = []
    for day, letter in enumerate("10"):
        report = run(day, letter * 20, gates=gates)
        report["metrics"]["other"] = report["metrics"]["f1"]
        reports.append((str(day), report))

    page = history_page(history(reports, "pass_rate")).decode()

    charts = re.findall(r'role="img" aria-label="(\S+) over(.*?)</svg>', page, re.DOTALL)
    assert {name for name, chart in charts if "dot worse" in chart} == {"pass_rate", "f1"}
    assert "other" in dict(charts)


def test_a_gate_is_named_to_its_end():
    gate = {"metric": "f1", "min": 0.6, "where": {"not": {"tag": "t" * 60}}}
    reports = [(str(day), run(day, letter * 20, gates=[gate])) for day, letter in enumerate("10")]

    assert "needs at least 0.6" in " ".join(sentences(history(reports)))


def test_a_gate_that_was_never_met_makes_no_run_the_first_bad_one():
    page = history_page(history([("0", run(0, "0", gates=[{"min": 0.6}])), ("1", run(1, "0", gates=[{"min": 0.6}]))]))

    assert b">No run has met the gate <strong>pass_rate" in page
    assert b"worse since here" not in page


def test_a_page_of_a_single_empty_run_is_made():
    page = history_page(history([("a.json", run(0, "") | {"name": ""})]))

    assert b"only one run" in page
    assert b"a.json" in page
