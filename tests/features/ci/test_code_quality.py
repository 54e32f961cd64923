"""report.codequality: what GitLab's Code Quality reads."""

import json

import pytest
from report_maker import HOSTILE
from samples import HEAD, entry

from pytest_queryeval.features.ci import render_code_quality
from pytest_queryeval.results.aggregation import aggregate


def issues(*cases):
    return json.loads(render_code_quality(aggregate(cases, gates=(), about=HEAD)))


def failed(**changes):
    return entry(**{"path": "s/a.queryeval.yaml", "line": 7, "outcome": "failed"} | changes)


def test_a_failed_case_is_an_issue_at_its_line():
    (issue,) = issues(failed(message="f1 0.000: missing 1 of 2 rows"), entry(id="good"))

    assert len(issue.pop("fingerprint")) == 64
    assert issue == {
        "description": "a: f1 0.000: missing 1 of 2 rows",
        "check_name": "queryeval.failed",
        "severity": "major",
        "location": {"path": "s/a.queryeval.yaml", "lines": {"begin": 7}},
    }


@pytest.mark.parametrize(
    ("outcome", "severities"),
    [("error", ["critical"]), ("failed", ["major"]), ("missed", ["minor"]), ("xfailed", []), ("skipped", [])],
)
def test_severity_follows_the_outcome(outcome, severities):
    assert [issue["severity"] for issue in issues(failed(outcome=outcome))] == severities


def test_a_fingerprint_is_that_of_the_case_in_every_run():
    """GitLab would show a case that moved, or failed for another reason, as one issue resolved and one new."""
    before = issues(failed(), failed(id="b"))
    after = issues(failed(line=9, outcome="error", message="late"), failed(id="b"))

    fingerprints = [{issue["fingerprint"] for issue in issues} for issues in (before, after)]
    assert fingerprints[0] == fingerprints[1]
    assert len(fingerprints[0]) == 2


def test_a_case_whose_line_is_not_known_is_at_the_first():
    assert issues(failed(line=0))[0]["location"]["lines"] == {"begin": 1}


def test_a_run_without_faults_is_an_empty_list():
    assert issues(entry()) == []


@pytest.mark.parametrize("hostile", HOSTILE)
def test_descriptions_are_one_line_without_invisible_characters(hostile):
    (issue,) = issues(failed(id=hostile, difference={"summary": f"{hostile}\n{hostile}" * 100}) | {"message": hostile})

    assert issue["description"].isprintable()
    assert len(issue["description"]) <= 300
