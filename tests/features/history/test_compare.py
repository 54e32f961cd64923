"""`queryeval compare`: systems ranked, what differs from the first to the last, and the forms of both."""

import json
import re
import statistics
import zlib
from base64 import b64decode
from itertools import pairwise
from pathlib import Path

import pytest
from golden_files import Tags, compare_golden, page_lines, text_lines
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import load_workbook
from report_parts import command, ids, refusal, write
from samples import FINGERPRINT, entry
from signed_differences import adjusted, p_value

from pytest_queryeval.cli import main

pytestmark = pytest.mark.feature("report_files")

SIDES = ("regressed", "errors", "fixed", "worse", "better", "others")
HOSTILE = "<script>alert(1)</script>|`](javascript:x)\u202e"
MET, UNMET = ("passed",), ("failed", "missed", "xfailed")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def case(id_="a", value=1.0, **changes):
    return entry(**{"id": id_, "scores": {"f1": value}, "outcome": "passed" if value else "failed"} | changes)


def scores(*values):
    return [case(f"c{n}", value) for n, value in enumerate(values)]


def compared(systems, *options):
    """The comparison of systems by name, each with its cases."""
    paths = [write(f"{name}.json", *cases, name=name) for name, cases in systems.items()]
    return command("compare", *paths, *options)


# The ranking, against its definition.

RESULTS = st.tuples(
    st.sampled_from(["passed", "failed", "missed", "xfailed", "error", "skipped", "not_run"]),
    st.sampled_from([None, 0.0, 0.25, 1.0]),
)
SYSTEMS = st.dictionaries(
    st.sampled_from("ABCD"), st.dictionaries(st.sampled_from("abcdef"), RESULTS, min_size=2), min_size=2
)
REASONS = {"error": "in error", "skipped": "skipped", "not_run": "not run", "xfailed": "expected to fail"}


@given(SYSTEMS)
def test_systems_are_ranked_by_the_mean_over_the_cases_that_all_have(systems):
    values = {
        name: {id_: value for id_, (_, value) in own.items() if value is not None} for name, own in systems.items()
    }
    ranked = {name: own for name, own in values.items() if own}
    scored = {id_ for own in ranked.values() for id_ in own}
    common = sorted(id_ for id_ in scored if all(id_ in own for own in ranked.values()))
    cases = {
        name: [case(id_, value, outcome=outcome) for id_, (outcome, value) in own.items()]
        for name, own in systems.items()
    }
    if not common:
        paths = [write(f"{name}.json", *own, name=name) for name, own in cases.items()]
        assert re.match(
            "nothing to rank: no case has a score|no report has a score", refusal("compare", *paths, "--by", "f1")
        )
        return

    board = compared(cases, "--by", "f1").data

    means = {name: statistics.fmean(own[id_] for id_ in common) for name, own in ranked.items()}
    order = sorted(means, key=lambda name: -means[name])
    differences = {name: [ranked[name][id_] - ranked[order[0]][id_] for id_ in common] for name in order[1:]}
    p_values = adjusted({name: p_value(own) for name, own in differences.items()})
    assert (board["cases"], board["scored"], board["common"]) == (
        len({id_ for own in systems.values() for id_ in own}),
        len(scored),
        len(common),
    )
    assert [system["name"] for system in board["systems"]][: len(order)] == order
    for system in board["systems"]:
        name = system["name"]
        assert system["rank"] == (1 + sum(mean > means[name] for mean in means.values()) if name in means else None)
        assert (system["score"] and system["score"]["mean"]) == (pytest.approx(means[name]) if name in means else None)
        difference = system["difference"]
        assert (difference is None) is (name not in differences)
        if difference is not None:
            figures = pytest.approx((statistics.fmean(differences[name]), p_values[name]))
            assert (difference["change"], difference["p"]) == figures
        left_out = {id_: reason for reason, nodeids in system["left_out"].items() for id_ in ids(nodeids)}
        assert left_out == {
            id_: REASONS.get(systems[name][id_][0], "without a score") if id_ in systems[name] else "not in the report"
            for id_ in scored - values[name].keys()
        }
    assert {side: ids(board["differing"][side]) for side in SIDES} == differing(systems, ranked, common)


