"""What the page shows of a case, for golds and for audits: question, evidence, schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.model import Case
from pytest_queryeval.features.review.page.runner import Runner
from pytest_queryeval.text.formatting import truncate

LISTED_CHARACTERS = 160
SCHEMA_CHARACTERS = 200_000


def listed_case(case: Case, nodeid: str) -> Mapping[str, Any]:
    """Return a case as the list of cases has it."""
    return {"id": case.id, "nodeid": nodeid, "question": truncate(case.question, LISTED_CHARACTERS)}


def case_facts(case: Case, nodeid: str, runner: Runner) -> Mapping[str, Any]:
    """Return the question, and what it is about; in place of a schema that cannot be listed, the reason."""
    try:
        schema = runner.schema_text(case)
    except QueryEvalError as error:
        schema = f"-- {error}"
    return {
        "id": case.id,
        "nodeid": nodeid,
        "kind": case.settings.kind,
        "question": case.question,
        "evidence": case.evidence,
        "conversation": [{"role": message.role, "content": message.content} for message in case.conversation[:-1]],
        "schema": truncate(schema, SCHEMA_CHARACTERS),
        "source": case.settings.source.name if case.settings.source is not None else None,
    }
