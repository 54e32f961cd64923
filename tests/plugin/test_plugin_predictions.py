"""The system under test, asked by a run of pytest: ahead, by the hook, by workers, and not at all."""

from __future__ import annotations

import json
import time

import pytest
from answering import Answering
from singers import GOLD, WRONG, case, unpredicted

NUMBER = 24


def cases(number=NUMBER):
    return [unpredicted(f"case-{index}") for index in range(number)]


def right_or_wrong(asked):
    return GOLD if int(asked["id"].partition("-")[2]) % 3 else WRONG


@pytest.fixture
def service():
    with Answering(right_or_wrong, seconds=0.05) as started:
        yield started


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


@pytest.mark.feature("http_predictor")
def test_trials_of_the_command_line_are_calls_of_their_own(suite, run_and_parse, service):
    suite(*cases(3), predictor={"http": service.url})

    run = run_and_parse("--queryeval-trials=4")

    assert len(service.asked) == 12
    assert [len(case["trials"]) for case in run.report["cases"]] == [4, 4, 4]
    assert run.report["metrics"]["pass_at_k"]["mean"] == pytest.approx(2 / 3)


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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--queryeval-trials=2"], "preds.csv: 1 prediction of more trials was not used: a: write `trials: 3`"),
        (["a.queryeval.yaml::b", "--queryeval-trials=3"], None),
    ],
)
def test_predictions_that_nobody_asked_for_are_named_unless_a_selection_leaves_them_out(
    suite, write, run, options, said
):
    write("preds.csv", "id,trial,predicted\na,1,SELECT 1\na,2,SELECT 2\na,3,SELECT 3\nb,,SELECT 1\ntypo,,SELECT 1\n")
    suite(unpredicted("a"), unpredicted("b"), predictor="preds.csv")

    text = run("-q", *options).stdout.str()

    assert said is None or said in text
    assert ("of more trials" in text) == (said is not None)
    assert ("preds.csv: 1 prediction was not used: typo" in text) == ("a.queryeval.yaml::b" not in options)
