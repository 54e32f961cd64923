"""`queryeval history`: runs over time, since when something is worse, and cases that flip."""

import json
import os
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path

import pytest
from golden_files import Tags, compare_golden, page_lines, text_lines
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


@pytest.mark.parametrize("name", ["stopped", "interrupted"])
def test_a_run_that_was_stopped_is_no_last_run(name):
    for day, (letters, stopped) in enumerate(((GOOD, False), ("0" * 20, False), ("1", True))):
        add_run(day, letters, **{name: stopped})

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
            "the gate pass_rate in music (needs at least 0.6), was last met in model 1 of 2025-03-02 *",
        ),
        (["00", "n1", "01"], (0, None), "no run has met the gate pass_rate in music (needs at least 0.6)"),
        (["00", "11"], None, "pass_rate of the last run is not significantly below that of any run before"),
    ],
)
def test_a_gate_is_missed_since_the_first_of_the_last_runs_that_were_evaluated(outcomes, since, sentence):
    printed = history(*outcomes, gates=[GATE | {"cases": 2}])

    missed = printed.data["missed_gates"]
    assert [(gate["since"], gate["met"]) for gate in missed] == ([since] if since else [])
    assert fnmatchcase(printed.text.splitlines()[0], sentence)


OTHER = {"where": {"kind": "sql"}}


@pytest.mark.parametrize(
    ("before", "after", "missed"),
    [
        # A gate with another limit is the same one, one that is gone is not missed, one on other cases is another one.
        ([{}, {"metric": "f1"}], [{"min": 0.7}], [(0, 0.6, {})]),
        ([{}], [{}, OTHER], [(0, 0.6, {}), (1, 0.6, OTHER["where"])]),
    ],
)
def test_gates_are_the_same_if_their_metrics_and_cases_are(before, after, missed):
    for number, gates in enumerate((before, after)):
        add_run(number, "01", gates=[GATE | changes for changes in gates])

    found = command("history", "runs").data["missed_gates"]

    assert sorted((gate["since"], gate["gate"]["min"], gate["gate"]["where"]) for gate in found) == missed


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


@pytest.mark.parametrize("about", [{"stopped": True}, {"selected": True, "collected": {"music/s.queryeval.yaml": 3}}])
def test_after_a_run_that_left_cases_out_no_case_is_added(about):
    for day, letters in enumerate(("1", "11", "111")):
        add_run(day, letters, **(about if day == 0 else {}))

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


FORMS = ("html", "md", "json")


def test_a_history_in_every_form():
    """Changes of gold and engine, a stopped, a selected and an empty run, gates that are missed and one never met."""
    letters = (
        GOOD,
        GOOD,
        "1" * 19 + "0",
        GOOD,
        "s" * 20,
        "1" * 18 + "n0",
        "1" * 8 + "0" * 12,
        "1" * 7 + "x" + "0" * 12,
    )
    for day, own in enumerate(letters):
        changes = {"fingerprint": FINGERPRINT | {"golds": "one" if day < 3 else "other"}}
        changes |= {"scores": {}} if "s" in own else {}
        gates = [GATE | {"min": 0.9}, GATE | {"metric": "f1", "min": 2.0}]
        about = {
            "environment": {"engines": {"sqlite": f"3.{45 + day // 4}"}},
            "selected": day == 1,
            "stopped": day == 2,
        }
        add_run(day, own, changes=changes, gates=gates, collected={"music/s.queryeval.yaml": 21}, **about)

    printed = command("history", "runs", *(part for form in FORMS for part in ("-o", f"out.{form}")))

    compare_golden(printed.text.splitlines(), "history/terminal.txt")
    compare_golden(page_lines(Path("out.html")), "history/html.txt")
    compare_golden(text_lines(Path("out.md")), "history/md.txt")
    document = json.loads(Path("out.json").read_bytes())
    assert {name: printed.data[name] for name in document} == document


def test_an_earlier_history_is_replaced_and_no_report():
    add_run(0, GOOD)
    call = ["history", "runs/0.json", "runs", *(p for form in FORMS for p in ("-o", f"runs/history.{form}"))]

    assert [command(*call).data["skipped"] for _ in range(2)] == [[], []]


def test_reading_many_reports_tells_its_progress_on_standard_error(capsys, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.cli.output.PROGRESS_SECONDS", 0)

    main(["history", *(add_run(day, "1") for day in range(3))])

    assert capsys.readouterr().err.startswith("queryeval history: 1 of 3 reports, about ")


# The page


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


def test_a_page_of_a_single_empty_run_is_made():
    history("", name="")

    page = Path("out.html").read_text()
    assert "only one run" in page
    assert "0.json" in page
