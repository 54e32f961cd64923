"""Shapes: what a reader of suites accepts, as JSON Schema of draft-07, the one that editors of YAML know.

A shape stands next to its reader, and `suites/editor_schema.py` composes the schemas of whole files from them. It may
accept what the reader refuses, since a schema does not see everything, but never refuses what the reader accepts: an
editor must not complain about a suite that loads. Values are those of YAML 1.2: where a reader takes the source text of
a scalar, its shape takes numbers, true, false and null as well. Validators of settings test single values, and have
shapes as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

from pytest_queryeval.core.errors import SettingError, did_you_mean
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.text.redaction import may_hold_credentials

Shape: TypeAlias = Mapping[str, Any]
Function = TypeVar("Function", bound=Callable[..., Any])

ANYTHING: Shape = {}
NULL: Shape = {"type": "null"}
SCALAR: Shape = {"type": ["string", "number", "boolean", "null"]}
NOT_NULL: Shape = {"not": NULL}
NON_BLANK = r"\S"
TEXT: Shape = {"type": ["string", "number", "boolean"], "pattern": NON_BLANK}
# A text that is not the value yet: it names a variable of the environment.
VARIABLE: Shape = {"type": "string", "pattern": r"\$\{[A-Za-z_]"}
_IRI = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*:[^<>"{}|^`\\\x00-\x20]*')
STRING: Shape = {"type": "string", "minLength": 1}
FLAG: Shape = {"type": "boolean"}


def shape(accepted_shape: Shape | Callable[[], Shape]) -> Callable[[Function], Function]:
    """Return a decorator that attaches a shape to a reader and returns the reader itself.

    `accepted_shape` may be a function that returns the shape; it is called on demand, as for the names in a registry.
    """

    def attach(read: Function) -> Function:
        read.shape = accepted_shape  # type: ignore[attr-defined]
        return read

    return attach


def shape_of(read: Callable[..., Any]) -> Shape:
    """Return the shape that is attached to a reader; `ANYTHING` if none is."""
    of = getattr(read, "shape", ANYTHING)
    attached: Shape = of() if callable(of) else of
    return attached


def enum_shape(names: Iterable[str]) -> Shape:
    """Return the shape that accepts exactly these words."""
    return {"enum": list(names)}


def list_shape(item: Shape) -> Shape:
    """Return the shape of lists whose items have the shape `item`."""
    return {"type": "array", "items": item}


def either(*shapes: Shape) -> Shape:
    """Return the shape that accepts what at least one of these shapes accepts."""
    return {"anyOf": list(shapes)}


def mapping_shape(entries: Mapping[str, Shape], *, required: Iterable[str] = ()) -> Shape:
    """Return the shape of mappings that have only the keys of `entries`, and all `required` keys."""
    mapping = {"type": "object", "properties": dict(entries), "additionalProperties": False}
    return {**mapping, "required": list(required)} if required else mapping


def described_shapes(readers: Mapping[str, Callable[..., Any]], descriptions: Mapping[str, str]) -> dict[str, Shape]:
    """Return the shape of each reader by name, with its description added if there is one."""
    return {
        name: {**({"description": descriptions[name]} if name in descriptions else {}), **shape_of(read)}
        for name, read in readers.items()
    }


class SettingValidator(NamedTuple):
    """A test of a setting's value, with the words for the values that pass the test.

    `suggestion` returns the end of the message for a value that does not pass. `names_files` says that the value is the
    name of a file, or several names. `shape` describes the value to editors as the suite spells it, before variables of
    the environment are replaced.
    """

    accepts: Callable[[Any], bool]
    words: str
    names_files: bool = False
    suggestion: Callable[[Any], str] = lambda _: ""
    shape: Shape = ANYTHING


def is_text(value: Any) -> bool:
    """Return whether a value is a text that is not empty and contains no NUL character."""
    return isinstance(value, str) and bool(value) and "\0" not in value


def is_mapping(value: Any, is_name: Callable[[Any], bool] = is_text, is_value: Callable[[Any], bool] = is_text) -> bool:
    """Return whether a value is a dict whose keys and values pass the tests, by default `is_text`; it may be empty."""
    return isinstance(value, dict) and all(map(is_name, value)) and all(map(is_value, value.values()))


def is_texts(value: Any) -> bool:
    """Return whether a value is a text as `is_text` requires, or a non-empty list of such texts."""
    return is_text(value) or (isinstance(value, list) and bool(value) and all(map(is_text, value)))


def is_iri(value: Any) -> bool:
    """Return whether a value is the text of an absolute IRI."""
    return isinstance(value, str) and _IRI.fullmatch(value) is not None


def is_iris(value: Any) -> bool:
    """Return whether a value is an absolute IRI, or a non-empty list of absolute IRIs."""
    return is_texts(value) and all(map(is_iri, texts(value)))


TEXTS = either(STRING, {**list_shape(STRING), "minItems": 1})


def choice_shape(names: Iterable[str]) -> Shape:
    """Return the shape that accepts these words, and a text with a variable of the environment."""
    return either(enum_shape(names), VARIABLE)


def text_setting(words: str, fits: Callable[[str], object] = bool, of: Shape = STRING) -> SettingValidator:
    """Return a validator of non-empty texts for which `fits` returns a true value.

    `words` describes these texts in messages, and the shape `of` describes them to editors.
    """
    return SettingValidator(lambda value: is_text(value) and bool(fits(value)), words, shape=of)


def choice_setting(names: Collection[str], words: str = "") -> SettingValidator:
    """Return a validator that accepts exactly these words; without `words`, messages list them."""
    return SettingValidator(
        lambda value: value in tuple(names), words or f"one of {', '.join(names)}", shape=choice_shape(names)
    )


TRUE_OR_FALSE = SettingValidator(lambda value: isinstance(value, bool), "true or false", shape=FLAG)
FILE_NAME = SettingValidator(is_text, "the name of a file", names_files=True, shape=STRING)
FILE_NAMES = SettingValidator(is_texts, "the name of a file, or a list of names", names_files=True, shape=TEXTS)


def pattern_shape(pattern: str) -> Shape:
    """Return the shape of texts in which a regular expression is found, or a variable of the environment."""
    return {"type": "string", "pattern": f"{pattern}|{VARIABLE['pattern']}"}


def validate_settings(settings: Mapping[str, JsonValue], validators: Mapping[str, SettingValidator]) -> None:
    """Raise `SettingError` for the first setting that is unknown, is not accepted, or names a file by a URL.

    A URL or a connection string as the name of a file could show credentials in messages.
    """
    for name, value in settings.items():
        if name not in validators:
            raise SettingError(name, f"unknown setting '{name}'{did_you_mean(name, validators)}")
        if not validators[name].accepts(value):
            raise SettingError(name, f"`{name}` must be {validators[name].words}{validators[name].suggestion(value)}")
        if validators[name].names_files:  # which messages and reports show
            files = value.values() if isinstance(value, dict) else texts(value)
            if any(may_hold_credentials(str(file)) for file in files):
                raise SettingError(name, f"`{name}` looks like a URL or a connection string: write the name of a file")


def texts(value: Any) -> tuple[str, ...]:
    """Return a text as a tuple of that text, and a list of texts as a tuple."""
    return (value,) if isinstance(value, str) else tuple(value)
