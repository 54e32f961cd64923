"""Errors of models, each in one line with the model's name and the setting."""

from __future__ import annotations

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.text.truncation import one_line

SETTING = "embedding_model"
_NAME_CHARACTERS = 300
_REASON_CHARACTERS = 300


class EmbeddingError(QueryEvalError):
    """A model that cannot be loaded, or that cannot embed a text; never the fault of a query."""


def problem(model: str, reason: object) -> EmbeddingError:
    """Return the error of a model, with at most the first _REASON_CHARACTERS of the reason."""
    name = one_line(model, _NAME_CHARACTERS)
    return EmbeddingError(f"{SETTING} '{name}': {one_line(str(reason), _REASON_CHARACTERS)}")
