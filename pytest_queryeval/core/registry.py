"""Names that a suite may use, and the objects behind them, imported on first use."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import Distribution, EntryPoints, distributions
from itertools import chain
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple, Self, TypeVar, cast

from pytest_queryeval.core.errors import MissingFeatureError, QueryEvalError, UnknownNameError, did_you_mean
from pytest_queryeval.core.features import missing_feature

T = TypeVar("T")
_PACKAGE = "pytest_queryeval."


_WITHDRAWN = (
    "analyses answers challengers clusters counterexamples embedders gold_checks recordings report_services"
    " write_engines"
)  # groups of earlier versions, which had one member each


@cache
def installed_entry_points() -> EntryPoints:
    """Return the entry points of all installed packages that have a group of this package; read once for the process.

    Raise `QueryEvalError` for another package that adds to a group that only earlier versions had.
    """
    adding: dict[str, Distribution] = {}
    for package in distributions():
        if _PACKAGE in (package.read_text("entry_points.txt") or ""):
            adding.setdefault(package.name, package)  # the first one on the path, which is the one that is imported
    points = EntryPoints(chain.from_iterable(package.entry_points for package in adding.values()))
    for name in _WITHDRAWN.split():
        group = f"{_PACKAGE}{name}"
        if added := [point for point in points.select(group=group) if not point.module.startswith(_PACKAGE)]:
            problem = f"the entry point '{added[0].name}' of another package is in the group {group}"
            raise QueryEvalError(f"{problem}, which this version no longer has: update or uninstall the package")
    return points


class Registration(NamedTuple):
    """The module that registered a member of a registry while it was imported, and the module's file, empty if none."""

    module: str
    file: str

    @classmethod
    def here(cls) -> Self:
        """Return the module whose top-level code is running; if there is none, the main program.

        The module is found by walking up the call stack.
        """
        frame = sys._getframe(1)
        while frame.f_code.co_name != "<module>" and frame.f_back is not None:
            frame = frame.f_back
        return cls(frame.f_globals.get("__name__", "__main__"), frame.f_globals.get("__file__") or "")

    @property
    def digest(self) -> str:
        """The SHA-256 digest of the content of the file; empty without a file."""
        file = Path(self.file)
        return sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


USED_BY_WORKERS: dict[str, Registry[Any]] = {}  # by noun


class Registry(Mapping[str, T]):
    """A mapping from names to objects of one sort, in the order of their registration; `noun` is the sort in messages.

    A member given as a text "module:attribute" is imported on first use. Names of the entry-point `group` of installed
    packages are members, too, unless a member has that name. If `used_by_workers` is true, what programs and
    conftest.py files register is registered again in worker processes.
    """

    def __init__(self, noun: str, *, group: str, members: Mapping[str, T | str], used_by_workers: bool = False) -> None:
        self.noun = noun
        if used_by_workers:
            USED_BY_WORKERS[noun] = self
        self._group = group
        self._members: dict[str, T | str] = dict(members)
        self._registrations: dict[str, Registration] = {}
        self._missing_features: dict[str, str] = {}
        self._entry_points_read = False

    def register(self, name: str, member: Any) -> None:
        """Add a member, an object or a "module:attribute" text; it replaces a member of the same name.

        The module that calls this while it is imported is remembered, so that workers can register the member again.
        """
        self._members[name] = member if isinstance(member, str) else self._admit(member)
        self._missing_features.pop(name, None)
        self._registrations[name] = Registration.here()

    def registrations(self) -> dict[str, Registration]:
        """Return the module that registered each member, by the name of the member; built-in members are left out."""
        return dict(self._registrations)

    def __contains__(self, name: object) -> bool:
        if name not in self._members:
            self._read_entry_points()
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    # Registries are compared by identity: comparing their members would import all of them.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __getitem__(self, name: str) -> T:
        """Return the member called `name`, and import it on first use.

        Raise `UnknownNameError` with the nearest name for an unknown name, `MissingFeatureError` if the feature of the
        member is not installed, and `QueryEvalError` if its import fails for another reason.
        """
        member = self._members.get(name)
        if member is not None and not isinstance(member, str):
            return member
        if name not in self:
            raise UnknownNameError(f"unknown {self.noun} '{name}'{self.hint(name)}")
        if name in self._missing_features:
            raise MissingFeatureError(self._missing_features[name])
        member = self._members[name]
        if isinstance(member, str):
            try:
                target = resolve_name(member)
            except Exception as error:  # a module of another package may raise anything while it is imported
                if feature := missing_feature(error):
                    problem = f"{self.noun} '{name}' needs the feature {feature}, which is not installed"
                    self._missing_features[name] = problem
                    raise MissingFeatureError(problem) from error
                problem = f"{self.noun} '{name}' cannot be imported from {member}: {type(error).__name__}: {error}"
                raise QueryEvalError(problem) from error
            member = self._members[name] = self._admit(target)
        return member

    def _admit(self, member: Any) -> T:
        """Return the object to store for a registered or imported object; here the object itself.

        Subclasses may wrap it, for instance a plain function.
        """
        return cast("T", member)

    def names(self) -> tuple[str, ...]:
        """Return the names of all members in the order of their registration, including names of entry points."""
        self._read_entry_points()
        return tuple(self._members)

    def hint(self, name: str) -> str:
        """Return the end of a message on an unknown name: the nearest name, or all names if they are few.

        It is empty if no name is near and they are many.
        """
        hint = did_you_mean(name, self.names())
        return f"{hint}, or install the package that adds it" if hint.startswith(": choose from") else hint

    def available(self) -> dict[str, T]:
        """Import all members and return them by name, except members of features that are not installed.

        Raise `QueryEvalError` if the import of a member fails.
        """
        self._read_entry_points()
        for name in [name for name, member in self._members.items() if isinstance(member, str)]:
            with suppress(MissingFeatureError):
                self[name]
        return {name: member for name, member in self._members.items() if not isinstance(member, str)}

    def _read_entry_points(self) -> None:
        if not self._entry_points_read:
            self._entry_points_read = True
            points = installed_entry_points().select(group=self._group)
            # Names of this package come first, so that no other package replaces them.
            for point in sorted(points, key=lambda point: (not point.module.startswith(_PACKAGE), point.name)):
                self._members.setdefault(point.name, f"{point.module}:{point.attr}")
