"""`queryeval merge`: parts united, gates evaluated, exit statuses, and targets."""

import json
import os
import subprocess
import sys
import sysconfig
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_parts import command, merge, part, refusal
from samples import entry

from pytest_queryeval.cli import main

pytestmark = pytest.mark.usefixtures("working_folder")

PATH = "music/s.queryeval.yaml"
GATE = {"type": "limits", "folder": "music", "metric": "f1", "where": {}, "min": 0.5, "max": None}
HERE = {"python": "3.11.9", "pytest_queryeval": "1.0", "engines": {"sqlite": "3.45"}}
THERE = HERE | {"python": "3.12.1"}


def case(id_="a", value=1.0, **changes):
    return entry(**{"id": id_, "scores": {"f1": value}} | changes)


def write(name, content):
    Path(name).write_text(json.dumps(content), encoding="utf-8")
    return name


def merged(*parts):
    return merge(*parts).report


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1)), min_size=1, max_size=20), st.permutations(range(4)))
def test_a_merge_is_one_run_however_the_cases_were_shared_out_and_so_is_a_merge_of_merges(shares, order):
    cases = [case(f"c{number}", value, line=number) for number, (_, value) in enumerate(shares)]
    about = {"collected": {PATH: len(cases)}, "gates": [GATE | {"cases": len(cases)}]}
    parts = [
        part(*(own for own, (share, _) in zip(cases, shares, strict=True) if share == wanted), **about, selected=True)
        for wanted in order
    ]

    whole = merged(part(*cases, **about))

    assert merged(*parts) == merged(merged(*parts[:2]), *parts[2:]) == whole
    assert whole["selected"] is False


def test_of_a_case_in_several_parts_the_last_one_that_ran_it_counts():
    first, second, left = part(case("a", 0.0), case("b", 0.5)), part(case("a", 1.0)), part(case("a", outcome="not_run"))

    there, back, with_left = merge(first, second), merge(second, first), merge(first, second, left)

    assert [run.report["metrics"]["f1"]["mean"] for run in (there, back, with_left)] == [0.75, 0.25, 0.75]
    assert f"1 case in several parts, of which the last one counts: {PATH}::a" in there.lines


def test_of_a_part_that_is_given_twice_the_last_place_counts():
    old, new = write("old.json", part(case("a", 0.0))), write("new.json", part(case("a", 1.0)))

    printed = command("merge", old, new, old, "-o", "all.json")

    assert f"{old} is given more than once: it counts once\n" in printed.text
    assert json.loads(Path("all.json").read_bytes())["metrics"]["f1"]["mean"] == 0.0


def asked(*paths, ignored=()):
    return {"requested_paths": {"paths": [*paths], "ignored": [*ignored]}}


