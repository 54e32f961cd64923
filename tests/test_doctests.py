"""The examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest_queryeval

MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(pytest_queryeval.__path__, "pytest_queryeval.")
    if not name.endswith("_child")
]


def test_examples_give_what_they_say() -> None:
    results = {name: doctest.testmod(importlib.import_module(name)) for name in MODULES}

    assert [name for name, result in results.items() if result.failed] == []
    assert sum(result.attempted > 0 for result in results.values()) >= 8
