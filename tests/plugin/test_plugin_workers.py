"""Runs with workers of pytest-xdist: what only real workers show. Reports cross the wire in all other runs, too."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest
from answering import Answering
from singers import FIRST_LINE, GOLD, INVALID, WRONG, case, unpredicted

TIMES = ("created", "seconds", "execution_seconds", "measures")
PREDICT = f"""
from pathlib import Path

from pytest_queryeval import Prediction, QueryOrAnswer


def predict(case):
    with Path("asked").open("a") as file:
        file.write(case.id + "\\n")
    if case.id.startswith("refused"):
        raise ConnectionError("no answer to " + case.id)
    metadata = {{}} if case.id == "free" else {{"cost": 0.25}}
    return Prediction(QueryOrAnswer(query={GOLD!r}), predictor="p", metadata=metadata)
"""
CONFTEST = f"""
import time

from pytest_queryeval.plugin import collector

collector.PROGRESS_SECONDS = 0


def pytest_queryeval_predict(case, config):
    return {GOLD!r}


def pytest_terminal_summary(terminalreporter):
    print("errors", len(terminalreporter.stats.get("error", [])))
"""
GATES = """
gates:
  - {metric: pass_rate, min: 0.5}
  - {metric: valid_query, min: 0.95}
  - {metric: execution_accuracy, where: {tag: all}, min: 0.1}
  - {no_regression: {metric: valid_query, alpha: 0.1}}
  - {metric: 'metadata[cost]', sum: {max: 0.5}}
"""


@pytest.fixture
def every_outcome(suite, write, monkeypatch):
    """Write suites with all outcomes, whose predictions come from their files, a function and the hook."""
    monkeypatch.setattr("pytest_queryeval.plugin.collector.PROGRESS_SECONDS", 0)  # to be 30 again behind this test
    write("conftest.py", CONFTEST)
    write("predict.py", PREDICT)
    write("queryeval.yaml", GATES)
    mixed = [case("good"), case("bad", WRONG, tags=["b", "a"]), case("invalid", INVALID), case("error", gold=INVALID)]
    suite(*mixed, case("later", skip="no gold yet"), case("known", WRONG, xfail="hard"), tags=["all"])
    suite(*mixed, name="deep/b.queryeval.yaml", on_miss="xfail")
    suite(case("slow", metrics=["ves"], tags=["timing"]), name="c.queryeval.yaml")  # refused with workers
    refused = [unpredicted(f"refused-{number}") for number in range(8)]
    called = [unpredicted("a", trials=2), unpredicted("b"), unpredicted("free")]
    suite(*called, *refused, name="called.queryeval.yaml", predictor="predict.py:predict")
    hooked = {"hook": {}, "concurrency": 1}
    suite(*(unpredicted(f"hooked-{number}") for number in range(3)), name="h.queryeval.yaml", predictor=hooked)


class OneOfTwoWorkers:
    """Sets in a run of this process what pytest-xdist sets in that of a worker, and keeps what it sends at the end."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config):
        config.workerinput = {"workerid": "gw1", "workercount": 2}
        self.output = config.workeroutput = {}


@pytest.fixture
def summary_of_worker(pytester):
    def run(*arguments):
        worker = OneOfTwoWorkers()
        pytester.runpytest_inprocess("-p", "no:rerunfailures", *arguments, plugins=[worker])
        return worker.output["queryeval"]

    return run


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in TIMES}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def gates_annotations_and_verdict(run):
    return [line for line in run.result.outlines if line.startswith(("gate ", "::", "queryeval: F"))]


@pytest.mark.feature("ci")
@pytest.mark.usefixtures("every_outcome")
def test_a_run_is_the_same_with_and_without_workers_but_for_times(pytester, run_and_parse, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "summary.md"))
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    pytester.path.joinpath("base.json").write_text(json.dumps(run_and_parse("-k", "good or bad").report))
    arguments = "-m", "not timing", "--queryeval-baseline=base.json", "--queryeval-report=github"

    alone = run_and_parse(*arguments)
    pytester.path.joinpath("asked").unlink()
    shared = run_and_parse(*arguments, "-n2", "--queryeval-record=rec")
    calls = pytester.path.joinpath("asked").read_text().splitlines()
    replayed = run_and_parse(*arguments, "--queryeval-replay=rec")

    assert alone.report["totals"]["cases"] == 24
    assert [gate["ok"] for gate in alone.report["gates"]] == [False, False, True, True, False]
    assert shared.report["environment"].pop("workers") == 2
    assert without_times(shared.report) == without_times(alone.report)
    assert shared.report["measures"]["metadata[cost]"] == alone.report["measures"]["metadata[cost]"]
    assert shared.result.parseoutcomes() | {"deselected": 1} == alone.result.parseoutcomes()
    assert shared.result.ret == alone.result.ret == pytest.ExitCode.TESTS_FAILED

    assert gates_annotations_and_verdict(shared) == gates_annotations_and_verdict(alone)
    assert shared.result.outlines[-1].startswith("queryeval: FAILED: ")
    assert shared.text.partition("= query evaluation =")[0].count("- same error in 7 more cases -") == 1
    assert "errors 10" in shared.text  # for other plugins
    assert re.search("^queryeval: 24 of 24 cases, ", shared.text, re.MULTILINE)

    assert sorted(calls) == sorted(["a", "a", "b", "free", *(f"refused-{number}" for number in range(8))])
    assert pytester.path.joinpath("asked").read_text().splitlines() == calls
    assert {case["id"]: case["scores"] for case in replayed.report["cases"]} == {
        case["id"]: case["scores"] for case in shared.report["cases"]
    }


