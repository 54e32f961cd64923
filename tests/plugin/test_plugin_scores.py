"""What is required of scores, several golds, empty golds, and metrics and predictors of the user's own."""

from __future__ import annotations

import pytest
from singers import EMPTY, FIRST_LINE, GOLD, INVALID, WRONG, case, unpredicted


def test_empty_thresholds_require_nothing(suite, run_and_parse):
    suite(case("wrong", WRONG), case("invalid", INVALID), thresholds={})

    run = run_and_parse()

    assert run.result.ret == 0
    assert run.outcomes == {"wrong": "passed", "invalid": "passed"}
    assert run.case("invalid")["scores"]["execution_accuracy"] == 0.0


def test_value_above_a_maximum_fails(suite, run_and_parse):
    limits = {"row_matching_f1": {"min": 0.2, "max": 0.9}}
    suite(case("above", thresholds=limits), case("within", WRONG, thresholds=limits))

    run = run_and_parse()

    assert run.outcomes == {"above": "failed", "within": "passed"}
    assert run.case("above")["message"] == "row_matching_f1 1.000 (needs at least 0.2 and at most 0.9)"


def test_failed_prediction_fails_also_where_only_maxima_are_required(suite, run_and_parse):
    suite(case("bad", INVALID, thresholds={"row_matching_f1": {"max": 0.9}}))

    run = run_and_parse()

    assert run.result.ret == 1
    assert run.outcomes == {"bad": "failed"}
    assert run.case("bad")["message"] == "prediction failed (invalid): no such column: nope"


def test_best_of_several_golds_counts_and_its_index_is_reported(suite, run_and_parse):
    answers = [
        "SELECT name FROM singer",
        {"columns": ["country", "n"], "rows": [["FR", 2], ["DE", 1]]},
        "SELECT 1",
    ]
    suite(case("any", gold_any=answers), case("none", "SELECT 7", gold_any=answers))

    run = run_and_parse()

    assert run.outcomes == {"any": "passed", "none": "failed"}
    assert run.case("any")["gold"]["index"] == 1
    assert run.case("any")["gold"]["query"] is None
    assert run.case("none")["gold"]["index"] == 0


def test_gold_can_be_a_table(suite, run_and_parse):
    table = {"columns": ["country", "n"], "rows": [["DE", 1], ["FR", 3]]}
    suite(case("bad", gold_table=table))

    run = run_and_parse()

    assert run.outcomes == {"bad": "failed"}
    run.result.stdout.fnmatch_lines(
        ["  gold       | (a stored answer)", "    gold     | FR · 3", "    instead  | FR · 2"]
    )
    assert run.case("bad")["difference"]["changed"] == [{"gold": ["FR", 3], "predicted": ["FR", 2]}]


def test_empty_gold_warns_unless_that_is_meant(suite, run_and_parse):
    suite(case("empty", EMPTY, gold=EMPTY), case("meant", EMPTY, gold=EMPTY, allow_empty=True))

    run = run_and_parse("-Wdefault")

    run.result.assert_outcomes(passed=2, warnings=1)
    run.result.stdout.fnmatch_lines(["*QueryEvalWarning: the gold answer has no rows*", "*1 gold without rows*::empty"])
    assert run.case("empty")["details"]["empty_gold"] is True
    assert "empty_gold" not in run.case("meant")["details"]


def test_the_warning_of_an_empty_gold_in_a_table_says_where_it_can_be_meant(write, run):
    write("s.queryeval.yaml", "kind: sql\nsource: {sqlite: {script: t.sql}}\ncases: {file: q.csv}\n")
    write("t.sql", "CREATE TABLE t (a INTEGER);")
    write("q.csv", "id,gold,predicted\na,SELECT a FROM t,SELECT a FROM t\n")

    run("-Wdefault").stdout.fnmatch_lines(["*QueryEvalWarning: the gold answer has no rows*: move the case to YAML: *"])


def test_filters_make_the_warning_of_an_empty_gold_an_error_of_its_case(suite, run_and_parse):
    suite(case("empty", EMPTY, gold=EMPTY), case("good"))

    run = run_and_parse("-W", "error::pytest_queryeval.QueryEvalWarning")

    run.result.assert_outcomes(passed=1, errors=1)
    assert run.outcomes == {"empty": "error", "good": "passed"}
    assert run.case("empty")["message"].startswith("the gold answer has no rows")
    assert run.case("empty")["message"].endswith(f"(a.queryeval.yaml:{FIRST_LINE})")
    assert "evaluation.py" not in run.text


def test_metric_that_conftest_registers_is_scored_and_can_be_required(suite, write, run_and_parse):
    write(
        "conftest.py",
        """
from pytest_queryeval import METRICS

def ours(gold, predicted):
    return None if len(gold.rows) > 2 else len(predicted.rows) / 4

METRICS.register("ours", ours)
""",
    )
    suite(
        case("half", thresholds={"ours": 0.6}),
        case("none", gold="SELECT name FROM singer", thresholds={"ours": 0.6}),
        case("unasked", gold="SELECT name FROM singer", predicted="SELECT name FROM singer", metrics=["ours"]),
    )

    run = run_and_parse()

    assert run.outcomes == {"half": "failed", "none": "error", "unasked": "passed"}
    assert run.case("half")["message"] == "ours 0.500 (needs at least 0.6)"
    assert "metric 'ours' does not apply to this case, but has a threshold" in run.case("none")["message"]
    assert run.case("unasked")["scores"]["ours"] is None


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param("return float('nan')", "nan", id="nan"),
        pytest.param("return float('inf')", "inf", id="infinity"),
        pytest.param("raise ValueError('broken metric')", "broken metric", id="raises"),
    ],
)
def test_metric_that_gives_no_number_is_an_error_of_its_case(suite, write, run_and_parse, body, said):
    register = "from pytest_queryeval import METRICS\nMETRICS.register('ours', ours)"
    write("conftest.py", f"def ours(gold, predicted):\n    {body}\n\n{register}\n")
    suite(case("bad", metrics=["ours"]), case("good"))

    run = run_and_parse()

    assert run.outcomes == {"bad": "error", "good": "passed"}
    assert said in run.case("bad")["message"]


def test_prediction_may_tell_its_time_and_metadata_of_all_types(suite, write, run_and_parse):
    write(
        "predict.py",
        f"""
from decimal import Decimal
from pytest_queryeval import Prediction
from pytest_queryeval.core.model import QueryOrAnswer

def predict(case):
    cost = {{"tokens": 7, "cost": Decimal("0.5"), "logprob": float("-inf"), 1: object}}
    seconds = float("nan") if case.id == "late" else 1.5
    return Prediction(QueryOrAnswer(query={GOLD!r}), predictor="mine\\ud800", seconds=seconds, metadata=cost)
""",
    )
    suite(unpredicted("odd"), unpredicted("late"), predictor="predict.py:predict")

    run = run_and_parse()

    assert run.outcomes == {"odd": "passed", "late": "error"}
    assert "seconds" in run.case("late")["message"]
    assert run.case("odd")["prediction"]["seconds"] == 1.5
    assert run.case("odd")["prediction"]["metadata"]["logprob"] == "-inf"
