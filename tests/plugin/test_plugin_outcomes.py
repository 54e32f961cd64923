"""What becomes of a case: passed, failed, missed, xfailed, skipped or an error."""

from __future__ import annotations

import pytest
from singers import EMPTY, ENDLESS, FIRST_LINE, GOLD, INVALID, WRONG, case, unpredicted


def test_right_query_passes_and_its_scores_are_junit_properties(suite, run_and_parse, workers):
    suite(case("good", "SELECT country, count(name) FROM singer GROUP BY 1"))

    run = run_and_parse(*workers)

    assert run.result.ret == 0
    assert run.outcomes == {"good": "passed"}
    properties = {found.get("name"): found.get("value") for found in run.testcase("good").iter("property")}
    assert properties == {
        "queryeval.execution_accuracy": "1.0",
        "queryeval.row_matching_f1": "1.0",
        "queryeval.valid_query": "1.0",
    }


def test_missed_threshold_fails_with_a_headline_of_one_line(suite, run_and_parse, workers):
    suite(case("bad", WRONG))

    run = run_and_parse(*workers)

    headline = "execution_accuracy 0.000 (needs at least 1)"
    assert run.result.ret == 1
    run.result.stdout.fnmatch_lines([f"FAILED a.queryeval.yaml::bad - {headline}"])
    assert run.testcase("bad").find("failure").get("message") == headline
    assert run.case("bad")["message"] == headline
    assert run.case("bad")["missed"] == [{"metric": "execution_accuracy", "min": 1.0, "max": None, "value": 0.0}]


def test_failure_shows_metric_queries_and_rows_but_nothing_of_our_code(suite, run_and_parse, workers):
    suite(case("bad", WRONG, question="How many singers\nper country?"))

    run = run_and_parse(*workers, "-vv", "--showlocals")

    run.result.stdout.fnmatch_lines(
        [
            "execution_accuracy 0.000 (needs at least 1)",
            "  question   How many singers per country?",
            f"  gold       | {GOLD.replace('*', '[*]')}",
            f"  predicted  | {WRONG}",
            "    columns  | country · count(?)",
            "    gold     | FR · 2",
            "    instead  | FR · 1",
            "  scores     execution_accuracy 0.000, row_matching_f1 0.500, valid_query 1.000",
            f"  case       a.queryeval.yaml:{FIRST_LINE}",
        ]
    )
    for trace in ("Traceback", "items.py", "evaluation.py", "runtest", "ThresholdMissed"):
        assert trace not in run.text
    assert GOLD in run.testcase("bad").findtext("failure")


@pytest.mark.parametrize(
    ("predicted", "kind"),
    [
        pytest.param(INVALID, "invalid", id="invalid"),
        pytest.param(ENDLESS, "timeout", id="timeout"),
        pytest.param("DROP TABLE singer", "unsafe", id="unsafe"),
        pytest.param("SELECT 1 FROM singer a, singer b", "too_large", id="too_large"),
        pytest.param("", "empty", id="empty"),
    ],
)
@pytest.mark.parametrize(("on_miss", "outcome"), [("fail", "failed"), ("xfail", "missed")])
def test_prediction_that_fails_is_a_failure_of_its_kind(suite, run_and_parse, predicted, kind, on_miss, outcome):
    suite(case("bad", predicted), on_miss=on_miss, timeout=0.3, max_rows=5)

    run = run_and_parse("-rxf")

    assert run.outcomes == {"bad": outcome}
    assert run.case("bad")["predicted"]["error"]["kind"] == kind
    assert set(run.case("bad")["scores"].values()) == {0.0}
    run.result.stdout.fnmatch_lines(
        [f"{'FAILED' if outcome == 'failed' else 'XFAIL'} * - *prediction failed ({kind})*"]
    )
    assert run.result.ret == (1 if outcome == "failed" else 0)


def test_missed_threshold_under_on_miss_xfail_is_missed(suite, run_and_parse):
    suite(case("bad", WRONG), case("good"), on_miss="xfail")

    run = run_and_parse()

    assert run.result.ret == 0
    run.result.assert_outcomes(passed=1, xfailed=1)
    assert run.outcomes == {"bad": "missed", "good": "passed"}
    assert run.report["totals"]["missed"] == 1


def test_runxfail_makes_a_missed_case_fail(suite, run_and_parse):
    suite(case("bad", WRONG, on_miss="xfail"), case("known", WRONG, xfail="too hard"))

    run = run_and_parse("--runxfail")

    run.result.assert_outcomes(failed=2)
    assert run.outcomes == {"bad": "failed", "known": "failed"}


def test_gold_that_fails_or_is_late_is_an_error_and_other_cases_go_on(suite, run_and_parse, workers):
    suite(case("invalid", gold=INVALID), case("late", gold=ENDLESS), case("good"), timeout=0.3)

    run = run_and_parse(*workers)

    run.result.assert_outcomes(passed=1, errors=2)
    assert run.outcomes == {"invalid": "error", "late": "error", "good": "passed"}
    run.result.stdout.fnmatch_lines(
        [f"a.queryeval.yaml:{FIRST_LINE + 1}: gold query failed (invalid): no such column: nope"]
    )
    assert "gold query failed (timeout)" in run.case("late")["message"]
    assert run.testcase("invalid").find("error") is not None
    assert "Traceback" not in run.text


