"""What people decided on golds, in a run of pytest: outcomes, warnings, the terminal and its junit.xml."""

from __future__ import annotations

import json
import re

import pytest
from singers import FIRST_LINE, GOLD, INVALID, WRONG, case

from pytest_queryeval import QueryEvalWarning, load_cases

pytestmark = pytest.mark.feature("review")


@pytest.fixture
def decide(write):
    """Write a review file with a decision on each of these cases."""

    def decide(**decisions):
        common = {"suite": "a.queryeval.yaml", "reviewer": "anna", "at": "2026-11-23T10:00:00Z"}
        lines = [{**common, "case": id_, **decision} for id_, decision in decisions.items()]
        write("reviews.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))

    return decide


WITHDRAWN = "gold is wrong (anna), no right answer is known"


def test_a_case_whose_gold_is_wrong_is_skipped_after_it_ran(suite, decide, run_and_parse):
    suite(case("good"), case("bad", WRONG), case("broken", gold=INVALID), reviews="reviews.jsonl")
    decide(bad={"decision": "wrong"}, broken={"decision": "wrong"})

    outcome = run_and_parse("-rs")

    outcome.result.assert_outcomes(passed=1, skipped=2)
    assert outcome.result.ret == 0
    outcome.result.stdout.fnmatch_lines([f"SKIPPED * a.queryeval.yaml:*: {WITHDRAWN}"])
    _, bad, broken = outcome.report["cases"]
    assert (bad["outcome"], bad["message"], bad["scores"]) == ("skipped", WITHDRAWN, {})
    assert (bad["unreviewed"]["outcome"], broken["unreviewed"]["outcome"]) == ("failed", "error")
    assert outcome.report["totals"]["skipped"] == 2


def test_terminal_and_junit_say_how_many_cases_are_reviewed(suite, decide, run_and_parse):
    suite(case("good"), case("bad", WRONG), reviews="reviews.jsonl")
    decide(bad={"decision": "wrong", "answers": [{"query": WRONG}]})

    outcome = run_and_parse()

    sentence = "1 of 2 cases reviewed, chosen by disagreement: 1 wrong"
    assert sentence in outcome.result.stdout.str()
    [reviewed] = outcome.junit.findall(".//property[@name='queryeval.reviewed']")
    assert reviewed.get("value") == sentence
    [decision] = outcome.junit.findall(".//property[@name='queryeval.review']")
    assert decision.get("value") == "wrong"
    assert outcome.report["cases"][1]["gold"]["query"] == WRONG


def test_thresholds_of_the_command_line_apply_to_the_golds_of_the_suite_too(suite, decide, run_and_parse):
    suite(case("bad", WRONG), reviews="reviews.jsonl")
    decide(bad={"decision": "unanswerable"})

    strict, loose = (run_and_parse(*options) for options in ((), ("--queryeval-threshold=execution_accuracy=0",)))

    assert [run.report["cases"][0]["outcome"] for run in (strict, loose)] == ["failed", "failed"]
    assert [run.report["cases"][0]["unreviewed"]["outcome"] for run in (strict, loose)] == ["failed", "passed"]


def test_a_failure_names_the_decision(suite, decide, run):
    suite(case("bad", WRONG), reviews="reviews.jsonl")
    decide(bad={"decision": "ambiguous", "answers": [{"query": GOLD + " HAVING count(*) > 1"}]})

    run().stdout.fnmatch_lines(["*review     ambiguous"])


def test_a_stale_decision_warns_and_a_filter_may_make_that_an_error(suite, decide, run):
    suite(case("good"), reviews="reviews.jsonl")
    decide(good={"decision": "wrong", "gold": f"sha256:{'0' * 64}"})
    change = "question or gold has changed since anna decided 'wrong' (reviews.jsonl:1): review it again"
    message = f"review-stale: case 'good': {change}"

    warned = run()
    warned.assert_outcomes(passed=1, warnings=1)
    assert message in warned.stdout.str()
    with pytest.warns(QueryEvalWarning, match=re.escape(message)):
        load_cases("a.queryeval.yaml")
    refused = run("-W", "error::pytest_queryeval.QueryEvalWarning")
    refused.assert_outcomes(errors=1)
    assert f"a.queryeval.yaml:{FIRST_LINE + 1}: {message}" in refused.stdout.str()


def test_a_damaged_line_is_an_error_of_the_suites_that_use_the_file(suite, write, run):
    suite(case("good"), reviews="reviews.jsonl")
    write("reviews.jsonl", "{\n")

    result = run()

    result.assert_outcomes(errors=1)
    assert "reviews.jsonl:1:2: not JSON" in result.stdout.str()


def test_gates_choose_by_the_decision(suite, decide, write, run_and_parse):
    write("queryeval.yaml", "gates: [{metric: pass_rate, min: 1, where: {not: {review: ambiguous}}}]")
    suite(case("good"), case("bad", WRONG), case("gone"), reviews="reviews.jsonl", on_miss="xfail")
    decide(bad={"decision": "ambiguous"}, gone={"decision": "wrong"})

    [gate] = run_and_parse().report["gates"]

    assert (gate["ok"], gate["n"], gate["cases"]) == (True, 1, 1)


def test_the_closest_of_several_right_answers_has_no_name_of_the_suite(suite, decide, run):
    suite(case("bad", WRONG), reviews="reviews.jsonl")
    decide(bad={"decision": "right", "answers": [{"query": "SELECT name FROM singer"}]})

    run().stdout.fnmatch_lines(["*golds      2, of which right answer * is the closest"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("5", "reviews.jsonl:1: expected an object, found '5'"),
        (
            (
                '{"suite": "a.queryeval.yaml", "case": "good", "decision": "right", "answers": [{"value": 2}], '
                '"reviewer": "anna", "at": "2026-11-23T10:00:00Z"}'
            ),
            "reviews.jsonl:1: a right answer of the kind 'sql' stands under `query` or `table`",
        ),
    ],
    ids=["no object", "no answer of the kind"],
)
def test_a_damaged_line_is_one_line_and_no_traceback(suite, write, run, line, message):
    suite(case("good"), reviews="reviews.jsonl")
    write("reviews.jsonl", line)

    result = run()

    result.stdout.fnmatch_lines([message])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*.py*")