ENGINES = {"engines": {"a": "1", "sqlite": "3.45"}}
NEWER = HERE | {"engines": {"sqlite": "3.46"}}
SPEND = {"name": "cost", "limit": 5.0, "sum": 1.5, "calls": 2, "unstated": 1, "reached": False}
BOTH = {"name": "cost", "limit": 10.0, "sum": 3.0, "calls": 4, "unstated": 2, "reached": True, "unstated_in_a_row": 7}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (
            [{"created": "2024-05-01T11:00:00+00:00"}, {"created": "2024-05-01T12:00:00+09:00"}],
            {"created": "2024-05-01T11:00:00+00:00"},
        ),
        (
            [{"created": "2024-05-01T09:00:00"}, {"created": "2024-05-01T12:00:00+09:00"}],
            {"created": "2024-05-01T09:00:00"},
        ),
        ([{"name": "nightly"}, {"name": "nightly"}], {"name": "nightly"}),
        ([{"name": "a"}, {"name": ""}, {"name": "b"}, {"name": "a"}], {"name": "a, b"}),
        (
            [
                {"name": "a 1a2b3c4", "predictor": {"sources": ["a"]}},
                {"name": "a, b 1a2b3c4", "predictor": {"sources": ["a", "b"]}},
            ],
            {"name": "a, b 1a2b3c4", "predictor": {"sources": ["a", "b"]}},
        ),
        (
            [{"name": "a 1a2b3c4", "predictor": {"sources": ["a"]}}, {"name": "x", "predictor": {"sources": ["c"]}}],
            {"name": "a 1a2b3c4, x"},
        ),
        ([{"unreadable_files": ["z"]}, {"unreadable_files": ["y", "z"]}], {"unreadable_files": ["y", "z"]}),
        (
            [{"environment": HERE}, {"environment": THERE}, {"environment": HERE}],
            {"environment": HERE | {"parts": [THERE]}},
        ),
        (
            [{"environment": THERE}, {"environment": HERE | {"parts": [THERE]}}],
            {"environment": THERE | {"parts": [HERE]}},
        ),
        (
            [{"environment": HERE | own} for own in ({"engines": {}}, {}, ENGINES, NEWER)],
            {"environment": HERE | ENGINES | {"parts": [NEWER]}},
        ),
        ([{"spend": SPEND}, {"spend": SPEND | {"reached": True, "unstated_in_a_row": 7}}], {"spend": BOTH}),
        ([{"spend": SPEND}, {}, {"spend": SPEND | {"name": "tokens"}}], {"spend": SPEND}),
        ([{"stopped": True}, {"interrupted": True}], {"stopped": True, "interrupted": True}),
        ([{"selected": True, "collected": {}}, {"collected": {PATH: 1}}], {"selected": True, "collected": {}}),
        ([{"selected": True, "collected": {PATH: 3}}, {}], {"selected": True, "collected": {PATH: 3}}),
        ([{"selected": True, "collected": {PATH: 2}}, {}], {"selected": False}),
        ([asked("."), asked(".")], asked(".")),
        ([asked("sql", "json"), asked("sql", "json")], asked("sql", "json")),
        ([asked("sql/a"), asked("sql/b", "sql/c/d")], asked("sql")),
        ([asked("sql/a"), asked("json")], asked(".")),
        ([asked("sql/a.queryeval.yaml"), asked("sql")], asked("sql")),
        ([asked("/elsewhere/a"), asked("sql")], asked(".")),
        ([asked(".", ignored="ab"), asked(".", ignored="bc")], asked(".", ignored="b")),
    ],
    ids=lambda value: str(value)[:60],
)
def test_the_head_of_the_report_is_about_all_parts(parts, expected):
    report = merged(*(part(case(str(number)), **about) for number, about in enumerate(parts)))

    assert {name: report[name] for name in expected} == expected


def test_a_long_name_is_cut_and_a_cost_is_one_that_any_part_knows():
    costs = {"metrics": {"edits": {"better": "lower"} | dict.fromkeys(("mean", "min", "median", "max"), 3.0)}}
    costs["metrics"]["edits"] |= {"n": 1, "std": None, "ci95": None, "missed": 0}
    costs["metrics"]["edits"] |= {"mean_with_errors": None, "n_with_errors": None}
    first, second = (case(name, scores={"edits": 3.0}) for name in "ab")

    report = merged(part(first, name="x" * 80, **costs), part(second, name="y" * 80))

    assert len(report["name"]) == 100
    assert report["metrics"]["edits"]["better"] == "lower"


# Gates


def oks(*parts):
    return [gate["ok"] for gate in merged(*parts)["gates"]]


def test_gates_are_united_by_all_that_they_require():
    gates = [
        GATE,
        GATE | {"where": {"tag": "x"}},
        GATE | {"min": 0.6},
        GATE | {"max": 0.7},
        GATE | {"metric": "m"},
        GATE,
    ]
    arts = GATE | {"folder": "arts"}

    report = merged(part(case(), gates=gates), part(gates=[arts, *gates]))

    assert [{name: gate[name] for name in GATE} for gate in report["gates"]] == [arts, *gates]


