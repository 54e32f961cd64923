"""A run that is compared with an earlier one: gates, exit statuses, and what changed besides the system."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from singers import GOLD, WRONG, case, unpredicted

GATE = "gates: [{no_regression: {metric: execution_accuracy}}, {max_regressions: 2}]"
BASELINE = "--queryeval-baseline=base.json"
NUMBER = 12


@pytest.fixture
def earlier(run):
    """Run the suites as they stand, and keep the report as base.json."""

    def run_earlier(*args):
        run("--queryeval-report=base.json", *args)

    return run_earlier


def cases(wrong=()):
    """A dozen cases, of which those with these numbers are answered wrongly."""
    return [case(f"c{n:02}", WRONG if n in wrong else GOLD, on_miss="xfail") for n in range(NUMBER)]


def changes(run):
    return {
        change["what"]: [nodeid.rpartition("::")[2] for nodeid in change["cases"]]
        for change in run.report["baseline"]["changes"]
    }


def test_a_system_that_got_worse_misses_the_gates_which_count_the_cases_that_ran(
    suite, write, earlier, run_and_parse, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "200")
    write("queryeval.yaml", GATE)
    suite(*cases(), case("gone"))
    earlier()
    suite(*cases(wrong=range(5)))

    run, selected = run_and_parse(BASELINE), run_and_parse(BASELINE, "-k", "c01 or c02")

    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    regression, regressions = run.report["gates"]
    assert (regression["value"], regression["n"], regression["p"]) == (pytest.approx(-5 / 12), 12, 1 / 32)
    assert (regressions["value"], regressions["n"]) == (5, 12)
    assert (regression["ok"], regressions["ok"]) == (False, False)
    run.result.stdout.fnmatch_lines(
        [
            "against the baseline base.json of *: 12 cases in both, 0 fixes, 5 regressions, 1 removed*",
            "pass_rate 1.000 → 0.583 (-0.417, p 0.062, adjusted 0.375)",
            "regressions (5): a.queryeval.yaml::c00, *",
            "gate MISSED: execution_accuracy* fell by 0.417 since base.json (p 0.031, 12 cases); this gate *",
            "gate MISSED: 5 regressions since base.json (12 cases); this gate allows at most 2",
        ],
        consecutive=False,
    )
    counts = selected.report["baseline"]["cases"]
    assert (counts["common"], counts["removed"], counts["not_run"]) == (2, 0, 11)
    assert changes(selected) == {"fewer cases in a file: a.queryeval.yaml (13 before, 12 now)": []}
    assert [gate["n"] for gate in selected.report["gates"]] == [2, 2]


def test_run_with_a_baseline_of_other_cases_fails_and_one_of_a_new_file_does_not(suite, write, earlier, run):
    for folder in ("one", "two"):
        write(f"{folder}/pytest.ini", "[pytest]\n")
        suite(*cases(), name=f"{folder}/{folder}.queryeval.yaml")
    earlier("one")
    suite(case("new"), name="one/new.queryeval.yaml")

    other, new = run(BASELINE, "two"), run(BASELINE, "one/new.queryeval.yaml")

    assert other.ret == pytest.ExitCode.TESTS_FAILED
    assert other.outlines[-1] == (
        "queryeval: FAILED: none of the 12 cases of the baseline base.json is in this run: compare runs of the same "
        "suites with the same root folder (`rootdir:`), where node ids begin: a pytest.ini with the line `[pytest]` "
        "sets it"
    )
    assert "cases removed" not in other.stdout.str()
    assert new.ret == pytest.ExitCode.OK
    new.stdout.fnmatch_lines(
        ["against the baseline base.json of *: no case in common:*", "*compare runs of the same suites*"]
    )


def test_files_that_were_not_requested_or_left_out_by_a_pattern_are_not_removed(suite, earlier, run_and_parse):
    suite(case("a", WRONG), name="a/a.queryeval.yaml")
    suite(case("b"), name="a/sub/deep/b.queryeval.yaml")
    suite(case("c"), name="c/c.queryeval.yaml")
    earlier()

    options_not_run = (["a"], 1), (["--ignore-glob=*/sub"], 1), (["a", "--ignore-glob=*/sub"], 2), (["--lf"], 2)
    for options, not_run in options_not_run:
        run = run_and_parse(BASELINE, *options)
        assert (run.report["baseline"]["cases"]["not_run"], changes(run)) == (not_run, {})


def test_a_case_that_drops_out_of_a_constant_selection_is_named(suite, earlier, run_and_parse):
    nightly = case("slow", tags=["nightly"])
    suite(case("a"), case("b", WRONG), case("c"), nightly)
    earlier("-m", "not nightly")
    suite(case("a"), case("b", WRONG, tags=["nightly"]), case("c"), nightly)
    tagged = run_and_parse(BASELINE, "-m", "not nightly")
    suite(case("a"), case("c"), nightly)

    removed = run_and_parse(BASELINE, "-m", "not nightly")

    assert changes(tagged) == {"cases no longer selected": ["b"]}
    assert changes(removed) == {
        "cases no longer selected": ["b"],
        "fewer cases in a file: a.queryeval.yaml (4 before, 3 now)": [],
    }


CONFTEST = """
import pytest

