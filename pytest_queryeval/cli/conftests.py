"""The conftest.py of suites, which may register metrics, engines and predictors that the suites name."""

from __future__ import annotations

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.text.truncation import one_line

NAME = "conftest.py"


def import_conftests(path: Path) -> None:
    """Import every conftest.py at and below `path`, and those above it up to the current folder, the topmost first.

    Like pytest it lets them import modules beside them. Raise `QueryEvalError` for one that cannot be imported.
    """
    start, here = file_at(path).path, Path.cwd()
    folder = start if start.is_dir() else start.parent
    above = [parent for parent in reversed(folder.parents) if parent.is_relative_to(here)]
    below = [folder]
    if start.is_dir():
        walked = os.walk(folder)
        below = sorted(Path(place) for place, _, _ in walked if not _is_hidden(Path(place).relative_to(folder)))
    for each in (*above, *below):
        if (each / NAME).is_file():
            _import(each / NAME)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def _import(path: Path) -> None:
    name = f"queryeval conftest of {path.parent}"
    spec = spec_from_file_location(name, path)
    if name in sys.modules or spec is None or spec.loader is None:
        return
    module = sys.modules[name] = module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # it may raise anything
        del sys.modules[name]
        raise QueryEvalError(f"{path}: cannot be imported: {type(error).__name__}: {one_line(str(error))}") from error
    finally:
        sys.path.remove(str(path.parent))
