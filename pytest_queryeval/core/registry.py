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
    """Return the entry points of all installed packages that add to this one, read once.

    Raise `QueryEvalError` for a package that adds to a group of an earlier version.
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
    """The module whose import registers something, and its file, empty if there is none."""

    module: str
    file: str

    @classmethod
    def here(cls) -> Self:
        """Return the module that is being imported, or the program."""
        frame = sys._getframe(1)
        while frame.f_code.co_name != "<module>" and frame.f_back is not None:
            frame = frame.f_back
        return cls(frame.f_globals.get("__name__", "__main__"), frame.f_globals.get("__file__") or "")

    @property
    def digest(self) -> str:
        """The digest of the file, which changes with its content; empty without a file."""
        file = Path(self.file)
        return sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


USED_BY_WORKERS: dict[str, Registry[Any]] = {}  # by noun


class Registry(Mapping[str, T]):
    """A mapping from names to objects of one sort, in the order of their registration.

    `members` may hold "module:attribute" texts, which are imported on first use. Names that are not among them are
    looked up in the entry-point `group`, so that an installed package can add its own. What programs and conftest.py
    files register in a registry that is `used_by_workers`, for the evaluation of cases, is registered in workers again.
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
        """Add `member` (an object, or "module:attribute"), or replace the one of that name."""
        self._members[name] = member if isinstance(member, str) else self._admit(member)
        self._missing_features.pop(name, None)
        self._registrations[name] = Registration.here()

    def registrations(self) -> dict[str, Registration]:
        """Return which module registered which member, by the name of the member."""
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
        """Return the object called `name`.

        Raise `UnknownNameError` with the nearest name, `MissingFeatureError` if its feature is not installed, and
        `QueryEvalError` if it cannot be imported otherwise.
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
        """Return what is stored for an object that was registered or imported."""
        return cast("T", member)

    def names(self) -> tuple[str, ...]:
        """Return all names, in the order of their registration."""
        self._read_entry_points()
        return tuple(self._members)

    def hint(self, name: str) -> str:
        """Return the end of a message on a name that is not registered: the nearest one, or all if they are few."""
        hint = did_you_mean(name, self.names())
        return f"{hint}, or install the package that adds it" if hint.startswith(": choose from") else hint

    def available(self) -> dict[str, T]:
        """Return all members but those of features that are not installed; raise `QueryEvalError` as `[]` does."""
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
