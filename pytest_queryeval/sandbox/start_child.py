"""Starts a program of ours in a child process: `python -I -B start_child.py PROGRAM COUNT FOLDER... ARGUMENT...`.

PROGRAM is a Python file with a function `main`; it may import from the COUNT folders beside the standard library, and
finds the arguments in `sys.argv`. What `main` returns is the exit status.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def load(path: str) -> ModuleType:
    """Import the file at `path` without its package, which would import more than a child needs."""
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def leave_out_registries() -> None:
    """Let modules of `engines` and `languages` be imported without the `__init__.py` of the folder.

    The registries there import four times as much as a driver does.
    """
    for folder in ("engines", "languages"):
        package = ModuleType(f"pytest_queryeval.{folder}")
        package.__path__ = [str(Path(__file__).parents[1] / folder)]
        sys.modules[package.__name__] = package


if __name__ == "__main__":
    program, count, *arguments = sys.argv[1:]
    # In front of the site packages: the parent may have imported from other folders.
    place = next((at for at, folder in enumerate(sys.path) if folder.endswith("-packages")), len(sys.path))
    sys.path[place:place] = arguments[: int(count)]
    leave_out_registries()
    sys.argv = [program, *arguments[int(count) :]]
    sys.exit(load(program).main())
