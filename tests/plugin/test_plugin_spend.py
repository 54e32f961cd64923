"""Runs that begin no call once a spend limit is reached."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

APP = """
from pathlib import Path

from pytest_queryeval import Prediction, QueryOrAnswer


async def predict(case):
    with Path(__file__).with_name("calls.txt").open("a") as file:
        file.write(case.id + "\\n")
    right = "null" if case.metadata.get("wrong") else case.question
    content = QueryOrAnswer(query=right)
    return Prediction(content, predictor="app", seconds=0.5, metadata={"cost": 0.01})
"""
LIMIT = "--queryeval-spend=cost=0.3"
CUT = "queryeval: NO VERDICT: the spend limit was reached after {} of {} cases"

pytestmark = pytest.mark.feature("json")


@pytest.fixture
def calls(pytester):
    """Return the number of calls so far."""

    def count():
        path = pytester.path / "calls.txt"
        return len(path.read_text().split()) if path.exists() else 0

    return count


@pytest.fixture
def numbers(write):
    """Write a suite of `number` cases, of which the first `wrong` ones are answered wrongly."""

    def write_numbers(number=20, *, wrong=0, app=APP, settings="", name="a.queryeval.yaml", **changes):
        write("app.py", app)
        write("queryeval.yaml", f"kind: json\npredictor: app.py:predict\n{settings}\n")
        cases = [
            {"id": f"c{n}", "question": str(n), "gold": str(n), "metadata": {"wrong": n < wrong}} | changes
            for n in range(number)
        ]
        write(name, json.dumps({"cases": cases}))

    return write_numbers


@pytest.mark.feature("recording")
@pytest.mark.parametrize(("concurrency", "surplus"), [(1, 0), (8, 7)])
def test_of_60_calls_no_further_one_begins_and_a_second_run_goes_on(
    numbers, run_and_parse, calls, concurrency, surplus
):
    numbers(60)
    options = f"--queryeval-concurrency={concurrency}", "--queryeval-record=recorded"

    first = run_and_parse(LIMIT, *options)

    spend, totals = first.report["spend"], first.report["totals"]
    assert 30 <= calls() <= 30 + surplus
    assert (spend["calls"], spend["unstated"], spend["reached"]) == (calls(), 0, True)
    assert spend["sum"] == pytest.approx(calls() / 100)
    assert (totals["passed"], totals["not_run"]) == (calls(), 60 - calls())
    assert first.result.ret == pytest.ExitCode.TESTS_FAILED
    assert first.text.splitlines()[-1] == CUT.format(calls(), 60)
    assert {case["message"] for case in first.report["cases"] if case["outcome"] == "not_run"} == {
        "the spend limit was reached before its turn"
    }

    second = run_and_parse(LIMIT, *options)

    assert (second.result.ret, second.report["totals"]["passed"], calls()) == (0, 60, 60)
    assert second.report["spend"]["calls"] == 60 - spend["calls"]
    assert second.text.splitlines()[-1].startswith("queryeval: PASSED: 60 cases: 60 passed")


@pytest.mark.feature("recording")
def test_trials_are_calls_and_a_case_without_all_of_them_was_not_run(numbers, run_and_parse, calls):
    numbers(10, settings="trials: 3")
    options = "--queryeval-concurrency=8", "--queryeval-record=recorded"

    first = run_and_parse("--queryeval-spend=cost=0.1", *options)
    done = calls()
    second = run_and_parse("--queryeval-spend=off", *options)

    assert 10 <= done <= 17
    assert (first.report["totals"]["passed"], first.report["totals"]["not_run"]) == (done // 3, 10 - done // 3)
    assert (second.report["totals"]["passed"], calls()) == (10, 30)


@pytest.mark.feature("recording")
def test_recorded_and_stated_answers_cost_nothing_and_their_cases_run(numbers, run_and_parse, calls):
    numbers(20)
    run_and_parse("--queryeval-record=recorded", "-k", "c15 or c16 or c17")
    numbers(3, name="stated.queryeval.yaml", predicted="1", thresholds={})

    limited = run_and_parse("--queryeval-spend=cost=0", "--queryeval-record=recorded")

    assert calls() == 3
    names = [case["id"] for case in limited.report["cases"] if case["outcome"] == "passed"]
    assert names == ["c15", "c16", "c17", "c0", "c1", "c2"]
    assert (limited.report["totals"]["passed"], limited.report["totals"]["not_run"]) == (6, 17)
    assert limited.report["spend"]["calls"] == 0
    assert limited.text.splitlines()[-1] == CUT.format(6, 23)


REACHED = "the spend limit was reached after 12 of 20 cases"
LOW, HALF, HIGH = ("{metric: pass_rate, min: " + f"{limit}}}" for limit in (0.4, 0.5, 0.9))


@pytest.mark.parametrize("mode", ["complete", "selection"])
def test_only_a_gate_that_the_rest_cannot_change_is_decided(numbers, run_and_parse, mode):
    options = "--queryeval-spend=cost=0.12", "--queryeval-concurrency=1", f"-oqueryeval_gates={mode}"
    for gates, status, oks, start in (
        (LOW, 0, [True], f"PASSED: {REACHED}: "),
        (HIGH, 1, [False], "FAILED: gate missed: pass_rate is "),
        (f"{LOW}, {HALF}", 1, [True, None], f"NO VERDICT: {REACHED}"),
    ):
        # Of 20 cases 3 are wrong and 9 right: from 9 to 17 right ones in the end.
        numbers(wrong=3, settings=f"on_miss: xfail\ngates: [{gates}]")

        run = run_and_parse(*options)

        assert [gate["ok"] for gate in run.report["gates"]] == oks
        assert run.result.ret == status
        assert run.text.splitlines()[-1].startswith(f"queryeval: {start}")


def test_a_gate_on_regressions_is_decided_where_they_are_too_many(numbers, run_and_parse):
    numbers()
    run_and_parse("--queryeval-concurrency=1").result.assert_outcomes(passed=20)
    Path("report.json").rename("before.json")
    numbers(wrong=3, settings="on_miss: xfail\ngates: [{max_regressions: 2}, {max_regressions: 4}]")

    run = run_and_parse("--queryeval-spend=cost=0.12", "--queryeval-concurrency=1", "--queryeval-baseline=before.json")

    assert [(gate["ok"], gate["reason"]) for gate in run.report["gates"]] == [(False, ""), (None, "12 of 20 cases ran")]


def test_a_limit_that_leaves_out_nothing_changes_nothing(numbers, run_and_parse):
    numbers()
    whole = run_and_parse("--queryeval-spend=cost=0.2")

    assert whole.result.ret == 0
    assert whole.report["spend"]["reached"]
    assert whole.text.splitlines()[-1] == "queryeval: PASSED: 20 cases: 20 passed (no case failed, no gate is set)"


def test_seconds_of_predictions_are_limited_by_a_setting(numbers, run_and_parse, write, calls):
    numbers()
    write("pytest.ini", "[pytest]\nqueryeval_spend = prediction_seconds=4.5\n")

    limited = run_and_parse("--queryeval-concurrency=1")

    assert (calls(), limited.report["spend"]["sum"]) == (9, 4.5)
    assert run_and_parse("--queryeval-spend=off").report["totals"]["passed"] == 20


@pytest.mark.parametrize("hook", [False, True])
def test_seconds_that_the_system_does_not_state_are_measured(numbers, write, run_and_parse, calls, hook):
    unstated = APP.replace("async def", "import time\n\n\ndef").replace("    right", "    time.sleep(0.02)\n    right")
    unstated = unstated.replace(", seconds=0.5", "")
    numbers(app=unstated)
    if hook:
        write("conftest.py", unstated.replace("predict(case)", "pytest_queryeval_predict(case)"))
        write("queryeval.yaml", "kind: json\npredictor: hook\n")

    spend = run_and_parse("--queryeval-spend=prediction_seconds=0.05", "--queryeval-concurrency=1").report["spend"]

    assert 1 <= calls() == spend["calls"] <= 3
    assert spend["sum"] >= 0.05


def test_a_number_that_no_answer_states_ends_calls_soon(numbers, run_and_parse, calls):
    numbers(40)

    run = run_and_parse("--queryeval-spend=cots=5", "--queryeval-concurrency=1")

    assert calls() == 10
    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    assert run.text.splitlines()[-1] == (
        "queryeval: NO VERDICT: calls ended after 10 of 40 cases, because the last 10 calls reported no number 'cots': "
        "did you mean 'cost'?"
    )
    assert "the spend limit does not count 10 of 10 calls, which report no number cots" in run.text
    assert "10 calls in a row reported no number 'cots' before its turn" in {
        case["message"] for case in run.report["cases"]
    }


RAISE = 'raise ValueError("down")'


@pytest.mark.parametrize(
    ("statement", "right", "concurrency", "surplus"),
    [(RAISE, 0, 8, 7), (f"if int(case.question) >= 5: {RAISE}", 5, 1, 0)],
    ids=["all", "after-five"],
)
def test_a_system_that_fails_ends_calls_soon(numbers, run_and_parse, calls, statement, right, concurrency, surplus):
    numbers(60, app=APP.replace("    right =", f"    {statement}\n    right ="))

    run = run_and_parse("--queryeval-spend=cost=5", f"--queryeval-concurrency={concurrency}")

    assert right + 10 <= calls() <= right + 10 + surplus
    assert (run.report["totals"]["passed"], run.report["totals"]["errors"]) == (right, calls() - right)
    assert run.text.splitlines()[-1].endswith(
        f"; calls ended after {calls()} of 60 cases, because the last 10 calls reported no number 'cost'"
    )


def test_golds_of_cases_that_are_left_out_are_not_executed(suite, write, run_and_parse):
    write("app.py", APP.replace("query=right", "query='SELECT 1'"))
    cases = [{"id": f"c{n}", "question": "?", "gold": f"SELECT {n or 1}"} for n in range(9)]
    cases[8]["gold"] = "SELECT nonsense"
    suite(*cases, predictor="app.py:predict", on_miss="xfail")

    run = run_and_parse("--queryeval-spend=cost=0.03", "--queryeval-concurrency=1")

    assert run.outcomes["c8"] == "not_run"
    assert {case["gold"] for case in run.report["cases"] if case["outcome"] == "not_run"} == {None}
