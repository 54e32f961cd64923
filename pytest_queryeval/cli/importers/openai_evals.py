"""OpenAI evals: JSON lines with `input`, a text or chat messages, and `ideal`, a text or several of them."""

from __future__ import annotations

from pytest_queryeval.cli.importers import Import, ImportedCase, ImportRequest
from pytest_queryeval.cli.importers.databases import Databases
from pytest_queryeval.cli.importers.keys import check_request, gold_value
from pytest_queryeval.cli.importers.predictions import cases_of, read_predictions
from pytest_queryeval.cli.importers.records import Record, RecordError, read_records
from pytest_queryeval.core.json_value import JsonValue

JSON = "json"


def import_openai_evals(request: ImportRequest) -> Import:
    """Return a case for each sample: its last message is the question, those before are the evidence."""
    check_request(request)
    kind = request.kind or JSON
    databases = Databases(request, request.source)

    def case_of(id_: str, record: Record) -> ImportedCase:
        databases.check_shared(kind)
        ideal = record.fields.get("ideal")
        if ideal is None:
            raise RecordError("it has no 'ideal': samples that a model grades have no answer to compare with")
        golds: list[JsonValue] = [gold_value(each, kind) for each in (ideal if isinstance(ideal, list) else [ideal])]
        evidence, question = _messages(record.fields.get("input"))
        keys: dict[str, JsonValue] = {"question": question}
        keys |= {"evidence": evidence} if evidence else {}
        keys |= {"gold": golds[0]} if len(golds) == 1 else {"gold_any": golds}
        return ImportedCase(id=id_, keys=keys)

    records = read_records(request.source)
    return Import(
        name=request.source.stem,
        settings={"kind": kind, **databases.settings},
        cases=cases_of(records, lambda record: record.id("id"), case_of, read_predictions(request.predictions)),
        has_predictions=request.predictions is not None,
    )


def _messages(prompt: JsonValue) -> tuple[str, str]:
    """Return the messages before the last one, each behind its role, and the last one; raise `RecordError`."""
    if isinstance(prompt, str):
        return "", prompt
    if not isinstance(prompt, list) or not prompt:
        raise RecordError("its 'input' is neither a text nor a list of messages")
    texts: list[tuple[str, str]] = []
    for message in prompt:
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list):
            content = "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
        if not isinstance(message, dict) or not isinstance(content, str):
            raise RecordError("a message of its 'input' has no text under 'content'")
        texts.append((str(message.get("role", "user")), content))
    *before, (_, question) = texts
    return "\n\n".join(f"{role}: {content}" for role, content in before), question
