"""Checks of the settings of a source, before anything is opened."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_queryeval.core.errors import SourceError, nearest_file
from pytest_queryeval.core.model import Source
from pytest_queryeval.core.setting_validators import SettingValidator, is_texts, texts, validate_settings

_IRI = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*:[^<>"{}|^`\\\x00-\x20]*')
# Names the state of a live source; every source may have it.
VERSION = "version"


def is_iris(value: Any) -> bool:
    """Return whether it is an absolute IRI, or a list of them."""
    return is_texts(value) and all(_IRI.fullmatch(text) for text in texts(value))


def check_settings(settings: Mapping[str, Any], known: Mapping[str, SettingValidator]) -> None:
    """Raise `SettingError` for the first setting but VERSION that is not known, or is not what its rule says."""
    validate_settings({name: value for name, value in settings.items() if name != VERSION}, known)


def file_path(source: Source, setting: str) -> Path:
    """Return the absolute path of the file that a setting of the source names."""
    return absolute(source.folder, source.settings[setting])


def check_exists(source: Source, name: str) -> None:
    """Raise `SourceError` unless there is something called `name`, with the nearest name among files of its suffix."""
    path = absolute(source.folder, name)
    if os.path.exists(path):  # noqa: PTH110 - Path.exists raises for names that no file can have
        return
    raise SourceError(f"source '{source.name}': {path}: no such file{nearest_file(path)}")


def absolute(folder: Path, name: str) -> Path:
    """Return the file called `name`, relative to `folder`, with all links followed.

    Raises `SourceError` for a name that the locale cannot express.
    """
    try:
        return Path(os.path.realpath(folder / name))
    except UnicodeEncodeError as error:
        raise SourceError(f"{name!a}: not a file name in this locale ({error.encoding}): set PYTHONUTF8=1") from error
