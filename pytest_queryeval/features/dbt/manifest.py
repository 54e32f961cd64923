"""`manifest.json` of a dbt project: the relations that `ref` and `source` name, and whether it is up to date.

The typed dictionaries list what is read of the document, and the document is checked by them:
https://docs.getdbt.com/reference/artifacts/manifest-json
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TypedDict

from pytest_queryeval.core.errors import CaseError, SourceError, did_you_mean
from pytest_queryeval.documents.document import MEBIBYTE, file_at, modification_time
from pytest_queryeval.documents.strict_json import StrictJson, syntax_problem
from pytest_queryeval.results.report_schema import problem_in
from pytest_queryeval.text.formatting import one_line

RELATIONS = ("model", "seed", "snapshot", "source")
CODE_SUFFIXES = (".sql", ".py")
SCHEMA_MACRO = "generate_schema_name"
MAX_BYTES = 512 * MEBIBYTE
_JSON = StrictJson(read_object=None, allow_nan=True)  # as dbt may write it
_PART = re.compile(r'"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|[^.]+')


class Metadata(TypedDict):
    """The head of a manifest."""

    project_name: str
    adapter_type: str


class Resource(TypedDict):
    """Any node of a manifest, such as a model or a test."""

    resource_type: str


class DisabledNode(TypedDict):
    """A node that the project turns off."""

    name: str


class Macros(TypedDict, total=False):
    """The macros of a manifest by their names."""

    macros: dict[str, object]


class ManifestDocument(Macros):
    """The content of `manifest.json`, as far as it is read."""

    metadata: Metadata
    nodes: dict[str, Resource]
    sources: dict[str, Resource]
    disabled: dict[str, list[DisabledNode]]


class Config(TypedDict, total=False):
    """The configuration of a node, as far as it is read."""

    schema: str | None
    materialized: str | None


class Checksum(TypedDict, total=False):
    """The checksum of a file, and how it was computed."""

    name: str | None
    checksum: str | None


class Column(TypedDict, total=False):
    """The documentation of a column."""

    description: str | None


class NamedNode(TypedDict):
    """The fields that every model, seed, snapshot, and table of a source has."""

    resource_type: str
    name: str
    package_name: str
    original_file_path: str


class RelationNode(NamedNode, total=False):
    """A model, seed or snapshot, or a table of a source, with its optional fields."""

    source_name: str
    version: str | float | None
    latest_version: str | float | None
    database: str | None
    schema: str | None
    relation_name: str | None
    config: Config | None
    checksum: Checksum | None
    description: str | None
    columns: dict[str, Column] | None
    compiled_code: str | None


class RelationNodes(TypedDict):
    """The nodes of a manifest that are relations."""

    nodes: dict[str, RelationNode]
    sources: dict[str, RelationNode]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A model, seed or snapshot, or a table of a source, as queries use it."""

    name: str
    group: str
    """The package of a model, seed or snapshot; the source of a table."""
    kind: str
    version: str = ""
    is_latest: bool = True
    """Whether a name without a version means this version."""
    database: str = ""
    schema: str = ""
    parts: tuple[str, ...]
    """The parts of its name as dbt quotes them, from database to table; empty if the database does not have it."""
    has_target_schema: bool = False
    """Whether it is in the schema of the target, because its configuration states no other schema."""
    is_view: bool = False
    description: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The descriptions of columns by name, for columns that have one."""
    file: str = ""
    checksum: str = ""
    """The SHA-256 of the file; empty if dbt did not compute it."""
    code: str = ""
    """The SQL of a model with all names resolved; empty if dbt has not compiled it."""


@dataclass(frozen=True)
class Manifest:
    """The content of a manifest; `folder` is that of the project, `path` the file."""

    folder: Path
    path: Path
    package: str
    adapter: str
    relations: tuple[Relation, ...]
    disabled: frozenset[str]
    """The names of models that the project turns off."""
    has_schema_macro: bool
    """Whether the project's own macro `generate_schema_name` names the schemas of its models."""

    @cached_property
    def _by_name(self) -> dict[str, list[Relation]]:
        relations: dict[str, list[Relation]] = {}
        for relation in self.relations:
            if relation.kind != "source":
                relations.setdefault(relation.name, []).append(relation)
        return relations

    @cached_property
    def _by_source(self) -> dict[str, dict[str, Relation]]:
        sources: dict[str, dict[str, Relation]] = {}
        for relation in self.relations:
            if relation.kind == "source":
                sources.setdefault(relation.group, {})[relation.name] = relation
        return sources

    def ref(self, name: str, package: str | None, version: str | None) -> Relation:
        """Return the relation that `ref` names; the project's own relation comes before those of packages.

        Without a `version` the latest version is meant. Raise ValueError with the problem if there is no such relation.
        """
        relations = [item for item in self._by_name.get(name, ()) if package in (None, item.group)]
        if not relations:
            raise ValueError(self._unknown(name, package))
        relations.sort(key=lambda relation: relation.group != self.package)
        for relation in relations:
            if relation.version == version or (version is None and relation.is_latest):
                return relation
        versions = ", ".join(relation.version for relation in relations if relation.version)
        raise ValueError(f"'{name}' has the versions {versions}" if versions else f"'{name}' has no versions")

    def source(self, source: str, table: str) -> Relation:
        """Return the table that `source` names; raise ValueError with the problem if there is none."""
        if source not in self._by_source:
            is_model = f": {table} is a model, {{{{ ref('{table}') }}}}" if table in self._by_name else ""
            raise ValueError(f"no source '{source}'{is_model or did_you_mean(source, self._by_source)}")
        tables = self._by_source[source]
        if table not in tables:
            raise ValueError(f"no table '{table}' in the source '{source}'{did_you_mean(table, tables)}")
        return tables[table]

    def _unknown(self, name: str, package: str | None) -> str:
        # dbt leaves what it compiled of files that are gone: the same SQL may have had this name before.
        of_code = {relation.code.strip(): relation for relation in self.relations if relation.code}
        for path in _files_below(self.path.parent / "compiled"):
            if path.name == f"{name}.sql" and (relation := of_code.get(_text(path))):
                return f"the {relation.kind} '{name}' is now called '{relation.name}'"
        if name in self.disabled:
            return f"the model '{name}' is disabled"
        relations = list(chain.from_iterable(self._by_name.values()))
        packages = {relation.group for relation in relations}
        if package is not None and package not in packages:
            return f"no package '{package}'{did_you_mean(package, packages)}"
        names = {relation.name for relation in relations if package in (None, relation.group)}
        return f"no model '{name}'{did_you_mean(name, names)}"

    def staleness(self, folders: tuple[str, ...]) -> str:
        """Return a phrase that says why the manifest is not up to date, such as 'is older than FILE'; empty if it is.

        `folders` are those of models, seeds and snapshots. A changed file is recognized by its content, not only by its
        time, which a checkout changes.
        """
        made_at = modification_time(self.path)
        relations = {item.file: item for item in self.relations if item.group == self.package and item.file}
        for file in relations:
            if not is_within(self.folder / file, self.folder):
                return f"has {file}, which is outside the project"
        missing = {item.checksum: item for file, item in relations.items() if not (self.folder / file).is_file()}
        new_files = list(self._new_files(folders, relations))
        for file in new_files:
            if renamed := next((missing[digest] for digest in self._digests(file) if digest in missing), None):
                return f"is older than {file}: the {renamed.kind} '{renamed.name}' is now called '{Path(file).stem}'"
        for relation in missing.values():
            is_there = (self.folder / relation.file).exists()
            return f"has {relation.file}, which is {'not a regular file' if is_there else 'gone'}"
        changed_files = (
            file
            for file in (*relations, *new_files)
            if modification_time(self.folder / file) > made_at
            and (file in new_files or relations[file].checksum not in ("", *self._digests(file)))
        )
        return f"is older than {file}" if (file := next(changed_files, "")) else ""

    def _new_files(self, folders: tuple[str, ...], known_files: Mapping[str, Relation]) -> Iterator[str]:
        """Yield the files in the folders that are models, but that the manifest does not have.

        Yield nothing if the project has a `.dbtignore`.
        """
        if (self.folder / ".dbtignore").exists():  # not all files of the folders are read
            return
        for path in chain.from_iterable(_files_below(self.folder / folder) for folder in folders):
            file = path.relative_to(self.folder).as_posix()
            is_code = path.suffix in CODE_SUFFIXES and path.stem not in self.disabled and file not in known_files
            if is_code and is_within(path, self.folder) and _text(path):
                yield file

    def _digests(self, file: str) -> tuple[str, ...]:
        """Return the SHA-256 digests that dbt may have computed of a file: without outer white space, and as it is."""
        data = _content(self.folder / file)
        return tuple(hashlib.sha256(content).hexdigest() for content in (data.strip(), data))


