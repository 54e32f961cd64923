"""What becomes of a case: passed, failed, missed, xfailed, skipped or an error."""

from __future__ import annotations

import pytest
from singers import ENDLESS, FIRST_LINE, GOLD, INVALID, WRONG, case, unpredicted


def test_right_query_passes_and_its_scores_are_junit_properties(suite, run_and_parse):
    suite(case("good", "SELECT country, count(name) FROM singer GROUP BY 1"))

    run = run_and_parse()

    assert run.result.ret == 0
    assert run.outcomes == {"good": "passed"}
    properties = {element.get("name"): element.get("value") for element in run.testcase("good").iter("property")}
    assert properties == {
        "queryeval.execution_accuracy": "1.0",
        "queryeval.row_matching_f1": "1.0",
        "queryeval.soft_f1": "1.0",
        "queryeval.exact_set_match": "0.0",
        "queryeval.valid_query": "1.0",
    }


@pytest.mark.feature("causes")
def test_missed_threshold_fails_with_a_headline_of_one_line(suite, run_and_parse):
    suite(case("bad", WRONG))

    run = run_and_parse()

    headline = "missing 1 of 2 rows, 1 extra; execution_accuracy 0.000 (needs at least 1)"
    assert run.result.ret == 1
    run.result.stdout.fnmatch_lines(["FAILED a.queryeval.yaml::bad - missing 1 of 2 rows, 1 extra; execution_accura*"])
    assert run.testcase("bad").find("failure").get("message") == headline
    assert run.case("bad")["message"] == headline
    assert {"queryeval.cause": "wrong-aggregate"}.items() <= {
        element.get("name"): element.get("value") for element in run.testcase("bad").iter("property")
    }.items()
    assert run.case("bad")["violations"] == [{"metric": "execution_accuracy", "min": 1.0, "max": None, "value": 0.0}]


@pytest.mark.feature("causes")
@pytest.mark.parametrize("mode", ["off", "full"])
def test_the_setting_says_where_causes_are_looked_for_and_the_option_goes_before_it(
    suite, pytester, run_and_parse, mode
):
    suite(case("bad", WRONG))
    pytester.makeini("[pytest]\nqueryeval_cause = off")

    run = run_and_parse(f"--queryeval-cause={mode}")

    cause = run.case("bad")["cause"]
    assert (cause is None) == (mode == "off")
    assert run.report["causes"] == ({} if mode == "off" else {"wrong-aggregate": 1})


def test_an_unknown_mode_is_refused(suite, pytester, run):
    suite(case())
    pytester.makeini("[pytest]\nqueryeval_cause = maybe")

    refused = run(), run("--queryeval-cause=some")

    for result, problem in zip(
        refused,
        (
            "queryeval_cause: expected auto, off or full, found 'maybe'",
            "--queryeval-cause: expected auto, off or full, found 'some'",
        ),
        strict=True,
    ):
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"ERROR: {problem}"])


