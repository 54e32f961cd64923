"""Registrations by programs and conftest.py files, repeated in another process."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import NamedTuple

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.registry import USED_BY_WORKERS, Registration

_importing = threading.Lock()
_imported: dict[str, str] = {}  # digests of the modules that were imported here, by name


class Registered(NamedTuple):
    """A member of a registry, which the import of a module registers."""

    registry: str
    """The noun of the registry."""
    name: str
    by: Registration
    digest: str
    """The digest of the module's file, which changes with its contents."""


def registered() -> Sequence[Registered]:
    """Return the members registered in this process that the evaluation of cases may need."""
    return [
        Registered(registry, name, by, by.digest)
        for registry, members in USED_BY_WORKERS.items()
        for name, by in members.registrations().items()
    ]


def register_again(needed: Sequence[Registered]) -> None:
    """Import the modules that register these members; raise `QueryEvalError` if one fails or does not."""
    with _importing:
        for member in needed:
            try:
                _import(member)
            except Exception as error:  # a module may raise anything
                reason = f"{member.by.module} cannot be imported in a worker: {type(error).__name__}: {error}"
                raise QueryEvalError(f"the {member.registry} '{member.name}': {reason}") from error
            if member.name not in USED_BY_WORKERS.get(member.registry, ()):
                place = "the program itself" if member.by.module == "__main__" else member.by.file or member.by.module
                remedy = "register it at the top level of a module that workers can import, or of a conftest.py"
                problem = f"is registered in {place}, which workers do not run"
                raise QueryEvalError(f"the {member.registry} '{member.name}' {problem}: {remedy}")


def _import(member: Registered) -> None:
    """Import a module, or its file under its name, unless its current version is already imported."""
    name, file = member.by
    if name == "__main__" or not file:
        return
    if (name in sys.modules and name not in _imported) or _imported.get(name) == member.digest:
        return
    sys.modules.pop(name, None)
    _imported[name] = member.digest
    path = Path(file)
    module = path.parent if path.name == "__init__.py" else path.with_suffix("")
    names = name.split(".")
    folder = module.parents[len(names) - 1] if list(module.parts[-len(names) :]) == names else path.parent
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    with suppress(ModuleNotFoundError):  # a dotted name whose parent is not a package
        if (module_spec := find_spec(name)) is not None and module_spec.origin == file:
            import_module(name)
            return
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