def differing(systems, ranked, common):
    """The cases that differ from the first system to the last, by side."""
    first, *between, last = systems.values()
    sides = {side: [] for side in SIDES}
    for id_ in sorted({*first} | {*common}):
        if id_ in first and id_ in last and all(id_ in own for own in between):
            old, new = first[id_][0], last[id_][0]
            if old in MET and new in UNMET:
                sides["regressed"].append(id_)
                continue
            if old in UNMET and new in MET:
                sides["fixed"].append(id_)
                continue
            if new == "error" != old and old != "not_run":
                sides["errors"].append(id_)
                continue
        own = [values[id_] for values in ranked.values()] if id_ in common else []
        if len({*own}) > 1:
            sides["worse" if own[-1] < own[0] else "better" if own[-1] > own[0] else "others"].append(id_)
    return sides


def test_of_a_cost_the_lowest_mean_ranks_first_and_a_rise_is_worse():
    systems = {
        name: [case(scores={"prediction_seconds": seconds})]
        for name, seconds in (("usual", 3.0), ("slow", 9.0), ("fast", 1.0))
    }

    printed = compared(systems, "--by", "prediction_seconds")

    assert [system["name"] for system in printed.data["systems"]] == ["fast", "usual", "slow"]
    assert printed.data["differing"]["better"] == ["music/s.queryeval.yaml::a"]
    assert "3 systems by the mean of prediction_seconds over 1 case, the lowest first\n" in printed.text


def grouped(values, **changes):
    """Cases of two kinds with enough of each, and of one with too few."""
    kinds = ["sql"] * 10 + ["json"] * 10 + ["sdmx"] * 9
    return [
        case(f"c{n}", value, kind=kind, **changes) for n, (kind, value) in enumerate(zip(kinds, values, strict=True))
    ]


def test_groups_with_ten_cases_say_which_system_is_best_in_each():
    halves = [0.0] * 5 + [1.0] * 5 + [0.0] * 9 + [1.0] + [0.0] * 9
    systems = {"first": grouped([1.0] * 10 + [0.0] * 10 + [1.0] * 9), "second": grouped(halves)}
    costs = {
        name: grouped([1.0] * 29, scores={"prediction_seconds": cost})
        for name, cost in zip("abc", (1.0, 2.0, 2.0), strict=True)
    }

    assert compared(systems).data["groups"] == {
        "kind": {
            "sql": {"n": 10, "means": {"first": 1.0, "second": 0.5}, "best": ["first"]},
            "json": {"n": 10, "means": {"first": 0.0, "second": 0.1}, "best": ["second"]},
        }
    }
    by_cost, by_rate = (
        compared(costs, *options).data["groups"]["kind"] for options in (["--by", "prediction_seconds"], [])
    )
    assert [group["best"] for group in by_cost.values()] == [["a"], ["a"]]
    assert [group["best"] for group in by_rate.values()] == [[], []]  # all are equal


def asked(id_="a", value=1.0, **fingerprint):
    """A case that says what its suite required."""
    return case(id_, value, fingerprint=FINGERPRINT | {"source": None} | fingerprint)


def test_suites_that_require_other_things_are_named_and_systems_alike_together():
    lower = {"thresholds": {"f1": {"min": 0.1, "max": None}}}
    edited = [asked("a", 0.0, golds="1"), asked("b", 0.0)]
    eased = [asked("a", 0.0, **lower), asked("b", **lower)]
    systems = {"best": [asked("a"), asked("b"), asked("gone")], "eased": eased, "edited": edited, "too": edited}

    printed = compared(systems, "-o", "out.md")

    assert [line for line in printed.text.splitlines() if line.startswith("changed besides")] == [
        "changed besides the system in eased against best: thresholds lowered: f1 (2 cases)",
        "changed besides the system in edited, too against best: gold edited (1 case)",
    ]
    assert "besides the system in `edited`, `too` against `best`: gold edited" in Path("out.md").read_text("utf-8")
    assert printed.text.count("only 2 of 3 cases with a score of pass_rate has one in all ranked systems") <= 1
    assert "removed" not in printed.text


def test_another_version_of_an_engine_is_no_change_of_a_suite():
    paths = [
        write(f"{version}.json", asked("a"), name=version, environment={"engines": {"sqlite": version}})
        for version in ("3.45", "3.46")
    ]

    assert [system["changes"] for system in command("compare", *paths).data["systems"]] == [[], []]


