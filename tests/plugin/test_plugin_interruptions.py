"""Runs that do not go through: a worker dies, a case is run again, the user or pytest stops early."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from xml.etree import ElementTree

import pytest
from singers import FIRST_LINE, GOLD, INVALID, WRONG, case, unpredicted
from waiting import wait_for

SUICIDE = f"""
import os, signal

def predict(case):
    if case.id == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    return {GOLD!r}
"""
SECOND_TIME_LUCKY = f"""
import pathlib

def predict(case):
    before = pathlib.Path(case.id + ".asked")
    if before.exists():
        return {GOLD!r}
    before.touch()
    return {WRONG!r}
"""
SECOND_TIME_COSTS = re.sub(r"return (.*)", r"return Prediction(\1, metadata={'cost': 1.0})", SECOND_TIME_LUCKY)
SLEEPER = f"""
import pathlib, time

def predict(case):
    if case.id == "slow":
        pathlib.Path("asleep").touch()
        time.sleep(120)
    return {GOLD!r}
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
    said = re.fullmatch(
        r"the worker gw0 of pytest-xdist ended while it ran this case: run the case with -n 0", crash["message"]
    )
    assert said
    assert said[0] in ElementTree.tostring(run.junit, encoding="unicode")
    assert (crash["kind"], crash["tags"], crash["path"]) == ("sql", ["fatal"], "a.queryeval.yaml")
    assert crash["line"] == FIRST_LINE + 4
    assert [(gate["value"], gate["n"], gate["ok"]) for gate in run.report["gates"]] == [(0.0, 1, False)]


def test_rerun_cases_and_their_gates_have_the_last_result(suite, write, run_and_parse):
    write("predict.py", SECOND_TIME_LUCKY)
    write("conftest.py", UNTIDY)
    write("queryeval.yaml", "gates: [{metric: pass_rate, min: 0.7}, {metric: execution_accuracy, min: 0.9}]")
    good = [f"case-{number}" for number in range(5)]
    further_cases = [unpredicted("lucky"), case("bad", WRONG), case("untidy")]
    suite(*map(case, good), *further_cases, predictor="predict.py:predict")

    run = run_and_parse("--reruns=1")

    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    assert "3 rerun" in run.text
    assert run.outcomes == {**dict.fromkeys((*good, "lucky"), "passed"), "bad": "failed", "untidy": "error"}
    assert run.case("lucky")["scores"]["execution_accuracy"] == 1.0
    last = run.junit.findall(".//testcase[@name='lucky']")[-1]
    properties = [element.get("name") for element in last.iter("property")]
    assert len(properties) == len(set(properties)) == 5
    untidy = run.case("untidy")
    assert "left open" in untidy["message"]
    assert (untidy["scores"], untidy["predicted"]["query"]) == ({}, GOLD)
    gates = [(gate["value"], gate["n"], gate["errors"], gate["ok"]) for gate in run.report["gates"]]
    assert gates == [(6 / 8, 8, 0, True), (6 / 7, 7, 1, False)]
    last = [line for line in run.result.outlines if line][-1]
    assert last.startswith("queryeval: FAILED: 1 case in error; 1 case failed; gate missed: execution_accuracy: ")


def test_sums_say_that_they_leave_out_the_calls_of_earlier_runs(suite, write, run_and_parse, workers):
    write("predict.py", f"from pytest_queryeval import Prediction\n{SECOND_TIME_COSTS}")
    write("queryeval.yaml", 'gates: [{metric: "metadata[cost]", sum: {max: 1.5}}]')
    suite(unpredicted("lucky"), predictor="predict.py:predict")
    met = "gate met: sum of metadata[cost]: 1, needs at most 1.5 (1 case"

    again, once = run_and_parse("--reruns=1", *workers), [] if workers else run_and_parse().result.outlines

    assert again.outcomes == {"lucky": "passed"}
    assert f"{met}, earlier runs of 1 case are left out)" in again.result.outlines
    assert workers or f"{met})" in once


def test_error_that_a_rerun_overcomes_is_forgotten(suite, write, run_and_parse):
    write("predict.py", SECOND_TIME_LUCKY.replace(f"return {WRONG!r}", "raise ConnectionError"))
    suite(unpredicted("lucky"), predictor="predict.py:predict")

    run = run_and_parse("--reruns=1")

    assert run.result.ret == 0
    assert run.outcomes == {"lucky": "passed"}


def test_interrupt_from_the_keyboard_keeps_finished_cases(pytester, suite, write, workers, report_of):
    write("predict.py", SLEEPER)
    fast = [unpredicted(f"fast-{number}") for number in range(4)]
    suite(*fast, unpredicted("slow"), predictor="predict.py:predict")
    command = [sys.executable, "-m", "pytest", "-v", "--queryeval-report=report.json", "--junitxml=junit.xml", *workers]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}

    with pytester.popen(command, start_new_session=True, **pipes) as process:
        wait_for((pytester.path / "asleep").exists)
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGINT)
        output = process.communicate(timeout=300)[0].decode()

    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    report = report_of(pytester.path / "report.json")
    finished = {case["id"] for case in report["cases"]}
    assert finished == {case["id"] for case in fast}
    assert report["totals"]["passed"] == len(finished)
    assert "report: report.json" in output


BREAKING = {
    "the first failure": "",
    "a hook": "def pytest_runtest_logfinish(nodeid):\n    if nodeid.endswith('case-2'): raise RuntimeError('broken')\n",
    "an exit without a fault": (
        "import pytest\n\ndef pytest_runtest_logfinish(nodeid):\n"
        "    if nodeid.endswith('case-2'): pytest.exit('enough', returncode=0)\n"
    ),
}


@pytest.mark.parametrize("breaking", BREAKING)
def test_a_run_that_broke_off_is_no_whole_one(suite, write, run_and_parse, breaking):
    write("conftest.py", BREAKING[breaking])
    write("queryeval.yaml", "gates: [{metric: pass_rate, min: 0.6}]")
    third = case("case-2", GOLD if BREAKING[breaking] else WRONG)
    suite(*(third if number == 2 else case(f"case-{number}") for number in range(6)))

    run = run_and_parse(*([] if BREAKING[breaking] else ["-x"]))

    assert run.report["stopped"]
    assert [*run.outcomes] == ["case-0", "case-1", "case-2"]
    assert (run.report["gates"][0]["ok"], run.report["gates"][0]["reason"]) == (None, "3 of 6 cases ran")
    assert run.result.ret not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def test_a_run_whose_workers_died_is_no_whole_one(suite, write, run_and_parse):
    write("predict.py", SUICIDE)
    suite(unpredicted("crash"), *(unpredicted(f"case-{n}") for n in range(8)), predictor="predict.py:predict")

    run = run_and_parse("-n1", "--max-worker-restart=0")

    assert run.report["stopped"]
    assert run.report["totals"]["cases"] < 9


def test_an_error_is_never_an_expected_failure(suite, write, run_and_parse):
    marked = "import pytest\n\ndef pytest_collection_modifyitems(items):\n"
    write("conftest.py", f"{marked}    for item in items: item.add_marker(pytest.mark.xfail)\n")
    suite(case("wrong", WRONG), case("gold", gold=INVALID))

    run = run_and_parse()

    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    assert run.outcomes["gold"] == "error"
    assert run.outcomes["wrong"] in ("missed", "xfailed")
