"""The system under test, asked by a run of pytest: ahead, by the hook, by workers, and not at all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from answering import Answering
from singers import GOLD, WRONG, case, unpredicted

NUMBER = 24
HOOK = f"""
def pytest_queryeval_predict(case, config):
    return {GOLD!r} if case.id != "bad" else {WRONG!r}
"""
TOUCH = """
import pathlib

def pytest_runtest_logreport(report):
    if report.when == "teardown":
        pathlib.Path(report.nodeid.partition("::")[2] + ".told").touch()
"""
ASYNC = f"""
import asyncio

under_way = most = 0

async def predict(case):
    global under_way, most
    under_way += 1
    most = max(most, under_way)
    await asyncio.sleep(0.05)
    under_way -= 1
    return f"{GOLD} -- {{most}}"
"""


def cases(number=NUMBER):
    return [unpredicted(f"case-{index}") for index in range(number)]


def right_or_wrong(asked):
    return GOLD if int(asked["id"].partition("-")[2]) % 3 else WRONG


def scores(run):
    return {case["id"]: (case["outcome"], case["scores"]) for case in run.report["cases"]}


@pytest.fixture
def service():
    with Answering(right_or_wrong, seconds=0.05) as started:
        yield started


@pytest.mark.feature("http_predictor")
def test_predictions_are_fetched_ahead_and_at_most_so_many_at_once(suite, run_and_parse, service):
    suite(*cases(), predictor={"http": service.url, "concurrency": 5})

    run = run_and_parse()

    assert service.most == 5
    assert sorted(service.asked) == sorted(f"case-{index}" for index in range(NUMBER))
    assert [case["prediction"]["seconds"] >= 0.05 for case in run.report["cases"]] == [True] * NUMBER


@pytest.mark.feature("http_predictor")
def test_scores_do_not_depend_on_how_many_calls_are_made_at_once(suite, run_and_parse, service):
    suite(*cases(), predictor={"http": service.url})

    alone = run_and_parse("--queryeval-concurrency=1")
    together = run_and_parse("--queryeval-concurrency=16")

    assert alone.report["totals"]["passed"] == 16
    assert scores(together) == scores(alone)


@pytest.mark.feature("http_predictor")
def test_after_the_first_failure_no_call_is_made(suite, run_and_parse, service):
    suite(*cases(200), predictor={"http": service.url, "concurrency": 2})

    run = run_and_parse("-x")

    assert run.outcomes == {"case-0": "failed"}
    count = len(service.asked)
    time.sleep(0.3)
    assert len(service.asked) == count < 100


@pytest.mark.feature("http_predictor")
def test_cases_that_were_left_out_are_not_asked_for(suite, run_and_parse, service):
    suite(*cases(), predictor={"http": service.url})

    run_and_parse("-k", "case-1 and not case-11")

    assert sorted(service.asked) == sorted({f"case-{index}" for index in (1, *range(10, 20))} - {"case-11"})


@pytest.mark.feature("http_predictor")
def test_an_interrupt_ends_calls_that_hang_and_keeps_what_is_done(pytester, suite, write, report_of):
    with Answering(lambda request: time.sleep(100 if request["id"] == "hangs" else 0) or GOLD) as service:
        write("conftest.py", TOUCH)
        suite(unpredicted("done"), unpredicted("hangs"), unpredicted("after"), predictor={"http": service.url})
        command = [sys.executable, "-m", "pytest", "--queryeval-report=report.json", "-v"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
        with pytester.popen(command, start_new_session=True, **pipes) as process:
            while len(service.asked) < 3 or not (pytester.path / "done.told").exists():
                time.sleep(0.02)
            os.kill(process.pid, signal.SIGINT)
            output = process.communicate(timeout=20)[0].decode()  # 3 s, on a machine that has other things to do

    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert [case["id"] for case in report_of(pytester.path / "report.json")["cases"]] == ["done"]


def test_an_async_function_is_awaited_for_several_cases_at_once(suite, write, run_and_parse):
    write("predict.py", ASYNC)
    suite(*cases(), predictor="predict.py:predict")

    run = run_and_parse()

    assert run.report["totals"]["passed"] == NUMBER
    assert max(int(case["predicted"]["query"].split("-- ")[1]) for case in run.report["cases"]) == 8


FAILS_ONCE = f"""
asked = []

async def predict(case):
    asked.append(case.id)
    if len(asked) == 1:
        raise OSError("not yet")
    return {GOLD!r}
