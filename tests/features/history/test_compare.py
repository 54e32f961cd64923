"""`queryeval compare` and `queryeval render`: what they print and write, and what they refuse."""

import csv
import io
import json
import re
import subprocess
import sys
import zlib
from base64 import b64decode
from html.parser import HTMLParser
from importlib.metadata import version
from itertools import pairwise, product
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from openpyxl import load_workbook
from report_maker import evaluate_gate
from samples import FINGERPRINT, HEAD, entry

from pytest_queryeval.cli import main
from pytest_queryeval.features.history.leaderboard import leaderboard
from pytest_queryeval.features.history.leaderboard_blocks import leaderboard_csv, note, ranking_table
from pytest_queryeval.reports import write_report
from pytest_queryeval.reports.html import Scale
from pytest_queryeval.reports.summary import summary_lines
from pytest_queryeval.results.aggregation import aggregate
from pytest_queryeval.results.baseline.comparison import compare_reports
from pytest_queryeval.results.report_file import read_report

PAGES = ("out.html", "run.html", "past.html")
SIDES = ("regressed", "errors", "fixed", "worse", "better", "others")
HOSTILE = "<script>alert(1)</script>|`](javascript:x)\u202e"


def case(id_="a", value=1.0, **changes):
    defaults = {
        "id": id_,
        "nodeid": f"music/s.queryeval.yaml::{id_}",
        "question": "",
        "message": "",
        "scores": {"f1": value},
        "outcome": "passed" if value else "failed",
        **dict.fromkeys(("gold", "predicted", "difference", "prediction")),
    }
    return entry(**defaults | changes)


def report(*cases):
    head = HEAD | {"created": "2024-05-01T10:00:00+00:00", "environment": {"pytest_queryeval": "1.0"}}
    return aggregate(cases, gates=(), about=head)


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def write_file(path, *cases, **about):
        write_report(report(*cases) | {"name": Path(path).stem} | about, Path(path))
        return path

    return write_file


def scores(*values):
    return [case(f"c{n}", value) for n, value in enumerate(values)]


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.texts = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)


def test_two_reports_are_compared_in_every_form(write, capsys):
    write("base.json", *scores(1.0, 1.0, 0.0))
    write("new.json", *scores(1.0, 0.0, 0.0))

    status = main(["compare", "base.json", "new.json", "-o", "out.md", "-o", "out.html", "-o", "out.json"])

    out = capsys.readouterr().out
    assert status == 0
    assert out.startswith(
        "base is best with 0.667; new may be as good\n2 systems by the mean of pass_rate over 3 cases\n"
    )
    assert "\nagainst the baseline base.json of 2024-05-01T10:00:00+00:00: 3 cases in both, 0 fixes, 1 " in out
    assert "regressions (1): music/s.queryeval.yaml::c1\n" in out
    assert "report: out.md\nreport: out.html\nreport: out.json\n" in out
    assert "| `f1` | 0.667 | 0.333 | -0.333 |" in Path("out.md").read_text(encoding="utf-8")
    document = json.loads(Path("out.json").read_bytes())
    assert document["baseline"]["regressions"] == document["differing"]["regressed"] == ["music/s.queryeval.yaml::c1"]


def test_the_exit_status_is_0_whatever_got_worse(write):
    write("base.json", *scores(*[1.0] * 9))
    write("new.json", *scores(*[0.0] * 9))

    assert main(["compare", "base.json", "new.json"]) == 0


def test_many_reports_are_a_leaderboard_with_the_best_first(write, capsys):
    write("weak.json", *scores(*[0.0] * 9, 1.0))
    write("best.json", *scores(*[1.0] * 10))
    write("good.json", *scores(*[1.0] * 9, 0.0))

    main(["compare", "weak.json", "best.json", "good.json", "-o", "out.json", "-o", "out.md", "-o", "out.html"])

    first, by, _, *lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines[:3]]
    assert first == "best is best with 1.000; good may be as good"
    assert by == "3 systems by the mean of pass_rate over 10 cases"
    assert [row[:2] for row in rows] == [["best", "1"], ["good", "2"], ["weak", "3"]]
    board = json.loads(Path("out.json").read_bytes())
    good, weak = (system["difference"] for system in board["systems"][1:])
    assert board["systems"][0]["difference"] is None
    assert (good["p"], weak["p"]) == (1.0, pytest.approx(2 * 2 / 512))
    assert (good["change"], weak["change"]) == pytest.approx((-0.1, -0.9))
    assert [system["score"]["n"] for system in board["systems"]] == [10, 10, 10]
    markdown = Path("out.md").read_text(encoding="utf-8")
    assert "| `good` | 2 | 0.900 | 0.596 to 0.982 | 10 | -0.100 | -0.362 to +0.196 | 1.000 | 9 | 10 |" in markdown


def test_a_leaderboard_is_ranked_by_the_metric_that_is_named(write, capsys):
    write("a.json", case(scores={"f1": 1.0, "valid_query": 0.0}))
    write("b.json", case(scores={"f1": 0.0, "valid_query": 1.0}))
    write("c.json", case(scores={"f1": 0.5}))

    main(["compare", "a.json", "b.json", "c.json", "--by", "valid_query", "-o", "out.json"])

    board = json.loads(Path("out.json").read_bytes())
    assert [(system["name"], system["rank"]) for system in board["systems"]] == [("b", 1), ("a", 2), ("c", None)]
    _, first, _, *rows = capsys.readouterr().out.splitlines()
    assert first == "3 systems by the mean of valid_query over 1 case"
    assert [row.split()[:5] for row in rows[:3]] == [
        ["b", "1", "1.000", "0.207", "to"],
        ["a", "2", "0.000", "0.000", "to"],
        ["c", "-", "n/a", "-", "0"],
    ]


def test_two_reports_and_a_metric_are_a_leaderboard(write, capsys):
    main(["compare", write("old.json", *scores(0.0)), write("new.json", *scores(1.0)), "--by", "f1"])

    out = capsys.readouterr().out
    assert out.startswith("new is best with 1.000; old may be as good\n2 systems by the mean of f1 over 1 case\n")
    assert out.index("\nnew ") < out.index("\nold ")


def test_of_a_cost_the_lowest_mean_ranks_first(write, capsys):
    for name, seconds in (("slow", 9.0), ("fast", 1.0), ("usual", 3.0)):
        write(f"{name}.json", case(scores={"f1": 1.0, "prediction_seconds": seconds}))

    main(["compare", "slow.json", "fast.json", "usual.json", "--by", "prediction_seconds"])

    _, head, _, *rows = capsys.readouterr().out.splitlines()[:6]
    assert head == "3 systems by the mean of prediction_seconds over 1 case, the lowest first"
    assert [line.split()[:3] for line in rows] == [
        ["fast", "1", "1.000"],
        ["usual", "2", "3.000"],
        ["slow", "3", "9.000"],
    ]


