"""Starts a program of ours in a child process: `python -I start_child.py PROGRAM COUNT FOLDER... ARGUMENT...`.

PROGRAM is a Python file with a function `main`; it may import from the COUNT folders next to the standard library, and
finds the arguments in `sys.argv`. What `main` returns is the exit status.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType


def load(path: str) -> ModuleType:
    """Import the Python file at `path` as a module without a package.

    Its package would import more than a child needs.
    """
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    program, count, *arguments = sys.argv[1:]
    # In front of the site packages: the parent may have imported from other folders.
    place = next((at for at, folder in enumerate(sys.path) if folder.endswith("-packages")), len(sys.path))
    sys.path[place:place] = arguments[: int(count)]
    sys.argv = [program, *arguments[int(count) :]]
    sys.exit(load(program).main())
