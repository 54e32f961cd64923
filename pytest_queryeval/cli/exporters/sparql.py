"""Predictions of TEXT2SPARQL: the answers of a system, which `text2sparql query` finds by `qname`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pytest_queryeval.cli.exporters import Exported
from pytest_queryeval.core.errors import ReportError


def text2sparql_file(cases: Sequence[Exported]) -> bytes:
    """Return what the tool reads of each answer; questions without an answer are left out, as the tool expects it."""
    if other := next((case for case in cases if case.kind != "sparql"), None):
        raise ReportError(f"case '{other.id}' is of the kind '{other.kind}': the format is for sparql")
    answers = [
        {"qname": case.id, "question": case.question, "query": case.query} for case in cases if case.query is not None
    ]
    return f"{json.dumps(answers, indent=2)}\n".encode()
