"""The check of JSON answers against their JSON Schema."""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.json_value import JsonAnswer, JsonSchema
from pytest_queryeval.core.model import Failure
from pytest_queryeval.core.table import Table
from pytest_queryeval.languages.json.paths import path_text
from pytest_queryeval.sandbox.host import Host, Hosts
from pytest_queryeval.text.truncation import one_line

DRIVER = Path(__file__).with_name("schema_child.py")
MAX_SCHEMAS = 16  # that are kept compiled
MAX_VIOLATIONS = 10
MEMORY_BYTES = 2 * 2**30  # an answer of 32 MiB can be three million small objects, each of which is copied
MAX_LINE = 300  # characters


def violations(answer: JsonAnswer, schema: JsonSchema) -> tuple[str, ...]:
    """Return the first rules that a trusted answer breaks, at most ten, by path: `$.query.limit: reason`.

    There is no time limit: untrusted answers are for `check_untrusted`. Raise `SourceError` where the schema or the
    answer is too deep, or jsonschema fails.
    """
    from pytest_queryeval.languages.json import schema_child

    try:
        return _lines(schema_child.violations(_compile(schema), answer.value))
    except Exception as error:
        # The schema was checked when it was read, so any other error is a limit of jsonschema.
        reason = str(error) if isinstance(error, schema_child.TooDeep) else f"{type(error).__name__}: {error}"
        raise SourceError(f"{_check(schema)}: {one_line(reason)}") from error


def check_untrusted(
    answer: JsonAnswer, schema: JsonSchema, hosts: Hosts, *, timeout: float
) -> tuple[str, ...] | Failure:
    """Return the `violations` of an untrusted answer, found in a child process within `timeout` seconds.

    A `Failure` is an answer that cannot be checked in time, or is too large. Raise `SourceError` as `violations` does,
    and where the process cannot be started.
    """
    try:
        settings = {"schema": _pack(schema), "answer": marshal.dumps(answer.value)}
    except ValueError as error:
        return Failure(kind="invalid", message=f"{_check(schema)}: {error}")
    host = hosts.shared(Host("JSON Schema", DRIVER, packages=("jsonschema",), memory=MEMORY_BYTES))
    try:
        execution = host.execute(settings, "violations", timeout=timeout, max_rows=MAX_VIOLATIONS)
    except SourceError as error:
        raise SourceError(f"{_check(schema)}: {error}") from error
    if execution.error:
        return replace(execution.error, message=f"{_check(schema)}: {execution.error.message}")
    assert isinstance(execution.answer, Table)
    return _lines(execution.answer.rows)


def _check(schema: JsonSchema) -> str:
    return f"the check against {schema.file}"


def _lines(violation_rows: Iterable[Sequence[Any]]) -> tuple[str, ...]:
    return tuple(one_line(f"{path_text(steps)}: {reason}", MAX_LINE) for steps, reason in violation_rows)


@lru_cache(maxsize=MAX_SCHEMAS)
def _compile(schema: JsonSchema) -> Any:
    from pytest_queryeval.languages.json import schema_child

    return schema_child.compiled(schema.document, schema.resources)


@lru_cache(maxsize=MAX_SCHEMAS)
def _pack(schema: JsonSchema) -> bytes:
    return marshal.dumps((schema.document, dict(schema.resources)))
