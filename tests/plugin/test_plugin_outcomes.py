"""What becomes of a case: passed, failed, missed, xfailed, skipped or an error."""

from __future__ import annotations

import pytest
from singers import ENDLESS, FIRST_LINE, GOLD, INVALID, WRONG, case, unpredicted

FAILURES = {
    "invalid": INVALID,
    "timeout": ENDLESS,
    "unsafe": "DROP TABLE singer",
    "too_large": "SELECT 1 FROM singer a, singer b",
    "empty": "",
}
PREDICT = f"""
def predict(case):
    if case.id == "raises":
        raise ConnectionError("no model")
    return {GOLD!r}
"""
BREAKING = """
import pytest

@pytest.hookimpl(trylast=True)
def pytest_runtest_setup(item):
    if item.name == "in-setup":
        raise ValueError("too late\\nby far")
    if item.name == "by-others":
        pytest.fail("Timeout (>1.0s) from pytest-timeout.")

@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item):
    if item.name == "in-teardown":
        raise ValueError("too late")

def pytest_runtest_makereport(item, call):
    if call.excinfo is not None and item.name == "bad":
        print("raised", [base.__name__ for base in call.excinfo.type.__mro__[1:3]])

def pytest_runtest_logreport(report):
    if report.when == "call" and report.nodeid.endswith("::missed"):
        print("[", report.longreprtext, "]", sep="")
"""
BROKEN = {
    "in-setup": "ValueError: too late",
    "by-others": "Failed: Timeout (>1.0s) from pytest-timeout.",
    "in-teardown": "ValueError: too late",
}
BAD = "missing 1 of 2 rows, 1 extra; execution_accuracy 0.000 (needs at least 1)"


@pytest.fixture(scope="module")
def outcome(shared_project):
    """A run with one case for each outcome, and for each way to it."""
    limits = {"timeout": 0.3, "max_rows": 5}
    shared_project.suite(
        case("good", "SELECT country, count(name) FROM singer GROUP BY 1"),
        case("bad", WRONG, question="How many singers\nper country?"),
        *(case(kind, predicted, **limits) for kind, predicted in FAILURES.items()),
        case("gold-invalid", gold=INVALID),
        case("gold-late", gold=ENDLESS, timeout=1),
        case("lost", source="gone.db"),
        case("unbuilt", source={"sqlite": {"script": "gone.sql"}}),
        case("known", WRONG, xfail="joins are hard"),
        case("better", xfail="joins are hard"),
        case("later", INVALID, gold=INVALID, skip="no gold yet"),
        case("xfail-error", gold=INVALID, xfail="joins are hard"),
        *map(case, BROKEN),
    )
    expected = [case(f"missed-{kind}", predicted, **limits) for kind, predicted in FAILURES.items()]
    shared_project.suite(case("missed", WRONG), *expected, name="b.queryeval.yaml", on_miss="xfail")
    for name, predict in (("c", PREDICT), ("d", "1 / 0\n\n\ndef predict(case): ...\n")):
        shared_project.write(f"{name}.py", predict)
        asked = [unpredicted("raises"), unpredicted("answered")] if name == "c" else [unpredicted("unimported")]
        shared_project.suite(*asked, name=f"{name}.queryeval.yaml", predictor=f"{name}.py:predict")
    shared_project.write("conftest.py", BREAKING)
    return shared_project.run_and_parse("-s", "-vv", "--showlocals", "-rfExXs")


def test_every_case_has_its_outcome_and_other_cases_go_on(outcome):
    expected = {
        **dict.fromkeys(("good", "answered"), "passed"),
        **dict.fromkeys(("bad", *FAILURES), "failed"),
        **dict.fromkeys(("gold-invalid", "gold-late", "lost", "unbuilt", "xfail-error", *BROKEN), "error"),
        **dict.fromkeys(("raises", "unimported"), "error"),
        **dict.fromkeys(("missed", *(f"missed-{kind}" for kind in FAILURES)), "missed"),
        "known": "xfailed",
        "better": "xpassed",
        "later": "skipped",
    }

    assert outcome.outcomes == expected
    assert outcome.result.ret == pytest.ExitCode.TESTS_FAILED
    outcome.result.assert_outcomes(passed=3, failed=6, errors=10, xfailed=7, xpassed=1, skipped=1)
    assert outcome.report["totals"]["missed"] == 6


def test_scores_are_junit_properties(outcome):
    properties = {element.get("name"): element.get("value") for element in outcome.testcase("good").iter("property")}

    assert properties == {
        "queryeval.execution_accuracy": "1.0",
        "queryeval.row_matching_f1": "1.0",
        "queryeval.soft_f1": "1.0",
        "queryeval.exact_set_match": "0.0",
        "queryeval.valid_query": "1.0",
    }


