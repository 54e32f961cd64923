"""`queryeval compare` and `queryeval render`: what they print and write, and what they refuse."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from samples import entry

from pytest_queryeval.aggregation import aggregate
from pytest_queryeval.baseline.leaderboard import leaderboard
from pytest_queryeval.cli import main
from pytest_queryeval.gates import unjudged
from pytest_queryeval.report_file import DEFAULTS
from pytest_queryeval.reports import write_report

HOSTILE = "<script>alert(1)</script>|`](javascript:x)\u202e"


def case(id_="a", value=1.0, **changes):
    known = {
        "id": id_,
        "nodeid": f"music/s.queryeval.yaml::{id_}",
        "question": "",
        "message": "",
        "scores": {"f1": value},
        "outcome": "passed" if value else "failed",
        **dict.fromkeys(("gold", "predicted", "difference", "prediction")),
    }
    return entry(**known | changes)


def report(*cases):
    head = DEFAULTS | {"created": "2024-05-01T10:00:00+00:00", "environment": {"pytest_queryeval": "1.0"}}
    return aggregate(cases, gates=(), about=head)


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def write_file(name, *cases):
        write_report(report(*cases), Path(name))
        return name

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
    assert out.startswith("against the baseline base.json of 2024-05-01T10:00:00+00:00: 3 cases in both, 0 fixed, 1 b")
    assert "broken (1): music/s.queryeval.yaml::c1\n" in out
    assert "report: out.md\nreport: out.html\nreport: out.json\n" in out
    assert "| `f1` | 0.667 | 0.333 | -0.333 |" in Path("out.md").read_text(encoding="utf-8")
    assert json.loads(Path("out.json").read_bytes())["broken"] == ["music/s.queryeval.yaml::c1"]
    assert "new.json against base.json" in Tags(Path("out.html").read_text(encoding="utf-8")).texts


def test_the_exit_status_is_0_whatever_got_worse(write):
    write("base.json", *scores(*[1.0] * 9))
    write("new.json", *scores(*[0.0] * 9))

    assert main(["compare", "base.json", "new.json"]) == 0


def test_many_reports_are_a_leaderboard_with_the_best_first(write, capsys):
    write("weak.json", *scores(*[0.0] * 9, 1.0))
    write("best.json", *scores(*[1.0] * 10))
    write("good.json", *scores(*[1.0] * 9, 0.0))

    main(["compare", "weak.json", "best.json", "good.json", "-o", "out.json", "-o", "out.md", "-o", "out.html"])

    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:4]]
    assert [row[:2] for row in rows] == [["best", "1"], ["good", "2"], ["weak", "3"]]
    board = json.loads(Path("out.json").read_bytes())
    assert [system["p"] for system in board["systems"]] == [None, 1.0, pytest.approx(2 * 2 / 512)]
    assert [system["metrics"]["f1"]["n"] for system in board["systems"]] == [10, 10, 10]
    assert "| `good` | 2 | 1.000 | 10 | 9 | 0.900 (" in Path("out.md").read_text(encoding="utf-8")
    assert ("th", {"scope": "col"}) in Tags(Path("out.html").read_text(encoding="utf-8")).found


def test_systems_with_the_same_mean_share_a_rank_and_one_without_a_score_has_none():
    board = leaderboard(
        {"a": report(*scores(1.0)), "b": report(*scores(1.0)), "c": report(*scores(0.0)), "d": report(*scores(None))}
    )

    assert [(system["name"], system["rank"]) for system in board["systems"]] == [
        ("a", 1),
        ("b", 1),
        ("c", 3),
        ("d", None),
    ]


def test_a_leaderboard_over_different_cases_says_so(write, capsys):
    write("a.json", case("one"), case("two"))
    write("b.json", case("one"))
    write("c.json", case("one"))

    main(["compare", "a.json", "b.json", "c.json"])

    assert "only 1 of 2 cases are in all reports" in capsys.readouterr().out


def test_reports_of_one_name_are_told_apart_by_their_paths(write, capsys):
    names = [write(f"{folder}/report.json", case()) for folder in ("a", "b")]

    main(["compare", *names, write("c.json", case())])

    out = capsys.readouterr().out
    assert all(any(line.startswith(name) for line in out.splitlines()) for name in (*names, "c"))


@pytest.mark.parametrize("others", [["new.json"], ["new.json", "third.json"]], ids=["two", "many"])
def test_foreign_text_is_never_markup(write, capsys, others):
    for name, value in (("base.json", 1.0), ("new.json", 0.0), ("third.json", 0.0)):
        write(name, case(HOSTILE, value, scores={HOSTILE: value}))

    main(["compare", "base.json", *others, "-o", "out.html", "-o", "out.md"])

    page, markdown = (Path(name).read_text(encoding="utf-8") for name in ("out.html", "out.md"))
    assert {tag for tag, _ in Tags(page).found} <= {
        *("html", "head", "meta", "title", "style", "body", "h1", "div", "table", "thead", "tbody", "tr", "th", "td"),
        *("p", "code"),
    }
    assert "\u202e" not in page + markdown + capsys.readouterr().out
    assert all("href" not in attributes and "src" not in attributes for _, attributes in Tags(page).found)
    assert "<script>" in markdown
    assert "<script>" not in re.sub(r"(`+)[^\n]*?(?<!`)\1(?!`)", "", markdown)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["base.json", "nope.json"], "nope.json: cannot be read: No such file or directory"),
        (["base.json", "base.json"], "base.json: given twice"),
        (["base.json", "new.json", "-o", "out.xlsx"], "no comparison as '.xlsx' for out.xlsx: known are"),
        (["base.json", "new.json", "-o", "base.json/out.md"], "report base.json/out.md cannot be written: "),
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


def test_render_makes_the_same_bytes_as_the_run(write, capsys):
    write("base.json", case(), case("b", 0.0))
    write("base.md", case(), case("b", 0.0))

    status = main(["render", "base.json", "-o", "again.json", "-o", "deep/again.md"])

    assert (status, capsys.readouterr().out) == (0, "report: again.json\nreport: deep/again.md\n")
    assert Path("again.json").read_bytes() == Path("base.json").read_bytes()
    assert Path("deep/again.md").read_bytes() == Path("base.md").read_bytes()


def test_render_keeps_a_baseline(write):
    head = DEFAULTS | {"created": "2024-05-01T10:00:00+00:00"}
    write("base.json", case())
    main(["compare", write("old.json", case(value=0.0)), "base.json", "-o", "comparison.json"])
    found = json.loads(Path("comparison.json").read_bytes())
    whole = aggregate([case()], gates=(), about=head | {"baseline": found})
    write_report(whole, Path("whole.json"))

    main(["render", "whole.json", "-o", "again.json", "-o", "again.md"])

    assert Path("again.json").read_bytes() == Path("whole.json").read_bytes()
    assert "1 fixed, 0 broken" in Path("again.md").read_text(encoding="utf-8")


def test_render_refuses_a_report_whose_baseline_is_none(write, capsys):
    write("base.json", case())
    damaged = json.loads(Path("base.json").read_bytes()) | {"baseline": {"path": 3}}
    Path("damaged.json").write_text(json.dumps(damaged), encoding="utf-8")

    with pytest.raises(SystemExit):
        main(["render", "damaged.json", "-o", "again.md"])

    assert capsys.readouterr().err == "damaged.json: is no report: baseline.path: expected a text\n"


def test_a_merge_judges_the_gates_that_compare_with_a_baseline(write, capsys):
    gate = {
        "folder": "music",
        "whole": True,
        "metric": "broken",
        "where": {},
        "min": None,
        "max": None,
        "max_broken": 0,
    }
    write("base.json", *scores(1.0, 1.0))
    for number, value in enumerate((1.0, 0.0)):
        part = report(case(f"c{number}", value, outcome="passed" if value else "missed")) | {"gates": [unjudged(gate)]}
        write_report(part, Path(f"part{number}.json"))

    alone = main(["merge", "part0.json", "part1.json"])
    compared = main(["merge", "part0.json", "part1.json", "--baseline", "base.json", "-o", "all.json"])

    out = capsys.readouterr().out
    assert (alone, compared) == (0, 1)
    assert "gate not judged: at most 0 broken in music: no baseline was given" in out
    assert "gate MISSED: at most 0 broken in music: 1 of 2" in out
    assert json.loads(Path("all.json").read_bytes())["baseline"]["broken"] == ["music/s.queryeval.yaml::c1"]


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
    assert f"damaged.json: is no report: {member}: expected an object" in capsys.readouterr().err
    assert not Path("x.md").exists()
