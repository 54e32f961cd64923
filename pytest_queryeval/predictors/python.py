"""A Python function as the system under test: "module:function" or "file.py:function"."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from pytest_queryeval.errors import PredictorError
from pytest_queryeval.model import Case, Prediction, PredictorSpec, Stated


class PythonFunction:
    """Calls a function with the case; it returns the query's text, or a `Prediction`."""

    def __init__(self, target: str, function: Callable[[Case], Any]) -> None:
        self._target = target
        self._function = function

    def predict(self, case: Case) -> Prediction:
        """The function's answer; raises `PredictorError` where it raises or returns something else."""
        start = time.perf_counter()
        try:
            answer = self._function(case)
        except Exception as error:  # whatever the system under test raises is the case's error, not ours
            raise PredictorError(f"{self._target} raised {type(error).__name__}: {error}") from error
        if isinstance(answer, Prediction):
            return answer
        if not isinstance(answer, str):
            raise PredictorError(f"{self._target} returned {type(answer).__name__}, not text")
        return Prediction(
            stated=Stated(query=answer), predictor=f"python:{self._target}", seconds=time.perf_counter() - start
        )

    def close(self) -> None:
        """Nothing to free."""


def open_python(spec: PredictorSpec) -> PythonFunction:
    """Import the function under `target`; raises `PredictorError` where there is none."""
    target = str(spec.settings["target"])
    place, _, name = target.rpartition(":")
    try:
        module = _from_file(spec.folder / place) if place.endswith(".py") else importlib.import_module(place)
    except Exception as error:  # a module of the user's may raise anything while it is imported
        raise PredictorError(f"{target}: cannot be imported: {type(error).__name__}: {error}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise PredictorError(f"{target}: there is no function '{name}' in {place}")
    return PythonFunction(target, function)


def _from_file(path: Path) -> ModuleType:
    """Import a file under a name of its own; its folder is importable meanwhile, as for a script."""
    name = f"queryeval_predictor_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module
