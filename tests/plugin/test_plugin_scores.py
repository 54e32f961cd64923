"""What is required of scores, several golds, empty golds, and metrics and predictors of the user's own."""

from __future__ import annotations

from singers import EMPTY, FIRST_LINE, GOLD, INVALID, WRONG, case, unpredicted

BOUNDED = {"row_matching_f1": {"min": 0.2, "max": 0.9}}


def test_a_case_passes_whose_scores_are_within_its_thresholds_if_it_has_any(suite, run_and_parse):
    suite(
        case("wrong", WRONG, thresholds={}),
        case("invalid", INVALID, thresholds={}),
        case("above", thresholds=BOUNDED),
        case("within", WRONG, thresholds=BOUNDED),
        case("no-minimum", INVALID, thresholds={"row_matching_f1": {"max": 0.9}}),
    )

    run = run_and_parse()

    assert run.outcomes == {
        **dict.fromkeys(("wrong", "invalid", "within"), "passed"),
        **dict.fromkeys(("above", "no-minimum"), "failed"),
    }
    assert run.case("invalid")["scores"]["execution_accuracy"] == 0.0
    assert run.case("above")["message"] == "row_matching_f1 1.000 (needs at least 0.2 and at most 0.9)"
    assert run.case("no-minimum")["message"] == "prediction failed (invalid): no such column: nope"


def test_best_of_several_golds_counts_which_can_be_tables(suite, run_and_parse):
    tables = [{"columns": ["country", "n"], "rows": [["FR", count], ["DE", 1]]} for count in (2, 3)]
    answers = ["SELECT name FROM singer", tables[0], "SELECT 1"]
    suite(case("any", gold_any=answers), case("none", "SELECT 7", gold_any=answers), case("bad", gold_table=tables[1]))

    run = run_and_parse()

    assert run.outcomes == {"any": "passed", "none": "failed", "bad": "failed"}
    assert (run.case("any")["gold"]["index"], run.case("any")["gold"]["query"]) == (1, None)
    assert run.case("none")["gold"]["index"] == 0
    run.result.stdout.fnmatch_lines(
        ["  gold       | (a stored answer)", "    gold → predicted | n differs in 1 of 2 rows: 3 → 2 (country FR)"]
    )
    assert run.case("bad")["difference"]["changed"] == [{"gold": ["FR", 3], "predicted": ["FR", 2]}]


def test_empty_gold_warns_unless_that_is_meant_and_filters_make_it_an_error_of_its_case(suite, write, run_and_parse):
    suite(case("empty", EMPTY, gold=EMPTY), case("meant", EMPTY, gold=EMPTY, allow_empty=True))
    write("s.queryeval.yaml", "kind: sql\nsource: {sqlite: {script: singers.sql}}\ncases: {file: q.csv}\n")
    write("q.csv", f"id,gold,predicted\nin-table,{EMPTY},{EMPTY}\n")

    run = run_and_parse("-Wdefault")
    refused = run_and_parse("-W", "error::pytest_queryeval.QueryEvalWarning", "a.queryeval.yaml")

    run.result.assert_outcomes(passed=3, warnings=2)
    run.result.stdout.fnmatch_lines(
        ["*QueryEvalWarning: the gold answer has no rows*", "*gold answers without rows*", "*::empty*"]
    )
    run.result.stdout.fnmatch_lines(["*QueryEvalWarning: the gold answer has no rows*: move the case to YAML: *"])
    assert run.case("empty")["details"]["empty_gold"] is True
    assert "empty_gold" not in run.case("meant")["details"]
    assert refused.outcomes == {"empty": "error", "meant": "passed"}
    assert refused.case("empty")["message"].startswith("the gold answer has no rows")
    assert refused.case("empty")["message"].endswith(f"(a.queryeval.yaml:{FIRST_LINE})")
    assert "evaluation.py" not in refused.text


METRICS = """
from pytest_queryeval import METRICS

def ours(gold, predicted):
    return None if len(gold.rows) > 2 else len(predicted.rows) / 4

def broken(gold, predicted):
    raise ValueError("broken metric")

METRICS.register("ours", ours)
METRICS.register("broken", broken)
METRICS.register("nan", lambda gold, predicted: float("nan"))
METRICS.register("inf", lambda gold, predicted: float("inf"))
METRICS.register("large", lambda gold, predicted: 1e160)
METRICS.register("small", lambda gold, predicted: -1e200)
METRICS.register("whole", lambda gold, predicted: 10 ** 300)
"""


def test_metric_that_conftest_registers_is_scored_and_can_be_required_and_what_is_no_number_is_an_error(
    suite, write, run_and_parse
):
    write("conftest.py", METRICS)
    names = "SELECT name FROM singer"
    wrong = {"broken": "broken metric", "nan": "nan", "inf": "inf"}
    wrong |= {name: f"metric '{name}' gave" for name in ("large", "small", "whole")}
    suite(
        case("half", thresholds={"ours": 0.6}),
        case("none", gold=names, thresholds={"ours": 0.6}),
        case("unasked", names, gold=names, metrics=["ours"]),
        *(case(name, metrics=[name]) for name in wrong),
    )

    run = run_and_parse()

    assert run.outcomes == {"half": "failed", "none": "error", "unasked": "passed", **dict.fromkeys(wrong, "error")}
    assert run.case("half")["message"] == "ours 0.500 (needs at least 0.6)"
    assert "metric 'ours' does not apply to this case, but has a threshold" in run.case("none")["message"]
    assert run.case("unasked")["scores"]["ours"] is None
    for name, said in wrong.items():
        assert said in run.case(name)["message"]


PREDICT = f"""
from decimal import Decimal
from pytest_queryeval import Prediction, QueryOrAnswer

SECONDS = {{"odd": 1.5, "late": float("nan"), "later": 1e308}}

def predict(case):
    cost = {{"tokens": 7, "cost": Decimal("0.5"), "logprob": float("-inf"), 1: object}}
    content = QueryOrAnswer(query={GOLD!r})
    return Prediction(content, predictor="mine\\ud800", seconds=SECONDS[case.id], metadata=cost)
"""


def test_prediction_may_tell_its_time_and_metadata_of_all_types(suite, write, run_and_parse):
    write("predict.py", PREDICT)
    suite(*map(unpredicted, ("odd", "late", "later")), predictor="predict.py:predict")

    run = run_and_parse()

    assert run.outcomes == {"odd": "passed", "late": "error", "later": "error"}
    fault = "predict.py:predict returned a Prediction whose `seconds` is not a number from 0 to 1,000,000,000"
    assert all(run.case(id_)["message"].startswith(fault) for id_ in ("late", "later"))
    assert run.case("odd")["prediction"]["seconds"] == 1.5
    assert run.case("odd")["prediction"]["metadata"]["logprob"] == "-inf"
