"""Features of this package, each of which an installation can leave out; their modules are imported on first use."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from pytest_queryeval.core.errors import MissingFeatureError

_FEATURE = re.compile(r"(pytest_queryeval\.features\.(\w+))(?:\..+)?")


def feature(module: str) -> ModuleType:
    """Import and return a module of a feature, such as `causes.search`.

    Raise `MissingFeatureError` if the feature is not installed.
    """
    try:
        return import_module(f"pytest_queryeval.features.{module}")
    except ModuleNotFoundError as error:
        if missing := missing_feature(error):
            raise MissingFeatureError(f"the feature {missing} is not installed") from error
        raise


def missing_feature(error: Exception) -> str:
    """Return the name of the feature whose absence made an import fail; empty for any other error."""
    found = _FEATURE.fullmatch(error.name or "") if isinstance(error, ModuleNotFoundError) else None
    return found[2] if found is not None and find_spec(found[1]) is None else ""
