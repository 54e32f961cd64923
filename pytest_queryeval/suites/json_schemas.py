"""Reader of `json_schema`: the JSON Schema that answers are to keep."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from pytest_queryeval.core.errors import CaseError
from pytest_queryeval.core.json_value import JsonSchema
from pytest_queryeval.documents.document import Node, file_at
from pytest_queryeval.documents.values import stated_text
from pytest_queryeval.suites.changes import changed


def read_json_schema(node: Node) -> JsonSchema:
    """Read `file.json`, relative to the file that names it.

    Raises `CaseError` at the node, also for what is wrong in the file. All nodes that name one file get one object, so
    that the schema is compiled once.
    """
    path = file_at(node.file.folder / stated_text(node)).path
    schema = _schema(path, changed(path))
    if isinstance(schema, str):
        raise node.problem(schema)
    return schema


@lru_cache(maxsize=16)
def _schema(path: Path, _: int) -> JsonSchema | str:
    """The schema of a file, or why there is none: a large file is read once, be it right or not."""
    from pytest_queryeval.languages.json.schema_file import read_schema  # jsonschema takes long to import

    try:
        return read_schema(file_at(path))
    except CaseError as error:
        return str(error)
