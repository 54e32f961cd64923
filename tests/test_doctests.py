"""The examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import pytest_queryeval

MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(pytest_queryeval.__path__, "pytest_queryeval.")
    if not name.endswith("_child")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_say(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_examples_are_found() -> None:
    finder = doctest.DocTestFinder()
    modules = map(importlib.import_module, MODULES)

    assert sum(len(test.examples) > 0 for module in modules for test in finder.find(module)) >= 8
