"""Readers of `source` and `sources`, and of `db_schema`: the tables of a database that cannot be queried for them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from pytest_queryeval.core.db_schema import Schema, schema_of_entry
from pytest_queryeval.core.errors import CaseError, SettingError, SourceError, did_you_mean
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.core.model import Source
from pytest_queryeval.core.shapes import TEXT, SettingValidator, Shape, either, mapping_shape, shape
from pytest_queryeval.documents.document import MEBIBYTE, File, Node, file_at, modification_time
from pytest_queryeval.documents.strict_json import StrictJson, TooDeepError
from pytest_queryeval.documents.values import each_entry, entries, known_entries, required_text, unexpected
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.engines.graph_store import COMPRESSED, RDF_FORMATS
from pytest_queryeval.engines.settings import VERSION, absolute
from pytest_queryeval.suites.variables import (
    expanded_settings,
    expanded_text,
    expanded_value,
    setting_shapes,
    settings_at,
    settings_shape,
)
from pytest_queryeval.text.redaction import mask_credentials

ENGINE_OF_SUFFIX = {
    **dict.fromkeys((".db", ".sqlite", ".sqlite3"), "sqlite"),
    ".duckdb": "duckdb",
    **dict.fromkeys(RDF_FORMATS, "rdf"),
}
TABLE_SUFFIXES = (".parquet", ".csv", ".tsv", ".jsonl", ".ndjson")
SQLALCHEMY = ("postgres", "postgresql", "mysql", "mariadb", "mssql", "oracle", "snowflake", "bigquery", "trino")
# Keys of every source, written beside its engine's name.
SOURCE_KEYS = ("version", "engine", "headers", "auth", "verify", "default_graph", "graphs", "prefixes", "service")

OF_SOURCE: Shape = {"$ref": "#/definitions/source"}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
MAX_SCHEMA_BYTES = 64 * MEBIBYTE
DATABASE = "db_id"
_JSON = StrictJson(read_object=None, allow_nan=True)


class SourceText(NamedTuple):
    """A `source` that is a text: a name in `sources`, perhaps of another level, or a path or URL."""

    text: str
    node: Node


def source_shape() -> Shape:
    """Return the shape of a source: a text, or an engine's name with settings below or next to it."""
    return either(TEXT, *map(_engine_shape, ENGINES.available()))


def _engine_shape(name: str) -> Shape:
    engine = ENGINES[name]
    if engine.settings is None:
        return {"type": "object", "required": [name]}
    settings = {**engine.settings, VERSION: SettingValidator(lambda _: True, "the state of a source that may change")}
    beside = excluding(setting_shapes(settings), [engine.text_setting])
    return mapping_shape({name: settings_shape(settings, engine.text_setting), **beside}, required=[name])


@shape(source_shape)
def read_source(node: Node) -> Source | SourceText:
    """Return a source that is a mapping, with checked settings; for a text, a `SourceText` to resolve later.

    Raises `CaseError`.
    """
    if not isinstance(node.value, dict):
        if isinstance(node.value, list):
            raise unexpected(node, "one source", ": write one, or several under `sources`, by name")
        if node.empty:
            raise unexpected(node, "a source", ": write {sqlite: FILE} or {sqlite: {script: FILE.sql}}")
        required_text(node)
        return SourceText(expanded_text(node), node)
    source_entries = node.value
    engines = [name for name in source_entries if name in ENGINES]
    if len(engines) != 1:
        if not engines and (first := next((name for name in source_entries if name not in SOURCE_KEYS), None)):
            _check_engine(first, source_entries[first])
        finding = f"found {' and '.join(engines)}" if engines else "found none"
        raise node.problem(f"expected one engine's name as key of the source, such as sqlite: {finding}")
    engine = engines[0]
    engine_settings = source_entries[engine].value
    nodes = {
        **excluding(source_entries, [engine]),
        **(engine_settings if isinstance(engine_settings, dict) else {}),
    }
    settings = expanded_settings(source_entries[engine], ENGINES[engine].text_setting)
    # Those of SOURCE_KEYS may also stand beside the name of the engine.
    settings |= {name: expanded_value(source_entries[name]) for name in source_entries if name != engine}
    with settings_at(nodes, source_entries[engine], ENGINES[engine].text_setting):
        _check_settings(engine, settings, node.file.folder)
        source = _source(_name_of(engine, settings), engine, settings, node)
        resolve = ENGINES[engine].resolve
        return source if resolve is None else resolve(source)


@shape({"allOf": [OF_SOURCE]})  # beside a reference alone, editors ignore the description
def read_gold_source(node: Node) -> Source | SourceText:
    """Return a source as `read_source` does; a reader of its own, so that editors describe it as `source`."""
    return read_source(node)


@shape({"type": "object", "additionalProperties": OF_SOURCE})
def read_sources(node: Node) -> dict[str, Source]:
    """Return the sources by name; raises `SuiteError` with the problems of all of them."""

    def read(name: str, value: Node) -> Source:
        source = read_source(value)
        return replace(resolved_source(source, {}), name=name)

    return each_entry(node, read)


