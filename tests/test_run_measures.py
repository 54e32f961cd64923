"""What answers cost, as metrics with thresholds and gates."""

import pytest
from suites import case, problem

from pytest_queryeval import evaluate
from pytest_queryeval.metrics import METRICS, need_answers
from pytest_queryeval.model import Execution, Failure, Prediction, Stated

HEAD = "kind: json\npredictor: predict.py:predict\nmetrics: [json_equal, prediction_seconds, 'metadata[tokens]']\n"
PREDICT = """
from pytest_queryeval import Prediction, Stated

def predict(case):
    return Prediction(stated=Stated(query='{"a": 1}'), predictor="mine", seconds=2.5, metadata={"tokens": 300, "model": "x"})
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "predict.py").write_text(PREDICT)


def evaluated(*lines, gold="{a: 1}"):
    from suites import load

    written = "\n    ".join((f"gold: {gold}", *lines))
    (found,) = evaluate(load(f"{HEAD}cases:\n  - id: a\n    {written}\n"))["cases"]
    return found


def test_times_and_numbers_of_the_metadata_are_scores_where_they_are_asked_for():
    assert evaluated()["scores"] == {"json_equal": 1.0, "prediction_seconds": 2.5, "metadata[tokens]": 300.0}


@pytest.mark.parametrize(
    ("threshold", "outcome"),
    [
        ("prediction_seconds: {max: 3}", "passed"),
        ("prediction_seconds: {max: 2}", "failed"),
        ("'metadata[tokens]': {max: 500}", "passed"),
        ("'metadata[tokens]': {max: 100}", "failed"),
    ],
)
def test_a_threshold_may_limit_them(threshold, outcome):
    assert evaluated(f"thresholds: {{{threshold}}}")["outcome"] == outcome


@pytest.mark.parametrize("name", ["cost", "model"])
def test_a_threshold_on_what_is_no_number_is_an_error_that_says_so(name):
    found = evaluated(f"thresholds: {{'metadata[{name}]': {{max: 1}}}}")

    assert found["outcome"] == "error"
    assert f"metadata[{name}]: the prediction " in found["message"]


def test_they_are_told_of_answers_that_fail_too():
    found = evaluated("thresholds: {prediction_seconds: {max: 3}}", gold="{a: 2}")

    assert found["scores"]["prediction_seconds"] == 2.5


def test_a_query_that_fails_has_taken_its_time():
    failed = Execution(query="x", error=Failure(kind="timeout", message="late"), seconds=30.0)
    prediction = Prediction(stated=Stated(query="x"), predictor="mine")

    assert METRICS["execution_seconds"].function(failed, prediction) == 30.0


def test_metadata_alone_is_no_metric():
    assert problem("metrics: [metadata]").startswith("metric 'metadata' needs a name: write metadata[NAME]")


def test_they_need_no_source():
    assert not need_answers(["exact_set_match", "prediction_seconds"])
    assert case("metrics: [exact_set_match, prediction_seconds]", "thresholds: {}", head="kind: sql\n").source is None
