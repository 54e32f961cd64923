"""What runs of pytest in the process of the tests share with it.

`sys.modules` may not lose compiled packages, of which some, such as torch, can be imported only once. And what all
installed packages declare is read once, which each run would do three times, as are the versions of single packages.
"""

import functools
import importlib.metadata
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import pytest

_FOLDERS = {Path(entry).absolute() for entry in sys.path}  # without those that the tests of a run add


def is_installed(name: str) -> bool:
    """Tell whether a loaded module belongs to Python or to a package that lies where every test can import it.

    A module without a file is installed: compiled code creates such modules.
    """
    package = sys.modules.get(name.partition(".")[0], sys.modules[name])
    file = getattr(package, "__file__", None)
    locations = getattr(package, "__path__", None) or ([file] if file else [])
    return all(Path(location).parent in _FOLDERS for location in locations)


class Distribution:
    """An installed package, whose metadata are parsed once; `importlib.metadata` parses them at each access."""

    def __init__(self, distribution: importlib.metadata.Distribution) -> None:
        self._distribution = distribution

    def __getattr__(self, name: str) -> object:
        value = getattr(self._distribution, name)
        setattr(self, name, value)
        return value


def remember_distributions(patch: pytest.MonkeyPatch) -> None:
    """Let `importlib.metadata` search each `sys.path` once for all packages, and once for each package by name."""
    search, search_one = importlib.metadata.distributions, importlib.metadata.distribution

    @functools.lru_cache(maxsize=2)
    def distributions_in(_path: tuple[str, ...]) -> list[Distribution]:
        return [Distribution(distribution) for distribution in search()]

    def distributions(**context: object) -> Iterable[object]:
        return search(**context) if context else distributions_in(tuple(sys.path))

    @functools.cache
    def distribution_in(_path: tuple[str, ...], name: str) -> Distribution:
        return Distribution(search_one(name))

    patch.setattr(importlib.metadata, "distributions", distributions)
    patch.setattr(importlib.metadata, "distribution", lambda name: distribution_in(tuple(sys.path), name))


class InstalledModules:
    """A plugin of runs in this process; `pytester` resets `sys.modules` after them."""

    def __init__(self) -> None:
        self._modules: dict[str, ModuleType] = {}

    @pytest.hookimpl
    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> None:
        early_config.add_cleanup(self.remember)  # which is called after an error of usage, too

    def remember(self) -> None:
        """Note all installed modules that are loaded."""
        for name in sys.modules.keys() - self._modules.keys():
            if is_installed(name):
                self._modules[name] = sys.modules[name]

    def restore(self) -> None:
        """Load those that have been removed from `sys.modules` again, without a second import."""
        for name, module in self._modules.items():
            sys.modules.setdefault(name, module)