def test_the_other_metrics_are_rows_where_they_are_more_than_the_systems(write, capsys):
    many = {"f1": 1.0, **{f"recall[{number}]": number / 10 for number in range(4)}}
    write("a.json", case("one", scores=many), case("two", scores={"f1": 1.0, "recall[1]": 0.3}))
    names = [write(f"{name}.json", case("one", scores=many), case("two", scores={"f1": 0.5})) for name in "bc"]

    main(["compare", "a.json", *names, "-o", "out.md"])

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    at = lines.index(["mean", "a", "b", "c"])
    assert lines[at + 1 : at + 3] == [["f1", "1.000", "0.750", "0.750"], ["recall[0]", "0.000", "0.000", "0.000"]]
    markdown = Path("out.md").read_text(encoding="utf-8")
    assert "\n| mean | `a` | `b` | `c` |\n" in markdown
    assert "\n| `recall[1]` | 0.200 (n 2) | 0.100 (n 1) | 0.100 (n 1) |\n" in markdown
    assert "\n| `recall[3]` | 0.300 | 0.300 | 0.300 |\n" in markdown


def test_the_other_metrics_are_columns_where_they_are_not_more_than_the_systems(write, capsys):
    names = [write(f"{name}.json", case(scores={"f1": 1.0, "valid_query": 0.5})) for name in "abc"]

    main(["compare", *names, "--by", "f1"])

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    at = lines.index(["mean", "valid_query"])
    assert lines[at + 1 : at + 4] == [["a", "0.500"], ["b", "0.500"], ["c", "0.500"]]


def test_reports_without_any_score_have_no_rank(write, capsys):
    names = [write(f"{name}.json", case(scores={}, outcome="skipped")) for name in "abc"]

    main(["compare", *names])

    first, _, _, row, *_ = capsys.readouterr().out.splitlines()
    assert first == "no system has a score of pass_rate"
    assert row.split() == ["a", "-", "n/a", "-", "0", "-", "-", "-", "0", "1"]


def asked(id_="a", value=1.0, **fingerprint):
    """A case that tells what its suite asked of it."""
    return case(id_, value, fingerprint=FINGERPRINT | {"source": None} | fingerprint)


LOWER = {"thresholds": {"f1": {"min": 0.1, "max": None}}}


def test_a_leaderboard_tells_what_was_asked_otherwise_systems_alike_together(write, capsys):
    write("best.json", asked("a"), asked("b"), asked("gone"))
    write("eased.json", asked("a", 0.0, **LOWER), asked("b", **LOWER))
    write("edited.json", asked("a", 0.0, golds="1"), asked("b", 0.0))
    write("too.json", asked("a", 0.0, golds="1"), asked("b", 0.0))

    main(["compare", "best.json", "eased.json", "edited.json", "too.json", "-o", "out.md"])

    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("changed besides")]
    assert lines == [
        "changed besides the system in eased against best: thresholds lowered: f1 (2 cases)",
        "changed besides the system in edited, too against best: gold edited (1 case)",
    ]
    assert "besides the system in `edited`, `too` against `best`: gold edited" in Path("out.md").read_text("utf-8")


def test_cases_that_are_gone_are_told_once_and_not_of_each_system(write, capsys):
    write("best.json", asked("a"), asked("gone"))
    names = [write(f"{name}.json", asked("a")) for name in "bc"]

    main(["compare", "best.json", *names])

    out = capsys.readouterr().out
    assert out.count("only 1 of 2 cases with a score of pass_rate has one in all ranked systems") == 1
    assert "changed besides" not in out
    assert "removed" not in out


def left_out(id_, **changes):
    """A case that did not run."""
    return asked(id_) | {"outcome": "skipped", "scores": {}} | changes


def test_a_system_that_left_cases_out_gains_nothing_by_it(write, capsys):
    write("honest.json", asked("a"), asked("b", 0.0), asked("c", 0.0))
    write("sly.json", asked("a"), left_out("b"), left_out("c"))
    write("weak.json", asked("a", 0.0), asked("b", 0.0), asked("c", 0.0))

    main(["compare", "honest.json", "sly.json", "weak.json", "-o", "out.json", "-o", "out.md"])

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "honest, sly are level with 1.000"
    assert "sly: 2 cases skipped: music/s.queryeval.yaml::b, music/s.queryeval.yaml::c" in lines
    assert "changed besides the system in sly against honest: cases newly skipped (2 cases)" in lines
    told = Path("out.md").read_text("utf-8")
    assert "only 1 of 3 cases with a score of `pass_rate` has one in all ranked systems" in told
    board = json.loads(Path("out.json").read_bytes())
    assert (board["cases"], board["scored"], board["common"]) == (3, 3, 1)
    assert [system["score"]["mean"] for system in board["systems"]] == [1.0, 1.0, 0.0]


BOTH = {"f1": 1.0, "valid_query": 1.0}


@pytest.mark.parametrize(
    ("eased", "what"),
    [
        (left_out("b"), "cases newly skipped"),
        (asked("b") | {"outcome": "xpassed", "scores": BOTH}, "cases newly marked xfail"),
        (asked("b") | {"scores": {"f1": 1.0}}, "metrics no longer computed"),
    ],
    ids=["skipped", "xfail", "metrics"],
)
def test_what_is_asked_less_is_told_whichever_system_is_the_best(eased, what):
    full_case = asked("b") | {"scores": BOTH}
    sentences = [{"what": what, "cases": [full_case["nodeid"]]}]

    best = leaderboard({"eased": report(asked("a"), eased), "whole": report(asked("a", 0.0), full_case)})["systems"]
    second = leaderboard({"eased": report(asked("a", 0.0), eased), "whole": report(asked("a"), full_case)})["systems"]

    assert [(system["name"], system["changes"], system["eased"]) for system in best] == [
        ("eased", [], []),
        ("whole", [], sentences),
    ]
    assert [(system["name"], system["changes"], system["eased"]) for system in second] == [
        ("whole", [], []),
        ("eased", sentences, []),
    ]


def test_a_leaderboard_tells_of_suites_and_not_of_versions():
    newer = report(asked("a", 0.0)) | {"environment": {"pytest_queryeval": "2.0"}}

    systems = leaderboard({"a": report(asked("a")), "b": newer})["systems"]

    assert [(system["changes"], system["eased"]) for system in systems] == [([], []), ([], [])]


def test_a_system_without_a_score_and_a_case_without_one_leave_the_means_over_the_same_cases(write, capsys):
    write("none.json", case("a", scores={}))
    names = [write(f"{name}.json", case("a"), case("of another kind", scores={"valid_query": 1.0})) for name in "bc"]

    main(["compare", "none.json", *names, "--by", "f1"])

    assert "have one in all" not in capsys.readouterr().out


