"""The examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest_queryeval

ROOT = Path(pytest_queryeval.__file__).parent
MODULES = [
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(ROOT.rglob("*.py"))
    if ">>>" in path.read_text(encoding="utf-8")
]


def test_examples_give_what_they_say(pytestconfig) -> None:
    hidden = tuple(f"{pytest_queryeval.__name__}.features.{name}" for name in pytestconfig.hidden_features)
    modules = [name for name in MODULES if not name.startswith(hidden)]
    results = {name: doctest.testmod(importlib.import_module(name)) for name in modules}

    assert [name for name, result in results.items() if result.failed] == []
    assert sum(result.attempted > 0 for result in results.values()) >= 8
