"""A Python function as the system under test: "module:function" or "file.py:function"."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
import symtable
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import fields
from functools import lru_cache
from hashlib import sha256
from importlib.util import decode_source
from pathlib import Path
from types import ModuleType
from typing import Any

from pytest_queryeval.core.errors import PredictorError, SettingError, did_you_mean, names_beside
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import Prediction, PredictorSpec
from pytest_queryeval.core.process import is_interruption
from pytest_queryeval.core.shapes import SettingValidator, pattern_shape, validate_settings
from pytest_queryeval.predictors import CaseView, PredictorType
from pytest_queryeval.predictors.answer import (
    prediction_of,
    refuse_awaitable,
    user_frames,
    wrap_predictor_errors,
)

TARGET = "target"
INSTALL = "install it where pytest runs, or add its folder to `pythonpath` in pytest's settings"
_CASE_FIELDS = frozenset(field.name for field in fields(CaseView))
_STAR_IMPORT = re.compile(r"\bfrom\s+[\w.]+\s+import\s*\*")
# What can bind names that are in no statement.
_DYNAMIC = frozenset({"__getattr__", "eval", "exec", "globals", "locals", "setattr", "vars"})
# `split_target` reads the target.
SETTINGS = {
    TARGET: SettingValidator(
        lambda _: True, "a function, as module:function or file.py:function", shape=pattern_shape(".:.")
    )
}


class _Function:
    """A user's function; `siblings` are the modules in the folder of its file."""

    retries = 0

    def __init__(self, target: str, function: Callable[[CaseView], Any], siblings: SiblingModules | None) -> None:
        self._target = target
        self._function = function
        self._siblings = siblings

    def close(self) -> None:
        """Take the folder of the function's file off `sys.path`, if it was added."""
        if self._siblings:
            self._siblings.release()

    def _prediction(self, answer: object, case: CaseView, start: float) -> Prediction:
        seconds = time.perf_counter() - start
        return prediction_of(answer, case.kind, by=self._target, predictor=f"python:{self._target}", seconds=seconds)


class PythonFunction(_Function):
    """Answers cases by calling a function with the case view; it returns a query, a value, or a `Prediction`."""

    concurrency = 1

    def predict(self, case: CaseView, trial: int) -> Prediction:
        """Call the function with the case while the modules next to its file are importable, and return its answer.

        Raises `PredictorError` if the function raises, or returns a coroutine or a value that is no answer.
        """
        start = time.perf_counter()
        importable: AbstractContextManager[None] = nullcontext()
        if self._siblings and threading.current_thread() is threading.main_thread():
            importable = self._siblings.importable()
        elif self._siblings:
            self._siblings.keep_importable()
        with wrap_predictor_errors(self._target), importable:
            answer = self._function(case)
        refuse_awaitable(answer, self._target)
        return self._prediction(answer, case, start)


class AsyncPythonFunction(_Function):
    """Answers cases by awaiting a coroutine function, for several cases at once."""

    concurrency = 8

    async def predict(self, case: CaseView, trial: int) -> Prediction:
        """Await the function with the case, and return its answer.

        Raises `PredictorError` if the function raises, or returns a value that is no answer.
        """
        start = time.perf_counter()
        with wrap_predictor_errors(self._target, in_task=True):
            if self._siblings:
                self._siblings.keep_importable()
            answer = await self._function(case)
        return self._prediction(answer, case, start)