def test_a_leaderboard_is_ranked_by_the_pass_rate_unless_told_otherwise(write, capsys):
    scored = {"prediction_seconds": 3.0, "f1": 1.0}
    names = [write(f"{name}.json", case(scores=scored)) for name in "abc"]

    main(["compare", *names])

    assert "\n3 systems by the mean of pass_rate over 1 case\n" in capsys.readouterr().out


def test_systems_with_the_same_mean_share_a_rank_and_one_without_a_score_has_none():
    board = leaderboard(
        {"a": report(*scores(1.0)), "b": report(*scores(1.0)), "c": report(*scores(0.0)), "d": report(*scores(None))},
        "f1",
    )

    assert [(system["name"], system["rank"]) for system in board["systems"]] == [
        ("a", 1),
        ("b", 1),
        ("c", 3),
        ("d", None),
    ]


def every_sign(differences):
    """The sums of the differences with every choice of signs."""
    return [
        sum(s * d for s, d in zip(signs, differences, strict=True))
        for signs in product((1, -1), repeat=len(differences))
    ]


@pytest.mark.parametrize(
    ("values", "test"),
    [
        (
            {"a": [1, 1, 1, 1, 1, 1, 0, 1], "b": [1, 0, 0, 0, 0, 1, 1, 0], "c": [0] * 8, "d": [1, 1, 1, 0, 1, 1, 0, 1]},
            "mcnemar",
        ),
        ({"a": [0.9, 1, 0.75, 1, 0.5], "b": [0.5, 1, 0.25, 1, 0.75], "c": [0.125] * 5}, "sign_flip"),
    ],
)
def test_differences_and_their_p_equal_those_of_every_choice_of_signs(values, test):
    board = leaderboard({name: report(*scores(*map(float, own))) for name, own in values.items()}, "f1")

    differing = {system["name"]: system["difference"] for system in board["systems"] if system["difference"]}
    differences = {
        name: [own - best for own, best in zip(values[name], values["a"], strict=True)] for name in differing
    }
    raw = {
        name: sum(abs(total) >= abs(sum(own)) - 1e-9 for total in every_sign(own)) / 2 ** len(own)
        for name, own in differences.items()
    }
    ordered = sorted(raw, key=raw.get)
    steps = [min(1.0, raw[name] * (len(ordered) - place)) for place, name in enumerate(ordered)]
    adjusted = {name: max(steps[: place + 1]) for place, name in enumerate(ordered)}
    assert differing.keys() == values.keys() - {"a"}
    assert {name: difference["p"] for name, difference in differing.items()} == pytest.approx(adjusted)
    assert {difference["test"] for difference in differing.values()} == {test}
    changes = {name: sum(own) / len(own) for name, own in differences.items()}
    assert {name: difference["change"] for name, difference in differing.items()} == pytest.approx(changes)
    assert all(
        difference["ci95"][0] <= difference["change"] <= difference["ci95"][1]
        for difference in differing.values()
        if difference["ci95"]
    )


@pytest.mark.parametrize(
    ("others", "found"),
    [
        ([0.0], "best is best with 1.000; the difference to it is significant (p at most 0.05)"),
        ([0.0, 0.0], "best is best with 1.000; each difference to it is significant (p at most 0.05)"),
    ],
)
def test_the_first_line_says_what_is_significant(write, capsys, others, found):
    names = [write(f"{place}.json", *scores(*[value] * 9)) for place, value in enumerate(others)]

    main(["compare", write("best.json", *scores(*[1.0] * 9)), *names])

    assert capsys.readouterr().out.splitlines()[0] == found


def test_of_one_case_nothing_but_the_difference_is_known():
    best, second = leaderboard({"a": report(*scores(0.75)), "b": report(*scores(0.5))}, "f1")["systems"]

    assert best["score"] == {"mean": 0.75, "n": 1, "ci95": None}
    assert second["difference"] == {"change": -0.25, "ci95": None, "p": 1.0, "test": "sign_flip"}


def test_identical_systems_are_level(write, capsys):
    names = [write(f"{name}.json", *scores(1.0, 0.0, 0.5)) for name in "abc"]

    main(["compare", *names, "--by", "f1", "-o", "out.json", "-o", "out.tex"])

    board = json.loads(Path("out.json").read_bytes())
    assert capsys.readouterr().out.startswith("a, b, c are level with 0.500\n")
    assert [system["rank"] for system in board["systems"]] == [1, 1, 1]
    assert [system["difference"]["p"] for system in board["systems"][1:]] == [1.0, 1.0]
    assert board["differing"] == {"first": "a", "last": "c", **{name: [] for name in SIDES}}


def test_a_case_that_one_system_lacks_counts_for_none_and_its_reason_is_known():
    full_report = report(case("a"), case("b"), case("c"), case("d", 0.0), case("e"))
    part = report(
        case("a", 0.0),
        case("b", outcome="skipped", scores={}),
        case("c", outcome="error", scores={}),
        case("d", outcome="failed", scores={"f1": None}),
    )
    without = report(case("a", scores={"other": 1.0}))

    board = leaderboard({"whole": full_report, "part": part, "without": without}, "f1")

    assert (board["cases"], board["scored"], board["common"]) == (5, 5, 1)
    assert [
        (system["name"], system["rank"], system["score"] and system["score"]["n"]) for system in board["systems"]
    ] == [
        ("whole", 1, 1),
        ("part", 2, 1),
        ("without", None, None),
    ]
    assert board["systems"][1]["left_out"] == {
        reason: [f"music/s.queryeval.yaml::{name}"]
        for reason, name in (("skipped", "b"), ("in error", "c"), ("without a score", "d"), ("not in the report", "e"))
    }


def test_cases_that_were_not_run_are_named_and_not_counted():
    full_report = report(case("a"), case("b", 0.0))
    stopped = report(case("a"), case("b", outcome="not_run", scores={}))

    board = leaderboard({"whole": full_report, "stopped": stopped})

    reasons = {system["name"]: system["left_out"] for system in board["systems"]}
    assert reasons["stopped"] == {"not run": ["music/s.queryeval.yaml::b"]}
    counts = {"whole": ("1", "2"), "stopped": ("1", "1")}
    assert {row[0]: row[-2:] for row in ranking_table(board).rows} == counts
    rows = csv.DictReader(io.StringIO(leaderboard_csv(board).decode("utf-8")))
    assert {row["system"]: (row["passed"], row["cases"]) for row in rows} == counts


def in_groups(values, **changes):
    """Cases of two kinds with enough of each, and of one with too few."""
    kinds = ["sql"] * 10 + ["json"] * 10 + ["sdmx"] * 9
    return report(
        *(case(f"c{n}", value, kind=kind, **changes) for n, (kind, value) in enumerate(zip(kinds, values, strict=True)))
    )


def test_groups_with_enough_cases_tell_who_is_best_in_each():
    first = in_groups([1.0] * 10 + [0.0] * 10 + [1.0] * 9)
    second = in_groups([0.0] * 5 + [1.0] * 5 + [0.0] * 9 + [1.0] + [0.0] * 9)

    groups = leaderboard({"first": first, "second": second})["groups"]

    assert groups == {
        "kind": {
            "sql": {"n": 10, "means": {"first": 1.0, "second": 0.5}, "best": ["first"]},
            "json": {"n": 10, "means": {"first": 0.0, "second": 0.1}, "best": ["second"]},
        }
    }


