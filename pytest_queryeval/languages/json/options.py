"""The options of metrics that score a level of a JSON answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, TypeGuard

from pytest_queryeval.core.errors import SettingError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.languages.json.levels import check_at

Depth: TypeAlias = Literal["top", "all"]
Lists: TypeAlias = Literal["index", "set"]
ValueText: TypeAlias = Literal["python", "json"]
ALPHA = 0.5
BETA = 0.1
EMBEDDING_MODEL = "paraphrase-TinyBERT-L6-v2"
_CHOICES = {"depth": ("top", "all"), "lists": ("index", "set"), "value_text": ("python", "json")}


def check_options(options: Mapping[str, JsonValue]) -> None:
    """Raise `SettingError` for the first of these options with an invalid value."""
    check_at(options)
    for name, choices in _CHOICES.items():
        if options.get(name, choices[0]) not in choices:
            raise SettingError(name, f"'{name}' is neither {' nor '.join(choices)}")
    if not _is_number(beta := options.get("beta", BETA)) or not 0 < beta <= 1:
        raise SettingError("beta", "'beta' is not a number above 0 and at most 1")
    if not _is_number(alpha := options.get("alpha", ALPHA)) or not 0 <= alpha <= 1:
        raise SettingError("alpha", "'alpha' is not a number from 0 to 1")
    model = options.get("embedding_model", EMBEDDING_MODEL)
    if not isinstance(model, str) or not model.strip():
        raise SettingError("embedding_model", "'embedding_model' is neither the name of a model nor a folder")


def _is_number(value: JsonValue) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
