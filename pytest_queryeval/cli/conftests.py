"""Suites for commands, with their conftest.py, which may register what the suites name; the root folder of a run."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from pytest_queryeval.core.errors import QueryEvalError, QueryEvalWarning
from pytest_queryeval.core.process import is_interruption
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.suites import Suite, load_suites, suite_files
from pytest_queryeval.text.formatting import one_line

NAME = "conftest.py"
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


def read_suites(path: Path, *, check_files: bool = False) -> tuple[Sequence[Suite], Sequence[str]]:
    """Return the suites at a path, and the warnings that say why others were skipped.

    Imports their conftest.py files first. Raises `SuiteError` for a suite that cannot be read, and `QueryEvalError` for
    a conftest.py that cannot be imported.
    """
    import_conftests(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", QueryEvalWarning)
        suites = load_suites(path, require_prediction=False, check_files=check_files)
    return suites, [str(warning.message) for warning in caught]


def import_conftests(path: Path, root: Path | None = None) -> None:
    """Import every conftest.py next to and above the suites at `path`, up to the root, the topmost first.

    The root is the current folder by default. The files can import modules next to them, as under pytest. A file is
    imported once in a process. Raises `QueryEvalError` for a file that cannot be imported.
    """
    top = root or Path.cwd()
    folders = {file.parent for file in suite_files(file_at(path).path)}
    above = {parent for folder in folders for parent in folder.parents if parent.is_relative_to(top)}
    for file in (folder / NAME for folder in sorted(folders | above)):
        name = f"queryeval conftest of {file.parent}"
        spec = spec_from_file_location(name, file) if file.is_file() else None
        if name in sys.modules or spec is None or spec.loader is None:
            continue
        module = sys.modules[name] = module_from_spec(spec)
        sys.path.insert(0, str(file.parent))
        try:
            spec.loader.exec_module(module)
        except BaseException as error:  # also `sys.exit(0)`, which would look like success
            if is_interruption(error):
                raise
            del sys.modules[name]
            raise QueryEvalError(
                f"{file}: cannot be imported: {type(error).__name__}: {one_line(str(error))}"
            ) from error


def root_of(paths: Iterable[Path]) -> Path:
    """Return the root folder as pytest finds it: the nearest folder at or above all paths that configures pytest.

    If there is none, it is the nearest folder with a pyproject.toml, then the nearest with a setup.py, then the folder
    that contains the paths and the current folder.
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
    """Return whether a file in a folder configures pytest, which makes the folder the root of runs below it."""
    for name, table in CONFIGURATIONS.items():
        path = folder / name
        with suppress(OSError):
            if path.is_file() and table in path.read_text(encoding="utf-8", errors="replace"):
                return True
    return False