def test_of_a_group_with_equal_means_nobody_is_best_and_of_a_cost_the_lowest_is():
    scored = [{"prediction_seconds": float(n)} for n in (1, 2, 2)]
    reports = {name: in_groups([1.0] * 29, scores=own) for name, own in zip(("a", "b", "c"), scored, strict=True)}

    by_pass_rate, by_cost = (
        leaderboard(reports, metric)["groups"]["kind"] for metric in ("pass_rate", "prediction_seconds")
    )

    assert [system["best"] for system in by_pass_rate.values()] == [[], []]
    assert [system["best"] for system in by_cost.values()] == [["a"], ["a"]]


def test_cases_that_differ_are_regressed_or_fixed_from_the_first_report_to_the_last():
    boards = {
        "a": report(*scores(1.0, 0.0, 0.5, 1.0)),
        "b": report(*scores(0.0, 0.0, 1.0, 1.0)),
        "c": report(*scores(0.5, 1.0, 0.5, 1.0)),
    }

    differing = leaderboard(boards, "f1")["differing"]

    assert (differing["first"], differing["last"]) == ("a", "c")
    assert {name: [nodeid[-2:] for nodeid in differing[name]] for name in SIDES if differing[name]} == {
        "worse": ["c0"],
        "fixed": ["c1"],
        "others": ["c2"],
    }


def test_every_surface_counts_the_same_regressions_errors_and_fixes(write, capsys):
    outcomes = {
        "a": ["passed"] * 5 + ["failed"] * 3,
        "b": ["failed"] * 2 + ["error"] * 2 + ["passed"] * 2 + ["error"] * 2,
    }
    only = {"a": [case("gone")], "b": [case("new1"), case("new2")]}
    for name, own in outcomes.items():
        cases = [case(f"c{n}", float(o == "passed"), outcome=o) for n, o in enumerate(own)]
        write(f"{name}.json", *cases, *only[name])
    before, after = (read_report(Path(f"{name}.json")) for name in "ab")
    run = after | {"baseline": compare_reports(before, after, path="a.json")}
    for path in ("run.html", "run.md", "run.xlsx"):
        write_report(run, Path(path))

    main(["compare", "a.json", "b.json", "-o", "out.html", "-o", "out.json", "-o", "out.md"])
    compared = capsys.readouterr().out
    main(["history", "a.json", "b.json", "-o", "past.html"])
    past = capsys.readouterr().out

    board = json.loads(Path("out.json").read_bytes())
    differing, baseline = board["differing"], board["baseline"]
    assert (differing["regressed"], differing["errors"]) == (baseline["regressions"], baseline["errors"])
    assert differing["fixed"] == baseline["fixes"]
    counts = {name: len(places) for name, places in unpacked("out.html")[0]["views"].items() if places}
    assert counts == {"regressed": 2, "errors": 4, "fixed": 1}
    counts = {name: len(places) for name, places in unpacked("run.html")[0]["views"].items() if places}
    assert counts == {"regressions": 2, "new-errors": 4, "fixes": 1}
    texts = {path: Path(path).read_text("utf-8") for path in ("out.html", "out.md", "run.html", "run.md")}
    terminal = "\n".join(line for line, _ in summary_lines(run, width=200))
    for text in (compared, terminal, *texts.values()):
        assert "8 cases in both, 1 fix, 2 regressions, 4 newly in error, 2 added, 1 removed" in text
    compared_page, run_page, past_page = (Tags(Path(path).read_text("utf-8")).texts for path in PAGES)
    assert {"Regressed ": "2", "Newly in error ": "4", "Fixed ": "1"}.items() <= dict(pairwise(compared_page)).items()
    assert {"Regressions ": "2", "Newly in error ": "4", "Fixes ": "1"}.items() <= dict(pairwise(run_page)).items()
    assert [text for text in run_page if text in ("2 regressions", "4 newly in error", "1 fix")] == [
        *("2 regressions", "1 fix", "4 newly in error")
    ]
    facts = dict(row[:2] for row in load_workbook("run.xlsx")["Run"].iter_rows(values_only=True))
    words = ("cases in both", "fixes", "regressions", "newly in error", "added", "removed")
    assert [facts[word] for word in words] == [8, 1, 2, 4, 2, 1]
    assert re.search(r"^b  .*  1 +2 +4 +- +2$", past, re.MULTILINE)
    for text in (past, past_page[past_page.index("Runs, the latest first, each compared with the one before it") :]):
        assert "ases removed (1), cases added (2)" in "".join(text).replace("Cases", "cases")


def test_both_p_of_a_metric_have_their_names_and_the_ranking_has_the_same_one(write, capsys):
    values = [1.0] * 9 + [0.0]
    write("a.json", *(case(f"c{n}", 1.0, scores={"f1": 1.0, "em": 1.0}) for n in range(10)))
    write("b.json", *(case(f"c{n}", v, scores={"f1": 1.0 - v, "em": v}) for n, v in enumerate(values)))

    main(["compare", "a.json", "b.json", "--by", "f1", "-o", "out.json"])

    board = json.loads(Path("out.json").read_bytes())
    change = board["baseline"]["metrics"]["f1"]
    assert board["systems"][1]["difference"]["p"] == change["p"] == pytest.approx(2 / 2**9)
    assert change["p_holm"] == pytest.approx(3 * 2 / 2**9)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    header = next(row for row in rows if row[:2] == ["metric", "before"])
    assert header[-4:] == ["p", "p", "adjusted", "detects"]
    assert next(row for row in rows if row[:1] == ["f1"])[-3:-1] == ["0.004", "0.012"]
    assert next(row for row in rows if row[:1] == ["b"])[-3] == "0.004"


@pytest.mark.parametrize(("names", "header"), [("ab", "p"), ("abc", "p adjusted")])
def test_the_p_of_several_differences_is_called_adjusted(names, header):
    board = leaderboard({name: report(*scores(1.0, 0.0)) for name in names}, "f1")

    assert [name for name in ranking_table(board).header if name.startswith("p")] == [header, "passed"]
    assert ("p adjusted" in note(board)) == (header == "p adjusted")


def test_the_baseline_of_a_comparison_has_the_name_that_its_report_is_given(write, capsys):
    write("a.json", *scores(1.0))
    write("b.json", *scores(0.0))

    main(["compare", "a.json", "b.json", "--name", "GPT=a.json"])

    assert "\nagainst the baseline GPT of 2024-05-01T10:00:00+00:00: 1 case in both" in capsys.readouterr().out


NASTY = "50% & a_b #1 ${x} ~^\\ <|>\"--`'\u202e"


