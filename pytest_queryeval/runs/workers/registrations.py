"""What programs and conftest.py files have registered, registered again in another process."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.registry import Registration, Registry
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import METRICS

REGISTRIES: Mapping[str, Registry[Any]] = {"metric": METRICS, "engine": ENGINES, "kind": KINDS}
_importing = threading.Lock()
_imported: dict[str, str] = {}  # digests of the modules that were imported here, by name


class Registered(NamedTuple):
    """A member of a registry, which the import of a module registers; `digest` tells the file from earlier ones."""

    registry: str
    name: str
    by: Registration
    digest: str


def registered() -> Sequence[Registered]:
    """Return what was registered in this process and is needed to evaluate cases."""
    return [
        Registered(registry, name, by, by.digest)
        for registry, members in REGISTRIES.items()
        for name, by in members.registrations().items()
    ]


def register_again(needed: Sequence[Registered]) -> None:
    """Import the modules that register something; raise `QueryEvalError` where one does not."""
    with _importing:
        for each in needed:
            try:
                _import(each)
            except Exception as error:  # a module may raise anything
                reason = f"{each.by.module} cannot be imported in a worker: {type(error).__name__}: {error}"
                raise QueryEvalError(f"the {each.registry} '{each.name}': {reason}") from error
            if each.name not in REGISTRIES[each.registry]:
                place = "the program itself" if each.by.module == "__main__" else each.by.file or each.by.module
                remedy = "register it at the top level of a module that workers can import, or of a conftest.py"
                raise QueryEvalError(
                    f"the {each.registry} '{each.name}' is registered in {place}, which workers do not run: {remedy}"
                )


def _import(each: Registered) -> None:
    """Import a module, or its file under its name, unless it was imported here as it is now."""
    name, file = each.by
    if name == "__main__" or not file:
        return
    if (name in sys.modules and name not in _imported) or _imported.get(name) == each.digest:
        return
    sys.modules.pop(name, None)
    _imported[name] = each.digest
    path = Path(file)
    module = path.parent if path.name == "__init__.py" else path.with_suffix("")
    names = name.split(".")
    folder = module.parents[len(names) - 1] if list(module.parts[-len(names) :]) == names else path.parent
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    with suppress(ModuleNotFoundError):  # of a name that is none of a package
        if (found := find_spec(name)) is not None and found.origin == file:
            import_module(name)
            return
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