def test_a_gate_is_evaluated_once_all_of_its_cases_ran_in_some_part():
    first, second, third = (part(case(name), gates=[GATE | {"cases": 3}]) for name in "abc")
    unknown, known = part(case("a"), gates=[GATE | {"cases": None}]), part(case("b"), gates=[GATE | {"cases": 2}])

    assert (oks(first, second), oks(first, second, third)) == ([None], [True])
    assert (oks(unknown), oks(unknown, known)) == ([None], [True])
    assert oks(part(case(), gates=[GATE | {"where": {"tag": "x"}}]), part(case("b"))) == [False]  # no case has the tag


def test_a_part_whose_gates_were_evaluated_is_evaluated_anew_but_for_early_decisions_on_all_its_cases():
    missed = GATE | {"cases": 1, "ok": False, "value": 0.0, "n": 1, "ran": 1, "reason": ""}
    cases = [case("a"), case("b", outcome="not_run", scores={})]
    decided = (
        GATE
        | {"cases": 2, "ok": True, "value": 1.0, "n": 1, "ran": 1, "reason": ""}
        | {"decided": {"after": 1, "of": 2}}
    )
    stop = {"rule": "decided", "seed": 0, "alpha": 0.05, "after": 1, "of": 2}
    early = part(*cases, gates=[decided], stop=stop)

    alone, both = merged(early), merged(early, part(case("z", path="other/t.queryeval.yaml")))

    assert oks(part(case("a", 0.0), gates=[missed]), part(case("b"), case("c"))) == [True]
    assert (alone["gates"], alone["stop"]) == ([decided | {"errors": 0}], stop)
    assert (both["gates"], "stop" in both) == (alone["gates"], False)
    assert oks(early, part(gates=[GATE | {"cases": 3}])) == [None]
    assert oks(early | {"selected": True, "collected": {PATH: 9}}) == [None]


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (part(case("b"), gates=[GATE | {"min": 0.1}]), "states other gates in music than 1.json: run all parts"),
        (part(case("b"), gates=[GATE, GATE]), "states other gates in music than 1.json: run all parts"),
        (part(case(question="How old?")), f"{PATH}::a is another case than in 1.json: parts have one root folder"),
        (
            part(environment=HERE | {"pytest_queryeval": "2.0"}),
            "made by pytest-queryeval 2.0, but 1.json by of an unknown version: run all parts with one version",
        ),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(second, problem):
    write("1.json", part(case(question="How many?"), gates=[GATE]))

    assert refusal("merge", "1.json", write("2.json", second)).startswith(f"2.json: {problem}")


def test_scores_that_cannot_be_averaged_are_refused():
    dimensions = {"RIVER": {"precision": 1e308, "recall": 1.0}}
    cases = (case(name, kind="sdmx", details={"dimensions": dimensions}) for name in "ab")

    assert refusal("merge", write("1.json", part(*cases))) == "scores are too large to be averaged"


# Exit statuses and lines


MET, MISSED = (
    "f1 in music is 1.000 (1 case); this gate needs at least 0.5",
    "f1 in music is 0.250 (1 case); this gate needs at least 0.5",
)


