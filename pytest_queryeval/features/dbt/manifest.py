"""`manifest.json` of a dbt project: what `ref` and `source` name, and whether it is older than the project's files.

https://docs.getdbt.com/reference/artifacts/manifest-json
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from pytest_queryeval.core.errors import SourceError, did_you_mean

REFERENCED = ("model", "seed", "snapshot")
CODE_SUFFIXES = (".sql", ".py")
_PART = re.compile(r'"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|[^.]+')


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A model, seed or snapshot, or a table of a source."""

    name: str
    group: str
    """The package that it is of, or the source."""
    kind: str
    version: str = ""
    is_latest: bool = True
    """Whether names without a version mean this one."""
    database: str = ""
    schema: str = ""
    parts: tuple[str, ...]
    """Its name in queries as dbt quotes it, from the database to the table; empty if the database does not have it."""
    has_target_schema: bool = False
    """Whether it is in the schema of the target, since it states no other one."""
    is_view: bool = False
    description: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The descriptions of columns that have one."""
    file: str = ""
    checksum: str = ""
    """The SHA-256 of the file; empty if dbt does not compute it."""
    code: str = ""
    """The SQL of a model with all names resolved; empty if dbt has not compiled it."""


@dataclass(frozen=True)
class Manifest:
    """What a manifest says of a project; `folder` is that of the project, `path` the file."""

    folder: Path
    path: Path
    package: str
    adapter: str
    relations: tuple[Relation, ...]
    disabled: frozenset[str]
    """The names of models that the project turns off."""

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
        """Return what `ref` names, in the project itself before its packages; raise ValueError with what is wrong."""
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
        """Return what `source` names; raise ValueError with what is wrong."""
        if source not in self._by_source:
            is_model = f": {table} is a model, {{{{ ref('{table}') }}}}" if table in self._by_name else ""
            raise ValueError(f"no source '{source}'{is_model or did_you_mean(source, self._by_source)}")
        tables = self._by_source[source]
        if table not in tables:
            raise ValueError(f"no table '{table}' in the source '{source}'{did_you_mean(table, tables)}")
        return tables[table]

    def _unknown(self, name: str, package: str | None) -> str:
        if relation := self._renamed(name):
            return f"the {relation.kind} '{name}' is now called '{relation.name}'"
        if name in self.disabled:
            return f"the model '{name}' is disabled"
        relations = list(chain.from_iterable(self._by_name.values()))
        packages = {relation.group for relation in relations}
        if package is not None and package not in packages:
            return f"no package '{package}'{did_you_mean(package, packages)}"
        names = {relation.name for relation in relations if package in (None, relation.group)}
        return f"no model '{name}'{did_you_mean(name, names)}"

    def _renamed(self, name: str) -> Relation | None:
        """Return the relation of an unknown name, if dbt has compiled the same SQL under that name before.

        dbt leaves what it compiled of files that are gone.
        """
        of_code = {relation.code.strip(): relation for relation in self.relations if relation.code}
        for path in (self.path.parent / "compiled").rglob("*.sql"):
            if path.stem == name and (relation := of_code.get(_text(path).strip())):
                return relation
        return None

    def staleness(self, folders: tuple[str, ...]) -> str:
        """Return which file of the project the manifest is older than; empty if it is up to date.

        `folders` are those of models, seeds and snapshots. What counts is the content of files, not the time of their
        last change alone, which a checkout changes.
        """
        made_at = self.path.stat().st_mtime_ns
        relations = {item.file: item for item in self.relations if item.group == self.package and item.file}
        missing = {item.checksum: item for file, item in relations.items() if not (self.folder / file).exists()}
        new_files = list(self._new_files(folders, relations))
        for file in new_files:
            if renamed := next((missing[digest] for digest in self._digests(file) if digest in missing), None):
                return f"is older than {file}: the {renamed.kind} '{renamed.name}' is now called '{Path(file).stem}'"
        if missing:
            return f"has {next(iter(missing.values())).file}, which is gone"
        changed_files = (
            file
            for file in (*relations, *new_files)
            if (self.folder / file).stat().st_mtime_ns > made_at
            and (file in new_files or relations[file].checksum not in ("", *self._digests(file)))
        )
        return f"is older than {file}" if (file := next(changed_files, "")) else ""

    def _new_files(self, folders: tuple[str, ...], known_files: Mapping[str, Relation]) -> Iterator[str]:
        """Yield the files that are models by their folder, and that the manifest does not have."""
        if (self.folder / ".dbtignore").exists():  # not all files of the folders are read
            return
        for path in chain.from_iterable(sorted((self.folder / folder).rglob("*")) for folder in folders):
            file = path.relative_to(self.folder).as_posix()
            is_code = path.suffix in CODE_SUFFIXES and path.stem not in self.disabled and file not in known_files
            if is_code and _text(path).strip():
                yield file

    def _digests(self, file: str) -> tuple[str, ...]:
        """Return the digests that dbt may have computed of a file: without outer blanks, and as it is."""
        data = (self.folder / file).read_bytes()
        return tuple(hashlib.sha256(content).hexdigest() for content in (data.strip(), data))


def read_manifest(folder: Path, path: Path) -> Manifest:
    """Read the manifest of the project in `folder`; raise `SourceError` if it cannot be read."""
    try:
        document = json.loads(path.read_bytes())
        metadata = document["metadata"]
        nodes = [*document["nodes"].values(), *document["sources"].values()]
        return Manifest(
            folder=folder,
            path=path,
            package=str(metadata["project_name"]),
            adapter=str(metadata["adapter_type"]),
            relations=tuple(_relation(node) for node in nodes if node["resource_type"] in (*REFERENCED, "source")),
            disabled=frozenset(str(node["name"]) for node in chain.from_iterable(document["disabled"].values())),
        )
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SourceError(f"is not the manifest of a dbt project ({type(error).__name__}: {error})") from error


def _relation(node: Mapping[str, Any]) -> Relation:
    config, checksum = node.get("config") or {}, node.get("checksum") or {}
    is_source = node["resource_type"] == "source"
    version, file = node.get("version"), str(node["original_file_path"])
    return Relation(
        name=str(node["name"]),
        group=str(node["source_name"] if is_source else node["package_name"]),
        kind=str(node["resource_type"]),
        version="" if version is None else str(version),
        is_latest=version is None or str(version) == str(node.get("latest_version")),
        database=str(node.get("database") or ""),
        schema=str(node.get("schema") or ""),
        parts=tuple(_PART.findall(node.get("relation_name") or "")),
        has_target_schema=not is_source and config.get("schema") is None and node["resource_type"] != "snapshot",
        is_view=config.get("materialized") == "view",
        description=" ".join(str(node.get("description") or "").split()),
        columns={
            str(name): " ".join(str(column["description"]).split())
            for name, column in node["columns"].items()
            if column.get("description")
        },
        file=file if Path(file).suffix in (*CODE_SUFFIXES, ".csv") else "",
        checksum=str(checksum["checksum"]) if checksum.get("name") == "sha256" else "",
        code=str(node.get("compiled_code") or ""),
    )


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""