class SiblingModules:
    """The modules in the folder of a predictor's file, which the file can import as a script could.

    Modules of the same names from other folders are hidden while the file is imported and called.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        files = (*folder.glob("*.py"), *folder.glob("*/__init__.py"))
        names = {file.parent.name if file.name == "__init__.py" else file.stem for file in files}
        self._names = names - sys.stdlib_module_names
        self._modules: dict[str, ModuleType] = {}
        self._is_kept = False

    @contextmanager
    def importable(self) -> Iterator[None]:
        """Make the modules importable within the `with` statement, and hide modules of the same names.

        Afterwards `sys.path` and `sys.modules` are as before.
        """
        hidden_names = {name for name in self._names if name in sys.modules and not self._is_beside(sys.modules[name])}
        hidden = _removed(hidden_names)
        sys.modules.update(self._modules)
        sys.path.insert(0, str(self._folder))
        try:
            yield
        finally:
            with suppress(ValueError):  # the user's code may have removed it
                sys.path.remove(str(self._folder))
            self._modules = _removed(hidden_names)
            sys.modules.update(hidden)

    def keep_importable(self) -> None:
        """Append the folder to `sys.path` until `release`, for functions that run at the same time.

        Hides no modules.
        """
        if not self._is_kept:
            self._is_kept = True
            sys.path.append(str(self._folder))

    def release(self) -> None:
        """Take the folder off `sys.path`, if `keep_importable` added it."""
        if self._is_kept:
            self._is_kept = False
            with suppress(ValueError):  # the user's code may have removed it
                sys.path.remove(str(self._folder))

    def _is_beside(self, module: ModuleType) -> bool:
        file = Path(getattr(module, "__file__", None) or "")
        return self._folder == (file.parent.parent if file.name == "__init__.py" else file.parent)


def _removed(names: set[str]) -> dict[str, ModuleType]:
    """Remove the modules of these names, with their submodules, from `sys.modules`, and return them."""
    if not names:
        return {}
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in names}


def open_python(spec: PredictorSpec) -> PythonFunction | AsyncPythonFunction:
    """Import the function under `target`, and return a predictor that calls or awaits it.

    Raises `PredictorError` if the import fails, or if there is no function that takes one argument.
    """
    target = spec.settings.get(TARGET, "")
    try:
        place, name = split_target(target)
    except SettingError as error:
        raise PredictorError(str(error)) from error
    try:
        path = (spec.folder / place).resolve() if is_file(place) else None
        siblings = SiblingModules(path.parent) if path else None
        module = _import_file(path, siblings) if path and siblings else importlib.import_module(place)
    except BaseException as error:  # a module of the user's may raise anything while it is imported
        if is_interruption(error):
            raise
        hint = ""
        if isinstance(error, ModuleNotFoundError):
            is_target = f"{place}.".startswith(f"{error.name}.")
            file = f"{place.replace('.', '/')}.py"
            is_beside = is_target and (spec.folder / file).is_file()
            hint = f": did you mean '{file}:{name}'?" if is_beside else f": {INSTALL}"
        reason = f"{type(error).__name__}: {error}{user_frames(traceback.extract_tb(error.__traceback__))}"
        raise PredictorError(f"{target}: cannot be imported: {reason}{hint}") from error
    function = getattr(module, name, None)
    if not callable(function):
        function_names = [
            attribute for attribute, value in vars(module).items() if callable(value) and not attribute.startswith("_")
        ]
        raise PredictorError(f"{target}: there is no function '{name}' in {place}{did_you_mean(name, function_names)}")
    _check_arguments(target, function)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        return AsyncPythonFunction(target, function, siblings)
    return PythonFunction(target, function, siblings)


def _check_arguments(target: str, function: Callable[..., object]) -> None:
    """Raise `PredictorError` if a function cannot be called with one argument; pass if its signature is not known."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # as of some functions written in C
        return
    try:
        signature.bind(None)
    except TypeError as error:
        of_case = [f"`case.{name}`" for name in signature.parameters if name in _CASE_FIELDS]
        remedy = (
            f"write `def {target.rpartition(':')[2]}(case):`{', and read ' + ', '.join(of_case) if of_case else ''}"
        )
        parameter_list = ", ".join(map(str, signature.parameters))
        raise PredictorError(f"{target}({parameter_list}) is called with one argument, the case: {remedy}") from error


def _import_file(path: Path, siblings: SiblingModules) -> ModuleType:
    """Import a file under a name unique to its path, so that files of the same name do not collide.

    Raises FileNotFoundError if there is no file, and what the file raises.
    """
    name = f"queryeval_predictor_{path.stem}_{sha256(str(path).encode(errors='surrogateescape')).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with siblings.importable():
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def check(settings: Mapping[str, JsonValue]) -> None:
    """Raise `SettingError` for an unknown setting, and for a target without a module or file and a function."""
    validate_settings(settings, SETTINGS)
    split_target(settings.get(TARGET))


PYTHON = PredictorType(
    opener=open_python,
    text_setting=TARGET,
    check=check,
    settings=SETTINGS,
    check_files=lambda spec: check_function(spec.settings[TARGET], spec.folder),
)


def split_target(target: object) -> tuple[str, str]:
    """Return the module or file, and the function, of a target; raises `SettingError` if it does not have both."""
    place, _, name = target.rpartition(":") if isinstance(target, str) else ("", "", "")
    if not place or not name:
        needed = "needs 'module:function' or 'file.py:function'"
        raise SettingError(TARGET, f"the predictor 'python' {needed}, found '{target or ''}'")
    return place, name


def is_file(place: str) -> bool:
    """Return whether the first part of a target is a Python file, not a module."""
    return place.endswith(".py")


def check_function(target: str, folder: Path) -> None:
    """Raise `SettingError` if the target's file does not exist, is not Python, or surely lacks the function.

    Nothing is imported. Modules are not checked, because pytest puts their folders on sys.path later. Nor are files
    that bind names dynamically.
    """
    place, name = split_target(target)
    if not is_file(place):
        return
    path = folder / place
    if not os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for names that are too long
        beside = (file for file in names_beside(path, place) if is_file(file))
        hint = did_you_mean(place, beside) or f": correct the path, which leads to {path.absolute()}"
        raise SettingError(TARGET, f"there is no file {place}{hint}")
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
    """Return the names that a module binds at its top level; None if its text does not show all of them.

    The second argument is the file's modification time, which makes the cache read a changed file again. Raises
    SyntaxError if the file is not Python.
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
