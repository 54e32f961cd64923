"""The JSON Schema of answers: the key `json_schema` of suites, and the check of answers against it."""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_queryeval.core.errors import CaseError, SourceError
from pytest_queryeval.core.json_value import JsonAnswer, JsonSchema
from pytest_queryeval.core.model import Case, Failure
from pytest_queryeval.core.shapes import TEXT, shape
from pytest_queryeval.core.table import Table
from pytest_queryeval.documents.document import Node, file_at, modification_time
from pytest_queryeval.documents.values import required_text
from pytest_queryeval.features.json.difference import path_text
from pytest_queryeval.sandbox.host import Host, Hosts
from pytest_queryeval.suites.keys import Key
from pytest_queryeval.text.formatting import one_line

DRIVER = Path(__file__).with_name("schema_child.py")
MAX_SCHEMAS = 16  # that are kept compiled
MAX_VIOLATIONS = 10
MEMORY_BYTES = 2 * 2**30  # an answer of 32 MiB can be three million small objects, each of which is copied
MAX_LINE = 300  # characters


@shape(TEXT)
def read_json_schema(node: Node) -> JsonSchema:
    """Return the JSON Schema in the file that a node names, relative to the node's file.

    Nodes that name the same file share one object, so that the schema is compiled once. Raise `CaseError` at the node,
    also for a problem in the file.
    """
    path = file_at(node.file.folder / required_text(node)).path
    schema = _cached_schema(path, modification_time(path))
    if isinstance(schema, str):
        raise node.problem(schema)
    return schema


@lru_cache(maxsize=16)
def _cached_schema(path: Path, _: int) -> JsonSchema | str:
    """Return the schema of a file, or the text of its problem.

    Both are cached, so that a large file is read once; the number is the time of the file's last change.
    """
    from pytest_queryeval.features.json.schema_file import read_schema  # jsonschema takes long to import

    try:
        return read_schema(file_at(path))
    except CaseError as error:
        return str(error)


JSON_SCHEMA = Key(
    name="json_schema",
    description="a file with the JSON Schema of answers",
    levels=("folder", "file", "case"),
    read=read_json_schema,
    used_by=lambda kind: kind.name == "json",
)


def schema_of(case: Case) -> JsonSchema | None:
    """Return the JSON Schema that the answers of a case have to satisfy; None if there is none."""
    schema = case.extra.get("json_schema")
    return schema if isinstance(schema, JsonSchema) else None


def violations(answer: JsonAnswer, schema: JsonSchema) -> tuple[str, ...]:
    """Return the first rules of the schema that a trusted answer breaks, at most ten, as texts `$.query.limit: reason`.

    They are sorted by path. There is no time limit, so use `check_untrusted` for untrusted answers. Raise `SourceError`
    if the schema or the answer is nested too deeply, or jsonschema fails.
    """
    from pytest_queryeval.features.json import schema_child

    try:
        return _violation_texts(schema_child.violations(_compile(schema), answer.value))
    except Exception as error:
        # The schema was checked when it was read, so any other error is a limit of jsonschema.
        reason = str(error) if isinstance(error, schema_child.TooDeep) else f"{type(error).__name__}: {error}"
        raise SourceError(f"{_check_text(schema)}: {one_line(reason)}") from error


def check_untrusted(
    answer: JsonAnswer, schema: JsonSchema, hosts: Hosts, *, timeout: float
) -> tuple[str, ...] | Failure:
    """Return the `violations` of an untrusted answer, found in a child process within `timeout` seconds.

    Return a `Failure` if the answer is too large, or cannot be checked in time. Raise `SourceError` as `violations`
    does, and if the process cannot be started.
    """
    try:
        settings = {"schema": _pack(schema), "answer": marshal.dumps(answer.value)}
    except ValueError as error:
        return Failure(kind="invalid", message=f"{_check_text(schema)}: {error}")
    host = hosts.shared(Host("JSON Schema", DRIVER, packages=("jsonschema",), memory=MEMORY_BYTES))
    try:
        execution = host.execute(settings, "violations", timeout=timeout, max_rows=MAX_VIOLATIONS)
    except SourceError as error:
        raise SourceError(f"{_check_text(schema)}: {error}") from error
    if execution.error:
        return replace(execution.error, message=f"{_check_text(schema)}: {execution.error.message}")
    assert isinstance(execution.answer, Table)
    return _violation_texts(execution.answer.rows)


def _check_text(schema: JsonSchema) -> str:
    return f"the check against {schema.file}"


def _violation_texts(violation_rows: Iterable[Sequence[Any]]) -> tuple[str, ...]:
    return tuple(one_line(f"{path_text(steps)}: {reason}", MAX_LINE) for steps, reason in violation_rows)


@lru_cache(maxsize=MAX_SCHEMAS)
def _compile(schema: JsonSchema) -> Any:
    from pytest_queryeval.features.json import schema_child

    return schema_child.compile_schema(schema.document, schema.resources)


@lru_cache(maxsize=MAX_SCHEMAS)
def _pack(schema: JsonSchema) -> bytes:
    return marshal.dumps((schema.document, dict(schema.resources)))
