"""Runs that stop once their gates are decided."""

from __future__ import annotations

import json

import pytest
from documentation import page as page_of

STOP = "--queryeval-stop=decided"
APP = """
from pathlib import Path


async def predict(case):
    with Path(__file__).with_name("calls.txt").open("a") as file:
        file.write(case.id + "\\n")
    if case.metadata.get("broken"):
        raise RuntimeError("down")
    return "null" if case.metadata.get("wrong") else case.question
"""
GATE = "gates: [{metric: pass_rate, min: 0.5}]"

pytestmark = pytest.mark.feature("json")


@pytest.fixture
def numbers(write):
    """A suite of `number` cases of which the first `wrong` ones are answered wrongly."""

    def write_numbers(number=120, *, wrong=0, name="queries/a.queryeval.yaml", settings=GATE, **changes):
        write("queries/app.py", APP)
        write("queries/queryeval.yaml", f"kind: json\npredictor: app.py:predict\non_miss: xfail\n{settings}\n")
        cases = [
            {"id": f"c{n}", "question": str(n), "gold": str(n), "metadata": {"wrong": n < wrong}} | changes
            for n in range(number)
        ]
        write(name, json.dumps({"cases": cases}))

    return write_numbers


def test_the_rest_is_not_run_once_the_gate_is_decided(numbers, write, run_and_parse, pytester):
    numbers(wrong=6)
    write("queries/test_other.py", "def test_other():\n    pass\n")

    run = run_and_parse(STOP, "-v")

    after, totals = run.report["stop"]["after"], run.report["totals"]
    (gate,) = run.report["gates"]
    assert run.result.ret == 0
    assert after < 40
    assert run.report["stop"] == {"rule": "decided", "seed": 0, "alpha": 0.05, "after": after, "of": 120}
    assert (totals["cases"], totals["not_run"]) == (120, 120 - after)
    assert (gate["ok"], gate["decided"], gate["ran"], gate["cases"]) == (True, {"after": after, "of": 120}, after, 120)
    assert (run.report["stopped"], run.report["selected"], run.report["interrupted"]) == (False, False, False)
    assert f"queryeval: PASSED: decided after {after} of 120 cases: {totals['passed']} passed, " in run.text
    assert f"({after} cases, decided after {after} of 120)" in run.text
    # The other test ran, before all cases.
    lines = [line for line in run.result.outlines if " PASSED " in line or " XFAIL" in line]
    assert "test_other" in lines[0]
    assert len(lines) == 1 + after
    # Of the calls that were made ahead, at most so many as are made at once were in vain.
    calls = (pytester.path / "queries/calls.txt").read_text().split()
    assert after <= len(calls) <= after + 8


def test_cases_that_can_fail_the_run_by_themselves_are_a_usage_error(numbers, run):
    numbers(on_miss="fail")

    for result in (run(STOP), run("-o", "queryeval_stop=decided")):
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        problem = (
            "--queryeval-stop: case 'c0' (queries/a.queryeval.yaml:1) can fail the run by itself, so gates alone *"
        )
        remedy = ": write `on_miss: xfail`, or add --queryeval-stop=off"
        result.stderr.fnmatch_lines([f"ERROR: {problem}{remedy}"])
    assert run("-o", "queryeval_stop=decided", "--queryeval-stop=off").ret == 0


def test_the_order_depends_on_the_seed(numbers, run_and_parse):
    numbers()

    def first_cases(option):
        return {name for name, outcome in run_and_parse(option).outcomes.items() if outcome == "passed"}

    assert first_cases(STOP) == first_cases(f"{STOP}:0") != first_cases(f"{STOP}:1")


def test_gates_of_several_folders_are_decided_each_by_their_own_cases_that_are_not_skipped(
    numbers, write, run_and_parse
):
    numbers(60)
    numbers(10, name="queries/c.queryeval.yaml", skip="later", on_miss="fail")
    write("queries/low/queryeval.yaml", GATE)
    numbers(60, wrong=60, name="queries/low/b.queryeval.yaml", settings="gates: [{metric: json_equal, min: 0.3}]")

    run = run_and_parse(STOP)

    upper, lower = run.report["gates"]
    assert (upper["folder"], upper["ok"], upper["decided"]["of"]) == ("queries", True, 120)
    assert (lower["folder"], lower["ok"], lower["decided"]["of"]) == ("queries/low", False, 60)
    assert (upper["cases"], run.report["totals"]["skipped"]) == (120, 10)
    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    assert f" cases, decided after {lower['decided']['after']} of 60); this gate needs at least 0.5" in run.text
    assert run.text.splitlines()[-1].startswith("queryeval: FAILED: gate missed: pass_rate in queries/low is ")