def test_stop_at_the_first_failure_keeps_finished_cases_and_evaluates_no_gate(suite, write, run_and_parse):
    write("predict.py", f"import time\n\ndef predict(case):\n    time.sleep(0.2)\n    return {GOLD!r}\n")
    write("queryeval.yaml", "gates: [{metric: execution_accuracy, min: 0.95}]")
    slow = [unpredicted(f"slow-{number}") for number in range(20)]
    suite(case("bad", WRONG), *slow, predictor="predict.py:predict")

    run = run_and_parse("-x", "-n1")

    assert run.outcomes["bad"] == "failed"
    assert len(run.outcomes) < 21
    assert run.report["totals"]["passed"] == len(run.outcomes) - 1
    (gate,) = run.report["gates"]
    assert (gate["ok"], gate["cases"]) == (None, 21)
    assert gate["ran"] < 21
    assert run.result.outlines[-1] == "queryeval: FAILED: 1 case failed; the run was stopped"


def test_a_file_that_cannot_be_read_misses_the_gates_above_it_and_others_run(suite, write, run_and_parse):
    write("queryeval.yaml", "gates: [{metric: pass_rate, min: 0.1}]")
    suite(case("good"), case("bad", WRONG), name="z.queryeval.yaml", on_miss="xfail")
    write("free/queryeval.yaml", "gates: []")
    suite(case("free", WRONG), name="free/y.queryeval.yaml", on_miss="xfail")
    write("broken.queryeval.yaml", "cases: nothing\n")

    run = run_and_parse("-n1")

    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    missed = "gate MISSED: pass_rate: broken.queryeval.yaml could not be read"
    run.result.stdout.fnmatch_lines([missed])
    assert run.report["gates"][0]["ok"] is False
    assert run.outcomes == {"good": "passed", "bad": "missed", "free": "missed"}


def test_a_warning_of_a_suite_is_shown_once(suite, run):
    suite(case("bad", WRONG), on_miss="xfail")
    suite(case("good"), name="sub/songs.yaml")

    result = run("-n2", "a.queryeval.yaml", "sub/songs.yaml")

    assert result.stdout.str().count("rename it to") == 1


@pytest.mark.feature("command_predictor", "json")
@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ([], f"metric 'r_ves' (a.queryeval.yaml:{FIRST_LINE}) cannot be measured with -n: workers spoil each other's"),
        (["a.queryeval.yaml::b", "--queryeval-threshold=ves=0.1"], "metric 'ves' (a.queryeval.yaml:*) cannot be"),
        (["a.queryeval.yaml::b", "--queryeval-stop=decided"], "--queryeval-stop: only one process can decide after"),
        (
            ["a.queryeval.yaml::b", "--queryeval-spend=cost=5"],
            "--queryeval-spend: only one process can add up what all",
        ),
        (["a.queryeval.yaml::b", "--queryeval-threshold=json_equal=1"], "--queryeval-threshold: no case of kind sql"),
        (["p.queryeval.yaml"], "the predictor 'command' of p.queryeval.yaml:* takes 1 call at once, and -n 2 would *"),
    ],
    ids=str,
)
def test_a_worker_runs_nothing_that_workers_cannot_do_and_says_why(suite, write, summary_of_worker, arguments, refusal):
    write("queryeval.yaml", "gates: [{metric: pass_rate, min: 0.5}]")
    suite(case("a", metrics=["r_ves"], thresholds={}), case("b"))
    asking = {"command": ["touch", "asked"], "concurrency": 1}
    suite(unpredicted("a"), unpredicted("b"), name="p.queryeval.yaml", predictor=asking)

    summary = summary_of_worker(*arguments)

    assert fnmatch(summary["misuse"], f"{refusal.replace('[', '[[]')}*")
    assert not Path("asked").exists()


@pytest.mark.feature("http_predictor")
def test_a_worker_calls_for_the_case_at_hand_only(suite, summary_of_worker):
    with Answering(lambda request: GOLD, seconds=0.02) as service:
        suite(*(unpredicted(f"case-{number}") for number in range(8)), predictor={"http": service.url})

        summary_of_worker()

    assert service.most == 1
    assert len(service.asked) == 8


@pytest.mark.parametrize("concurrency", [{}, {"concurrency": 1}])
def test_any_number_of_workers_may_call_functions_and_the_hook(suite, write, summary_of_worker, concurrency):
    write("predict.py", PREDICT)
    write("conftest.py", f"def pytest_queryeval_predict(case, config):\n    return {GOLD!r}\n")
    suite(unpredicted("a"), name="a.queryeval.yaml", predictor={"python": "predict.py:predict", **concurrency})
    suite(unpredicted("b"), name="b.queryeval.yaml", predictor={"hook": {}, **concurrency})

    assert summary_of_worker()["misuse"] == ""