def resolved_source(source: Source | SourceText, sources: Mapping[str, Source]) -> Source:
    """Return the source that a text names: in `sources`, or by its path or URL. Raises `CaseError` if there is none.

    A `Source` is returned as it is.
    """
    if isinstance(source, Source):
        return source
    if source.text in sources:
        return sources[source.text]
    engine = _engine_of(source.text)
    if engine is None:
        # The text as written: values from the environment may be secrets.
        source_text = mask_credentials(str(source.node.value))
        if "${" in source_text and "}" not in source_text.rpartition("${")[2]:
            raise source.node.problem(
                f"the `${{` in '{source_text}' is not closed: write `}}` after the variable's name"
            )
        if source_text in ENGINES:
            raise source.node.problem(f"'{source_text}' is an engine, not a source: write {{{source_text}: FILE}}")
        raise source.node.problem(
            f"cannot tell which engine '{source_text}' is for, and no source in `sources` has this name"
            f"{_source_hint(source_text, sources)}"
        )
    _check_engine(engine, source.node)
    settings = {ENGINES[engine].text_setting: source.text}
    with settings_at({}, source.node, ENGINES[engine].text_setting):
        _check_settings(engine, settings, source.node.file.folder)
    return _source(mask_credentials(source.text), engine, settings, source.node)


def _source_hint(source_text: str, sources: Mapping[str, Source]) -> str:
    from pytest_queryeval.sandbox.http_settings import suggested_url

    path = PurePosixPath(source_text)
    if path.suffix == ".sql":
        return f": write {{sqlite: {{script: {source_text}}}}}"
    if path.suffix in TABLE_SUFFIXES:
        return f": write {{duckdb: {{tables: {{{path.stem}: {source_text}}}}}}}"
    if url := suggested_url(source_text):
        return url
    return did_you_mean(source_text, sources) if sources else f": choose from {', '.join(ENGINE_OF_SUFFIX)}, https://…"


def _engine_of(text: str) -> str | None:
    if text.startswith(("http://", "https://")):
        return "endpoint"
    if _SCHEME.match(text):
        return "sqlalchemy"
    suffixes = PurePosixPath(text.lower()).suffixes
    if suffixes[-1:] == [COMPRESSED]:
        return "rdf" if suffixes[-2:-1] and suffixes[-2] in RDF_FORMATS else None
    return ENGINE_OF_SUFFIX.get("".join(suffixes[-1:]))


def _source(name: str, engine: str, settings: Mapping[str, JsonValue], node: Node) -> Source:
    return Source(name=name, engine=engine, settings=settings, folder=node.file.folder, location=node.location)


def _check_settings(engine: str, settings: Mapping[str, JsonValue], folder: Path) -> None:
    """Raise `SettingError` for settings that the engine refuses, or for a CA file that does not exist."""
    ENGINES[engine].check(settings)
    name = settings.get("verify")
    if not isinstance(name, str):
        return
    try:
        exists = os.path.exists(absolute(folder, name))  # noqa: PTH110 - Path.exists raises for names that no file can have
    except SourceError as error:
        raise SettingError("verify", str(error)) from error
    if not exists:
        raise SettingError("verify", f"'verify' names no file: {mask_credentials(name)}")


def _check_engine(engine: str, node: Node) -> None:
    if engine in ENGINES:
        return
    if (engine_name := str(node.value)) in ENGINES:
        raise node.problem(f"unknown engine '{engine}': the engine's name is the key, as in {{{engine_name}: FILE}}")
    url = f"{'postgresql' if engine == 'postgres' else engine}://USER@HOST/DATABASE"
    hint = f": write {{sqlalchemy: '{url}'}}" if engine in SQLALCHEMY else ENGINES.hint(engine)
    raise node.problem(f"unknown engine '{engine}'{hint}")


def _name_of(engine: str, settings: Mapping[str, JsonValue]) -> str:
    """Return a name for a source without one: its path or URL, otherwise its first setting, otherwise the engine."""
    first = settings.get(ENGINES[engine].text_setting) or next(iter(settings.values()), None)
    if isinstance(first, list):
        return ", ".join(mask_credentials(str(item)) for item in first) or engine
    return mask_credentials(first) if isinstance(first, str) else engine


class SchemaFile(NamedTuple):
    """A file with schemas in the form of Spider's tables.json."""

    file: File
    database: str | None
    """The name of one of its databases, where the suite gives it."""
    node: Node


@shape(either(TEXT, mapping_shape(dict.fromkeys(("file", DATABASE), TEXT), required=["file"])))
def read_db_schema(node: Node) -> SchemaFile:
    """Return the schema file that `file.json` or `{file: file.json, db_id: NAME}` names; raises `CaseError`."""
    if not isinstance(node.value, dict):
        return SchemaFile(file_at(node.file.folder / required_text(node)), None, node)
    settings = known_entries(node, {"file": required_text, DATABASE: required_text})
    if "file" not in settings:
        raise node.problem("db_schema needs a file")
    return SchemaFile(file_at(node.file.folder / settings["file"]), settings.get(DATABASE), entries(node)["file"])


def load_schema(schema_file: SchemaFile, source: Source | None, metadata: Mapping[str, JsonValue]) -> Schema:
    """Return the schema of a case's database; raises `CaseError` if the file has none of its name.

    The name is the one next to the file, otherwise the case's metadata `db_id`, otherwise the name of the source
    without its suffix. A file with one database needs no name.
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
    """Return the schemas of a file by `db_id`, or its problem as a text. Both are cached: a large file is read once.

    The second argument is the file's modification time, so that a changed file is read again.
    """
    try:
        return _read_schemas(_JSON.read(file_at(path).text(MAX_SCHEMA_BYTES)))
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
