"""A Python function as the system under test: "module:function" or "file.py:function"."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from pytest_queryeval.errors import PredictorError
from pytest_queryeval.model import Answer, Case, Prediction, PredictorSpec, Stated
from pytest_queryeval.predictors import text_of


class PythonFunction:
    """Calls a function with the case; it returns the query's text, or a `Prediction`."""

    def __init__(self, target: str, function: Callable[[Case], Any], siblings: Siblings | None) -> None:
        self._target = target
        self._function = function
        self._siblings = siblings

    def predict(self, case: Case) -> Prediction:
        """The function's answer; raises `PredictorError` where it raises or returns something else."""
        start = time.perf_counter()
        answer = self._called(case)
        seconds = time.perf_counter() - start
        if isinstance(answer, Prediction) and _is_whole(answer):
            return answer
        text = text_of(answer, case)
        if text is None:
            raise PredictorError(f"{self._target} returned {_described(answer)}")
        return Prediction(stated=Stated(query=text), predictor=f"python:{self._target}", seconds=seconds)

    def close(self) -> None:
        """Nothing to free."""

    def _called(self, case: Case) -> Any:
        try:
            with self._siblings.importable() if self._siblings else nullcontext():
                return self._function(case)
        except (Exception, SystemExit) as error:  # whatever the system under test raises is the case's error
            raise PredictorError(f"{self._target} raised {type(error).__name__}: {error}") from error


class Siblings:
    """The modules beside a predictor's file: importable while it is imported and called, as for a script.

    What another folder's file has imported under a name that is also here is hidden for that time.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        files = (*folder.glob("*.py"), *folder.glob("*/__init__.py"))
        self._names = {_module_name(file) for file in files} - sys.stdlib_module_names
        self._modules: dict[str, ModuleType] = {}

    @contextmanager
    def importable(self) -> Iterator[None]:
        """Make them importable for the time of a `with` statement."""
        taken = {name for name in self._names if name in sys.modules and not self._is_beside(sys.modules[name])}
        hidden = _removed(taken)
        sys.modules.update(self._modules)
        sys.path.insert(0, str(self._folder))
        try:
            yield
        finally:
            with suppress(ValueError):  # the user's code may have removed it
                sys.path.remove(str(self._folder))
            self._modules = _removed(taken)
            sys.modules.update(hidden)

    def _is_beside(self, module: ModuleType) -> bool:
        file = Path(getattr(module, "__file__", None) or "")
        return self._folder == (file.parent.parent if file.name == "__init__.py" else file.parent)


def _module_name(file: Path) -> str:
    return file.parent.name if file.name == "__init__.py" else file.stem


def _removed(names: set[str]) -> dict[str, ModuleType]:
    """Take the modules of these names, and those within them, out of the imported ones."""
    if not names:
        return {}
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in names}


def open_python(spec: PredictorSpec) -> PythonFunction:
    """Import the function under `target`; raises `PredictorError` where there is none."""
    target = str(spec.settings.get("target", ""))
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise PredictorError(f"the predictor 'python' needs 'module:function' or 'file.py:function', found '{target}'")
    try:
        module, siblings = _imported(place, spec.folder)
    except (Exception, SystemExit) as error:  # a module of the user's may raise anything while it is imported
        raise PredictorError(f"{target}: cannot be imported: {type(error).__name__}: {error}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise PredictorError(f"{target}: there is no function '{name}' in {place}")
    return PythonFunction(target, function, siblings)


def _imported(place: str, folder: Path) -> tuple[ModuleType, Siblings | None]:
    if not place.endswith(".py"):
        return importlib.import_module(place), None
    path = (folder / place).resolve()
    siblings = Siblings(path.parent)
    return _from_file(path, siblings), siblings


def _from_file(path: Path, siblings: Siblings) -> ModuleType:
    """Import a file under a name of its own, which tells files of the same name in different folders apart."""
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


def _is_whole(prediction: Prediction) -> bool:
    """Whether a prediction that a user made holds what its types say: Python does not check them."""
    stated: Any = prediction.stated
    if not isinstance(stated, Stated) or not isinstance(prediction.predictor, str):
        return False
    is_stated = isinstance(stated.query, str) if stated.answer is None else isinstance(stated.answer, Answer)
    return is_stated and isinstance(prediction.metadata, Mapping)


def _described(answer: Any) -> str:
    """Why an answer is refused."""
    if isinstance(answer, Prediction):
        return "a Prediction that lacks a query's text or a table under `stated`, or a text as `predictor`"
    if inspect.iscoroutine(answer):
        answer.close()  # or Python warns that it was never awaited
    if inspect.isawaitable(answer):
        return f"{type(answer).__name__}: async functions are not supported yet, wrap it with `asyncio.run`"
    return f"{type(answer).__name__}, not text"