@pytest.mark.feature("causes")
def test_missed_threshold_fails_with_a_headline_of_one_line(outcome):
    outcome.result.stdout.fnmatch_lines(["FAILED a.queryeval.yaml::bad - missing 1 of 2 rows, 1 extra; execution_acc*"])
    testcase = outcome.testcase("bad")
    assert testcase.find("failure").get("message") == outcome.case("bad")["message"] == BAD
    assert ("queryeval.cause", "wrong-aggregate") in [
        (element.get("name"), element.get("value")) for element in testcase.iter("property")
    ]
    violation = {"metric": "execution_accuracy", "min": 1.0, "max": None, "value": 0.0}
    assert outcome.case("bad")["violations"] == [violation]


def test_failure_shows_metric_queries_and_rows_but_nothing_of_our_code(outcome):
    outcome.result.stdout.fnmatch_lines(
        [
            BAD,
            "  question   How many singers per country?",
            f"  gold       | {GOLD.replace('*', '[*]')}",
            f"  predicted  | {WRONG}",
            "    columns  | country · count(?)",
            "    gold     | FR · 2",
            "    instead  | FR · 1",
            "  scores     execution_accuracy 0.000, row_matching_f1 0.500, soft_f1 0.750, exact_set_match 0.000, *",
            f"  case       a.queryeval.yaml:{FIRST_LINE + 1}",
        ]
    )
    for trace in ("Traceback", "items.py", "evaluation.py", "ThresholdMissed"):
        assert trace not in outcome.text
    assert GOLD in outcome.testcase("bad").findtext("failure")


def test_a_miss_is_an_assertion_that_failed(outcome):
    assert "'AssertionError', 'Exception'" in outcome.text  # reports such as Allure's call anything else broken


def test_missed_case_under_on_miss_xfail_has_no_traceback(outcome):
    assert f"[{BAD}]" in outcome.text  # to format a traceback takes 60 ms


@pytest.mark.parametrize("kind", FAILURES)
def test_prediction_that_fails_is_a_failure_of_its_kind(outcome, kind):
    for id_, word in ((kind, "FAILED"), (f"missed-{kind}", "XFAIL")):
        entry = outcome.case(id_)
        assert entry["predicted"]["error"]["kind"] == kind
        assert set(entry["scores"].values()) == {0.0}
        outcome.result.stdout.fnmatch_lines([f"{word} *::{id_} - *prediction failed ({kind})*"])


def test_errors_say_what_is_at_fault(outcome):
    hint = "no such column: nope: choose from age, country, name"
    place = f"(a.queryeval.yaml:{FIRST_LINE + 2 + len(FAILURES)})"
    messages = {
        "gold-invalid": f"gold query failed (invalid): {hint} {place}",
        "gold-late": "gold query failed (timeout)",
        "lost": "gone.db",
        "unbuilt": "gone.sql: no such file",
        "raises": "c.py:predict raised ConnectionError: no model (c.py:",
        "unimported": "ZeroDivisionError",
    }

    assert {id_ for id_, said in messages.items() if said not in outcome.case(id_)["message"]} == set()
    assert outcome.testcase("gold-invalid").find("error") is not None
    assert messages["gold-invalid"] in outcome.text


@pytest.mark.parametrize("id_", BROKEN)
def test_message_of_an_error_of_others_begins_with_it(outcome, id_):
    message = outcome.case(id_)["message"]

    assert message.splitlines()[0] == BROKEN[id_]
    assert "conftest.py" in message


def test_reasons_of_skipped_and_expected_cases_are_told(outcome):
    assert outcome.case("later")["message"] == "no gold yet"
    assert outcome.case("answered")["prediction"]["source"] == "python:c.py:predict"
    for line in ("SKIPPED*no gold yet*", "XFAIL *::known - *joins are hard*", "XPASS *::better - *joins are hard*"):
        outcome.result.stdout.fnmatch_lines([line])


@pytest.mark.parametrize(
    ("options", "outcomes"),
    [
        ("--runxfail", {"miss": "failed", "known": "failed", "better": "passed"}),
        ("-p no:skipping", {"miss": "failed", "known": "failed", "better": "passed"}),
        ("-o xfail_strict=true", {"miss": "missed", "known": "xfailed", "better": "failed"}),
    ],
)
def test_options_of_pytest_decide_what_expected_failures_are(suite, run_and_parse, options, outcomes):
    suite(case("miss", WRONG, on_miss="xfail"), case("known", WRONG, xfail="joins"), case("better", xfail="joins"))

    run = run_and_parse(*options.split())

    assert run.outcomes == outcomes
    assert f"  predicted  | {WRONG}" in run.result.outlines or outcomes["miss"] == "missed"
    assert ("joins" in run.case("better")["message"]) == (outcomes["better"] == "failed")


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
