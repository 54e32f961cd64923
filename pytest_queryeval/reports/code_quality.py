"""report.codequality: the cases that did not pass, for the widget of a merge request on GitLab."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256

from pytest_queryeval.core.model import Outcome
from pytest_queryeval.core.report import Report
from pytest_queryeval.results.verdict import finding, worst_first
from pytest_queryeval.text.truncation import escape_line

DESCRIPTION_CHARACTERS = 300
SEVERITIES: Mapping[Outcome, str] = {"error": "critical", "failed": "major", "missed": "minor"}


def render_code_quality(report: Report) -> bytes:
    """Return a list in the form of GitLab's Code Quality, the worst cases first.

    A fingerprint is that of the node id alone, by which GitLab tells whether the target branch has the case as well.
    """
    issues = [
        {
            "description": escape_line(f"{case['id']}: {finding(case)}", DESCRIPTION_CHARACTERS),
            "check_name": f"queryeval.{case['outcome']}",
            "fingerprint": sha256(case["nodeid"].encode(errors="backslashreplace")).hexdigest(),
            "severity": SEVERITIES[case["outcome"]],
            "location": {"path": case["path"], "lines": {"begin": max(case["line"], 1)}},
        }
        for case in worst_first(report)
    ]
    return (json.dumps(issues, indent=1) + "\n").encode()