@pytest.mark.parametrize(
    ("report", "status", "line", "verdict"),
    [
        (part(case(), gates=[GATE]), 0, f"gate met: {MET}", "PASSED: 1 case: 1 passed (no case failed, 1 gate met)"),
        (
            part(case(value=0.25), gates=[GATE]),
            1,
            f"gate MISSED: {MISSED}",
            "FAILED: gate missed: f1 in music is 0.250 (needs at least 0.5)",
        ),
        (
            part(case(), gates=[GATE | {"cases": 9}]),
            0,
            "gate not evaluated: f1 in music: 1 of 9 cases ran *",
            "NO VERDICT: *; name the reports of the other cases as well",
        ),
        (part(case(), gates=[GATE], unreadable_files=["a"]), 1, "could not be read: a", "FAILED: *"),
        (part(case(), stopped=True), 1, "stopped before its end: *part1.json", "INTERRUPTED: *"),
        (part(), 5, "0 cases: none ran", "NO VERDICT: *"),
        (part(case(outcome="missed")), 0, "1 case: 1 missed", "PASSED: *"),
        (part(case(outcome="skipped")), 0, "1 case: 1 skipped", "NO VERDICT: *; a report shows why cases were skipped"),
        (part(case(outcome="xfailed"), case(outcome="xpassed")), 0, "2 cases: 1 xfailed, 1 xpassed", "PASSED: *"),
        (part(case(), case(outcome="failed")), 1, "2 cases: 1 passed, 1 failed", "FAILED: 1 case failed"),
        (part(case(outcome="error")), 1, "1 case: 1 error", "FAILED: 1 case in error"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_cases_and_gates_make_the_verdict_and_the_exit_status(report, status, line, verdict):
    found = merge(report)

    assert found.status == status
    assert any(fnmatchcase(own, line) for own in found.lines)
    assert fnmatchcase(found.lines[-1], f"queryeval: {verdict}")


def test_reports_go_to_every_target_also_in_the_place_of_a_part():
    name = write("part.json", part(case(), gates=[GATE]))
    Path("taken.json").write_text(json.dumps(part(case())))

    printed = command("merge", name, "-o", "all.json", "-o", "deep/all.md", "--output", "reports", "-o", name)

    assert Path("reports/report.json").read_bytes() == Path("all.json").read_bytes() == Path(name).read_bytes()
    assert Path("reports/report.md").read_bytes() == Path("deep/all.md").read_bytes()
    assert {"all.json", "deep/all.md", "reports/report.json", "reports/report.md", name} <= {*printed.data["reports"]}


@pytest.mark.parametrize("target", ["all.jsn", "part.json/all.json"])
def test_targets_are_checked_before_parts_are_read(target):
    write("part.json", part(case()))

    assert target in refusal("merge", "missing.json", "-o", target)


def test_text_of_parts_is_shown_and_never_obeyed(capsys):
    bad = case("x", outcome="failed", nodeid="::error::x\x1b[31m", message="##[group]\u202e")

    main(["merge", write("part.json", part(bad, case("y"), unreadable_files=["\n::warning::"]))])
    out = capsys.readouterr().out

    assert not [line for line in out.splitlines() if line.strip().startswith("::")]
    assert not set(out) & set("\x1b\u202e")
    assert "##" not in out


@pytest.mark.process
def test_a_reader_that_has_gone_and_a_terminal_that_knows_ascii_only_change_nothing():
    name = write("part.json", part(case("ö", outcome="failed", nodeid="ö")))
    program = f"{sysconfig.get_path('scripts')}/queryeval merge {name}"
    piped = f"{program} -o all.json | true; exit ${{PIPESTATUS[0]}}"

    plain = subprocess.run(
        program.split(), env=os.environ | {"PYTHONIOENCODING": "ascii"}, capture_output=True, timeout=300, check=False
    )
    gone = subprocess.run(["bash", "-c", piped], capture_output=True, timeout=300, check=False)

    assert (plain.returncode, plain.stderr) == (gone.returncode, gone.stderr) == (1, b"")
    assert b"\\xf6" in plain.stdout
    assert b"\x1b" not in plain.stdout
    assert Path("all.json").exists()


@pytest.mark.process
def test_merging_loads_neither_pytest_nor_a_parser():
    name = write("part.json", part(case()))
    program = f"from pytest_queryeval.cli import main; main(['merge', '{name}']); import sys; print(*sys.modules)"

    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)

    loaded = {module.split(".")[0] for module in result.stdout.splitlines()[-1].split()}
    assert not loaded & {"pytest", "_pytest", "yaml", "sqlglot", "rdflib", "numpy", "sqlite3"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "queryeval: the following arguments are required: COMMAND (`queryeval --help` lists the commands, "),
        (
            ["merge"],
            "queryeval merge: the following arguments are required: PART.json (example: queryeval merge shard-1",
        ),
        (["merg", "a.json"], "queryeval: argument COMMAND: invalid choice: 'merg' (choose from "),
        (
            ["merge", "a.json", "--out-put", "b"],
            "queryeval merge: unknown option '--out-put': did you mean '--output'?",
        ),
    ],
)
def test_a_call_that_is_incomplete_is_a_usage_error(arguments, message):
    assert refusal(*arguments).startswith(message)
