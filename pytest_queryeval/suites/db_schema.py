"""Reader of `db_schema`: the tables of a database that cannot be queried for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_queryeval.core.db_schema import Schema, schema_of_entry
from pytest_queryeval.core.errors import CaseError, did_you_mean
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import Source
from pytest_queryeval.core.shapes import TEXT, either, mapping_shape, shape
from pytest_queryeval.documents.document import MEBIBYTE, File, Node, file_at, modification_time
from pytest_queryeval.documents.strict_json import StrictJson, TooDeepError
from pytest_queryeval.documents.values import entries, known_entries, required_text

MAX_BYTES = 64 * MEBIBYTE
DATABASE = "db_id"
_JSON = StrictJson(read_object=None, allow_nan=True)


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """A file in the form of Spider's tables.json."""

    file: File
    database: str | None
    """The name of one of its databases, where the suite gives it."""
    node: Node


@shape(either(TEXT, mapping_shape(dict.fromkeys(("file", DATABASE), TEXT), required=["file"])))
def read_db_schema(node: Node) -> SchemaFile:
    """Read `file.json` or `{file: file.json, db_id: NAME}`; raise `CaseError`."""
    if not isinstance(node.value, dict):
        return SchemaFile(file_at(node.file.folder / required_text(node)), None, node)
    settings = known_entries(node, {"file": required_text, DATABASE: required_text})
    if "file" not in settings:
        raise node.problem("db_schema needs a file")
    return SchemaFile(file_at(node.file.folder / settings["file"]), settings.get(DATABASE), entries(node)["file"])


def load_schema(schema_file: SchemaFile, source: Source | None, metadata: Mapping[str, JsonValue]) -> Schema:
    """Return the schema of a case's database; raise `CaseError` if the file has none of that name.

    The name is the one beside the file, or the case's metadata `db_id`, or the name of the source without its suffix; a
    file with one database needs none.
    """
    schemas = _schemas(schema_file.file.path, modification_time(schema_file.file.path))
    if isinstance(schemas, str):
        raise schema_file.node.problem(f"no schema in {schema_file.file.path.name}: {schemas}")
    database = str(schema_file.database or metadata.get(DATABASE) or (source and PurePosixPath(source.name).stem) or "")
    if database in schemas:
        return schemas[database]
    if len(schemas) == 1 and schema_file.database is None:
        return next(iter(schemas.values()))
    problem = f"no database '{database}'{did_you_mean(database, schemas)}" if database else "several databases"
    raise schema_file.node.problem(f"{schema_file.file.path.name} has {problem}: name one by `{DATABASE}`")


@lru_cache(maxsize=16)
def _schemas(path: Path, _: int) -> dict[str, Schema] | str:
    """Return the schemas of a file by `db_id`, or the problem, which is cached too: a large file is read once."""
    try:
        return _read_schemas(_JSON.read(file_at(path).text(MAX_BYTES)))
    except CaseError as error:
        return error.problem
    except TooDeepError:
        return "its JSON is nested too deeply"
    except ValueError as error:
        return str(error)


def _read_schemas(document: Any) -> dict[str, Schema]:
    schemas: dict[str, Schema] = {}
    for number, entry in enumerate(document if isinstance(document, list) else [document], start=1):
        try:
            if not isinstance(entry, dict):
                raise TypeError("it is not an object")
            name, schema = str(entry[DATABASE]), schema_of_entry(entry)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"entry {number} is not as in Spider's tables.json ({reason})") from error
        if name in schemas:
            raise ValueError(f"entry {number} is a second one of the database '{name}'")
        schemas[name] = schema
    if not schemas:
        raise ValueError("it lists no database")
    return schemas