"""


def test_a_case_that_is_run_again_is_asked_again_for_all_its_trials(suite, write, run_and_parse):
    write("predict.py", FAILS_ONCE)
    suite(unpredicted("a"), predictor={"python": "predict.py:predict", "concurrency": 1}, trials=20)

    run = run_and_parse("--reruns=1")

    assert run.outcomes == {"a": "passed"}
    assert len(run.case("a")["trials"]) == 20


def test_a_hook_answers_cases_that_have_no_predictor(suite, write, run_and_parse):
    write("conftest.py", HOOK)
    suite(unpredicted("good"), unpredicted("bad"), case("stated", WRONG))

    run = run_and_parse()

    assert run.outcomes == {"good": "passed", "bad": "failed", "stated": "failed"}
    assert run.case("good")["prediction"]["source"] == "hook"


def test_a_suite_may_ask_for_the_hook(suite, write, run_and_parse):
    write("conftest.py", "def pytest_queryeval_predict(case, config):\n    raise OSError('no model')\n")
    suite(unpredicted("a"), predictor="hook")

    run = run_and_parse()

    assert "pytest_queryeval_predict raised OSError: no model (conftest.py:2)" in run.case("a")["message"]


ASKED = "import pathlib\ndef predict(case):\n    pathlib.Path('asked').touch()\n    return 'SELECT 0'\n"


def test_a_case_without_a_question_is_an_error_and_its_system_is_not_asked(suite, write, run_and_parse):
    write("predict.py", ASKED)
    suite(unpredicted("a", question=" ", metadata={"x": 1}), case("b", question=""), predictor="predict.py:predict")

    run = run_and_parse()

    assert run.outcomes == {"a": "error", "b": "passed"}
    assert run.case("a")["message"].startswith("case 'a' has no question: add `question` (a.queryeval.yaml:5)")
    assert not Path("asked").exists()


def test_stored_predictions_and_conversations_need_no_question(suite, write, run_and_parse):
    write("p.jsonl", json.dumps({"id": "a", "predicted": GOLD}))
    suite(unpredicted("a", question=""), predictor="p.jsonl")

    assert run_and_parse().outcomes == {"a": "passed"}


@pytest.mark.parametrize(
    ("header", "cases", "remedy"),
    [
        ("Natural language question", "{file: q.csv}", "columns: {question: Natural language question}"),
        ("Prompt", "{file: q.csv}", "columns: {question: Prompt}"),
        ("question: EN, short", "{file: q.csv}", 'columns: {question: "question: EN, short"}'),
        ("Natural language question", "q.csv", "cases: {file: q.csv, columns: {question: Natural language question}}"),
    ],
)
def test_a_table_whose_questions_have_another_header_says_so_once(run, write, header, cases, remedy):
    write("predict.py", ASKED)
    write("shop.sql", "CREATE TABLE t (a)")
    write("q.csv", f'id,"{header}",gold\n' + "".join(f"c{n},How many?,SELECT {n}\n" for n in range(5)))
    top = "kind: sql\nsource: {sqlite: {script: shop.sql}}\npredictor: predict.py:predict\n"
    write("s.queryeval.yaml", f"{top}cases: {cases}\n")
    message = f"q.csv has no column 'question'; did you mean '{header}'? Write {remedy}"

    result = run()

    result.assert_outcomes(errors=5)
    assert message in result.stdout.str()
    assert "same error in 2 more cases" in result.stdout.str()
    assert not Path("asked").exists()
    write(
        "s.queryeval.yaml", f"{top}{remedy if remedy.startswith('cases') else 'cases: {file: q.csv, ' + remedy + '}'}\n"
    )
    run().assert_outcomes(passed=1, failed=4)


def test_without_a_hook_a_case_needs_a_predictor(suite, run):
    suite(unpredicted("a"))

    run().stdout.fnmatch_lines(["*no prediction: add `predicted`, or `predictor` to the file*"])


@pytest.mark.feature("http_predictor")
def test_trials_of_the_command_line_are_calls_of_their_own(suite, run_and_parse, service):
    suite(*cases(3), predictor={"http": service.url})

    run = run_and_parse("--queryeval-trials=4")

    assert len(service.asked) == 12
    assert [len(case["trials"]) for case in run.report["cases"]] == [4, 4, 4]
    assert run.report["metrics"]["pass_at_k"]["mean"] == pytest.approx(2 / 3)


@pytest.mark.feature("http_predictor")
def test_a_gate_may_ask_that_all_trials_pass(suite, write, run_and_parse, service):
    write("queryeval.yaml", "gates: [{metric: pass_hat_k, min: 0.9}]\n")
    suite(*cases(3), predictor={"http": service.url}, trials=2, on_miss="xfail")

    run = run_and_parse()

    assert [(gate["metric"], gate["ok"]) for gate in run.report["gates"]] == [("pass_hat_k", False)]
    assert run.result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("named", ["suite", "command line"])
def test_a_missing_prediction_is_a_failure_where_the_file_says_so(suite, write, run_and_parse, named):
    write("preds.jsonl", f'{{"id": "good", "predicted": "{GOLD}", "seconds": 3}}\n')
    write("queryeval.yaml", "gates: [{metric: execution_accuracy, min: 0.6}, {metric: prediction_seconds, max: 3}]\n")
    metrics = ["execution_accuracy", "soft_f1", "exact_set_match", "prediction_seconds"]
    settings = {} if named == "command line" else {"predictor": {"file": {"path": "preds.jsonl", "missing": "fail"}}}
    suite(unpredicted("good"), unpredicted("gone"), metrics=metrics, on_miss="xfail", trials=3, **settings)

    run = run_and_parse(*(["--queryeval-predictor=preds.jsonl?missing=fail"] if named == "command line" else []))

    gone = run.case("gone")
    assert run.outcomes == {"good": "passed", "gone": "missed"}
    assert gone["predicted"]["error"] == {
        "kind": "missing",
        "message": "preds.jsonl: no prediction for 'gone' (1 of 2 cases has none): add it",
    }
    assert gone["scores"] == dict.fromkeys(metrics[:3], 0.0) | {"prediction_seconds": None}
    assert [(gate["value"], gate["ok"]) for gate in run.report["gates"]] == [(0.5, False), (3.0, True)]
    assert run.report["causes"] == {"missing": 1}
    assert (gone["prediction"]["missing"], gone["trials"]) == (True, [])
    assert "prediction failed (missing): preds.jsonl: no prediction for 'gone'" in gone["message"]


def test_one_stored_answer_is_no_several_trials(suite, write, run_and_parse):
    entries = [{"id": "one", "predicted": GOLD}, *({"id": "three", "trial": n, "predicted": GOLD} for n in (1, 2, 3))]
    write("preds.jsonl", "\n".join(map(json.dumps, entries)))
    suite(unpredicted("one"), unpredicted("three"), case("stated"), predictor="preds.jsonl", trials=3)

    run = run_and_parse()

    trials_scores = {"pass_at_k", "pass_hat_k"}
    scored = {case["id"]: len(case["trials"]) for case in run.report["cases"] if trials_scores <= case["scores"].keys()}
    assert scored == {"three": 3}
    assert [case["trials"] for case in run.report["cases"] if not trials_scores & case["scores"].keys()] == [[], []]
    assert run.report["trials"]["cases"] == 1
    assert set(run.outcomes.values()) == {"passed"}


def test_predictions_that_nobody_asked_for_are_named(suite, write, run):
    write("preds.jsonl", "".join(f'{{"id": "{id_}", "predicted": "SELECT 1"}}\n' for id_ in ("a", "b", "typo")))
    suite(unpredicted("a"), unpredicted("b"), predictor="preds.jsonl")

    run().stdout.fnmatch_lines(["*preds.jsonl: 1 prediction was not used: typo"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], ["*preds.csv: 2 predictions of further trials were not used: a: write `trials: 3`"]),
        (["--queryeval-trials=2"], ["*preds.csv: 1 prediction of further trials was not used: a: write `trials: 3`"]),
        (["--queryeval-trials=3"], []),
    ],
)
def test_predictions_of_trials_that_nobody_asked_for_are_named(suite, write, run, options, said):
    write("preds.csv", "id,trial,predicted\na,1,SELECT 1\na,2,SELECT 2\na,3,SELECT 3\n")
    suite(unpredicted("a"), predictor="preds.csv")

    result = run("-q", *options)

    result.stdout.fnmatch_lines(said)
    assert ("not used" in result.stdout.str()) == bool(said)


def test_a_selection_names_no_predictions_that_it_leaves_out(suite, write, run):
    write("preds.jsonl", '{"id": "a", "predicted": "SELECT 1"}\n{"id": "b", "predicted": "SELECT 1"}\n')
    suite(unpredicted("a"), unpredicted("b"), predictor="preds.jsonl")

    assert "not used" not in run("a.queryeval.yaml::a").stdout.str()


@pytest.mark.parametrize("option", ["--queryeval-trials=0", "--queryeval-concurrency=0"])
def test_numbers_below_1_are_refused(suite, run, option):
    suite(case())

    result = run(option)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{option.partition('=')[0]}: expected a whole number from 1, found 0"])


@pytest.mark.feature("http_predictor")
def test_no_thread_and_no_process_outlives_a_run(suite, run_and_parse, service):
    import threading

    suite(*cases(), predictor={"http": service.url})

    run_and_parse()

    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("queryeval")]
