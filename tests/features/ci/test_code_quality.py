"""report.codequality: what GitLab's Code Quality reads."""

import json

import pytest
from report_maker import HOSTILE, plain_report
from samples import entry

from pytest_queryeval.features.ci import render_code_quality


def issues(*cases):
    return json.loads(render_code_quality(plain_report(*cases)))


def failed(**changes):
    return entry(**{"path": "s/a.queryeval.yaml", "line": 7, "outcome": "failed"} | changes)


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


@pytest.mark.parametrize("hostile", HOSTILE)
def test_descriptions_are_one_line_without_invisible_characters(hostile):
    (issue,) = issues(failed(id=hostile, difference={"summary": f"{hostile}\n{hostile}" * 100}) | {"message": hostile})

    assert issue["description"].isprintable()
    assert len(issue["description"]) <= 300
