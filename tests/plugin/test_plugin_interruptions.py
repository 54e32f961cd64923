"""Runs that do not go through: a worker dies, a case is run again, the user or pytest stops early."""

from __future__ import annotations

from fnmatch import fnmatchcase
from xml.etree import ElementTree

import pytest
from singers import FIRST_LINE, GOLD, INVALID, WRONG, case, unpredicted

SUICIDE = f"""
import os, signal

def predict(case):
    if case.id == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    return {GOLD!r}
"""
SECOND_TIME_LUCKY = f"""
import pathlib

from pytest_queryeval import Prediction

def predict(case):
    before = pathlib.Path(case.id + ".asked")
    if before.exists():
        return Prediction({GOLD!r}, metadata={{"cost": 1.0}})
    before.touch()
    if case.id == "shaky":
        raise ConnectionError
    return Prediction({WRONG!r}, metadata={{"cost": 1.0}})
"""
UNTIDY = "def pytest_runtest_teardown(item):\n    if item.name == 'untidy': raise RuntimeError('left open')\n"


def test_crashed_worker_loses_no_other_case_and_its_own_is_an_error(suite, write, run_and_parse):
    write("predict.py", SUICIDE)
    write("queryeval.yaml", "gates: [{metric: pass_rate, where: {tag: fatal}, min: 0.1}]")
    further_cases = [unpredicted(f"case-{number}") for number in range(6)]
    suite(*further_cases[:3], unpredicted("crash", tags=["fatal"]), *further_cases[3:], predictor="predict.py:predict")

    run = run_and_parse("-n1")

    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    assert run.outcomes == {**{f"case-{number}": "passed" for number in range(6)}, "crash": "error"}
    crash = run.case("crash")
    said = "the worker gw0 of pytest-xdist ended while it ran this case: run the case with -n 0"
    assert crash["message"] == said
    assert said in ElementTree.tostring(run.junit, encoding="unicode")
    assert (crash["kind"], crash["tags"], crash["path"]) == ("sql", ["fatal"], "a.queryeval.yaml")
    assert crash["line"] == FIRST_LINE + 4
    assert [(gate["value"], gate["n"], gate["ok"]) for gate in run.report["gates"]] == [(0.0, 1, False)]


def test_a_run_whose_workers_died_is_no_whole_one(suite, write, run_and_parse):
    write("predict.py", SUICIDE)
    suite(unpredicted("crash"), *(unpredicted(f"case-{n}") for n in range(8)), predictor="predict.py:predict")

    run = run_and_parse("-n1", "--max-worker-restart=0")

    assert run.report["stopped"]
    assert run.report["totals"]["cases"] < 9


def test_rerun_cases_and_their_gates_have_the_last_result_and_sums_say_what_they_leave_out(suite, write, run_and_parse):
    write("predict.py", SECOND_TIME_LUCKY)
    write("conftest.py", UNTIDY)
    cost = "{metric: 'metadata[cost]', sum: {max: 2.5}}"
    gates = f"gates: [{{metric: pass_rate, min: 0.7}}, {{metric: execution_accuracy, min: 0.9}}, {cost}]"
    write("queryeval.yaml", gates)
    good = [f"case-{number}" for number in range(4)]
    asked = [unpredicted("lucky"), unpredicted("shaky")]
    suite(*map(case, good), *asked, case("bad", WRONG), case("untidy"), predictor="predict.py:predict")

    run, once = run_and_parse("--reruns=1"), run_and_parse()

    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    assert "4 rerun" in run.text
    assert run.outcomes == {**dict.fromkeys((*good, "lucky", "shaky"), "passed"), "bad": "failed", "untidy": "error"}
    assert run.case("lucky")["scores"]["execution_accuracy"] == 1.0
    last = run.junit.findall(".//testcase[@name='lucky']")[-1]
    properties = [element.get("name") for element in last.iter("property")]
    assert len(properties) == len(set(properties)) == 5
    untidy = run.case("untidy")
    assert "left open" in untidy["message"]
    assert (untidy["scores"], untidy["predicted"]["query"]) == ({}, GOLD)
    results = [(gate["value"], gate["n"], gate["errors"], gate["ok"]) for gate in run.report["gates"]]
    assert results[:2] == [(6 / 8, 8, 0, True), (6 / 7, 7, 1, False)]
    met = "gate met: sum of metadata[[]cost] is 2 (2 of 8 cases have a value"
    run.result.stdout.fnmatch_lines(
        [f"{met}, earlier runs of 3 cases are left out, 1 in error not counted); this gate needs at most 2.5"]
    )
    once.result.stdout.fnmatch_lines([f"{met}, 1 in error not counted); this gate needs at most 2.5"])
    verdict = "queryeval: FAILED: 1 case in error; 1 case failed; gate missed: execution_accuracy is "
    assert run.result.outlines[-1].startswith(verdict)


