"""The settings of a program as predictor."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from pytest_queryeval.core.errors import SettingError
from pytest_queryeval.core.setting_validators import (
    TEXT,
    TRUE_OR_FALSE,
    SettingValidator,
    choice_shape,
    is_text,
    validate_settings,
)
from pytest_queryeval.core.shapes import Shape, either, list_shape
from pytest_queryeval.predictors import SEND_SCHEMA

MODES = ("each", "lines")
SCHEMA = "{schema}"  # a placeholder within arguments
_VARIABLE = re.compile(r"[^=\0]+")


def is_environment(value: Any) -> bool:
    """Return whether it is a mapping of names of environment variables to texts or whole numbers."""
    return isinstance(value, dict) and all(
        isinstance(name, str) and _VARIABLE.fullmatch(name) and (text == "" or is_text(text) or type(text) is int)
        for name, text in value.items()
    )


_TEXT_OR_NUMBER: Shape = {"type": ["string", "integer"]}
_WORDS = either(TEXT, {**list_shape(_TEXT_OR_NUMBER), "minItems": 1})
SETTINGS = {
    "run": SettingValidator(lambda _: True, "a program and its arguments", shape=_WORDS),  # `words` reads it
    "mode": SettingValidator(lambda value: value in MODES, f"one of {', '.join(MODES)}", shape=choice_shape(MODES)),
    "env": SettingValidator(
        is_environment,
        "a mapping of names to texts: write other values in quotes",
        shape={"type": "object", "additionalProperties": _TEXT_OR_NUMBER},
    ),
    "cwd": SettingValidator(is_text, "the name of a folder", shape=TEXT),
    SEND_SCHEMA: TRUE_OR_FALSE,
}


def check_command(settings: Mapping[str, Any]) -> None:
    """Raise `SettingError` for the first setting that cannot be right."""
    validate_settings(settings, SETTINGS)
    if not words(settings.get("run", [])):
        raise SettingError("run", "the predictor 'command' needs `run`: a program and its arguments")
    if settings.get("mode") == "lines" and has_schema(settings):
        problem = f'"{SCHEMA}" in `run` needs a process for each case: write `{SEND_SCHEMA}: true`'
        raise SettingError("run", f"{problem}, or leave out `mode: lines`")


def has_schema(settings: Mapping[str, Any]) -> bool:
    """Return whether an argument holds the placeholder of the schema."""
    return any(SCHEMA in word for word in words(settings.get("run", []))[1:])


def words(run: object) -> tuple[str, ...]:
    """Return the program and its arguments; raises `SettingError`."""
    if isinstance(run, str):
        try:
            run = shlex.split(run)
        except ValueError as error:
            raise SettingError("run", f"'run' cannot be split into words: {error}") from error
    arguments = [str(word) if type(word) is int else word for word in run] if isinstance(run, list) else [None]
    texts = tuple(word for word in arguments if isinstance(word, str) and "\0" not in word)
    if len(texts) < len(arguments) or texts[:1] == ("",):
        raise SettingError("run", "'run' is not a list of texts: write other values in quotes")
    return texts
