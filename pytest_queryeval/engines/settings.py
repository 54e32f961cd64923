"""Checks of the settings of a source, before anything is opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.setting_validators import TEXT, SettingValidator, is_text, validate_settings

# Names the state of a live source; every source may have it.
VERSION = "version"


def is_tables(value: Any) -> bool:
    """Return whether it is a mapping of texts to texts with at least one entry."""
    return isinstance(value, dict) and bool(value) and all(map(is_text, (*value, *value.values())))


TABLES = SettingValidator(
    is_tables,
    "a mapping of names of tables to names of files",
    names_files=True,
    shape={"type": "object", "additionalProperties": TEXT, "minProperties": 1},
)


def check_settings(settings: Mapping[str, JsonValue], validators: Mapping[str, SettingValidator]) -> None:
    """Raise `SettingError` for the first setting but VERSION that is unknown or does not pass its validator."""
    validate_settings({name: value for name, value in settings.items() if name != VERSION}, validators)