BOTH = {"f1": 1.0, "valid_query": 1.0}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"outcome": "skipped", "scores": {}}, "cases newly skipped"),
        ({"outcome": "xpassed", "scores": BOTH}, "cases newly marked xfail"),
        ({"scores": {"f1": 1.0}}, "metrics no longer computed"),
    ],
    ids=["skipped", "xfail", "metrics"],
)
def test_what_a_suite_requires_less_is_named_whichever_system_is_the_best(changes, what):
    whole = asked("b") | {"scores": BOTH}
    sentences = [{"what": what, "cases": [whole["nodeid"]]}]

    best = compared({"eased": [asked("a"), whole | changes], "whole": [asked("a", 0.0), whole]}).data["systems"]
    second = compared({"eased": [asked("a", 0.0), whole | changes], "whole": [asked("a"), whole]}).data["systems"]

    assert [(system["name"], system["changes"], system["eased"]) for system in best] == [
        ("eased", [], []),
        ("whole", [], sentences),
    ]
    assert [(system["name"], system["changes"], system["eased"]) for system in second] == [
        ("whole", [], []),
        ("eased", sentences, []),
    ]


def test_a_system_that_left_cases_out_gains_nothing_by_it():
    skipped = {"outcome": "skipped", "scores": {}}
    sly = [asked("a"), asked("b") | skipped, asked("c") | skipped]
    weak = [asked("a", 0.0), asked("b", 0.0), asked("c", 0.0)]
    systems = {"honest": [asked("a"), asked("b", 0.0), asked("c", 0.0)], "sly": sly, "weak": weak}

    printed = compared(systems)

    assert [system["score"]["mean"] for system in printed.data["systems"]] == [1.0, 1.0, 0.0]
    lines = printed.text.splitlines()
    assert lines[0] == "honest, sly are level with 1.000"
    assert "sly: 2 cases skipped: music/s.queryeval.yaml::b, music/s.queryeval.yaml::c" in lines
    assert "changed besides the system in sly against honest: cases newly skipped (2 cases)" in lines
    assert "only 1 of 3 cases with a score of pass_rate has one in all ranked systems, and only these count" in lines


# Forms


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([[1.0] * 9, [0.0] * 9], "s0 is best with 1.000; the difference to it is significant (p at most 0.05)"),
        (
            [[1.0] * 9, [0.0] * 9, [0.0] * 9],
            "s0 is best with 1.000; each difference to it is significant (p at most 0.05)",
        ),
        ([[1.0, 1.0], [1.0, 0.0]], "s0 is best with 1.000; s1 may be as good"),
        ([[1.0], [1.0], [1.0]], "s0, s1, s2 are level with 1.000"),
    ],
)
def test_the_first_line_says_which_is_best_and_how_surely(values, line):
    assert compared({f"s{n}": scores(*own) for n, own in enumerate(values)}).text.splitlines()[0] == line


FORMS = ("md", "html", "csv", "tex", "json")


def check_forms(name, *arguments):
    """Compare what a comparison prints, and its forms, with how they were; return its data."""
    printed = command(*arguments, *(option for form in FORMS for option in ("-o", f"out.{form}")))
    compare_golden(printed.text.splitlines(), f"{name}/terminal.txt")
    for form in FORMS[:-1]:
        compare_golden((page_lines if form == "html" else text_lines)(Path(f"out.{form}")), f"{name}/{form}.txt")
    assert printed.data | {"reports": [], "problems": []} == json.loads(Path("out.json").read_bytes()) | {
        "reports": [],
        "problems": [],
    }
    return printed.data


def test_two_reports_in_every_form():
    systems = {"base": scores(1.0, 1.0, 0.0), "=cmd()": scores(1.0, 0.0, 0.0)}
    paths = [write(f"{name}.json", *cases, name=name) for name, cases in systems.items()]

    document = check_forms("comparison-of-two", "compare", *paths)

    assert document["baseline"]["regressions"] == document["differing"]["regressed"] == ["music/s.queryeval.yaml::c1"]


def test_several_reports_in_every_form():
    """One has a name of its own, some leave cases out, suites differ, metrics are many; one has no score at all."""
    many = {"f1": 1.0, **{f"recall[{number}]": number / 10 for number in range(4)}}
    values = {"best": (1.0, 1.0, 0.0, 1.0), "python:" + "long/" * 30 + "1": (0.0, 1.0, 0.0, 1.0)}
    values["python:" + "long/" * 30 + "2"] = (1.0, 0.0, 1.0, 1.0)
    systems = {
        name: [
            asked(f"c{n}", value, golds="0" if n or name == "best" else "1")
            | {"scores": many | {"f1": value}, "predicted": predicted(f"SELECT {n}", [n])}
            | {"message": "" if value else f"{name[-1]} is wrong", "kind": "sql" if n % 2 else "json"}
            for n, value in enumerate(own)
        ]
        for name, own in values.items()
    }
    systems["sly"] = [systems["best"][0], systems["best"][1] | {"outcome": "skipped", "scores": {}}]
    systems["empty"] = [case("c0", scores={}, outcome="skipped")]
    paths = [write(f"{n}.json", *cases, name=name) for n, (name, cases) in enumerate(systems.items())]

    check_forms("comparison-of-several", "compare", *paths, "--by", "f1", "--name", "A=B & C=0.json")


