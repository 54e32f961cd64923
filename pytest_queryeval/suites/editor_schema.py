"""JSON Schemas of suites and of folder settings, by which editors describe, complete and check them during typing.

They are composed from the shapes of the readers that load these files, and from the names in the registries.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal, TypeAlias

from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.core.shapes import Shape, described_shapes, either, mapping_shape
from pytest_queryeval.suites.answers import ACCEPTED, CONVERSATION, GOLD_FORMS, PREDICTED_FORMS, REFUSED
from pytest_queryeval.suites.expectations import EXPECT
from pytest_queryeval.suites.keys import KEYS, Level
from pytest_queryeval.suites.metric_keys import limits_shape
from pytest_queryeval.suites.parameters import PARAMETRIZE

SchemaName: TypeAlias = Literal["suite", "settings"]
# The names of the files that suites and settings refer to.
SCHEMA_FILES: Mapping[SchemaName, str] = {"suite": "suite.schema.json", "settings": "settings.schema.json"}
_LEVELS: Mapping[SchemaName, Level] = {"suite": "file", "settings": "folder"}
_UNANSWERABLE: Shape = {"required": ["answerable"], "properties": {"answerable": {"const": False}}}
_TITLES: Mapping[SchemaName, str] = {
    "suite": "A suite of pytest-queryeval, *.queryeval.yaml",
    "settings": "Settings of pytest-queryeval for a folder and those below it, queryeval.yaml",
}


def editor_schema(name: SchemaName) -> Shape:
    """Return the JSON Schema (draft-07) of suite files or of folder settings, with all keys that are registered."""
    level = _LEVELS[name]
    levels: tuple[Level, ...] = ("file", "case") if name == "suite" else ("folder",)
    keys = [key for key in KEYS.available().values() if not set(levels).isdisjoint(key.levels)]
    readers, descriptions = {key.name: key.read for key in keys}, {key.name: key.description for key in keys}
    parts = {"share": limits_shape(1.0), **({"case": _case_shape()} if name == "suite" else {})}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": _TITLES[name],
        **mapping_shape(_references(level), required=["cases"] if name == "suite" else ()),
        **(_judged_cases() if name == "suite" else {}),
        "definitions": {**parts, **described_shapes(readers, descriptions)},
    }


def schema_text(name: SchemaName) -> str:
    """Return the JSON Schema as the text of its file."""
    return f"{json.dumps(editor_schema(name), indent=1)}\n"


def schema_comment(name: SchemaName) -> str:
    """Return the first lines of a YAML file that tell editors to use the schema next to it."""
    return f"# yaml-language-server: $schema={SCHEMA_FILES[name]}\n# $schema: {SCHEMA_FILES[name]}\n"


def _references(level: Level) -> dict[str, Shape]:
    return {key.name: {"$ref": f"#/definitions/{key.name}"} for key in KEYS.available().values() if level in key.levels}


def _case_shape() -> Shape:
    """Return the shape of a case.

    It has alternatives for a conversation, whose turns have the golds, and for parameters, with which a value of any
    type may be `{name}`.
    """
    keys = _references("case")
    single = excluding(keys, [CONVERSATION])
    conversation = {**excluding(keys, REFUSED), **ACCEPTED}
    only_one = {
        form: {"properties": {other_form: False for other_form in forms if other_form != form}}
        for forms in (GOLD_FORMS, PREDICTED_FORMS)
        for form in forms
    }
    return {
        "type": "object",
        "required": ["id"],
        "if": {"required": [CONVERSATION]},
        "then": mapping_shape(conversation),
        "else": {
            "if": {"required": [PARAMETRIZE]},
            "then": mapping_shape({name: of if name == PARAMETRIZE else either(of, {}) for name, of in single.items()}),
            "else": {
                **mapping_shape(single),
                "if": _UNANSWERABLE,
                "then": {"properties": dict.fromkeys((*GOLD_FORMS, EXPECT), False)},
                "dependencies": only_one,
            },
        },
    }


def _judged_cases() -> Shape:
    """Return the condition that each case has a gold or an expectation, unless its suite has `expect`."""
    stated = ({"required": [key]} for key in (*GOLD_FORMS, EXPECT, CONVERSATION))
    judged = {"properties": {"cases": {"items": {"anyOf": [*stated, _UNANSWERABLE]}}}}
    return {"if": {"required": [EXPECT]}, "else": judged}