def test_latex_of_any_name_has_no_command_but_ours(write):
    names = [write(f"{n}.json", *scores(float(n), 1.0), name=f"{NASTY}{n}") for n in range(2)]

    main(["compare", *names, "-o", "out.tex"])

    text = Path("out.tex").read_text(encoding="utf-8")
    (row,) = (line for line in text.splitlines() if line.strip().startswith("2 &"))
    assert row.strip().startswith(
        r"2 & 50\% \& a\_b \#1 \$\{x\} \textasciitilde{}\textasciicircum{}\textbackslash{} "
        r"\textless{}\textbar{}\textgreater{}''{}-{}-{}`{}'{}\textbackslash{}u202e0 & 0.500 & "
    )
    assert row.endswith(r" & $-$0.500 & [$-$1.000, $+$0.563] & 1.000 \\")
    unescaped = re.sub(r"\\([%&_#${}]|\\$)", "", text, flags=re.MULTILINE)
    assert unescaped.count("{") == unescaped.count("}")
    assert set(re.findall(r"\\[a-z]+", unescaped)) == {
        *(r"\usepackage", r"\begin", r"\end", r"\centering", r"\caption", r"\label"),
        *(r"\toprule", r"\midrule", r"\bottomrule"),
        *(r"\textasciitilde", r"\textasciicircum", r"\textbackslash", r"\textless", r"\textbar", r"\textgreater"),
    }
    assert all(line.count("&") == 6 for line in unescaped.splitlines() if line.strip().startswith(("1 ", "2 ", "& ")))


def test_long_names_that_differ_at_their_end_are_told_apart(write, capsys):
    names = [f"python:{'predict/' * 20}{n}" for n in range(3)]
    paths = [write(f"{n}.json", *scores(float(n), 1.0), name=name) for n, name in enumerate(names)]

    main(["compare", *paths, "-o", "out.tex", "-o", "out.html"])

    shown = re.findall(r"^python:\S+…\S+/[012]  ", capsys.readouterr().out, re.MULTILINE)
    latex = re.findall(r"& (python:\S+…\S+/[012]) &", Path("out.tex").read_text(encoding="utf-8"))
    page = Path("out.html").read_text(encoding="utf-8")
    assert len(set(shown)) == len(set(latex)) == 3
    assert all(f'<span class="name" title="{name}">' in page for name in names)


