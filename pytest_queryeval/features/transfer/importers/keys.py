"""Keys of a case, made of the fields of a record that are named like them, or by `--map`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pytest_queryeval.core.errors import CaseError, QueryEvalError, SuiteError, did_you_mean
from pytest_queryeval.core.groups import as_marker, as_markers
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.documents.document import file_at, parse_json
from pytest_queryeval.features.transfer.importers import DEFAULT_LANGUAGE, ImportRequest
from pytest_queryeval.features.transfer.importers.records import Record, RecordError
from pytest_queryeval.languages import KINDS

ANSWERS = ("gold", "gold_any", "predicted")
KEYS = (
    "id",
    "question",
    "evidence",
    "difficulty",
    "tags",
    "source",
    "kind",
    "skip",
    "allow_empty",
    "answerable",
    "metadata",
    *ANSWERS,
)
_NO_FILE = file_at("gold")


def check_request(
    request: ImportRequest, *, columns: Sequence[str] = (), kind: str | None = None, has_languages: bool = False
) -> None:
    """Raise `QueryEvalError` for an option that the format has no use for, and for an answer as metadata.

    `columns` are the keys that `--map` may name, `kind` is the only kind of the format, if it has one.
    """
    if kind is not None and request.kind not in (None, kind):
        raise QueryEvalError(f"--kind {request.kind}: cases of this format are of the kind '{kind}'")
    if request.language != DEFAULT_LANGUAGE and not has_languages:
        raise QueryEvalError(f"--language {request.language}: questions of this format are in one language")
    for key in request.columns:
        if key not in columns:
            remedy = did_you_mean(key, columns) if columns else ": the format names its fields itself"
            raise QueryEvalError(f"--map {key}: unknown key '{key}'{remedy}")
    answers = {*ANSWERS, *(request.columns.get(key, key) for key in ANSWERS)}
    if answer_fields := answers.intersection(metadata_fields(request.columns)):
        raise QueryEvalError(f"--map metadata: '{min(answer_fields)}' is an answer, which predictors must not see")


def metadata_fields(columns: Mapping[str, str]) -> list[str]:
    """Return the fields that become metadata, `--map metadata=a,b`."""
    return [name for name in columns.get("metadata", "").split(",") if name]


def described(record: Record, columns: Mapping[str, str] | None = None) -> dict[str, JsonValue]:
    """Return the keys of a case that describe it: question, evidence, difficulty, tags and metadata."""
    columns = columns or {}
    fields = {key: columns.get(key, key) for key in KEYS}
    keys: dict[str, JsonValue] = {"question": record.text(fields["question"])}
    if evidence := record.text(fields["evidence"]):
        keys["evidence"] = evidence
    metadata = {name: record.fields[name] for name in metadata_fields(columns) if name in record.fields}
    difficulty = record.text(fields["difficulty"])
    if marker := as_marker(difficulty):
        keys["difficulty"] = marker
    if marker != difficulty:
        metadata["difficulty"] = difficulty
    tags = record.fields.get(fields["tags"])
    tag_list = tags if isinstance(tags, list) else record.text(fields["tags"]).split(",")
    if markers := as_markers(str(tag).strip() for tag in tag_list):
        keys["tags"] = list[JsonValue](markers)
    if metadata:
        keys["metadata"] = metadata
    return keys


def gold_value(value: JsonValue, kind: str) -> JsonValue:
    """Return a right answer in the form of suites; raise `RecordError` for one that the loader would refuse."""
    if KINDS[kind].has_queries:
        if not isinstance(value, str) or not value.strip():
            raise RecordError("its right answer is not a query")
        return value
    gold = "null" if value is None else value  # in a suite, null is not a value; its text is read as JSON
    try:
        KINDS[kind].read_gold(parse_json(json.dumps(gold), _NO_FILE, line=0))
    except (CaseError, SuiteError) as error:
        problem = error.problems[0].problem if isinstance(error, SuiteError) else error.problem
        raise RecordError(f"its right answer cannot be read: {problem}") from error
    return gold
