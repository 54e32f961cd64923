"""Checks of the settings of a source, before anything is opened."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pytest_queryeval.core.setting_validators import SettingValidator, is_texts, texts, validate_settings

_IRI = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*:[^<>"{}|^`\\\x00-\x20]*')
# Names the state of a live source; every source may have it.
VERSION = "version"


def is_iris(value: Any) -> bool:
    """Return whether it is an absolute IRI, or a list of them."""
    return is_texts(value) and all(_IRI.fullmatch(text) for text in texts(value))


def check_settings(settings: Mapping[str, Any], known: Mapping[str, SettingValidator]) -> None:
    """Raise `SettingError` for the first setting but VERSION that is unknown or does not pass its validator."""
    validate_settings({name: value for name, value in settings.items() if name != VERSION}, known)
