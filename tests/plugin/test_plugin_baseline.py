"""A run that is compared with an earlier one: gates, exit statuses, and what changed besides the system."""

from __future__ import annotations

import json
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


def cases(wrong=(), **more):
    """A dozen cases, of which those with these numbers are answered wrongly."""
    return [case(f"c{n:02}", WRONG if n in wrong else GOLD, on_miss="xfail", **more) for n in range(NUMBER)]


def verdicts(run):
    return [gate["ok"] for gate in run.report["gates"]]


def changes(run):
    return {
        change["what"]: [nodeid.rpartition("::")[2] for nodeid in change["cases"]]
        for change in run.report["baseline"]["changes"]
    }


def test_a_system_that_got_worse_misses_the_gates(suite, write, earlier, run_and_parse, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    write("queryeval.yaml", GATE)
    suite(*cases())
    earlier()
    suite(*cases(wrong=range(5)))

    run = run_and_parse(BASELINE)

    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    assert verdicts(run) == [False, False]
    regression, regressions = run.report["gates"]
    assert (regression["value"], regression["n"], regression["p"]) == (pytest.approx(-5 / 12), 12, 1 / 32)
    assert (regressions["value"], regressions["n"]) == (5, 12)
    run.result.stdout.fnmatch_lines(
        [
            "against the baseline base.json of *: 12 cases in both, 0 fixes, 5 regressions",
            "pass_rate 1.000 → 0.583 (-0.417, p 0.062, adjusted 0.375)",
            "regressions (5): a.queryeval.yaml::c00, *",
            "gate MISSED: regression of execution_accuracy*: -0.417 (p *), no proven drop allowed (12 pairs)",
            "gate MISSED: regressions: 5, at most 2 allowed (12 pairs)",
        ],
        consecutive=False,
    )


def test_a_baseline_that_cannot_be_read_is_a_usage_error(suite, run):
    suite(case())

    result = run(BASELINE)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --queryeval-baseline: *base.json: no such file: write one with *"])


def test_run_with_a_baseline_of_other_cases_fails_and_says_what_node_ids_begin_at(suite, write, earlier, run):
    for folder in ("one", "two"):
        write(f"{folder}/pytest.ini", "[pytest]\n")
        suite(*cases(), name=f"{folder}/{folder}.queryeval.yaml")
    earlier("one")

    result = run(BASELINE, "two")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.outlines[-1] == (
        "queryeval: FAILED: none of the 12 cases of the baseline base.json is in this run: compare runs of the same "
        "suites with the same root folder (`rootdir:`), where node ids begin: a pytest.ini with the line `[pytest]` "
        "sets it"
    )
    assert "cases removed" not in result.stdout.str()


def test_run_of_a_new_file_alone_does_not_fail_by_a_baseline_of_the_others(suite, earlier, run):
    suite(*cases())
    earlier()
    suite(case("new"), name="new.queryeval.yaml")

    result = run(BASELINE, "new.queryeval.yaml")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["against the baseline base.json of *: no case in common:*", "*compare runs of the same suites*"]
    )


def test_under_a_selection_only_common_cases_count_and_none_is_called_removed(suite, write, earlier, run_and_parse):
    write("queryeval.yaml", GATE)
    suite(*cases(), case("gone"))
    earlier()
    suite(*cases(wrong=[1]))

    run = run_and_parse(BASELINE, "-k", "c01 or c02")

    counts = run.report["baseline"]["cases"]
    assert (counts["common"], counts["removed"], counts["not_run"]) == (2, 0, 11)
    assert changes(run) == {"fewer cases in a file: a.queryeval.yaml (13 before, 12 now)": []}
    assert [gate["n"] for gate in run.report["gates"]] == [2, 2]


def test_files_that_were_not_requested_or_left_out_by_a_pattern_are_not_removed(suite, earlier, run_and_parse):
    suite(case("a"), name="a/a.queryeval.yaml")
    suite(case("b"), name="a/sub/deep/b.queryeval.yaml")
    suite(case("c"), name="c/c.queryeval.yaml")
    earlier()

    for options, not_run in ((["a"], 1), (["--ignore-glob=*/sub"], 1), (["a", "--ignore-glob=*/sub"], 2)):
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


SPARING = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if item.name in {names}:
            item.add_marker(pytest.mark.xfail(reason="known"))
"""


def test_a_case_that_a_conftest_expects_to_fail_is_named_when_it_begins_to(suite, write, earlier, run_and_parse):
    write("conftest.py", SPARING.format(names=["old", "better"]))
    suite(case("old", WRONG), case("better", WRONG), case("hidden", WRONG), case("excused"), case("fine"))
    earlier()
    write("conftest.py", SPARING.format(names=["old", "better", "hidden", "excused"]))
    suite(case("old", WRONG), case("better"), case("hidden", WRONG), case("excused", WRONG), case("fine"))

    # In a process of its own: this one keeps the first conftest.py.
    run = run_and_parse(BASELINE)

    assert changes(run) == {"cases newly marked xfail": ["hidden", "excused"]}


ANSWERING = """
def pytest_queryeval_predict(case):
    return {query!r}