def test_failure_shows_metric_queries_and_rows_but_nothing_of_our_code(suite, run_and_parse):
    suite(case("bad", WRONG, question="How many singers\nper country?"))

    run = run_and_parse("-vv", "--showlocals")

    run.result.stdout.fnmatch_lines(
        [
            "missing 1 of 2 rows, 1 extra; execution_accuracy 0.000 (needs at least 1)",
            "  question   How many singers per country?",
            f"  gold       | {GOLD.replace('*', '[*]')}",
            f"  predicted  | {WRONG}",
            "    columns  | country · count(?)",
            "    gold     | FR · 2",
            "    instead  | FR · 1",
            (
                "  scores     execution_accuracy 0.000, row_matching_f1 0.500, soft_f1 0.750, exact_set_match 0.000, "
                "valid_query 1.000"
            ),
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


def test_gold_that_fails_or_is_late_is_an_error_and_other_cases_go_on(suite, run_and_parse):
    suite(case("invalid", gold=INVALID), case("late", gold=ENDLESS), case("good"), timeout=1)

    run = run_and_parse()

    run.result.assert_outcomes(passed=1, errors=2)
    assert run.outcomes == {"invalid": "error", "late": "error", "good": "passed"}
    hint = f"choose from age, country, name (a.queryeval.yaml:{FIRST_LINE + 1})"
    run.result.stdout.fnmatch_lines([f"gold query failed (invalid): no such column: nope: {hint}"])
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
    run.result.stdout.fnmatch_lines(
        ["predict.py:predict raised ConnectionError: no model (predict.py:*) (a.queryeval.yaml:*)"]
    )
    assert run.outcomes == {"bad": "error", "good": "passed"}
    assert run.case("good")["prediction"]["source"] == "python:predict.py:predict"


def test_predictor_that_cannot_be_imported_is_an_error_of_each_case(suite, write, run_and_parse):
    write("predict.py", "1 / 0\n\n\ndef predict(case):\n    return case.question\n")
    suite(unpredicted("one"), unpredicted("two"), predictor="predict.py:predict")

    run = run_and_parse()

    run.result.assert_outcomes(errors=2)
    assert "ZeroDivisionError" in run.case("two")["message"]


def test_expected_failure_unexpected_success_and_skip_have_their_own_outcomes(suite, run_and_parse):
    suite(
        case("known", WRONG, xfail="joins are hard"),
        case("better", xfail="joins are hard"),
        case("later", INVALID, gold=INVALID, skip="no gold yet"),
    )

    run = run_and_parse("-rxXs")

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


TRACEBACKS = """
def pytest_runtest_logreport(report):
    if report.when == "call":
        print("[", report.longreprtext, "]", sep="")
"""


def test_missed_case_under_on_miss_xfail_has_no_traceback(suite, write, run_and_parse):
    write("conftest.py", TRACEBACKS)
    suite(case("bad", WRONG), on_miss="xfail")

    run = run_and_parse("-s")

    assert (
        "[missing 1 of 2 rows, 1 extra; execution_accuracy 0.000 (needs at least 1)]" in run.text
    )  # to format a traceback takes 60 ms


def test_missed_case_under_on_miss_xfail_fails_where_nothing_is_expected_to_fail(suite, run_and_parse):
    suite(case("bad", WRONG), on_miss="xfail")

    run = run_and_parse("-p", "no:skipping")

    run.result.assert_outcomes(failed=1)
    assert f"  predicted  | {WRONG}" in run.result.outlines


def test_miss_is_an_assertion_that_failed(suite, write, run_and_parse):
    write(
        "conftest.py",
        "def pytest_runtest_makereport(item, call):\n"
        "    if call.excinfo is not None:\n"
        "        print('raised', [base.__name__ for base in call.excinfo.type.__mro__])\n",
    )
    suite(case("bad", WRONG))

    run = run_and_parse("-s")

    assert "'AssertionError', 'Exception'" in run.text  # reports such as Allure's call anything else broken


LAST = "import pytest\n\n@pytest.hookimpl(trylast=True)\n"
BROKEN_HOOKS = {
    "an exception in setup": (
        f"{LAST}def pytest_runtest_setup(item):\n    raise ValueError('too late\\nby far')\n",
        "ValueError: too late",
    ),
    "a time limit of somebody else": (
        f"{LAST}def pytest_runtest_setup(item):\n    pytest.fail('Timeout (>1.0s) from pytest-timeout.')\n",
        "Failed: Timeout (>1.0s) from pytest-timeout.",
    ),
    "an exception in teardown": (
        "def pytest_runtest_teardown(item):\n    raise ValueError('too late')\n",
        "ValueError: too late",
    ),
}


@pytest.mark.parametrize(("conftest", "first"), BROKEN_HOOKS.values(), ids=BROKEN_HOOKS)
def test_message_of_an_error_of_others_begins_with_it(suite, write, run_and_parse, conftest, first):
    write("conftest.py", conftest)
    suite(case("good"))

    run = run_and_parse()

    assert run.outcomes == {"good": "error"}
    assert run.case("good")["message"].splitlines()[0] == first
    assert "conftest.py" in run.case("good")["message"]
    assert f"  a.queryeval.yaml::good  {first}" in run.result.outlines
