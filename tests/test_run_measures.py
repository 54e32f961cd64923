"""What answers cost: for the run, and as metrics with thresholds and gates."""

import pytest
import samples
from samples import entry
from suites import case, problem

from pytest_queryeval import evaluate
from pytest_queryeval.core.model import Execution, Failure, Prediction, QueryOrAnswer
from pytest_queryeval.metrics import METRICS, need_answers
from pytest_queryeval.results.aggregation import MAX_MEASURES, aggregate

HEAD = "kind: json\npredictor: predict.py:predict\nmetrics: [json_equal, prediction_seconds, 'metadata[tokens]']\n"
PREDICT = """
from pytest_queryeval import Prediction, QueryOrAnswer

def predict(case):
    told = {"tokens": 300, "model": "x"}
    return Prediction(QueryOrAnswer(query='{"a": 1}'), predictor="mine", seconds=2.5, metadata=told)
"""


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "predict.py").write_text(PREDICT)


def evaluated(*lines, gold="{a: 1}"):
    from suites import load

    written = "\n    ".join((f"gold: {gold}", *lines))
    (case,) = evaluate(load(f"{HEAD}cases:\n  - id: a\n    question: What?\n    {written}\n"))["cases"]
    return case


def measures(cases):
    return aggregate(cases, gates=(), about=samples.HEAD)["measures"]


@pytest.mark.feature("json")
def test_times_and_numbers_of_the_metadata_are_scores_where_they_are_asked_for():
    assert evaluated()["scores"] == {"json_equal": 1.0, "prediction_seconds": 2.5, "metadata[tokens]": 300.0}


@pytest.mark.feature("json")
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


@pytest.mark.feature("json")
@pytest.mark.parametrize("name", ["cost", "model"])
def test_a_threshold_on_what_is_no_number_is_an_error_that_says_so(name):
    entry = evaluated(f"thresholds: {{'metadata[{name}]': {{max: 1}}}}")

    assert entry["outcome"] == "error"
    assert f"metadata[{name}]: the prediction " in entry["message"]


@pytest.mark.feature("json")
def test_they_are_told_of_answers_that_fail_too():
    entry = evaluated("thresholds: {prediction_seconds: {max: 3}}", gold="{a: 2}")

    assert entry["scores"]["prediction_seconds"] == 2.5


def test_a_query_that_fails_has_taken_its_time():
    failed = Execution(query="x", error=Failure(kind="timeout", message="late"), seconds=30.0)
    prediction = Prediction(QueryOrAnswer(query="x"), predictor="mine")

    assert METRICS["execution_seconds"].function(failed, prediction) == 30.0


def test_metadata_alone_is_no_metric():
    assert problem("metrics: [metadata]").startswith("metric 'metadata' needs a name: write metadata[NAME]")


def test_scores_of_trials_are_for_gates_only():
    said = (
        "'pass_at_k' is for gates only, {metric: pass_at_k, min: NUMBER}: remove it here; a case with several trials "
        "is decided by its `trials_rule`"
    )

    assert problem("thresholds: {pass_at_k: 1}") == said
    assert problem("metrics: [pass_at_k]") == said


def test_they_need_no_source():
    assert not need_answers(["exact_set_match", "prediction_seconds"])
    assert (
        case("metrics: [exact_set_match, prediction_seconds]", "thresholds: {}", head="kind: sql\n").settings.source
        is None
    )


def asked(seconds, execution=0.0, **metadata):
    """What a case and a trial have of a prediction."""
    prediction = {"source": "p", "seconds": seconds, "metadata": metadata}
    return {"prediction": prediction, "predicted": {"seconds": execution}}


def test_measures_are_told_for_the_run_and_for_each_group():
    cases = [
        entry(difficulty="easy", **asked(1.0, total_execution_time=3)),
        entry(difficulty="easy", **asked(2.0, execution=0.5)),
        entry(difficulty="hard", **asked(6.0, llm_time=0.0)),
    ]

    report = aggregate(cases, gates=(), about=samples.HEAD)
    easy, hard = (report["groups"]["difficulty"][level]["measures"] for level in ("easy", "hard"))

    assert report["measures"]["prediction_seconds"] == pytest.approx(
        {"mean": 3.0, "n": 3, "std": 7.0**0.5, "min": 1.0, "median": 2.0, "max": 6.0, "sum": 9.0, "p95": 5.6}
    )
    assert (easy["prediction_seconds"]["mean"], easy["prediction_seconds"]["std"]) == pytest.approx((1.5, 0.5**0.5))
    assert (easy["metadata[total_execution_time]"]["mean"], easy["execution_seconds"]["n"]) == (3, 1)
    assert (hard["metadata[llm_time]"]["mean"], hard["metadata[llm_time]"]["std"]) == (0.0, None)
    assert "metadata[total_execution_time]" not in hard


def test_every_trial_is_a_call_that_took_time():
    case = entry(trials=[asked(1.0) | {"passed": True}, asked(3.0) | {"passed": True}], **asked(1.0))

    statistics = measures([case])["prediction_seconds"]

    assert (statistics["mean"], statistics["n"], statistics["sum"]) == (2.0, 2, 4.0)


def test_predictions_that_nobody_was_asked_for_take_no_part():
    cases = [entry(**asked(0.0)), entry(prediction=None), entry()]

    assert measures(cases) == {}


@pytest.mark.parametrize("told", ["1.5", True, None, 1e300, [1.0]], ids=repr)
def test_what_a_system_tells_is_a_measure_only_if_it_is_a_number(told):
    assert measures([entry(**asked(0.0, llm_time=told))]) == {}


def test_a_system_that_makes_up_names_makes_no_report_endless():
    cases = [entry(**asked(0.0, **{f"x{number}": 1.0})) for number in range(2 * MAX_MEASURES)]

    assert len(measures(cases)) == MAX_MEASURES
