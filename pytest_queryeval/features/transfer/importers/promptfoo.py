"""promptfoo: a configuration with `tests`, whose `equals` asserts become right answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.documents.document import MAX_JSONL_LINE, MEBIBYTE, file_at
from pytest_queryeval.features.transfer.importers import Import, ImportedCase, ImportRequest, Reading, SkippedRecord
from pytest_queryeval.features.transfer.importers.fields import fixed_fields
from pytest_queryeval.features.transfer.importers.golds import gold_value
from pytest_queryeval.features.transfer.importers.reading import (
    JSONL_SUFFIXES,
    Record,
    RecordError,
    metadata_fields,
    numbered_records,
    read_records,
    read_value,
)
from pytest_queryeval.features.transfer.importers.records import Databases, check_request, import_cases, mapping
from pytest_queryeval.text.formatting import one_line

JSON = "json"
EQUALS = "equals"
MAX_ANSWER_CHARACTERS = MAX_JSONL_LINE
_VARIABLE = re.compile(r"\{\{-?\s*([\w.]+)\s*-?\}\}")


def import_promptfoo(request: ImportRequest) -> Import:
    """Return a case for each test with exactly one `equals` assert, whose value is its right answer.

    Other asserts become skipped records. The kind is that of the request, by default `json`. Raise `CaseError` or
    `QueryEvalError` for a file without a list of tests.
    """
    check_request(request, columns=("question", "evidence", "metadata"))
    configuration: JsonValue  # or the list of its tests alone
    if request.source.suffix.lower() in JSONL_SUFFIXES:
        records = read_records(request.source)
        configuration = [None if isinstance(test, SkippedRecord) else dict(test.fields) for test in records]
    else:
        configuration = read_value(file_at(request.source))
    if isinstance(configuration, list):
        configuration = {"tests": configuration}
    if not isinstance(configuration, dict):
        raise file_at(request.source).problem("is not a configuration: expected `tests`")
    tests, default = configuration.get("tests"), configuration.get("defaultTest")
    if not isinstance(tests, list):
        problem = "has no list of `tests`: tests in another file are imported from that file"
        raise QueryEvalError(f"{request.source}: {problem}")
    kind = request.kind or JSON
    skipped_asserts: list[SkippedRecord] = []

    def adapt(record: Record) -> Record:
        test = _Test(tests[record.position], default)
        keys = {**test.described(request.columns), "gold": test.gold(kind)}
        reasons = test.skipped_asserts()
        skipped_asserts.extend(SkippedRecord(record.id(""), reason) for reason in reasons)
        return replace(record, fields={}, keys=keys)

    reading = Reading(numbered_records(tests, "test"), fixed_fields(kind))
    imported = import_cases(request, reading, Databases(request, request.source, {"kind": kind}), adapt=adapt)
    return replace(imported, cases=_with_added_records(skipped_asserts, imported.cases), warnings=[])


def _with_added_records(
    more: list[SkippedRecord], cases: Iterable[ImportedCase | SkippedRecord]
) -> Iterator[ImportedCase | SkippedRecord]:
    """Yield each case, then the records that making it has appended to `more`, which is emptied."""
    for case in cases:
        yield case
        yield from more
        more.clear()


class _Test:
    """A test with the variables and asserts that it shares with the default test."""

    def __init__(self, test: JsonValue, default: JsonValue) -> None:
        """Merge the variables and asserts of a test and the default test.

        Raise `RecordError` for a test in another file.
        """
        if not isinstance(test, dict):
            raise RecordError("it is not written out: import the file that it names")
        shared = default if isinstance(default, dict) else {}
        self._variables = {**mapping(shared.get("vars")), **mapping(test.get("vars"))}
        asserts = [*_as_list(shared.get("assert")), *_as_list(test.get("assert"))]
        self._asserts = [entry for entry in asserts if isinstance(entry, dict)]
        self._characters = 0

    def described(self, columns: Mapping[str, str]) -> dict[str, JsonValue]:
        """Return the question, evidence and metadata of a case.

        The question is the variable that `--map` names, the one called `question`, or the only one. Variables that an
        assert uses are answers, and left out. Raise `RecordError` if there is no such variable, or if it is not text.
        """
        text = json.dumps([entry.get("value") for entry in self._asserts], ensure_ascii=False)
        answers = {name.partition(".")[0] for name in _VARIABLE.findall(text)}
        inputs = excluding(self._variables, answers)
        name = columns.get("question") or ("question" if "question" in inputs else None)
        if name is None and len(inputs) != 1:
            names = ", ".join(map(one_line, inputs)) or "none"
            raise RecordError(f"its question is one of several variables: name it with --map question=NAME ({names})")
        question = inputs.get(name) if name is not None else next(iter(inputs.values()))
        if not isinstance(question, str):
            raise RecordError(f"its variable '{name}' is not text" if name else "its variable is not text")
        if question.startswith("file://"):
            raise RecordError("its question is in another file")
        keys: dict[str, JsonValue] = {"question": question}
        if evidence := inputs.get(columns.get("evidence", "")):
            keys["evidence"] = evidence if isinstance(evidence, str) else json.dumps(evidence, ensure_ascii=False)
        if metadata := {name: inputs[name] for name in metadata_fields(columns) if name in inputs}:
            keys["metadata"] = metadata
        return keys

    def gold(self, kind: str) -> JsonValue:
        """Return the right answer: the value of the only `equals` assert.

        Raise `RecordError` if there is none or several.
        """
        values = [entry.get("value") for entry in self._asserts if entry.get("type") == EQUALS]
        if len(values) > 1:
            raise RecordError("it has several 'equals' asserts, and one answer cannot equal all of them")
        if not values:
            types = ", ".join(sorted({one_line(str(entry.get("type"))) for entry in self._asserts})) or "none"
            raise RecordError(f"it has no 'equals' assert, which says what is right: it has {types}")
        return gold_value(self._filled(values[0]), kind)

    def skipped_asserts(self) -> Iterator[str]:
        """Yield a message for each assert that is not imported."""
        for entry in self._asserts:
            if (type_ := entry.get("type")) != EQUALS:
                yield f"assert '{one_line(str(type_))}' is left out: its test is imported without it"

    def _filled(self, value: JsonValue) -> JsonValue:
        """Return the value of an assert with its variables filled in.

        Raise `RecordError` for another template, for an unknown variable, and for an answer in another file.
        """
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        if isinstance(value, dict):
            return {key: self._filled(item) for key, item in value.items()}
        if not isinstance(value, str):
            return value
        if value.startswith("file://"):
            raise RecordError("its right answer is in another file")
        if "{{" in _VARIABLE.sub("", value) or "{%" in value:
            raise RecordError("its right answer is a template with more than variables")
        return _VARIABLE.sub(self._variable_text, value)

    def _variable_text(self, match: re.Match[str]) -> str:
        if match[1] not in self._variables:
            raise RecordError(f"its right answer needs the variable '{one_line(match[1])}', which it lacks")
        variable = self._variables[match[1]]
        text = variable if isinstance(variable, str) else json.dumps(variable, ensure_ascii=False)
        self._characters += len(text)
        if self._characters > MAX_ANSWER_CHARACTERS:
            raise RecordError(f"its right answer is larger than {MAX_ANSWER_CHARACTERS // MEBIBYTE} MiB")
        return text


def _as_list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
