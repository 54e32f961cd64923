"""JSON as an answer: a value, and the schema that it is to keep."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"


@dataclass(frozen=True, slots=True)
class JsonAnswer:
    """A whole JSON document; null is an answer, too."""

    value: JsonValue


@dataclass(frozen=True, slots=True, eq=False)
class JsonSchema:
    """A JSON Schema, and the file that it was read from as messages show it."""

    file: Path
    document: JsonValue