def test_reading_large_reports_tells_its_progress_on_standard_error(write, capsys, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.cli.output.PROGRESS_SECONDS", 0)
    paths = [write(f"{n}.json", *scores(1.0)) for n in range(2)]

    main(["compare", *paths])

    assert re.fullmatch("queryeval compare: 1 of 2 reports, about [0-9]+ s left\n", capsys.readouterr().err)


def test_the_caption_of_latex_has_n_and_the_tests(write):
    write("a.json", *scores(1.0, 1.0))
    write("b.json", *scores(1.0, 0.0))
    write("c.json", *scores(0.5, 0.5))

    main(["compare", "a.json", "b.json", "c.json", "--by", "f1", "-o", "out.tex"])

    (caption,) = (line for line in Path("out.tex").read_text("utf-8").splitlines() if "caption" in line)
    assert "Mean f1 over 2 common cases" in caption
    assert "by the exact McNemar test or the paired randomisation test, adjusted by Holm's method" in caption


def test_csv_has_all_digits_and_no_name_that_is_a_formula(write):
    write("a.json", *scores(1.0, 1.0, 1.0), name="=cmd()")
    write("b.json", *scores(1.0, 0.0, 1.0))
    write("c.json", case("c0", outcome="skipped", scores={}))

    main(["compare", "a.json", "b.json", "c.json", "-o", "out.csv"])

    first, second, third = csv.DictReader(io.StringIO(Path("out.csv").read_text("utf-8")))
    assert (first["system"], first["rank"], first["difference"]) == ("'=cmd()", "1", "")
    assert (second["mean"], second["difference"], second["test"]) == (repr(2 / 3), repr(-1 / 3), "mcnemar")
    assert (third["rank"], third["n"], third["mean"], third["p"]) == ("", "0", "", "")


def test_a_leaderboard_over_different_cases_says_so(write, capsys):
    write("a.json", case("one"), case("two"))
    write("b.json", case("one"))
    write("c.json", case("one"))

    main(["compare", "a.json", "b.json", "c.json"])

    out = capsys.readouterr().out
    assert "\n3 systems by the mean of pass_rate over 1 common one of 2 cases\n" in out
    assert "\nonly 1 of 2 cases with a score of pass_rate has one in all ranked systems, and only these count\n" in out
    assert "\nb: 1 case not in the report: music/s.queryeval.yaml::two\n" in out


def test_of_costs_the_rise_that_is_detected_may_be_larger_than_any_cost_seen(write):
    seconds = [0.1, 5.0] * 4
    for name, values in (("base", seconds), ("new", reversed(seconds))):
        write(f"{name}.json", *(case(str(n), scores={"prediction_seconds": v}) for n, v in enumerate(values)))

    main(["compare", "base.json", "new.json", "-o", "out.json"])

    changes = json.loads(Path("out.json").read_bytes())["baseline"]
    assert changes["metrics"]["prediction_seconds"]["detectable"] > 5.0


def test_runs_of_one_name_are_told_apart_by_date_and_path(write, capsys):
    first, second = (write(f"{folder}/report.json", case()) for folder in ("a", "b"))
    later = write("later.json", case(), name="report", created="2024-05-02T12:30:00+00:00")

    main(["compare", first, second, later, write("c.json", case()), "-o", "out.json"])

    board = json.loads(Path("out.json").read_bytes())
    assert [system["name"] for system in board["systems"]] == [
        "report (2024-05-01 10:00) (a/report.json)",
        "report (2024-05-01 10:00) (b/report.json)",
        "report (2024-05-02 12:30)",
        "c",
    ]


def test_a_run_with_the_name_that_another_is_given_hides_none(write):
    names = ["r", "r", "r (2024-05-01 10:00) (a.json)"]
    paths = [write(f"{path}.json", case(), name=name) for path, name in zip("abc", names, strict=True)]

    main(["compare", *paths, "-o", "out.json"])

    assert {system["name"] for system in json.loads(Path("out.json").read_bytes())["systems"]} == set(paths)


def predicted(query, *rows):
    table = {"columns": ["n"] if rows else None, "row_count": len(rows), "sample": list(rows)}
    return {"query": query, "seconds": 0.1, "error": None, **table}


def unpacked(path):
    """The list of cases in a page, and the details of all cases."""
    texts = re.findall(r'<script type="text/plain"[^>]*>([^<]*)</script>', Path(path).read_text(encoding="utf-8"))
    page_data, *pieces = (json.loads(zlib.decompress(b64decode(text))) for text in texts)
    return page_data, [details for piece in pieces for details in piece]


@pytest.mark.parametrize("others", [["new.json"], ["new.json", "third.json"]], ids=["two", "many"])
def test_foreign_text_is_never_markup(write, capsys, others):
    def page_of(text):
        for name, value in (("base.json", 1.0), ("new.json", 0.0), ("third.json", 0.0)):
            cases = [
                case(
                    f"{text}{n}",
                    value,
                    scores={text: value},
                    tags=[text, "b"],
                    question=text,
                    predicted=predicted(text),
                )
                for n in range(10)
            ]
            write(name, *cases, case("other", tags=["b"], scores={text: 1.0}), name=f"{text}{name}")
        main(["compare", "base.json", *others, "-o", "out.html", "-o", "out.md"])
        return Path("out.html").read_text(encoding="utf-8")

    harmless, page = page_of("text"), page_of(HOSTILE)

    markdown = Path("out.md").read_text(encoding="utf-8")
    assert [tag for tag, _ in Tags(page).found] == [tag for tag, _ in Tags(harmless).found]
    assert "\u202e" not in page + markdown + capsys.readouterr().out
    assert {name for _, attributes in Tags(page).found for name in attributes if name.startswith("on")} == set()
    links = {attributes[name] for _, attributes in Tags(page).found for name in ("href", "src") if name in attributes}
    assert all(link.startswith(("#", "data:image/svg+xml,")) for link in links)
    assert unpacked("out.html")[0]["question"] == [HOSTILE] * 10
    assert "<script>" in markdown
    assert "<script>" not in re.sub(r"(`+)[^\n]*?(?<!`)\1(?!`)", "", markdown)


def test_a_page_has_the_cases_that_differ_regressed_ones_first_with_the_answers_of_all_systems(write):
    for name, values in (("a", (1.0, 0.0, 1.0, 1.0)), ("b", (0.0, 0.0, 0.0, 1.0)), ("c", (1.0, 1.0, 0.0, 1.0))):
        cases = [
            case(f"c{n}", value, predicted=predicted(f"{name}{n}", [n]), message="" if value else f"{name} is wrong")
            for n, value in enumerate(values)
        ]
        write(f"{name}.json", *cases)

    main(["compare", "a.json", "b.json", "c.json", "-o", "out.html"])

    page_data, details = unpacked("out.html")
    assert page_data["id"] == ["c2", "c1", "c0"]
    assert page_data["outcome"] == ["regressed", "fixed", "differs"]
    assert {name: places for name, places in page_data["views"].items() if places} == {
        "regressed": [0],
        "fixed": [1],
        "others": [2],
    }
    assert page_data["systems"] == ["a", "b", "c"]
    assert page_data["scores"] == {"a": [1.0, 0.0, 1.0], "b": [0.0, 0.0, 0.0], "c": [0.0, 1.0, 1.0]}
    assert page_data["why"] == ["c is wrong", "b is wrong", "b is wrong"]
    assert [case["predicted"]["query"] for case in details[0]["systems"]] == ["a2", "b2", "c2"]
    assert [case["outcome"] for case in details[0]["systems"]] == ["passed", "failed", "failed"]
    assert details[0]["systems"][2]["predicted"]["sample"] == [["#2"]]
    page = Tags(Path("out.html").read_text(encoding="utf-8"))
    assert {"data-show": "regressed", "aria-current": "true"}.items() <= next(
        attributes.items() for tag, attributes in page.found if attributes.get("data-show") == "regressed"
    )
    assert {"Regressed ", "Fixed ", "Differs ", "All "} <= set(page.texts)


@pytest.mark.parametrize(
    "values",
    [((1.0, 0.5), (1.0, 0.5)), ((1.0,), (0.0,)), ((None,), (None,)), ((1e149,), (-1e149,)), ((0.0, 0.0), (0.0, 0.0))],
    ids=["identical", "one case", "no score", "huge", "zero"],
)
def test_a_page_is_made_of_any_scores(write, values):
    for name, own in zip("ab", values, strict=True):
        write(f"{name}.json", *scores(*own), case("also", 1.0, scores={"f1": None, "other": 1.0}))

    main(["compare", "a.json", "b.json", "--by", "other" if values == ((None,), (None,)) else "f1", "-o", "out.html"])

    drawn = [attributes["d"] for _, attributes in Tags(Path("out.html").read_text("utf-8")).found if "d" in attributes]
    assert drawn
    assert all(re.fullmatch(r"M-?[\d.]+ -?\d+[HVh]-?[\d.]+", path) for path in drawn)


def test_a_page_leaves_out_the_answers_that_would_make_it_too_large(write, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.features.history.compare_command.MAX_PACKED", 2_000)
    monkeypatch.setattr("pytest_queryeval.reports.html.case_list.PIECE_CHARACTERS", 1_000)
    for name, value in (("a", 1.0), ("b", 0.0)):
        write(f"{name}.json", *(case(f"c{n}", value, predicted=predicted(f"SELECT {n}" * 9)) for n in range(100)))

    main(["compare", "a.json", "b.json", "-o", "out.html"])

    page_data, details = unpacked("out.html")
    assert len(page_data["id"]) == 100
    assert 0 < len(details) < 100


def test_a_scale_has_round_ends_around_all_values():
    assert [Scale.over(values).ticks for values in ([0.845, 0.92], [-0.04, 0.026], [0.7], [0.0], [12.0, 3_400.0])] == [
        ("0.84", "0.88", "0.92"),
        ("-0.04", "0", "0.04"),
        ("0.6", "0.7", "0.8"),
        ("0", "0.5", "1"),
        ("0", "2000", "4000"),
    ]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5))
@example([5e-324])
def test_a_scale_of_shares_holds_them_within_0_and_1_by_round_numbers(values):
    scale = Scale.over(values)

    assert -1e-9 <= scale.low <= min(values) + 1e-9
    assert max(values) - 1e-9 <= scale.high <= 1 + 1e-9
    if max(values) - min(values) > 0.01:
        assert all(len(tick) <= len("0.925") for tick in scale.ticks)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["base.json", "nope.json"],
            "nope.json: no such file: write one with `queryeval evaluate PATH --report report.json`",
        ),
        (["base.json", "base.json"], "base.json: is given twice: give reports of different runs"),
        (["base.json", "new.json", "-o", "out.xlsx"], "no comparison as '.xlsx' for out.xlsx: choose from"),
        (["base.json", "new.json", "-o", "base.json/out.md"], "report base.json/out.md cannot be written: "),
        (["base.json", "new.json", "-o", "./new.json"], "new.json: is a report to compare, and would be lost"),
        (["base.json", "new.json", "--by", "ff1"], "no report has a score of 'ff1': did you mean 'f1'?"),
    ],
)
def test_calls_that_cannot_be_served_end_with_2_and_one_line(write, capsys, arguments, message):
    write("base.json", case())
    write("new.json", case())

    with pytest.raises(SystemExit) as stop:
        main(["compare", *arguments])

    out, err = capsys.readouterr()
    assert (stop.value.code, out) == (2, "")
    assert err.startswith(message)
    assert err.count("\n") == 1


