"""promptfoo: a configuration with `tests`, of which `equals` and `is-json` asserts become right answers and schemas."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path

from pytest_queryeval.cli.importers import Import, ImportedCase, ImportRequest, Skipped
from pytest_queryeval.cli.importers.databases import Databases
from pytest_queryeval.cli.importers.keys import check_request, gold_value, metadata_fields
from pytest_queryeval.cli.importers.predictions import cases_of, read_predictions
from pytest_queryeval.cli.importers.records import RecordError, read_records, read_yaml_file
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.json_value import JsonAnswer, JsonValue
from pytest_queryeval.core.model import Failure
from pytest_queryeval.documents.document import MEBIBYTE, file_at
from pytest_queryeval.documents.json_nodes import MAX_JSONL_LINE
from pytest_queryeval.documents.strict_json import StrictJson
from pytest_queryeval.languages.json.schema import check_untrusted
from pytest_queryeval.sandbox.host import Hosts
from pytest_queryeval.text.truncation import one_line

JSON = "json"
SCHEMA_SECONDS = 10.0
MAX_ITEMS, MAX_LEVELS = 10, 5
MAX_FILLED = MAX_JSONL_LINE  # characters of variables in the answers of a test
_VARIABLE = re.compile(r"\{\{-?\s*([\w.]+)\s*-?\}\}")
_SCALARS: Mapping[str, JsonValue] = {"string": "", "number": 0, "integer": 0, "boolean": False, "null": None}
_JSON = StrictJson()


def import_promptfoo(request: ImportRequest) -> Import:
    """Return a case for each test with an assert that says what is right; other asserts are named as skipped."""
    check_request(request, columns=("question", "evidence", "metadata"))
    configuration = _configuration(request.source)
    tests, default = configuration.get("tests"), configuration.get("defaultTest")
    if not isinstance(tests, list):
        problem = "has no list of `tests`: tests in another file are imported from that file"
        raise QueryEvalError(f"{request.source}: {problem}")
    kind = request.kind or JSON
    databases = Databases(request, request.source)
    predictions = read_predictions(request.predictions)

    def cases() -> Iterator[ImportedCase | Skipped]:
        left_out: list[Skipped] = []
        with ExitStack() as stack:
            schemas = _Schemas(stack)

            def case_of(id_: str, numbered: tuple[int, JsonValue]) -> ImportedCase:
                databases.check_shared(kind)
                test = _Test(numbered[1], default)
                keys = {**test.described(request.columns), **test.golds(kind)}
                files = schemas.of(test, keys)
                left_out.extend(Skipped(id_, reason) for reason in test.left_out())
                return ImportedCase(id=id_, keys=keys, files=files)

            for case in cases_of(enumerate(tests, start=1), lambda one: f"test-{one[0]}", case_of, predictions):
                yield case
                yield from left_out
                left_out.clear()

    has_predictions = request.predictions is not None
    settings: dict[str, JsonValue] = {"kind": kind, **databases.settings}
    return Import(name=request.source.stem, settings=settings, cases=cases(), has_predictions=has_predictions)


def _configuration(path: Path) -> Mapping[str, JsonValue]:
    """Return a configuration; a file may also be the list of its tests alone, as YAML, JSON or JSON lines."""
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return {"tests": [None if isinstance(test, Skipped) else dict(test.fields) for test in read_records(path)]}
    file = file_at(path)
    value = read_yaml_file(file)
    if isinstance(value, list):
        return {"tests": value}
    if not isinstance(value, dict):
        raise file.problem("is no configuration: expected `tests`")
    return value


class _Test:
    """A test with the values and asserts that it takes from the default one."""

    def __init__(self, test: JsonValue, default: JsonValue) -> None:
        """Raise `RecordError` for a test that is not written out here."""
        if not isinstance(test, dict):
            raise RecordError("it is not written out: import the file that it names")
        common = default if isinstance(default, dict) else {}
        self._variables = {**_mapping(common.get("vars")), **_mapping(test.get("vars"))}
        found = [*_list(common.get("assert")), *_list(test.get("assert"))]
        self._asserts = [each for each in found if isinstance(each, dict)]
        self._left = MAX_FILLED

    def described(self, columns: Mapping[str, str]) -> dict[str, JsonValue]:
        """Return question, evidence and metadata; variables that an assert names are answers, and none of these."""
        text = json.dumps([each.get("value") for each in self._asserts], ensure_ascii=False)
        answers = {name.partition(".")[0] for name in _VARIABLE.findall(text)}
        inputs = {name: value for name, value in self._variables.items() if name not in answers}
        name = columns.get("question") or ("question" if "question" in inputs else None)
        if name is None and len(inputs) != 1:
            named = ", ".join(map(one_line, inputs)) or "none"
            raise RecordError(f"its question is one of several variables: name it with --map question=NAME ({named})")
        question = inputs.get(name) if name is not None else next(iter(inputs.values()))
        if not isinstance(question, str):
            raise RecordError(f"its variable '{name}' is no text" if name else "its variable is no text")
        if question.startswith("file://"):
            raise RecordError("its question is in another file")
        keys: dict[str, JsonValue] = {"question": question}
        if evidence := inputs.get(columns.get("evidence", "")):
            keys["evidence"] = evidence if isinstance(evidence, str) else json.dumps(evidence, ensure_ascii=False)
        if metadata := {name: inputs[name] for name in metadata_fields(columns) if name in inputs}:
            keys["metadata"] = metadata
        return keys

    def golds(self, kind: str) -> dict[str, JsonValue]:
        """Return what `equals` says is right; with `is-json` alone, whatever is JSON and keeps the schema is right."""
        values = [self._filled(each.get("value")) for each in self._asserts if each.get("type") == "equals"]
        if len(values) > 1:
            raise RecordError("it has several 'equals' asserts, and one answer cannot equal all of them")
        if values:
            return {"gold": gold_value(values[0], kind)}
        if self.is_json and kind == JSON:
            return {
                "gold": json.dumps(_instance(self.schema), ensure_ascii=False),
                "metrics": ["valid_query"],
                "thresholds": {"valid_query": 1},
            }
        types = ", ".join(sorted({one_line(str(each.get("type"))) for each in self._asserts})) or "none"
        raise RecordError(f"no assert says what is right in the kind '{kind}': it has {types}")

    def left_out(self) -> Iterator[str]:
        """Yield a message for each assert that is not imported."""
        for each in self._asserts:
            if (type_ := each.get("type")) not in ("equals", "is-json"):
                yield f"assert '{one_line(str(type_))}' is left out: its test is imported without it"

    @property
    def is_json(self) -> bool:
        """Whether the answer has to be JSON."""
        return any(each.get("type") == "is-json" for each in self._asserts)

    @property
    def schema(self) -> dict[str, JsonValue] | bool | None:
        """The JSON Schema of an `is-json` assert, None where it has none; raises `RecordError`."""
        values = (each.get("value") for each in self._asserts if each.get("type") == "is-json")
        schema = next((value for value in values if value is not None), None)
        if isinstance(schema, str) and not schema.startswith("file://"):
            try:
                schema = _JSON.read(schema)
            except ValueError as error:
                raise RecordError(f"its schema is not JSON: {one_line(str(error))}") from error
        if not isinstance(schema, dict | bool | None):
            raise RecordError("its schema is in another file")
        return schema

    def _filled(self, value: JsonValue) -> JsonValue:
        """Return the value of an assert with its variables filled in; raise `RecordError` for another template."""
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        if isinstance(value, dict):
            return {key: self._filled(item) for key, item in value.items()}
        if not isinstance(value, str):
            return value
        if value.startswith("file://"):
            raise RecordError("its right answer is in another file")

        def text(match: re.Match[str]) -> str:
            if match[1] not in self._variables:
                raise RecordError(f"its right answer needs the variable '{one_line(match[1])}', which it lacks")
            found = self._variables[match[1]]
            filled_in = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
            self._left -= len(filled_in)
            if self._left < 0:
                raise RecordError(f"its right answer is larger than {MAX_FILLED // MEBIBYTE} MiB")
            return filled_in

        filled = _VARIABLE.sub(text, value)
        if "{{" in _VARIABLE.sub("", value) or "{%" in value:
            raise RecordError("its right answer is a template with more than variables")
        return filled


class _Schemas:
    """The JSON Schemas of `is-json` asserts, each checked as the loader will, and written once."""

    def __init__(self, stack: ExitStack) -> None:
        self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self._stack = stack
        self._hosts: Hosts | None = None

    def of(self, test: _Test, keys: dict[str, JsonValue]) -> dict[str, bytes]:
        """Add the schema of a test to its keys, and return its file; raise `RecordError` where its gold breaks it."""
        schema = test.schema
        if schema is None:
            return {}
        from pytest_queryeval.languages.json.schema_file import read_schema  # jsonschema takes long to import

        content = json.dumps(schema, ensure_ascii=False, indent=1).encode(errors="replace")
        name = f"schema-{sha256(content).hexdigest()[:12]}.json"
        path = self._folder / name
        path.write_bytes(content)
        try:
            found = read_schema(file_at(path))
        except QueryEvalError as error:
            raise RecordError(f"its schema cannot be used: {getattr(error, 'problem', error)}") from error
        if self._hosts is None:
            self._hosts = self._stack.enter_context(Hosts())
        gold = keys["gold"]
        answer = JsonAnswer(_JSON.read(gold) if isinstance(gold, str) else gold)
        broken = check_untrusted(answer, found, self._hosts, timeout=SCHEMA_SECONDS)
        if broken:
            reason = broken.message if isinstance(broken, Failure) else broken[0]
            raise RecordError(f"its right answer breaks its schema: {reason}")
        keys["json_schema"] = name
        return {name: content}


def _instance(schema: JsonValue, levels: int = MAX_LEVELS) -> JsonValue:
    """Return a small answer that keeps most schemas; the caller checks whether it keeps this one."""
    if not isinstance(schema, dict) or not levels:
        return {}
    if given := next((key for key in ("const", "default") if key in schema), None):
        return schema[given]
    for key in ("enum", "examples", "type"):
        if isinstance(values := schema.get(key), list) and values:
            return values[0] if key != "type" else _instance({**schema, "type": values[0]}, levels - 1)
    named, count = str(schema.get("type")), schema.get("minItems")
    if named in _SCALARS:
        return schema.get("minimum", _SCALARS[named])
    if named == "array":
        return [_instance(schema.get("items"), levels - 1)] * (min(count, MAX_ITEMS) if isinstance(count, int) else 0)
    parts = _mapping(schema.get("properties"))
    required = (name for name in _list(schema.get("required")) if isinstance(name, str))
    return {name: _instance(parts.get(name), levels - 1) for name in dict.fromkeys(required)}


def _mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