LOGGED = "def pytest_runtest_logfinish(nodeid):\n    if nodeid.endswith('case-2'): {}\n"
TORN_DOWN = "def pytest_runtest_teardown(item):\n    if item.name == 'case-2': {}\n"
INTERRUPTED = "INTERRUPTED: 3 of 6 cases: 2 passed, 1 missed (*"


@pytest.mark.parametrize(
    ("hook", "options", "status", "verdict"),
    [
        (LOGGED.format("raise RuntimeError('broken')"), [], pytest.ExitCode.INTERNAL_ERROR, INTERRUPTED),
        (LOGGED.format("pytest.exit('enough', returncode=0)"), [], pytest.ExitCode.TESTS_FAILED, INTERRUPTED),
        (TORN_DOWN.format("pytest.exit('enough', returncode=3)"), [], pytest.ExitCode.INTERNAL_ERROR, INTERRUPTED),
        (TORN_DOWN.format("raise KeyboardInterrupt"), [], pytest.ExitCode.INTERRUPTED, INTERRUPTED),
        ("", ["-x", "--runxfail"], pytest.ExitCode.TESTS_FAILED, "FAILED: 1 case failed; the run was stopped"),
    ],
    ids=["a hook", "an exit without a fault", "an exit with another one", "the user", "the first failure"],
)
def test_a_run_that_broke_off_is_no_whole_one_whatever_its_gates_are_about(
    suite, write, run_and_parse, hook, options, status, verdict
):
    write("conftest.py", f"import pytest\n\n{hook}")
    write("queryeval.yaml", "gates: [{metric: pass_rate, min: 0.6}]")
    suite(*(case(f"case-{number}", WRONG if number == 2 else GOLD) for number in range(6)), on_miss="xfail")

    run = run_and_parse(*options)

    assert (run.report["stopped"], run.report["interrupted"]) == (True, "INTERRUPTED" in verdict)
    assert [*run.outcomes] == ["case-0", "case-1", "case-2"]
    assert (run.report["gates"][0]["ok"], run.report["gates"][0]["reason"]) == (None, "3 of 6 cases ran")
    assert run.result.ret == status
    last = [line for line in run.result.outlines if line.startswith("queryeval: ")][-1]
    assert fnmatchcase(last, f"queryeval: {verdict}")


def test_run_that_something_else_stopped_is_interrupted(suite, write, run_and_parse):
    write("queryeval.yaml", "gates: [{metric: execution_accuracy, min: 0.5}]")
    write("test_a.py", "def test_a():\n    assert False\n")
    suite(case("good"), name="b.queryeval.yaml")

    run = run_and_parse("-x", "test_a.py", "b.queryeval.yaml")

    assert run.report["gates"][0]["reason"] == "0 of 1 case ran"
    assert run.result.outlines[-1] == "queryeval: INTERRUPTED: 0 of 1 case: none ran (the run was stopped)"


def test_an_error_is_never_an_expected_failure(suite, write, run_and_parse):
    marked = "import pytest\n\ndef pytest_collection_modifyitems(items):\n"
    write("conftest.py", f"{marked}    for item in items: item.add_marker(pytest.mark.xfail)\n")
    suite(case("wrong", WRONG), case("gold", gold=INVALID))

    run = run_and_parse()

    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    assert run.outcomes["gold"] == "error"
    assert run.outcomes["wrong"] in ("missed", "xfailed")