def is_within(path: Path, folder: Path) -> bool:
    """Return whether a path leads into a folder once symbolic links are followed."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    except ValueError:  # a NUL character
        return False


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the regular files below a folder, sorted within each folder."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        yield from (path for name in sorted(names) if (path := Path(place, name)).is_file())


def _content(path: Path) -> bytes:
    """Return the content of a regular file; empty if it cannot be read or is larger than MAX_BYTES."""
    try:
        return file_at(path).data(MAX_BYTES)
    except CaseError:
        return b""


def _text(path: Path) -> str:
    return _content(path).decode(errors="replace").strip()


def read_manifest(folder: Path, path: Path) -> Manifest:
    """Return the manifest at `path` of the project in `folder`; raise `SourceError` if it is none or cannot be read."""
    try:
        document = _JSON.read(file_at(path).text(MAX_BYTES))
        problem = problem_in(document, ManifestDocument) or problem_in(
            {
                group: {name: node for name, node in document[group].items() if node["resource_type"] in RELATIONS}
                for group in ("nodes", "sources")
            },
            RelationNodes,
        )
    except CaseError as error:
        raise SourceError(f"cannot be read: {error.problem.removeprefix('cannot be read: ')}") from error
    except ValueError as error:
        problem = syntax_problem(error).text if isinstance(error, json.JSONDecodeError) else str(error)
    if problem:
        raise SourceError(f"is not the manifest of a dbt project: {one_line(problem)}")
    nodes, package = (
        chain(document["nodes"].values(), document["sources"].values()),
        document["metadata"]["project_name"],
    )
    return Manifest(
        folder=folder,
        path=path,
        package=package,
        adapter=document["metadata"]["adapter_type"],
        relations=tuple(_relation(node) for node in nodes if node["resource_type"] in RELATIONS),
        disabled=frozenset(node["name"] for node in chain.from_iterable(document["disabled"].values())),
        has_schema_macro=any(
            name.startswith(f"macro.{package}.") and name.endswith(SCHEMA_MACRO) for name in document.get("macros", {})
        ),
    )


def _relation(node: RelationNode) -> Relation:
    config, checksum = node.get("config") or {}, node.get("checksum") or {}
    is_source = node["resource_type"] == "source"
    version, file = node.get("version"), node["original_file_path"]
    return Relation(
        name=node["name"],
        group=node.get("source_name") or node["package_name"],
        kind=node["resource_type"],
        version="" if version is None else str(version),
        is_latest=version is None or str(version) == str(node.get("latest_version")),
        database=node.get("database") or "",
        schema=node.get("schema") or "",
        parts=tuple(_PART.findall(node.get("relation_name") or "")),
        has_target_schema=not is_source and config.get("schema") is None and node["resource_type"] != "snapshot",
        is_view=config.get("materialized") == "view",
        description=_one_line(node.get("description")),
        columns={
            name: _one_line(column["description"])
            for name, column in (node.get("columns") or {}).items()
            if column.get("description")
        },
        file=file if Path(file).suffix in (*CODE_SUFFIXES, ".csv") else "",
        checksum=(checksum.get("checksum") or "") if checksum.get("name") == "sha256" else "",
        code=node.get("compiled_code") or "",
    )


def _one_line(description: str | None) -> str:
    return " ".join((description or "").split())