DAMAGED = {
    "missing.json": "no such file: write one with `queryeval evaluate PATH --report report.json`",
    "folder": "is a folder: name the report in it",
    "text.json": "is not a report: not JSON: ",
    "empty.json": "is not a report: not JSON: ",
    "binary.json": "is not a report: ",
    "list.json": "is not a report of pytest-queryeval",
    "old.json": "has schema 1, and only schema 2 can be read: run the suites again",
    "deep.json": "is not a report: nested too deeply",
    "large.json": "is not a report: larger than 1 MiB",
    "::error::x.json": "is not a report: not JSON: ",
    "\x1b[31m\n::error::x.json": "is not a report: not JSON: ",
}
CALLS = [["compare", "good.json", "other.json"], ["merge", "good.json"], ["render", "good.json"]]
CONTENTS = {
    "list.json": b"[1]",
    "old.json": b'{"schema": 1, "cases": []}',
    "deep.json": b"[" * 100_000,
    "binary.json": b"\xff\xfe\x00",
    "empty.json": b"",
    "large.json": b" " * 2**20 + b"{}",
}


@pytest.mark.parametrize("command", ["compare", "merge", "render", "baseline"])
@pytest.mark.parametrize("name", DAMAGED, ids=ascii)
def test_a_file_that_is_no_report_ends_with_2_and_one_line_that_is_no_command(
    write, capsys, monkeypatch, command, name
):
    monkeypatch.setattr("pytest_queryeval.results.report_file.MAX_BYTES", 2**20)
    good = write("good.json", case())
    if name == "folder":
        Path(name).mkdir()
    elif name != "missing.json":
        Path(name).write_bytes(CONTENTS.get(name, b"no JSON"))
    calls = {
        "compare": ["compare", good, name],
        "merge": ["merge", good, name, "-o", "out.json"],
        "render": ["render", name, "-o", "out.md"],
        "baseline": ["merge", good, "--baseline", name],
    }

    with pytest.raises(SystemExit) as stop:
        main(calls[command])

    out, err = capsys.readouterr()
    assert (stop.value.code, out, err.count("\n")) == (2, "", 1)
    assert DAMAGED[name] in err
    assert not err.startswith("::")
    assert "\x1b" not in err
    assert not list(Path().glob("out.*"))


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0])
def test_a_target_that_cannot_be_written_keeps_no_other_from_being_written(write, capsys, call, monkeypatch):
    def on_a_full_disk(path, content):
        if path.parent.name == "full":
            raise OSError(28, "No space left on device")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)

    monkeypatch.setattr("pytest_queryeval.reports.write_atomically", on_a_full_disk)
    write("good.json", case())
    write("other.json", case(value=0.0))

    status = main([*call, "-o", "first.md", "-o", "full/report.md", "-o", "last.json"])

    out = capsys.readouterr().out
    assert status == 1
    assert (Path("first.md").stat().st_size > 0, Path("last.json").stat().st_size > 0) == (True, True)
    assert "report: first.md\n" in out
    assert "report: last.json\nreport full/report.md cannot be written: No space left on device" in out
    assert ("1 regression" in out) == (call[0] == "compare")


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0])
def test_a_folder_in_the_place_of_a_report_is_refused_before_anything_is_written(write, capsys, call):
    write("good.json", case())
    write("other.json", case(value=0.0))
    Path("taken.md/report.md").mkdir(parents=True)

    with pytest.raises(SystemExit) as stop:
        main([*call, "-o", "first.md", "-o", "taken.md"])

    assert stop.value.code == 2
    assert "report taken.md" in capsys.readouterr().err
    assert not Path("first.md").exists()


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0])
def test_a_folder_that_may_not_be_written_to_ends_with_2_before_anything_is_made(write, capsys, monkeypatch, call):
    write("good.json", case())
    write("other.json", case())
    monkeypatch.setattr("pytest_queryeval.reports.os.access", lambda path, mode: Path(path).name != "locked")
    Path("locked").mkdir()

    with pytest.raises(SystemExit) as stop:
        main([*call, "-o", "first.md", "-o", "locked/out.md"])

    out, err = capsys.readouterr()
    assert (stop.value.code, out, Path("first.md").exists()) == (2, "", False)
    assert err == "report locked/out.md cannot be written: locked is not a folder that can be written to\n"


def test_names_that_look_like_commands_are_no_commands(write, capsys):
    names = [write(f"{name}.json", case(value=value)) for name, value in (("::error::a", 1.0), ("b\x1b[31m\n::c", 0.0))]

    main(["compare", *names, "--by", "f1", "-o", "::warning::\n::error::.md"])

    out = capsys.readouterr().out
    assert "::error::a" in out
    assert "report: ::warning:: ::error::.md\n" in out
    assert not any(line.lstrip().startswith("::") for line in out.splitlines())
    assert "\x1b" not in out


def test_render_makes_the_same_bytes_as_the_run(write, capsys):
    write("base.json", case(), case("b", 0.0))
    write("base.md", case(), case("b", 0.0))

    status = main(["render", "base.json", "-o", "again.json", "-o", "deep/again.md"])

    assert (status, capsys.readouterr().out) == (0, "report: again.json\nreport: deep/again.md\n")
    assert Path("again.json").read_bytes() == Path("base.json").read_bytes()
    assert Path("deep/again.md").read_bytes() == Path("base.md").read_bytes()


def test_json_is_one_object_and_the_lines_go_to_standard_error(write, capsys):
    write("old.json", *scores(0.0, 1.0))
    write("new.json", *scores(1.0, 1.0))
    write("best.json", *scores(1.0, 1.0))

    def printed(*arguments):
        status = main([*arguments, "--json"])
        out, err = capsys.readouterr()
        assert out.count("\n") == 1
        return status, json.loads(out), err

    status, output, err = printed("compare", "old.json", "new.json", "-o", "out.md")
    assert (status, output["baseline"]["metrics"]["f1"]["after"], output["reports"]) == (0, 1.0, ["out.md"])
    assert "report: out.md" in err

    _, output, _ = printed("compare", "old.json", "new.json", "best.json")
    assert [system["name"] for system in output["systems"]] == ["new", "best", "old"]

    status, output, err = printed("render", "old.json", "-o", "out.csv")
    assert (status, output, err) == (0, {"reports": ["out.csv"], "problems": []}, "report: out.csv\n")

    status, output, _ = printed("merge", "old.json")
    assert (status, output["verdict"], output["totals"]["cases"], output["reports"]) == (1, "FAILED", 2, [])