def test_an_error_fails_the_run_that_stopped(numbers, run_and_parse):
    numbers(100)
    numbers(30, name="queries/b.queryeval.yaml", metadata={"broken": True})

    run = run_and_parse(STOP)

    assert run.report["totals"]["not_run"] > 50
    assert run.report["totals"]["errors"] > 0
    assert [gate["ok"] for gate in run.report["gates"]] == [True]
    assert run.result.ret == pytest.ExitCode.TESTS_FAILED


def test_the_example_of_the_documentation_is_a_run(numbers, write, run_and_parse):
    page = page_of("large-runs").partition("## Stop when decided")[2]
    settings = page.split("```yaml\n")[1].split("```")[0]
    numbers(400, wrong=40)
    write("queries/queryeval.yaml", f"kind: json\npredictor: app.py:predict\n{settings}")

    assert run_and_parse(STOP).text.splitlines()[-1] in page


def test_all_cases_run_while_a_gate_needs_them(numbers, run_and_parse):
    numbers(30, settings="gates: [{metric: pass_rate, min: 0.5}, {metric: 'metadata[tokens]', sum: {max: 5}}]")

    run = run_and_parse(STOP)

    assert run.report["totals"]["not_run"] == 0
    assert run.report["stop"]["after"] == run.report["stop"]["of"] == 30
    assert "decided" not in run.report["gates"][0]
    run.result.stdout.fnmatch_lines(["queryeval: all cases run: sum of metadata[[]tokens[]]: it limits a sum"])


def test_a_run_that_is_stopped_by_a_failure_is_no_run_that_was_decided(numbers, run_and_parse):
    numbers(wrong=120, settings=f"{GATE}\nthresholds: {{json_equal: 1}}")

    run = run_and_parse(STOP, "-x", "--runxfail")

    assert run.report["stopped"] is True
    assert run.report["totals"]["not_run"] == 0
    assert len(run.report["cases"]) == 1


WITHOUT = "run without it with --queryeval-stop=off"
ON_SELECTION = "or evaluate gates on the selection with -o queryeval_gates=selection"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["-k", "c1"], f"pass_rate: only 31 of 120 cases are selected; {WITHOUT}, {ON_SELECTION}\n"),
        (["--queryeval-sample=20"], f"pass_rate: only 20 of 120 cases are selected; {WITHOUT}, {ON_SELECTION}\n"),
        (["-o", "queryeval_gates=off"], f"pass_rate: gates are off; {WITHOUT}\n"),
    ],
)
def test_a_run_in_which_no_gate_can_be_decided_early_is_a_usage_error(numbers, run, arguments, problem):
    numbers()

    result = run(STOP, *arguments)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    what = "no gate can be decided before all cases ran"
    assert f"--queryeval-stop: {what}: {problem}" in "\n".join([*result.errlines, ""])


def test_the_ini_file_may_say_so_for_a_selection_too_and_the_option_may_undo_it(numbers, write, run_and_parse):
    numbers()
    write("pytest.ini", "[pytest]\nqueryeval_stop = decided:4\n")

    stopped = run_and_parse("--queryeval-sample=60", "-o", "queryeval_gates=selection")
    full_run = run_and_parse("--queryeval-stop=off")

    (gate,) = stopped.report["gates"]
    assert (gate["ok"], gate["decided"]["of"], stopped.report["totals"]["cases"]) == (True, 60, 60)
    assert stopped.report["stop"]["seed"] == 4
    assert "stop" not in full_run.report
    assert full_run.report["totals"]["passed"] == 120


def test_without_the_option_nothing_is_moved(numbers, write, run):
    numbers(3)
    write("queries/test_other.py", "def test_other():\n    pass\n")

    for options in ([], ["--queryeval-stop=off"]):
        lines = [line for line in run("-v", *options).outlines if " PASSED " in line]
        assert [line.split("::")[1].split()[0] for line in lines] == ["c0", "c1", "c2", "test_other"]


def test_other_tests_need_no_gate(write, run):
    write("test_other.py", "def test_other():\n    pass\n")

    assert run(STOP).ret == 0


def test_a_case_that_is_run_again_counts_once(numbers, write, run_and_parse):
    numbers(40, settings=f"{GATE}\nthresholds: {{json_equal: 1}}", wrong=40)

    run = run_and_parse(STOP, "--runxfail", "-p", "rerunfailures", "--reruns=2")

    assert run.report["stop"]["after"] == run.report["totals"]["failed"] < 30


def test_a_case_that_is_collected_twice_runs_once(numbers, run_and_parse):
    numbers(60)

    run = run_and_parse(STOP, "--keep-duplicates", "queries", "queries")

    totals, after = run.report["totals"], run.report["stop"]["after"]
    assert run.result.ret == 0
    assert run.report["stop"]["of"] == totals["cases"] == 60
    assert (totals["passed"], totals["not_run"]) == (after, 60 - after)
