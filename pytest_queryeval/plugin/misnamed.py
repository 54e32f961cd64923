"""Suites under a name that pytest does not collect them by."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

from pytest_queryeval.core.errors import QueryEvalWarning

MAX_BYTES = 100_000  # of a file that is looked into
_KEYS = (re.compile(rb"^kind\s*:", re.MULTILINE), re.compile(rb"^cases\s*:", re.MULTILINE))


def warn_of_suite(path: Path) -> None:
    """Warn where a file that the command line names has the keys of a suite: pytest would only say "not found"."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES)
    except OSError:  # pytest says what is wrong with it
        return
    if all(key.search(text) for key in _KEYS):
        problem = "has the keys of a suite, but suites are collected by their names"
        remedy = f"rename it to {path.stem.strip('.')}.queryeval{path.suffix}"
        warnings.warn_explicit(f"{path.name} {problem}: {remedy}", QueryEvalWarning, str(path), 1)
