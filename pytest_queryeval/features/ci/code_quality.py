"""report.codequality: the cases that did not pass, for the widget of a merge request on GitLab."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from textwrap import indent

from pytest_queryeval.core.model import Outcome
from pytest_queryeval.core.report import Report
from pytest_queryeval.reports import ReportFormat, write_whole
from pytest_queryeval.reports.story import finding
from pytest_queryeval.results.verdict import worst_first
from pytest_queryeval.text.formatting import escape_line

DESCRIPTION_CHARACTERS = 300
SEVERITIES: Mapping[Outcome, str] = {"error": "critical", "failed": "major", "missed": "minor"}


def render_code_quality(report: Report) -> bytes:
    """Return a list in the form of GitLab's Code Quality, the worst cases first.

    A fingerprint is that of the node id alone, by which GitLab tells whether the target branch has the case as well.
    """
    return b"".join(_parts(report))


def _parts(report: Report) -> Iterator[bytes]:
    """Yield the list in parts, which are not all in memory at once."""
    before = "["
    for case in worst_first(report):
        issue = {
            "description": escape_line(f"{case['id']}: {finding(case)}", DESCRIPTION_CHARACTERS),
            "check_name": f"queryeval.{case['outcome']}",
            "fingerprint": sha256(case["nodeid"].encode(errors="backslashreplace")).hexdigest(),
            "severity": SEVERITIES[case["outcome"]],
            "location": {"path": case["path"], "lines": {"begin": max(case["line"], 1)}},
        }
        yield (before + indent(f"\n{json.dumps(issue, indent=1)}", " ")).encode()
        before = ","
    yield b"[]\n" if before == "[" else b"\n]\n"


CODE_QUALITY = ReportFormat(render=render_code_quality, write=lambda report, path: write_whole(path, _parts(report)))
