"""Finds a function in a predictor's file without importing it: importing is for the run, and may take long."""

from __future__ import annotations

import os
import re
import symtable
import warnings
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import decode_source
from pathlib import Path

from pytest_queryeval.core.errors import SettingError, did_you_mean, names_beside

TARGET = "target"
_STAR_IMPORT = re.compile(r"\bfrom\s+[\w.]+\s+import\s*\*")
# What can bind names that are in no statement.
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
    """Raise `SettingError` where a file certainly does not have a function.

    Modules are not checked: pytest puts their folders on sys.path later. Nor are files that bind names dynamically.
    """
    place, name = parts_of(target)
    if not is_file(place):
        return
    path = folder / place
    if not os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for names that are too long
        beside = (file for file in names_beside(path, place) if is_file(file))
        raise SettingError(TARGET, f"there is no file {place}{did_you_mean(place, beside)}")
    try:
        names = _bound_names(path, path.stat().st_mtime_ns)
    except SyntaxError as error:
        line = f":{error.lineno}" if error.lineno else ""
        raise SettingError(TARGET, f"{place}{line}: not Python: {error.msg}") from error
    if names is not None and name not in names:
        public_names = [bound_name for bound_name in names if not bound_name.startswith("_")]
        raise SettingError(TARGET, f"there is no function '{name}' in {place}{did_you_mean(name, public_names)}")


@lru_cache(maxsize=64)
def _bound_names(path: Path, _: int) -> frozenset[str] | None:
    """Return the names that a module binds; None where its text does not show them.

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
