"""The settings of a program as predictor."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from pytest_queryeval.core.errors import SettingError, did_you_mean
from pytest_queryeval.core.setting_validators import is_text
from pytest_queryeval.predictors import SEND_SCHEMA

SETTINGS = ("run", "mode", "env", "cwd", SEND_SCHEMA)
MODES = ("each", "lines")
SCHEMA = "{schema}"  # a place within arguments
_VARIABLE = re.compile(r"[^=\0]+")


def check_command(settings: Mapping[str, Any]) -> None:
    """Raise `SettingError` for the first setting that cannot be right."""
    for name in settings:
        if name not in SETTINGS:
            raise SettingError(name, f"unknown setting '{name}'{did_you_mean(name, SETTINGS)}")
    if not words(settings.get("run", [])):
        raise SettingError("run", "the predictor 'command' needs `run`: a program and its arguments")
    mode = settings.get("mode", MODES[0])
    if mode not in MODES:
        raise SettingError("mode", f"'mode' is not one of {', '.join(MODES)}")
    if mode == "lines" and has_schema(settings):
        problem = f'"{SCHEMA}" in `run` needs a process for each case: write `{SEND_SCHEMA}: true`'
        raise SettingError("run", f"{problem}, or leave out `mode: lines`")
    if not _is_environment(settings.get("env", {})):
        raise SettingError("env", "'env' is not a mapping of names to texts: write other values in quotes")
    if not is_text(settings.get("cwd", ".")):
        raise SettingError("cwd", "'cwd' is not the name of a folder")
    if not isinstance(settings.get(SEND_SCHEMA, False), bool):
        raise SettingError(SEND_SCHEMA, f"'{SEND_SCHEMA}' is not true or false")


def has_schema(settings: Mapping[str, Any]) -> bool:
    """Return whether an argument holds the place of the schema."""
    return any(SCHEMA in word for word in words(settings.get("run", []))[1:])


def words(run: object) -> tuple[str, ...]:
    """Return the program and its arguments; raises `SettingError`."""
    if isinstance(run, str):
        try:
            run = shlex.split(run)
        except ValueError as error:
            raise SettingError("run", f"'run' cannot be split into words: {error}") from error
    found = [str(word) if _is_whole_number(word) else word for word in run] if isinstance(run, list) else [None]
    texts = tuple(word for word in found if isinstance(word, str) and "\0" not in word)
    if len(texts) < len(found) or texts[:1] == ("",):
        raise SettingError("run", "'run' is not a list of texts: write other values in quotes")
    return texts


def _is_environment(env: object) -> bool:
    if not isinstance(env, dict):
        return False
    names = all(isinstance(name, str) and _VARIABLE.fullmatch(name) for name in env)
    return names and all(value == "" or is_text(value) or _is_whole_number(value) for value in env.values())


def _is_whole_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
