"""The root folder of a run without pytest, to which the paths in its report are relative."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

# Files that configure pytest, with the header of pytest's table in those that configure other tools as well.
CONFIGURATIONS = {
    "pytest.toml": "",
    ".pytest.toml": "",
    "pytest.ini": "",
    ".pytest.ini": "",
    "pyproject.toml": "[tool.pytest",
    "tox.ini": "[pytest]",
    "setup.cfg": "[tool:pytest]",
}


def root_of(paths: Iterable[Path]) -> Path:
    """Return the root folder as pytest finds it: the nearest one at or above all paths that configures pytest.

    Else it is the nearest with a pyproject.toml, else the nearest with a setup.py, else the folder that holds the paths
    and the current folder.
    """
    places = [Path(os.path.abspath(path)) for path in paths]  # noqa: PTH100 - resolve() would follow links
    shared = Path(os.path.commonpath([place.parent if place.is_file() else place for place in places]))
    rules: tuple[Callable[[Path], bool], ...] = (
        configures_pytest,
        lambda folder: (folder / "pyproject.toml").is_file(),
        lambda folder: (folder / "setup.py").is_file(),
    )
    roots = (folder for is_root in rules for folder in (shared, *shared.parents) if is_root(folder))
    return next(roots, Path(os.path.commonpath([Path.cwd(), shared])))


def configures_pytest(folder: Path) -> bool:
    """Return whether a file of a folder configures pytest, which makes the folder the root of runs below it."""
    return any(_configures(folder / name, table) for name, table in CONFIGURATIONS.items())


def _configures(path: Path, table: str) -> bool:
    try:
        return path.is_file() and table in path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
