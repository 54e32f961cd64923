"""Finds a predictor's function without importing it: importing is for the run, and may take long."""

from __future__ import annotations

import os
import pkgutil
import re
import symtable
import sys
import warnings
from collections.abc import Collection, Iterator
from functools import lru_cache
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import decode_source, find_spec
from pathlib import Path

from pytest_queryeval.core.errors import SettingError, did_you_mean, names_beside

TARGET = "target"
_STAR_IMPORT = re.compile(r"\bfrom\s+[\w.]+\s+import\s*\*")
# What can bind names that no statement spells out.
_DYNAMIC = frozenset({"__getattr__", "eval", "exec", "globals", "locals", "setattr", "vars"})


def parts_of(target: object) -> tuple[str, str]:
    """Return the module or file, and the function, of "module:function"; raises `SettingError` for anything else."""
    place, _, name = target.rpartition(":") if isinstance(target, str) else ("", "", "")
    if not place or not name:
        needed = "needs 'module:function' or 'file.py:function'"
        raise SettingError(TARGET, f"the predictor 'python' {needed}, found '{target or ''}'")
    return place, name


def is_file(place: str) -> bool:
    """Return whether a target is in a file, not in a module."""
    return place.endswith(".py")


def check_function(target: str, folder: Path) -> None:
    """Raise `SettingError` where a function is certainly not there; what only importing tells is left to the run."""
    place, name = parts_of(target)
    if is_file(place):
        path = folder / place
        if not os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for names that are too long
            beside = (file for file in names_beside(path, place) if is_file(file))
            raise SettingError(TARGET, f"there is no file {place}{did_you_mean(place, beside)}")
        _check_name(name, place, path)
    elif place in sys.modules:
        names = vars(sys.modules[place])
        if "__getattr__" not in names:
            _require(name, place, names.keys())
    else:
        spec = _found_module(place, name, folder)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            _check_name(name, place, Path(spec.loader.path))


def _check_name(name: str, place: str, path: Path) -> None:
    try:
        names = _bound_names(path, path.stat().st_mtime_ns)
    except SyntaxError as error:
        line = f":{error.lineno}" if error.lineno else ""
        raise SettingError(TARGET, f"{place}{line}: {error.msg}") from error
    if names is not None:
        _require(name, place, names)


def _require(name: str, place: str, names: Collection[str]) -> None:
    if name not in names:
        known = [known for known in names if not known.startswith("_")]
        raise SettingError(TARGET, f"there is no function '{name}' in {place}{did_you_mean(name, known)}")


@lru_cache(maxsize=64)
def _bound_names(path: Path, _: int) -> frozenset[str] | None:
    """Return the names that a module binds; None where they cannot be told from its text.

    Raises SyntaxError where it is no Python.
    """
    try:
        source = decode_source(path.read_bytes())
        with warnings.catch_warnings(action="ignore"):
            module = symtable.symtable(source, str(path), "exec")
    except (OSError, ValueError, RecursionError, MemoryError):
        return None
    if "sys.modules" in source or _STAR_IMPORT.search(source):
        return None
    if any(not _DYNAMIC.isdisjoint(table.get_identifiers()) for table in _tables(module)):
        return None
    return frozenset(
        symbol.get_name()
        for symbol in module.get_symbols()
        if symbol.is_assigned() or symbol.is_imported() or symbol.is_declared_global()
    )


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)


def _found_module(place: str, name: str, folder: Path) -> ModuleSpec | None:
    """Return how a module would be imported; None where only importing its packages tells.

    Raises `SettingError` where there is none.
    """
    top, *parts = place.split(".")
    try:
        spec = find_spec(top)
        module = top
        for part in parts:
            if spec is None or spec.submodule_search_locations is None:
                break
            package, module = spec, f"{module}.{part}"
            imported = sys.modules.get(package.name)
            locations = list(getattr(imported, "__path__", None) or package.submodule_search_locations or ())
            found = (finder.find_spec(module, locations) for finder in sys.meta_path)
            spec = next(filter(None, found), None)
            if spec is None and _extends_itself(package):
                return None
    except Exception:  # noqa: BLE001 - finders of other packages may raise anything, which importing will tell
        return None
    if spec is None or module != place:
        raise SettingError(TARGET, f"there is no module '{place}'{_hint(place, name, folder)}")
    return spec


def _extends_itself(package: ModuleSpec) -> bool:
    """Return whether importing a package may change where its modules are, or make some."""
    if not isinstance(package.loader, SourceFileLoader):
        return package.origin is not None
    source = Path(package.loader.path).read_bytes()
    return b"__path__" in source or b"sys.modules" in source


def _hint(place: str, name: str, folder: Path) -> str:
    file = f"{place.replace('.', '/')}.py"
    if os.path.isfile(folder / file):  # noqa: PTH113 - see above
        return f": did you mean '{file}:{name}'?"
    return did_you_mean(place, (module.name for module in pkgutil.iter_modules())) if "." not in place else ""
