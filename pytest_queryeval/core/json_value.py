"""JSON as an answer: a value, and the schema that it has to match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"


@dataclass(frozen=True, slots=True)
class JsonAnswer:
    """A whole JSON document; null is an answer, too."""

    value: JsonValue


@dataclass(frozen=True, slots=True, eq=False)
class JsonSchema:
    """A JSON Schema, and the file that it was read from as messages show it.

    `resources` are the documents of the files that it refers to, by the URIs that lead to them.
    """

    file: Path
    document: JsonValue
    resources: Mapping[str, JsonValue] = field(default_factory=dict)
