"""What is read of a manifest, as types by which it is checked."""

from typing import TypedDict


class Metadata(TypedDict):
    """The head of a manifest."""

    project_name: str
    adapter_type: str


class Resource(TypedDict):
    """A node of any sort."""

    resource_type: str


class DisabledNode(TypedDict):
    """A node that the project turns off."""

    name: str


class Macros(TypedDict, total=False):
    """The macros of a manifest, by their names."""

    macros: dict[str, object]


class ManifestDocument(Macros):
    """A manifest."""

    metadata: Metadata
    nodes: dict[str, Resource]
    sources: dict[str, Resource]
    disabled: dict[str, list[DisabledNode]]


class Config(TypedDict, total=False):
    """The configuration of a node."""

    schema: str | None
    materialized: str | None


class Checksum(TypedDict, total=False):
    """The checksum of a file, and how it was computed."""

    name: str | None
    checksum: str | None


class Column(TypedDict, total=False):
    """A column that has a description."""

    description: str | None


class NamedNode(TypedDict):
    """A model, seed or snapshot, or a table of a source."""

    resource_type: str
    name: str
    package_name: str
    original_file_path: str


class RelationNode(NamedNode, total=False):
    """Such a node with what it may have."""

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