def test_render_keeps_a_baseline(write):
    head = HEAD | {"created": "2024-05-01T10:00:00+00:00"}
    write("base.json", case())
    main(["compare", write("old.json", case(value=0.0)), "base.json", "-o", "comparison.json"])
    changes = json.loads(Path("comparison.json").read_bytes())["baseline"]
    full_report = aggregate([case()], gates=(), about=head | {"baseline": changes})
    write_report(full_report, Path("whole.json"))

    main(["render", "whole.json", "-o", "again.json", "-o", "again.md"])

    assert Path("again.json").read_bytes() == Path("whole.json").read_bytes()
    assert "1 fix, 0 regressions" in Path("again.md").read_text(encoding="utf-8")


def test_render_refuses_a_report_whose_baseline_is_none(write, capsys):
    write("base.json", case())
    damaged = json.loads(Path("base.json").read_bytes()) | {"baseline": {"path": "base.json"}}
    Path("damaged.json").write_text(json.dumps(damaged), encoding="utf-8")

    with pytest.raises(SystemExit):
        main(["render", "damaged.json", "-o", "again.md"])

    assert capsys.readouterr().err == (
        "damaged.json: is not a report: baseline: 'created' is missing: run the suites again with this version of "
        "pytest-queryeval\n"
    )


def test_a_merge_evaluates_the_gates_that_compare_with_a_baseline(write, capsys):
    gate = {
        "type": "max_regressions",
        "folder": "music",
        "cases": 2,
        "metric": "regressions",
        "where": {},
        "min": None,
        "max": None,
        "max_regressions": 0,
    }
    write("base.json", *scores(1.0, 1.0))
    for number, value in enumerate((1.0, 0.0)):
        part = report(case(f"c{number}", value, outcome="passed" if value else "missed"))
        write_report(part | {"gates": [evaluate_gate(gate, (), mode="off")]}, Path(f"part{number}.json"))

    alone = main(["merge", "part0.json", "part1.json"])
    compared = main(["merge", "part0.json", "part1.json", "--baseline", "base.json", "-o", "all.json"])

    out = capsys.readouterr().out
    assert (alone, compared) == (0, 1)
    assert "gate not evaluated: regressions in music: no baseline was given" in out
    assert "gate MISSED: regressions in music: 1, at most 0 allowed (2 pairs)" in out
    assert json.loads(Path("all.json").read_bytes())["baseline"]["regressions"] == ["music/s.queryeval.yaml::c1"]


def test_a_rule_with_a_member_that_is_not_known_is_evaluated_by_those_that_are(write, capsys):
    rule = {"alpha": 0.05, "max_drop": 0.0, "of_a_later_version": 1}
    gate = {
        "type": "no_regression",
        "folder": "music",
        "cases": 8,
        "metric": "f1",
        "where": {},
        "min": None,
        "max": None,
    }
    write("base.json", *scores(*[1.0] * 8))
    evaluated = evaluate_gate(gate | {"no_regression": rule, "better": "higher"}, (), mode="off")
    part = report(*scores(*[0.0] * 8)) | {"gates": [evaluated]}
    write_report(part, Path("part.json"))

    status = main(["merge", "part.json", "--baseline", "base.json"])

    assert status == 1
    assert "gate MISSED: regression of f1" in capsys.readouterr().out


def test_the_step_summary_is_no_target_of_the_console_script(write, capsys):
    write("base.json", *scores(1.0))

    with pytest.raises(SystemExit) as ended:
        main(["render", "base.json", "-o", "github"])

    assert ended.value.code == 2
    assert "'github' is for `--queryeval-report` only" in capsys.readouterr().err


@pytest.mark.parametrize("member", ["totals", "metrics", "groups"])
@pytest.mark.parametrize("value", [None, "x", []], ids=repr)
def test_a_report_with_a_damaged_head_is_none(write, capsys, member, value):
    damaged = json.loads(Path(write("base.json", *scores(1.0, 0.0))).read_text())
    damaged[member] = value
    Path("damaged.json").write_text(json.dumps(damaged))

    with pytest.raises(SystemExit) as ended:
        main(["render", "damaged.json", "-o", "x.md"])

    assert ended.value.code == 2
    assert f"damaged.json: is not a report: {member}: expected an object" in capsys.readouterr().err
    assert not Path("x.md").exists()


def test_where_nobody_listens_the_files_are_written_all_the_same(write, monkeypatch):
    write("good.json", case())
    monkeypatch.setattr("sys.stdout", None)

    assert main(["render", "good.json", "-o", "good.md"]) == 0
    assert Path("good.md").stat().st_size > 0


def test_a_full_device_behind_standard_output_is_one_line(write, capsys):
    write("good.json", case())
    code = "import sys; from pytest_queryeval.cli import main; sys.exit(main(['render', 'good.json', '-o', 'good.md']))"
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, check=False)

    assert (done.returncode, done.stderr) == (2, b"standard output cannot be written to: No space left on device\n")


def test_reports_without_a_common_case_are_not_ranked(write, capsys):
    for name, path in (("one", "a"), ("two", "b"), ("three", "c")):
        write(f"{name}.json", case(nodeid=f"{path}::x", path=path))

    with pytest.raises(SystemExit) as stop:
        main(["compare", "one.json", "two.json", "three.json"])

    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith(
        "nothing to rank: no case has a score of 'pass_rate' in all reports: compare runs of the same suites"
    )


def test_the_console_script_tells_its_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])

    assert stop.value.code == 0
    assert capsys.readouterr().out == f"pytest-queryeval {version('pytest-queryeval')}\n"


def test_systems_have_the_names_that_an_option_gives_them(write, capsys):
    write("lr=0.1.json", *scores(1.0, 1.0, 0.0), name="file:predictions.jsonl 1a2b3c4")
    write("b.json", *scores(1.0, 0.0, 0.0), name="file:predictions.jsonl 1a2b3c4")

    names = ["--name", "A=B & C=lr=0.1.json", "--name", "D=./b.json"]
    assert main(["compare", "lr=0.1.json", "b.json", *names, "-o", "out.tex", "-o", "out.md", "-o", "out.csv"]) == 0

    assert r"1 & A=B \& C & 0.667" in Path("out.tex").read_text("utf-8")
    assert "| `D` | 2 | 0.333 |" in Path("out.md").read_text("utf-8")
    assert not any("predictions" in Path(f"out.{suffix}").read_text("utf-8") for suffix in ("tex", "md", "csv"))
    assert "A=B & C is best with 0.667" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["A=c.json"], "--name A=c.json: names none of the reports: did you mean 'b.json'?"),
        (["A"], "--name A: names none of the reports: write NAME=REPORT.json"),
        (["=a.json"], "--name =a.json: the name is empty"),
        (["A=a.json", "B=a.json"], "--name B=a.json: a.json has a name already"),
    ],
)
def test_a_name_for_no_report_or_for_one_twice_is_refused(write, capsys, options, problem):
    for path in ("a.json", "b.json"):
        write(path, *scores(1.0))

    arguments = [argument for option in options for argument in ("--name", option)]
    with pytest.raises(SystemExit):
        main(["compare", "a.json", "b.json", *arguments])

    assert problem in capsys.readouterr().err
