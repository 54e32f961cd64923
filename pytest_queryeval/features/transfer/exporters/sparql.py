"""Predictions of TEXT2SPARQL: the answers of a system, which `text2sparql query` finds by `qname`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pytest_queryeval.features.transfer.exporters import Exported, PredictionFile, check_kind


def text2sparql_file(cases: Sequence[Exported]) -> PredictionFile:
    """Return what the tool reads of each answer; questions without an answer are left out, as the tool expects it."""
    check_kind(cases, "sparql")
    answers = [
        {"qname": case.id, "question": case.question, "query": case.query} for case in cases if case.query is not None
    ]
    return PredictionFile(f"{json.dumps(answers, indent=2)}\n".encode())
