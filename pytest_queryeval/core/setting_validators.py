"""Validators of single settings: a test of the value, and a description of the values that pass it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from pytest_queryeval.core.errors import SettingError, did_you_mean
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.shapes import ANYTHING, VARIABLE, Shape, either, list_shape, one_of
from pytest_queryeval.text.redaction import may_hold_credentials

_IRI = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*:[^<>"{}|^`\\\x00-\x20]*')


class SettingValidator(NamedTuple):
    """A test of a setting's value, and a description of the values that pass it.

    `suggestion` returns the end of the message for a value that does not pass. With `names_files`, the value is
    the name of a file, or several. `shape` describes the value to editors, as the suite has it: variables of the
    environment are not replaced there.
    """

    accepts: Callable[[Any], bool]
    words: str
    names_files: bool = False
    suggestion: Callable[[Any], str] = lambda _: ""
    shape: Shape = ANYTHING


def is_text(value: Any) -> bool:
    """Return whether it is a text that is not empty and holds no NUL."""
    return isinstance(value, str) and bool(value) and "\0" not in value


def is_texts(value: Any) -> bool:
    """Return whether it is one such text, or a list of them."""
    return is_text(value) or (isinstance(value, list) and bool(value) and all(map(is_text, value)))


def is_iri(value: Any) -> bool:
    """Return whether it is an absolute IRI."""
    return isinstance(value, str) and _IRI.fullmatch(value) is not None


def is_iris(value: Any) -> bool:
    """Return whether it is an absolute IRI, or a list of them."""
    return is_texts(value) and all(map(is_iri, texts(value)))


TEXT: Shape = {"type": "string", "minLength": 1}
TEXTS = either(TEXT, {**list_shape(TEXT), "minItems": 1})
FLAG: Shape = {"type": "boolean"}
TRUE_OR_FALSE = SettingValidator(lambda value: isinstance(value, bool), "true or false", shape=FLAG)
FILE_NAME = SettingValidator(is_text, "the name of a file", names_files=True, shape=TEXT)
FILE_NAMES = SettingValidator(is_texts, "the name of a file, or a list of names", names_files=True, shape=TEXTS)


def choice_shape(names: Iterable[str]) -> Shape:
    """Return the shape of one of a few words, or of a variable that holds one."""
    return either(one_of(names), VARIABLE)


def pattern_shape(pattern: str) -> Shape:
    """Return the shape of texts in which the pattern is found, or a variable."""
    return {"type": "string", "pattern": f"{pattern}|{VARIABLE['pattern']}"}


def validate_settings(settings: Mapping[str, JsonValue], validators: Mapping[str, SettingValidator]) -> None:
    """Raise `SettingError` for the first setting that is unknown or does not pass its validator."""
    for name, value in settings.items():
        if name not in validators:
            raise SettingError(name, f"unknown setting '{name}'{did_you_mean(name, validators)}")
        if not validators[name].accepts(value):
            raise SettingError(name, f"'{name}' is not {validators[name].words}{validators[name].suggestion(value)}")
        if validators[name].names_files:  # which messages and reports show
            files = value.values() if isinstance(value, dict) else texts(value)
            if any(may_hold_credentials(str(file)) for file in files):
                raise SettingError(name, f"'{name}' looks like a URL or a connection string, not a file")


def texts(value: Any) -> tuple[str, ...]:
    """Return one text, or a list of them, as a tuple."""
    return (value,) if isinstance(value, str) else tuple(value)
