"""What a prediction scores that cannot be read, where a metric does not apply to each gold."""

import math

import pytest
from suites import case

from pytest_queryeval import METRICS, evaluate
from pytest_queryeval.core.metric import metric

pytestmark = pytest.mark.usefixtures("working_folder")

LIVES = "[{dataset_id: 'A:B', dimensions: [{dimension_name: INDICATOR, values: [{id: LP, name: Lives}]}]}]"
SDMX = "kind: sdmx\nmetrics: ['recall[INDICATOR]', 'recall[COUNTRY]', 'precision[COUNTRY]', macro_recall]\n"
SQL = "kind: sql\nmetrics: [exact_set_match, exact_set_match_spider, partial_where_f1]\n"
JSON = "kind: json\nmetrics: [json_equal, structural_similarity, path_f1]\n"


def evaluated(*lines, head):
    return evaluate([case(*lines, "predicted: '[{'", head=head)])


def scores(*lines, head):
    return evaluated(*lines, head=head)["cases"][0]["scores"]


@pytest.mark.feature("sdmx")
def test_a_dimension_that_gold_lacks_has_no_score():
    assert scores(f"gold: {LIVES}", head=SDMX) == {
        "recall[INDICATOR]": 0.0,
        "recall[COUNTRY]": None,
        "precision[COUNTRY]": None,
        "macro_recall": 0.0,
    } | dict.fromkeys(("macro_precision", "dataset_precision", "dataset_recall"), 0.0)


@pytest.mark.feature("sdmx")
def test_nothing_to_select_is_not_what_a_failed_prediction_said():
    assert scores("gold: []", head=SDMX)["macro_recall"] == 0.0


@pytest.mark.feature("sdmx")
def test_the_means_of_a_run_count_the_dimensions_that_were_missed():
    report = evaluated(f"gold: {LIVES}", head=SDMX)

    assert report["dimensions"]["INDICATOR"]["recall"]["mean"] == 0.0
    assert "False Negatives [1]\n  * LP: Lives" in report["cases"][0]["details"]["indicator_selection"]


@pytest.mark.feature("json")
def test_a_gold_without_keys_has_no_structure_to_score():
    assert scores("gold: [1]", head=JSON)["structural_similarity"] is None
    assert scores("gold: {a: 1}", head=JSON) == {"json_equal": 0.0, "structural_similarity": 0.0, "path_f1": 0.0}


@pytest.mark.feature("json", "sdmx")
def test_notes_are_not_about_an_answer_that_nobody_gave():
    report = evaluated("gold: {a: {b: 1}}", "options: {json: {at: /a}}", head=JSON)

    assert "notes" not in report["cases"][0]["details"]


@pytest.mark.feature("json", "sdmx")
@pytest.mark.parametrize(
    ("head", "gold", "metric", "reason"),
    [
        (SDMX, LIVES, "recall[COUNTY]", "the gold answer has no terms of COUNTY, but of INDICATOR"),
        (
            JSON + "options: {json: {at: /b}}\n",
            "{a: 1}",
            "structural_similarity",
            "the gold answer has nothing at `/b`",
        ),
        (
            SQL,
            "SELECT a FROM t WHERE a ==== 3",
            "exact_set_match",
            "the gold query cannot be read: EQ lacks a part, line 1,",
        ),
        (SQL, "SELECT a; SELECT b", "partial_where_f1", "the gold query cannot be read: 2 statements, not one"),
        (SQL, "SELECT a FROM t AS", "exact_set_match_spider", "the published grammar does not read the gold query: "),
    ],
)
def test_a_threshold_on_what_does_not_apply_is_an_error_that_says_why(head, gold, metric, reason):
    report = evaluated(f"gold: {gold}", f"thresholds: {{'{metric}': 1}}", head=head)

    (case,) = report["cases"]
    assert case["outcome"] == "error"
    assert f"metric '{metric}' does not apply to this case, but has a threshold: " in case["message"]
    assert reason in case["message"]


@pytest.mark.feature("json")
@pytest.mark.parametrize(
    ("better", "max_score", "worst"),
    [("higher", 9, 0.0), ("higher", math.inf, 0.0), ("lower", 9, 9.0), ("lower", math.inf, None)],
)
@pytest.mark.parametrize("input_", ["answers", "executions"])
def test_a_failed_prediction_has_the_worst_score(monkeypatch, better, max_score, worst, input_):
    @metric(answers=None, better=better, max_score=max_score, input=input_)
    def ours(gold, predicted):
        return 5.0

    monkeypatch.setitem(METRICS._members, "ours", METRICS._admit(ours))
    report = evaluated("gold: {a: 1}", "thresholds: {ours: {max: 6}}", head="kind: json\nmetrics: [ours]\n")

    (case,) = report["cases"]
    assert (case["outcome"], case["scores"]["ours"]) == ("failed", worst)


@pytest.mark.feature("json")
def test_a_cost_without_a_limit_that_does_not_apply_to_an_answer_is_still_an_error(monkeypatch):
    @metric(answers=None, better="lower", max_score=math.inf)
    def ours(gold, predicted):
        return None

    monkeypatch.setitem(METRICS._members, "ours", METRICS._admit(ours))
    report = evaluate([case("gold: {a: 1}", "predicted: {a: 1}", "thresholds: {ours: {max: 6}}", head="kind: json\n")])

    assert report["cases"][0]["outcome"] == "error"