def test_the_p_of_several_differences_is_adjusted_and_says_so():
    values = [1.0] * 9 + [0.0]
    base = [case(f"c{n}", scores={"f1": 1.0, "em": 1.0}) for n in range(10)]
    other = [case(f"c{n}", value, scores={"f1": 1.0 - value, "em": value}) for n, value in enumerate(values)]

    two = compared({"a": base, "b": other}, "--by", "f1")
    three = compared({"a": base, "b": other, "c": other}, "--by", "f1")

    change = two.data["baseline"]["metrics"]["f1"]
    assert two.data["systems"][1]["difference"]["p"] == change["p"] == pytest.approx(2 / 2**9)
    assert change["p_holm"] == pytest.approx(3 * 2 / 2**9)
    assert [system["difference"]["p"] for system in three.data["systems"][1:]] == pytest.approx([2 * 2 / 2**9] * 2)
    headers = [line.split() for line in two.text.splitlines() if line.split()[1:2] == ["rank"] or "detects" in line]
    assert headers[1][-4:] == ["p", "p", "adjusted", "detects"]
    assert ("p adjusted" in two.text.split("metric")[0], "p adjusted" in three.text.split("metric")[0]) == (False, True)


NASTY = "50% & a_b #1 ${x} ~^\\ <|>\"--`'\u202e"


def test_latex_of_any_name_has_no_command_but_ours():
    compared({"a": scores(0.0, 1.0), "b": scores(1.0, 1.0)}, "--name", f"{NASTY}=a.json", "-o", "out.tex")

    text = Path("out.tex").read_text(encoding="utf-8")
    (row,) = (line for line in text.splitlines() if line.strip().startswith("2 &"))
    assert row.strip().startswith(
        r"2 & 50\% \& a\_b \#1 \$\{x\} \textasciitilde{}\textasciicircum{}\textbackslash{} "
        r"\textless{}\textbar{}\textgreater{}''{}-{}-{}`{}'{}\textbackslash{}u202e & 0.500 & "
    )
    unescaped = re.sub(r"\\([%&_#${}]|\\$)", "", text, flags=re.MULTILINE)
    assert unescaped.count("{") == unescaped.count("}")
    ours = "usepackage begin end centering caption label toprule midrule bottomrule textasciitilde textasciicircum"
    ours += " textbackslash textless textbar textgreater"
    assert set(re.findall(r"\\([a-z]+)", unescaped)) == {*ours.split()}
    assert all(line.count("&") == 6 for line in unescaped.splitlines() if line.strip().startswith(("1 ", "2 ", "& ")))


def unpacked(path):
    """The list of cases in a page, and the details of all cases."""
    texts = re.findall(r'<script type="text/plain"[^>]*>([^<]*)</script>', Path(path).read_text(encoding="utf-8"))
    page_data, *pieces = (json.loads(zlib.decompress(b64decode(text))) for text in texts)
    return page_data, [details for piece in pieces for details in piece]


def predicted(query, *rows):
    table = {"columns": ["n"] if rows else None, "row_count": len(rows), "sample": list(rows)}
    return {"query": query, "seconds": 0.1, "error": None, **table}


