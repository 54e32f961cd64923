"""Reader of `json_schema`: the JSON Schema of answers."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from pytest_queryeval.core.errors import CaseError
from pytest_queryeval.core.json_value import JsonSchema
from pytest_queryeval.core.shapes import TEXT, shape
from pytest_queryeval.documents.document import Node, file_at
from pytest_queryeval.documents.values import required_text
from pytest_queryeval.suites.changes import modification_time


@shape(TEXT)
def read_json_schema(node: Node) -> JsonSchema:
    """Read `file.json`, relative to the file that names it.

    Raise `CaseError` at the node, also for a problem in the file. All nodes that name a file share one object, so that
    the schema is compiled once.
    """
    path = file_at(node.file.folder / required_text(node)).path
    schema = _schema(path, modification_time(path))
    if isinstance(schema, str):
        raise node.problem(schema)
    return schema


@lru_cache(maxsize=16)
def _schema(path: Path, _: int) -> JsonSchema | str:
    """Return the schema of a file, or the problem, which is cached too: a large file is read once."""
    from pytest_queryeval.languages.json.schema_file import read_schema  # jsonschema takes long to import

    try:
        return read_schema(file_at(path))
    except CaseError as error:
        return str(error)
