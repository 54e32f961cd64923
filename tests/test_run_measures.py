"""Times, and numbers of the metadata, as metrics with thresholds."""

import pytest
from suites import case, load, problem

from pytest_queryeval import evaluate

pytestmark = pytest.mark.usefixtures("working_folder")

HEAD = """\
kind: json
predictor: predict.py:predict
metrics: [json_equal, prediction_seconds, 'metadata[tokens]']
cases:
"""
PREDICT = """
from pytest_queryeval import Prediction

def predict(case):
    return Prediction('{"a": 1}', predictor="mine", seconds=2.5, metadata={"tokens": 300, "model": "x"})
"""
MEASURED = {"prediction_seconds": 2.5, "metadata[tokens]": 300.0}
ROWS = [
    ("", "a: 1", "passed", ""),
    ("prediction_seconds: {max: 3}", "a: 1", "passed", ""),
    ("prediction_seconds: {max: 2}", "a: 1", "failed", ""),
    ("prediction_seconds: {max: 3}", "a: 2", "failed", "json_equal 0.000"),  # which a limit of costs still requires
    ("'metadata[tokens]': {max: 500}", "a: 1", "passed", ""),
    ("'metadata[tokens]': {max: 100}", "a: 1", "failed", ""),
    ("execution_seconds: {max: 3}", "a: 1", "error", "threshold: no predicted query was run: change this"),
    (
        "'metadata[cost]': {max: 1}",
        "a: 1",
        "error",
        "'metadata[cost]' does not apply to this case, but has a threshold: the prediction ",
    ),
    (
        "'metadata[model]': {max: 1}",
        "a: 1",
        "error",
        "'metadata[model]' does not apply to this case, but has a threshold: the prediction ",
    ),
]


@pytest.mark.feature("json")
def test_a_threshold_may_limit_what_an_answer_costs(tmp_path):
    (tmp_path / "predict.py").write_text(PREDICT)
    thresholds = [f", thresholds: {{{threshold}}}" if threshold else "" for threshold, *_ in ROWS]
    lines = [
        f"  - {{id: c{number}, question: What?, gold: {{{gold}}}{required}}}\n"
        for number, ((_, gold, *_), required) in enumerate(zip(ROWS, thresholds, strict=True))
    ]

    cases = evaluate(load(HEAD + "".join(lines)))["cases"]

    assert [own["outcome"] for own in cases] == [outcome for _, _, outcome, _ in ROWS]
    assert all(message in own["message"] for own, (*_, message) in zip(cases, ROWS, strict=True))
    assert all(MEASURED.items() <= own["scores"].items() for own in cases if own["outcome"] != "error")


AS_GATE = "remove it here, and write `gates: [{metric: pass_at_k, min: NUMBER}]` in a queryeval.yaml"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("metrics: [metadata]", "metric 'metadata' needs a name: write metadata[NAME]"),
        ("metrics: [pass_at_k]", f"'pass_at_k' is for gates only: {AS_GATE}"),
        ("thresholds: {pass_at_k: 1}", f"'pass_at_k' is for gates only: {AS_GATE}"),
    ],
)
def test_what_is_no_metric_of_a_case_is_refused(line, message):
    assert problem(line).startswith(message)


def test_they_need_no_source():
    lines = "metrics: [exact_set_match, prediction_seconds]", "thresholds: {}"

    assert case(*lines, head="kind: sql\n").settings.source is None