"""


def test_an_answer_that_moves_into_the_suite_is_named_and_so_is_what_a_predictor_reads(
    suite, write, earlier, run_and_parse
):
    write("conftest.py", ANSWERING.format(query=GOLD))
    moved = unpredicted("moved")
    stated = case("b", WRONG, question="How many?")
    suite(unpredicted("a"), stated, unpredicted("c", metadata={"hint": "group"}), unpredicted("same"), moved)
    earlier()
    moved = case("moved", question="How many?")  # with the same answer
    edited = unpredicted("c", metadata={"hint": "group by country"})
    suite(case("a", WRONG, question="How many?"), unpredicted("b"), edited, unpredicted("same"), moved)

    run = run_and_parse(BASELINE)

    assert changes(run) == {
        "answers stated in the suite": ["a"],
        "answers asked of a predictor": ["b"],
        "question, evidence or metadata edited": ["c"],
    }


def test_what_changed_besides_the_system_is_named(suite, earlier, run_and_parse):
    both = {"metrics": ["execution_accuracy", "soft_f1"]}
    suite(
        case("lowered", thresholds={"execution_accuracy": 1, "soft_f1": 0.9}, **both),
        case("edited"),
        case("removed"),
        case("skipped"),
        case("expected", WRONG),
        case("laxer"),
        case("looser", WRONG),
        case("slower"),
        case("fuller"),
        case("same"),
    )
    earlier()
    suite(
        case("lowered", thresholds={"execution_accuracy": 1, "soft_f1": 0.5}, **both),
        case("edited", gold=f"{GOLD} ORDER BY 1"),
        case("skipped", skip="later"),
        case("expected", WRONG, xfail="hard"),
        case("laxer", compare={"numbers": {"rel": 0.1}}),
        case("looser", WRONG, on_miss="xfail"),
        case("slower", timeout=60),
        case("fuller", max_rows=5_000),
        case("same"),
    )

    run = run_and_parse(BASELINE)

    assert changes(run) == {
        "cases removed": ["removed"],
        "cases newly skipped": ["skipped"],
        "cases newly marked xfail": ["expected"],
        "thresholds lowered: soft_f1": ["lowered"],
        "on_miss changed": ["looser"],
        "timeout or max_rows edited": ["slower", "fuller"],
        "gold edited": ["edited"],
        "comparison policy edited": ["laxer"],
    }
    run.result.stdout.fnmatch_lines(["changed besides the system: gold edited (1 case): a.queryeval.yaml::edited"])


def fill(path, rows):
    path.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS singer (country TEXT)")
        database.executemany("INSERT INTO singer VALUES (?)", [("FR",)] * rows)


@pytest.mark.feature("database_servers")
def test_another_state_of_the_database_is_named_and_another_engine_but_not_another_folder(
    pytester, suite, earlier, run_and_parse, monkeypatch
):
    other = "another source, or another state of it"
    for folder in ("here", "there"):
        fill(pytester.path / folder / "singers.db", 1)
    suite(case("a"), case("b"), source="${PLACE}/singers.db")
    monkeypatch.setenv("PLACE", "here")
    earlier()
    monkeypatch.setenv("PLACE", str(pytester.path / "there"))
    moved = run_and_parse(BASELINE)
    fill(pytester.path / "there" / "singers.db", 1)
    changed = run_and_parse(BASELINE)
    suite(case("a"), case("b"), source={"sqlalchemy": "sqlite:///here/singers.db"})
    by_another_engine = run_and_parse(BASELINE)

    assert changes(moved) == {}
    assert changes(changed) == {"gold's answer changed": ["a", "b"], other: ["a", "b"]}
    assert changes(by_another_engine) == {other: ["a", "b"]}


def test_the_command_line_changes_what_a_case_asks_for(suite, earlier, run_and_parse):
    suite(case("a"), metrics=["execution_accuracy", "soft_f1"])
    earlier("--queryeval-threshold=soft_f1=0.9")

    assert changes(run_and_parse(BASELINE)) == {"thresholds lowered: soft_f1": ["a"]}


def test_what_a_case_asks_for_tells_no_secret_and_no_folder_of_this_machine(pytester, suite, run_and_parse):
    suite(case("a"), metrics=["execution_accuracy", "soft_f1"], options={"soft_f1": {}})

    run = run_and_parse()

    fingerprint = run.case("a")["fingerprint"]
    assert str(pytester.path) not in json.dumps(fingerprint)
    settings = {"answers", "context", "thresholds", "on_miss", "trials", "trials_rule", "limits", "compare", "options"}
    assert set(fingerprint) == settings | {"golds", "gold_answers", "metrics", "schemas", "source"}


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


@pytest.mark.feature("recording")
def test_digests_of_golds_are_those_of_a_recording(suite, run_and_parse):
    suite(case("a"), case("b", gold="SELECT name, age / 3.0 FROM singer ORDER BY age"))
    recorded = run_and_parse("--queryeval-record=recorded").report["cases"]
    replayed = run_and_parse("--queryeval-replay=recorded").report["cases"]

    digests = [[case["fingerprint"]["gold_answers"] for case in cases] for cases in (recorded, replayed)]
    assert digests[0] == digests[1]
    assert None not in digests[0]


WORDS = """
from pytest_queryeval.core.metric import metric
from pytest_queryeval.metrics import METRICS

@metric(kinds=None, input="queries", max_score=99, better="lower")
def words(gold, predicted):
    return float(len(predicted.split()))

METRICS.register("words", words)
"""


def test_a_metric_of_ones_own_of_which_lower_is_better_misses_the_gate_by_a_rise(suite, write, earlier, run_and_parse):
    write("conftest.py", WORDS)
    write("queryeval.yaml", "gates: [{no_regression: {metric: words}}]")
    long = f"{GOLD}   ORDER BY 1"
    settings = {"metrics": ["execution_accuracy", "words"], "on_miss": "xfail"}
    suite(*(case(f"c{number}", **settings) for number in range(8)))
    earlier()

    suite(*(case(f"c{number}", long, **settings) for number in range(8)))
    worse = run_and_parse(BASELINE)

    assert worse.report["metrics"]["words"]["better"] == "lower"
    assert verdicts(worse) == [False]
    worse.result.stdout.fnmatch_lines(["gate MISSED: regression of words: * a rise of *"])
