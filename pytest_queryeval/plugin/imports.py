"""Imports of this package without pytest's rewriting of asserts, which it does not need.

pytest rewrites all modules of a package with a plugin, and does so at every start if it cannot write its cache, as in a
container or with PYTHONDONTWRITEBYTECODE.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from typing import cast

import pytest

PREFIX = f"{__name__.partition('.')[0]}."


class PlainImports:
    """A finder of the modules of this package, to be put before pytest's own."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """Return what Python finds without pytest; None for a module of any other package."""
        return PathFinder.find_spec(name, path) if name.startswith(PREFIX) else None


def import_plainly(pluginmanager: pytest.PytestPluginManager) -> None:
    """Put the finder before pytest's own until the run ends; with `--assert=plain` pytest has none."""
    finders = cast("list[object]", sys.meta_path)
    config = pluginmanager.get_plugin("pytestconfig")
    if config is not None and pluginmanager.rewrite_hook in finders:
        finder = PlainImports()
        finders.insert(finders.index(pluginmanager.rewrite_hook), finder)
        config.add_cleanup(lambda: finders.remove(finder))
