"""A dbt project as the rewriter of a source: `ref` and `source` in queries become names of tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pytest_queryeval.core.errors import SourceError, capture_error, unwrap
from pytest_queryeval.documents.document import file_at, modification_time
from pytest_queryeval.features.dbt.manifest import Manifest, Relation, read_manifest
from pytest_queryeval.text.formatting import one_line

DIALECTS = {"mariadb": "mysql"}  # of adapters that sqlglot calls otherwise
SHOWN = 100  # characters of an expression
_QUOTED = r"""'[^'\n]*'|"[^"\n]*\""""
_EXPRESSION = re.compile(
    rf"\{{\{{-?\s*(?P<function>ref|source)\s*\(\s*(?P<first>{_QUOTED})\s*(?:,\s*(?P<second>{_QUOTED})\s*)?"
    rf"(?:,\s*(?:v|version)\s*=\s*(?P<version>{_QUOTED}|[\w.]+)\s*)?,?\s*\)\s*-?\}}\}}"
)
_JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}|\{[{%#]", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class DbtProject:
    """Rewrites queries by the manifest of a project, for one of its targets."""

    folder: Path
    manifest: Path
    target: str
    adapter: str
    database: str
    """The database that a name without one means."""
    schema: str
    """The schema that a name without one means; empty if such names are not looked up in the target's schema."""
    target_schema: str
    """The schema in which dbt makes the target's models, unless a model states another schema."""
    file: Path | None
    """The file of the database; None for a server."""
    folders: tuple[str, ...]
    """The folders of models, seeds and snapshots."""
    other_schemas: frozenset[str] = frozenset()
    """The schemas of the profile's other targets."""

    def rewrite(self, query: str) -> str:
        """Return a query with names of tables instead of `ref` and `source`; nothing else is expanded.

        Raise ValueError for a name that the project does not have and for other Jinja. Raise `SourceError` if the
        manifest is missing or not up to date.
        """
        manifest = self._manifest()
        pieces, end = [], 0
        for match in _EXPRESSION.finditer(query):
            pieces += [
                _without_jinja(query[end : match.start()]),
                self._table_name(_referenced(manifest, match), match[0]),
            ]
            end = match.end()
        return "".join([*pieces, _without_jinja(query[end:])])

    def describe(self, ddl: str) -> str:
        """Return DDL followed by COMMENT statements with the descriptions of models and columns.

        Raise `SourceError` if the manifest is missing or not up to date.
        """
        from pytest_queryeval.languages.sql.dialects import quote_in  # sqlglot takes long to import

        quote = quote_in(DIALECTS.get(self.adapter, self.adapter))
        comments = []
        for relation in sorted(self._manifest().relations, key=lambda relation: relation.parts):
            if relation.parts:
                name = self._table_name(relation, "")
                if relation.description:
                    comments.append(_comment("VIEW" if relation.is_view else "TABLE", name, relation.description))
                for column, description in relation.columns.items():
                    comments.append(_comment("COLUMN", f"{name}.{quote(column)}", description))
        return "\n\n".join(filter(None, [ddl, "\n".join(comments)]))

    def _table_name(self, relation: Relation, expression: str) -> str:
        """Return the name of a relation without a database and schema that a query may leave out.

        Raise ValueError if the database does not have the relation; `expression` is shown in the message.
        """
        if not relation.parts:
            raise ValueError(
                f"{one_line(expression, SHOWN)} is an ephemeral model, which the database does not have: "
                "query the models that it selects from, or materialize it as a view"
            )
        defaults = ((relation.database, self.database), (relation.schema, self.schema))
        parts = relation.parts
        for is_default in (actual.lower() == default.lower() for actual, default in defaults[3 - len(parts) :]):
            if not is_default:
                break
            parts = parts[1:]
        return ".".join(parts)

    def _manifest(self) -> Manifest:
        return unwrap(_checked_manifest(self, modification_time(self.manifest)))


@lru_cache(maxsize=16)
def _checked_manifest(project: DbtProject, _: int) -> Manifest | SourceError:
    """Return the manifest of a project, or the error that it cannot be used; both are cached.

    The number is the time of the file's last change, so that a new file is read again.
    """
    return capture_error(lambda: _load_manifest(project), SourceError)


def _load_manifest(project: DbtProject) -> Manifest:
    path = file_at(project.manifest).shown
    build = f"run `dbt build --target {project.target}` in {file_at(project.folder).shown}"
    if not project.manifest.exists():
        raise SourceError(f"{path}: no such file: {build}")
    try:
        manifest = read_manifest(project.folder, project.manifest)
    except SourceError as error:
        raise SourceError(f"{path} {error}: {build}") from error
    problem = manifest.staleness(project.folders) or _target_mismatch(project, manifest)
    if problem:
        raise SourceError(f"{path} {problem}: {build}")
    if project.file is not None and not project.file.exists():
        raise SourceError(f"{file_at(project.file).shown}: no such file: {build}")
    return manifest


def _target_mismatch(project: DbtProject, manifest: Manifest) -> str:
    """Return a phrase that says why a manifest is not that of the target; empty if it may be.

    Its adapter, or the schema of its models, differs.
    """
    if manifest.adapter != project.adapter:
        return f"is for {manifest.adapter}, and the target '{project.target}' is of the type {project.adapter}"
    relations = [item for item in manifest.relations if item.has_target_schema and item.group == manifest.package]
    schemas = {relation.schema for relation in relations}
    names_in_lower_case = {schema.lower() for schema in schemas}
    is_expected = not relations or project.target_schema.lower() in names_in_lower_case
    # A macro of the project may name the schemas in its own way.
    if not is_expected and not (manifest.has_schema_macro and names_in_lower_case.isdisjoint(project.other_schemas)):
        names = f"{', '.join(sorted(schemas))}, and those of '{project.target}' in {project.target_schema}"
        return f"is that of another target: its models are in the schema {names}"
    return ""


def _referenced(manifest: Manifest, match: re.Match[str]) -> Relation:
    first, second, version = ((match[name] or "").strip("'\"") for name in ("first", "second", "version"))
    try:
        if match["function"] == "ref":
            name, package = (second, first) if match["second"] else (first, None)
            return manifest.ref(name, package, version if match["version"] else None)
        if not match["second"]:
            raise ValueError("source needs the names of a source and of one of its tables")
        return manifest.source(first, second)
    except ValueError as problem:
        raise ValueError(f"unknown relation {one_line(match[0], SHOWN)}: {problem}") from problem


def _without_jinja(text: str) -> str:
    """Return a piece of a query unchanged; raise ValueError if it has an expression that is not expanded."""
    if match := _JINJA.search(text):
        allowed = "{{ ref('model') }} and {{ source('source', 'table') }}"
        raise ValueError(f"{one_line(match[0], SHOWN)} is not expanded: only {allowed} are")
    return text


def _comment(kind: str, name: str, description: str) -> str:
    quoted_description = description.replace("'", "''")
    return f"COMMENT ON {kind} {name} IS '{quoted_description}';"