def test_missing_database_is_an_error_and_other_cases_go_on(suite, run_and_parse):
    suite(case("lost", source="gone.db"), case("unbuilt", source={"sqlite": {"script": "gone.sql"}}), case("good"))

    run = run_and_parse()

    run.result.assert_outcomes(passed=1, errors=2)
    assert run.outcomes == {"lost": "error", "unbuilt": "error", "good": "passed"}
    assert "gone.db" in run.case("lost")["message"]
    assert "gone.sql: no such file" in run.case("unbuilt")["message"]
    assert "Traceback" not in run.text


def test_predictor_that_raises_is_an_error_and_other_cases_go_on(suite, write, run_and_parse):
    write(
        "predict.py",
        f"""
def predict(case):
    if case.id == "bad":
        raise ConnectionError("no model")
    return {GOLD!r}
""",
    )
    suite(unpredicted("bad"), unpredicted("good"), predictor="predict.py:predict")

    run = run_and_parse()

    run.result.assert_outcomes(passed=1, errors=1)
    run.result.stdout.fnmatch_lines(["*: predict.py:predict raised ConnectionError: no model"])
    assert run.outcomes == {"bad": "error", "good": "passed"}
    assert run.case("good")["prediction"]["source"] == "python:predict.py:predict"


def test_predictor_that_cannot_be_imported_is_an_error_of_each_case(suite, write, run_and_parse):
    write("predict.py", "1 / 0")
    suite(unpredicted("one"), unpredicted("two"), predictor="predict.py:predict")

    run = run_and_parse()

    run.result.assert_outcomes(errors=2)
    assert "ZeroDivisionError" in run.case("two")["message"]


def test_expected_failure_unexpected_success_and_skip_have_their_own_outcomes(suite, run_and_parse, workers):
    suite(
        case("known", WRONG, xfail="joins are hard"),
        case("better", xfail="joins are hard"),
        case("later", INVALID, gold=INVALID, skip="no gold yet"),
    )

    run = run_and_parse(*workers, "-rxXs")

    assert run.result.ret == 0
    run.result.assert_outcomes(xfailed=1, xpassed=1, skipped=1)
    assert run.outcomes == {"known": "xfailed", "better": "xpassed", "later": "skipped"}
    assert run.case("later")["message"] == "no gold yet"
    run.result.stdout.fnmatch_lines_random(["*joins are hard*", "*no gold yet*"])


def test_unexpected_success_fails_where_xfail_is_strict(pytester, suite, run_and_parse):
    pytester.makeini("[pytest]\nxfail_strict = true")
    suite(case("better", xfail="joins are hard"))

    run = run_and_parse()

    assert run.result.ret == 1
    assert run.outcomes == {"better": "failed"}
    assert "joins are hard" in run.case("better")["message"]


def test_xfail_covers_no_error(suite, run_and_parse):
    suite(case("bad", gold=INVALID, xfail="joins are hard"))

    run = run_and_parse()

    assert run.result.ret == 1
    run.result.assert_outcomes(errors=1)
    assert run.outcomes == {"bad": "error"}


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
        ["  gold       | (a stated answer)", "    gold     | FR · 3", "    instead  | FR · 2"]
    )
    assert run.case("bad")["difference"]["changed"] == [{"gold": ["FR", 3], "predicted": ["FR", 2]}]


def test_empty_gold_warns_unless_that_is_meant(suite, run_and_parse, workers):
    suite(case("empty", EMPTY, gold=EMPTY), case("meant", EMPTY, gold=EMPTY, allow_empty=True))

    run = run_and_parse(*workers, subprocess=True)

    run.result.assert_outcomes(passed=2, warnings=1)
    run.result.stdout.fnmatch_lines(["*QueryEvalWarning: gold has no rows*", "*1 gold answer* without rows*::empty"])
    assert run.case("empty")["details"] == {"empty_gold": True}
    assert run.case("meant")["details"] == {}


def test_filters_make_the_warning_of_an_empty_gold_an_error_of_its_case(suite, run_and_parse):
    suite(case("empty", EMPTY, gold=EMPTY), case("good"))

    run = run_and_parse("-W", "error::pytest_queryeval.QueryEvalWarning")

    run.result.assert_outcomes(passed=1, errors=1)
    assert run.outcomes == {"empty": "error", "good": "passed"}
    assert f"a.queryeval.yaml:{FIRST_LINE}: gold has no rows" in run.case("empty")["message"]
    assert "evaluation.py" not in run.text


def test_metric_that_conftest_registers_is_scored_and_can_be_required(suite, write, run_and_parse, workers):
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

    run = run_and_parse(*workers, subprocess=True)

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

    run = run_and_parse(subprocess=True)

    assert run.outcomes == {"bad": "error", "good": "passed"}
    assert said in run.case("bad")["message"]


def test_prediction_may_tell_its_time_and_metadata_whatever_they_hold(suite, write, run_and_parse, workers):
    write(
        "predict.py",
        f"""
from decimal import Decimal
from pytest_queryeval import Prediction
from pytest_queryeval.model import Stated

def predict(case):
    cost = {{"tokens": 7, "cost": Decimal("0.5"), "logprob": float("-inf"), 1: object}}
    seconds = float("nan") if case.id == "odd" else 1.5
    return Prediction(stated=Stated(query={GOLD!r}), predictor="mine\\ud800", seconds=seconds, metadata=cost)
""",
    )
    suite(unpredicted("odd"), unpredicted("even"), predictor="predict.py:predict")

    run = run_and_parse(*workers)

    assert run.outcomes == {"odd": "passed", "even": "passed"}
    assert run.case("even")["prediction"]["seconds"] == 1.5
    assert run.case("odd")["prediction"]["metadata"]["logprob"] == "-inf"
