"""What people decided on golds, in a run of pytest: outcomes, warnings, the terminal and its junit.xml."""

from __future__ import annotations

import json
import re

import pytest
from singers import FIRST_LINE, GOLD, INVALID, WRONG, case

from pytest_queryeval import QueryEvalWarning, load_cases

pytestmark = pytest.mark.feature("review")
COMMON = {"reviewer": "anna", "at": "2026-11-23T10:00:00Z"}
WITHDRAWN = "gold is wrong (anna), no right answer is known"


def decide(project, **decisions):
    """Write a review file with a decision on each of these cases."""
    lines = [{**COMMON, "suite": "a.queryeval.yaml", "case": id_, **decision} for id_, decision in decisions.items()]
    project.write("reviews.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))


@pytest.fixture(scope="module")
def reviewed(shared_project):
    """A run of cases on whose golds there are decisions of all sorts."""
    wrong = ("bad", "other", "loose", "ambiguous", "closest")
    golds = [case("good"), *(case(id_, WRONG) for id_ in wrong), case("broken", gold=INVALID)]
    shared_project.suite(*golds, reviews="reviews.jsonl")
    decide(
        shared_project,
        bad={"decision": "wrong"},
        broken={"decision": "wrong"},
        other={"decision": "wrong", "answers": [{"query": WRONG}]},
        loose={"decision": "unanswerable"},
        ambiguous={"decision": "ambiguous", "answers": [{"query": GOLD + " HAVING count(*) > 1"}]},
        closest={"decision": "ambiguous", "answers": [{"query": "SELECT name FROM singer"}]},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "120")
        return shared_project.run_and_parse("-rs")


def test_a_case_whose_gold_is_wrong_is_skipped_after_it_ran(reviewed):
    bad, broken = reviewed.case("bad"), reviewed.case("broken")

    assert (bad["outcome"], bad["message"], bad["scores"]) == ("skipped", WITHDRAWN, {})
    assert (bad["unreviewed"]["outcome"], broken["unreviewed"]["outcome"]) == ("failed", "error")
    assert reviewed.report["totals"]["skipped"] == 2
    reviewed.result.stdout.fnmatch_lines([f"SKIPPED * a.queryeval.yaml:*: {WITHDRAWN}"])


def test_terminal_and_junit_say_how_many_cases_are_reviewed(reviewed):
    sentence = "6 of 7 cases reviewed, chosen by disagreement: 3 wrong, 2 ambiguous, 1 unanswerable"

    assert sentence in reviewed.result.stdout.str()
    (of_suite,) = reviewed.junit.findall(".//property[@name='queryeval.reviewed']")
    assert of_suite.get("value") == sentence
    decisions = [element.get("value") for element in reviewed.junit.findall(".//property[@name='queryeval.review']")]
    assert sorted(decisions) == ["ambiguous", "ambiguous", "unanswerable", "wrong", "wrong"]


def test_thresholds_of_the_command_line_apply_to_the_golds_of_the_suite_too(project):
    project.suite(case("bad", WRONG), reviews="reviews.jsonl")
    decide(project, bad={"decision": "unanswerable"})

    (entry,) = project.run_and_parse("--queryeval-threshold=execution_accuracy=0").report["cases"]

    assert (entry["outcome"], entry["unreviewed"]["outcome"]) == ("failed", "passed")


def test_a_stale_decision_warns_and_a_filter_may_make_that_an_error(project):
    project.suite(case("good"), reviews="reviews.jsonl")
    decide(project, good={"decision": "wrong", "gold": f"sha256:{'0' * 64}"})
    change = "question or gold has changed since anna decided 'wrong' (reviews.jsonl:1): review it again"
    message = f"review-stale: case 'good': {change}"

    warned, refused = project.run(), project.run("-W", "error::pytest_queryeval.QueryEvalWarning")

    warned.assert_outcomes(passed=1, warnings=1)
    assert message in warned.stdout.str()
    refused.assert_outcomes(errors=1)
    assert f"a.queryeval.yaml:{FIRST_LINE + 1}: {message}" in refused.stdout.str()
    with pytest.warns(QueryEvalWarning, match=re.escape(message)):
        load_cases("a.queryeval.yaml")