def pytest_queryeval_predict(case):
    return {gold!r}

def pytest_collection_modifyitems(items):
    for item in items:
        if item.name in {expected}:
            item.add_marker(pytest.mark.xfail(reason="known"))
"""
BOTH = {"metrics": ["execution_accuracy", "soft_f1"]}
LIMITS = {"execution_accuracy": 1, "soft_f1": 0.9}
STATED = {"question": "How many?"}
# A case before and after, by what is said of the change.
EDITS = {
    "thresholds lowered: soft_f1": [
        (case("lowered", thresholds=LIMITS, **BOTH), case("lowered", thresholds={**LIMITS, "soft_f1": 0.5}, **BOTH))
    ],
    "gold edited": [(case("edited"), case("edited", gold=f"{GOLD} ORDER BY 1"))],
    "cases removed": [(case("removed"), None)],
    "cases newly skipped": [(case("skipped"), case("skipped", skip="later"))],
    "cases newly marked xfail": [
        (case("expected", WRONG), case("expected", WRONG, xfail="hard")),
        (case("hidden", WRONG), case("hidden", WRONG)),
        (case("excused"), case("excused", WRONG)),
    ],
    "comparison policy edited": [(case("laxer"), case("laxer", compare={"numbers": {"rel": 0.1}}))],
    "on_miss changed": [(case("looser", WRONG), case("looser", WRONG, on_miss="xfail"))],
    "timeout or max_rows edited": [
        (case("slower"), case("slower", timeout=60)),
        (case("fuller"), case("fuller", max_rows=5_000)),
    ],
    "answers stated in the suite": [(unpredicted("moved"), case("moved", WRONG, **STATED))],
    "answers asked of a predictor": [(case("left", WRONG, **STATED), unpredicted("left"))],
    "question, evidence or metadata edited": [
        (
            unpredicted("hinted", metadata={"hint": "group"}),
            unpredicted("hinted", metadata={"hint": "group by country"}),
        )
    ],
    "": [
        (case("same"), case("same")),
        (unpredicted("asked"), unpredicted("asked")),
        (unpredicted("known"), case("known", **STATED)),  # with the answer that there was
        (case("old", WRONG), case("old", WRONG)),
        (case("better", WRONG), case("better")),
    ],
}


def test_what_changed_besides_the_system_is_named(suite, write, earlier, run_and_parse):
    edits = [edit for pairs in EDITS.values() for edit in pairs]
    write("conftest.py", CONFTEST.format(gold=GOLD, expected=["old", "better"]))
    suite(*(before for before, _ in edits))
    earlier()
    write("conftest.py", CONFTEST.format(gold=GOLD, expected=["old", "better", "hidden", "excused"]))
    suite(*(after for _, after in edits if after))

    run = run_and_parse(BASELINE)

    named = {what: [before["id"] for before, _ in pairs] for what, pairs in EDITS.items() if what}
    assert changes(run) == named
    run.result.stdout.fnmatch_lines(["changed besides the system: gold edited (1 case): a.queryeval.yaml::edited"])


def fill(path, rows):
    path.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS singer (country TEXT)")
        database.executemany("INSERT INTO singer VALUES (?)", [("FR",)] * rows)


@pytest.mark.feature("database_servers")
def test_another_state_of_the_database_is_named_and_another_engine_or_threshold_but_not_another_folder(
    pytester, suite, earlier, run_and_parse, monkeypatch
):
    other = "another source, or another state of it"
    for folder in ("here", "there"):
        fill(pytester.path / folder / "singers.db", 1)
    suite(case("a"), case("b"), source="${PLACE}/singers.db")
    monkeypatch.setenv("PLACE", "here")
    earlier("--queryeval-threshold=soft_f1=0.9")
    monkeypatch.setenv("PLACE", str(pytester.path / "there"))
    moved = run_and_parse(BASELINE)
    fill(pytester.path / "there" / "singers.db", 1)
    changed = run_and_parse(BASELINE)
    suite(case("a"), case("b"), source={"sqlalchemy": "sqlite:///here/singers.db"})
    by_another_engine = run_and_parse(BASELINE)

    lowered = {"thresholds lowered: soft_f1": ["a", "b"]}
    assert changes(moved) == lowered
    assert changes(changed) == {"gold's answer changed": ["a", "b"], other: ["a", "b"]} | lowered
    assert changes(by_another_engine) == {other: ["a", "b"]} | lowered


@pytest.mark.feature("ci")
def test_golds_whose_answers_changed_with_the_data_are_told_apart_from_changes_of_the_system(
    suite, write, earlier, run_and_parse
):
    """As in a database without a fingerprint: its script is the same, and what it inserts is not."""
    queries = [f"SELECT n + {n} FROM clock" for n in range(2)]
    drifting = [case(f"c{n}", query, gold=query) for n, query in enumerate(queries)]
    same, failed = case("same", "SELECT 1", gold="SELECT 1"), case("failed", "SELECT 1", gold="SELECT nonsense")
    suite(*drifting, same, failed, source={"sqlite": {"script": "clock.sql"}})
    write("clock.sql", "CREATE TABLE clock (n); INSERT INTO clock VALUES (abs(random() % 1000000000));")
    earlier()

    run = run_and_parse(BASELINE, "--queryeval-report=report.md")

    assert changes(run) == {"gold's answer changed": ["c0", "c1"]}
    assert "changed besides the system: gold's answer changed in 2 cases: " in " ".join(run.text.split())
    assert "gold's answer changed in 2 cases" in Path("report.md").read_text(encoding="utf-8").replace("`", "")
    digests = {case["id"]: case["fingerprint"]["gold_answers"] for case in run.report["cases"]}
    assert digests["failed"] is None
    assert len({*digests.values()}) == 4


def test_a_strict_xfail_mark_hides_no_fix_and_is_no_news(suite, earlier, run_and_parse):
    strict = ("-o", "xfail_strict=true")
    suite(case("good"), case("known", WRONG, xfail="hard"))
    earlier(*strict)
    suite(case("good"), case("known", xfail="hard"))

    fixed = run_and_parse(BASELINE, *strict)
    earlier(*strict)
    suite(case("good"), case("known", WRONG, xfail="hard"))
    broken = run_and_parse(BASELINE, *strict)

    assert fixed.report["baseline"]["fixes"] == broken.report["baseline"]["regressions"] == ["a.queryeval.yaml::known"]
    assert (changes(fixed), changes(broken)) == ({}, {})
    assert "queryeval: FAILED: 1 case passed despite a strict xfail mark" in fixed.text
    assert "queryeval: PASSED" in broken.text