@pytest.mark.parametrize("number", [2, 3])
def test_foreign_text_is_never_markup(number):
    def written(text):
        for place, value in enumerate((1.0, 0.0, 0.0)[:number]):
            fields = {"scores": {text: value}, "tags": [text, "b"], "question": text, "predicted": predicted(text)}
            cases = [case(f"{text}{n}", value, **fields) for n in range(10)]
            write(f"{place}.json", *cases, case("other", tags=["b"], scores={text: 1.0}), name=f"{text}{place}")
        paths = [f"{place}.json" for place in range(number)]
        return command("compare", *paths, "-o", "out.html", "-o", "out.md").text

    written("text")
    harmless = Tags("out.html")
    printed = written(HOSTILE)

    page, markdown = Tags("out.html"), Path("out.md").read_text(encoding="utf-8")
    assert [tag for tag, _ in page.found] == [tag for tag, _ in harmless.found]
    assert "\u202e" not in Path("out.html").read_text(encoding="utf-8") + markdown + printed
    names = [name for _, attributes in page.found for name in attributes]
    assert not [name for name in names if name.startswith("on")]
    links = {attributes[name] for _, attributes in page.found for name in ("href", "src") if name in attributes}
    assert all(link.startswith(("#", "data:image/svg+xml,")) for link in links)
    assert unpacked("out.html")[0]["question"] == [HOSTILE] * 10
    assert "<script>" in markdown
    assert "<script>" not in re.sub(r"(`+)[^\n]*?(?<!`)\1(?!`)", "", markdown)


@pytest.mark.parametrize(
    "values",
    [((1.0, 0.5), (1.0, 0.5)), ((1.0,), (0.0,)), ((None,), (None,)), ((1e149,), (-1e149,)), ((5e-324,), (0.7,))],
    ids=["identical", "one case", "no score", "huge", "tiny"],
)
def test_a_page_draws_any_scores(values):
    systems = {
        name: [*scores(*own), case("also", scores={"f1": None, "other": 1.0})]
        for name, own in zip("ab", values, strict=True)
    }

    compared(systems, "--by", "other" if values == ((None,), (None,)) else "f1", "-o", "out.html")

    drawn = [attributes["d"] for _, attributes in Tags("out.html").found if "d" in attributes]
    assert drawn
    assert all(re.fullmatch(r"M-?[\d.]+ -?\d+[HVh]-?[\d.]+", path) for path in drawn)


@pytest.mark.parametrize(
    ("means", "ticks"),
    [
        ((0.845, 0.92), ("0.84", "0.88", "0.92")),
        ((12.0, 3_400.0), ("0", "2000", "4000")),
        ((0.7, 0.7), ("0.6", "0.7", "0.8")),
    ],
)
def test_the_scale_of_a_page_has_round_ends_around_all_values(means, ticks):
    compared(
        {name: [case(scores={"of my own": mean})] for name, mean in zip("ab", means, strict=True)},
        "--by",
        "of my own",
        "-o",
        "out.html",
    )

    texts = [text.strip() for text in Tags("out.html").texts]
    start = texts.index(ticks[0])
    assert tuple(text for text in texts[start:] if text)[:3] == ticks


def test_a_page_leaves_out_the_answers_that_would_make_it_too_large(monkeypatch):
    monkeypatch.setattr("pytest_queryeval.features.history.compare_command.MAX_PACKED", 2_000)
    monkeypatch.setattr("pytest_queryeval.reports.html.case_list.PIECE_CHARACTERS", 1_000)
    systems = {
        name: [case(f"c{n}", value, predicted=predicted(f"SELECT {n}" * 9)) for n in range(100)]
        for name, value in (("a", 1.0), ("b", 0.0))
    }

    compared(systems, "-o", "out.html")

    page_data, details = unpacked("out.html")
    assert len(page_data["id"]) == 100
    assert 0 < len(details) < 100


