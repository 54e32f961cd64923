"""Checks of the settings of a source, before anything is opened."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.setting_validators import SettingValidator, validate_settings

# Names the state of a live source; every source may have it.
VERSION = "version"


def check_settings(settings: Mapping[str, JsonValue], known: Mapping[str, SettingValidator]) -> None:
    """Raise `SettingError` for the first setting but VERSION that is unknown or does not pass its validator."""
    validate_settings({name: value for name, value in settings.items() if name != VERSION}, known)
