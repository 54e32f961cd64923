"""The engine `dbt`: a dbt project as the database of its target, with names of models and sources in queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pytest_queryeval.core.errors import CaseError, SettingError, SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.core.shapes import FILE_NAME, text_setting
from pytest_queryeval.documents.document import Node, file_at
from pytest_queryeval.documents.values import entries, items, scalar, unexpected
from pytest_queryeval.documents.yaml_nodes import read_yaml
from pytest_queryeval.engines import ENGINES, Engine, EngineType, Settings
from pytest_queryeval.engines.settings import VARIANTS, VARIANTS_SETTING, VERSION, absolute, check_settings
from pytest_queryeval.features.dbt.connection import DUCKDB_SCHEMA, SCHEMAS, connection_of, read_target
from pytest_queryeval.features.dbt.manifest import is_within
from pytest_queryeval.features.dbt.project import DbtProject
from pytest_queryeval.sandbox.host import Hosts

PROJECT = "dbt_project.yml"
TARGET_PATH = "target-path"
FOLDERS = {"model-paths": "models", "seed-paths": "seeds", "snapshot-paths": "snapshots"}
_NAME = text_setting("a name")
SETTINGS = {
    "project": FILE_NAME,
    "profile": _NAME,
    "target": _NAME,
    VARIANTS: VARIANTS_SETTING,
}


def check(settings: Settings) -> None:
    """Raise `SettingError` for a setting that is unknown or has another type, and without a project."""
    check_settings(settings, SETTINGS)
    if "project" not in settings:
        raise SettingError("project", f"needs a project: the folder of {PROJECT}")


def resolve(source: Source) -> Source:
    """Return the source of the database of a project's target, with a rewriter of queries by the project's manifest.

    Raise `SettingError` for a folder without a project and for a database that no installed package reads. Raise
    `CaseError` for a project or profile that cannot be used.
    """
    folder = absolute(source.folder, source.settings["project"])
    file = file_at(folder / PROJECT)
    if not file.path.exists():
        remedy = f"name the folder of {PROJECT}, relative to {source.folder}"
        raise SettingError("project", f"'project' names no project of dbt: there is no {file.shown}: {remedy}")
    root = read_yaml(file).root
    project = {} if root is None else entries(root)
    if "profile" not in source.settings and "profile" not in project:
        raise file.problem("names no profile: add `profile`, or name one in the source")
    profile = source.settings.get("profile") or _text(project["profile"])
    target = read_target(folder, profile, source.settings.get("target"), source.folder)
    connection = connection_of(target, folder)
    settings = {
        **connection.settings,
        **{name: source.settings[name] for name in (VARIANTS, VERSION) if name in source.settings},
    }
    ENGINES[connection.engine].check(settings)
    is_file = connection.engine == "duckdb"
    target_folder = _text(project[TARGET_PATH]) if TARGET_PATH in project else "target"
    rewriter = DbtProject(
        folder=folder,
        manifest=folder / target_folder / "manifest.json",
        target=target.name,
        adapter=target.settings["type"],
        database=connection.database,
        schema=connection.schema,
        target_schema=target.settings.get("schema", DUCKDB_SCHEMA) if is_file else target.require(*SCHEMAS),
        file=Path(connection.settings["path"]) if is_file else None,
        folders=tuple(_folders(project, folder)),
        other_schemas=target.other_schemas,
    )
    return replace(source, engine=connection.engine, settings=settings, rewriter=rewriter)


def _folders(project: Mapping[str, Node], place: Path) -> Iterator[str]:
    """Yield the folders of a project's models, seeds and snapshots; raise `CaseError` if one is outside the project."""
    for key, default in FOLDERS.items():
        for node in items(project[key]) if key in project else ():
            name = _text(node)
            if not is_within(place / name, place):
                raise node.problem(f"{key}: '{name}' is outside the project: name a folder in it")
            yield name
        if key not in project:
            yield default


def _text(node: Node) -> str:
    """Return the text of a node; raise `CaseError` if it is empty or no text, such as a number."""
    value = scalar(node)
    if not isinstance(value, str) or not value.strip():
        raise unexpected(node, "a text")
    return value


def open_dbt(source: Source, hosts: Hosts) -> Engine:
    """Return the engine of the database of a source that was made without a suite; its queries are not rewritten.

    Raise `SourceError` if the project or its profile cannot be used.
    """
    try:
        database = resolve(source)
    except (SettingError, CaseError) as error:
        raise SourceError(f"source '{source.name}': {error}") from error
    return ENGINES[database.engine].open(database, hosts)


DBT = EngineType(
    opener=open_dbt,
    kind="sql",
    text_setting="project",
    check=check,
    settings=SETTINGS,
    resolve=resolve,
)