@pytest.mark.feature("excel", "page", "ci")
def test_every_surface_counts_the_same_regressions_errors_and_fixes():
    outcomes = {
        "a": ["passed"] * 5 + ["failed"] * 3,
        "b": ["failed"] * 2 + ["error"] * 2 + ["passed"] * 2 + ["error"] * 2,
    }
    only = {"a": [case("gone")], "b": [case("new1"), case("new2")]}
    systems = {
        name: [*(case(f"c{n}", float(o == "passed"), outcome=o) for n, o in enumerate(own)), *only[name]]
        for name, own in outcomes.items()
    }

    printed = compared(systems, "-o", "out.html", "-o", "out.md")
    merged = command(
        "merge", "b.json", "--baseline", "a.json", *(p for s in ("html", "md", "xlsx") for p in ("-o", f"run.{s}"))
    )
    past = command("history", "a.json", "b.json", "-o", "past.html")

    differing, baseline = printed.data["differing"], printed.data["baseline"]
    assert [differing[name] for name in ("regressed", "errors", "fixed")] == [
        baseline[name] for name in ("regressions", "errors", "fixes")
    ]
    for page, names in (
        ("out.html", ("regressed", "errors", "fixed")),
        ("run.html", ("regressions", "new-errors", "fixes")),
    ):
        views = {name: len(places) for name, places in unpacked(page)[0]["views"].items() if places}
        assert views == dict(zip(names, (2, 4, 1), strict=True))
    texts = [Path(path).read_text("utf-8") for path in ("out.html", "out.md", "run.html", "run.md")]
    for text in (printed.text, " ".join(merged.text.split()), *texts):
        assert "8 cases in both, 1 fix, 2 regressions, 4 new errors, 2 added, 1 removed" in text
    words = {"out.html": ("Regressed ", "New error "), "run.html": ("Regressions ", "New errors ")}
    for path, of_path in words.items():
        counts = dict(pairwise(Tags(path).texts))
        assert [counts[word] for word in of_path] == ["2", "4"]
    facts = dict(row[:2] for row in load_workbook("run.xlsx")["Run"].iter_rows(values_only=True))
    names = ("cases in both", "fixes", "regressions", "new errors", "added", "removed")
    assert [facts[name] for name in names] == [8, 1, 2, 4, 2, 1]
    assert re.search(r"^b  .*  1 +2 +4 +- +2$", past.text, re.MULTILINE)
    for text in (past.text, "".join(Tags("past.html").texts)):
        assert "ases removed (1), cases added (2)" in text.replace("Cases", "cases")


# Names


def test_runs_of_one_name_are_told_apart_by_date_and_path():
    first, second = (write(f"{folder}/report.json", case(), name="report") for folder in ("a", "b"))
    later = write("later.json", case(), name="report", created="2024-05-02T12:30:00+00:00")

    names = [
        system["name"]
        for system in command("compare", first, second, later, write("c.json", case(), name="c")).data["systems"]
    ]
    hiding = [
        write(f"{path}.json", case(), name=name)
        for path, name in zip("xyz", ["r", "r", "r (2024-05-01 10:00) (x.json)"], strict=True)
    ]

    assert names == [
        "report (2024-05-01 10:00) (a/report.json)",
        "report (2024-05-01 10:00) (b/report.json)",
        "report (2024-05-02 12:30)",
        "c",
    ]
    assert {system["name"] for system in command("compare", *hiding).data["systems"]} == {*hiding}


def test_names_that_look_like_commands_are_no_commands(capsys):
    names = [
        write(f"{n}.json", case(value=value), name=name)
        for n, (name, value) in enumerate((("::error::a", 1.0), ("b\x1b[31m\n::c", 0.0)))
    ]

    main(["compare", *names, "--by", "f1", "-o", "::warning::\n::error::.md"])

    out = capsys.readouterr().out
    assert "::error::a" in out
    assert "report: ::warning:: ::error::.md\n" in out
    assert not any(line.lstrip().startswith("::") for line in out.splitlines())
    assert "\x1b" not in out


def test_reading_large_reports_tells_its_progress_on_standard_error(capsys, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.cli.output.PROGRESS_SECONDS", 0)

    main(["compare", *(write(f"{n}.json", *scores(1.0)) for n in range(2))])

    assert "queryeval compare: 1 of 2 reports, about " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["a.json", "nope.json"],
            "nope.json: no such file: write one with `queryeval evaluate PATH --report report.json`",
        ),
        (["a.json", "a.json"], "a.json: is given twice: give reports of different runs"),
        (["a.json", "b.json", "-o", "out.xlsx"], "no comparison as '.xlsx' for out.xlsx: choose from"),
        (["a.json", "b.json", "-o", "a.json/out.md"], "report a.json/out.md cannot be written: "),
        (["a.json", "b.json", "-o", "./b.json"], "b.json: is a report to compare, and would be lost"),
        (["a.json", "b.json", "--by", "ff1"], "no report has a score of 'ff1': did you mean 'f1'?"),
        (
            ["a.json", "b.json", "--name", "A=c.json"],
            "--name A=c.json: names none of the reports: did you mean 'b.json'?",
        ),
        (["a.json", "b.json", "--name", "A"], "--name A: names none of the reports: write NAME=REPORT.json"),
        (["a.json", "b.json", "--name", "=a.json"], "--name =a.json: the name is empty"),
        (
            ["a.json", "b.json", "--name", "A=a.json", "--name", "B=a.json"],
            "--name B=a.json: a.json has a name already",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(arguments, message):
    for name in "ab":
        write(f"{name}.json", case())

    assert refusal("compare", *arguments).startswith(message)
