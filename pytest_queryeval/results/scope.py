"""Which cases a gate or a comparison is about: those below a folder, and of these the ones that `where` names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import NamedTuple

from pytest_queryeval.core.groups import GROUPS, in_order_of_words
from pytest_queryeval.core.model import Where


@lru_cache(maxsize=4_096)  # as many cases are in a file
def is_below(path: str, folder: str) -> bool:
    """Return whether a path lies below a folder; both are relative to the root, and `..` leads above it."""
    parts, above = PurePosixPath(path).parts, PurePosixPath(folder).parts
    if set(above) == {".."}:  # a folder above the root holds the root, and everything that is not further up
        return parts[:1] != ("/",) and parts.count("..") <= len(above)
    return parts[: len(above)] == above and parts[len(above) :][:1] not in (("..",), ("/",))


class _Scope(NamedTuple):
    """A scope in the index."""

    number: int
    conditions: Sequence[tuple[str, str]]
    """What its `where` requires besides the value by which the scope is looked up."""


class ScopeIndex:
    """Scopes, each a folder and a `where`, in which those of a case are looked up instead of tried one by one.

    >>> index = ScopeIndex([("shop", {"kind": "sql"}), ("shop", {"not": {"tag": "slow"}}), ("bank", {})])
    >>> index.scopes_of("shop/a.queryeval.yaml", {"kind": ["sql"], "tag": ["slow"]}.__getitem__)
    [0]
    """

    def __init__(self, scopes: Iterable[tuple[str, Where]]) -> None:
        scopes = list(scopes)
        # Scopes by folder, then by one group of `where` and its value, which is empty if no group is named.
        self._scopes: dict[str, dict[str | None, dict[str, list[_Scope]]]] = {}
        self._folders_above: dict[str, Sequence[str]] = {}
        values: dict[str, set[str]] = {}
        for _, where in scopes:
            for name, value in conditions_of(where).items():
                values.setdefault(name, set()).add(value)
        for number, (folder, where) in enumerate(scopes):
            conditions = conditions_of(where)
            # The group with the most values leaves the fewest scopes to try.
            group = max(conditions, key=lambda name: len(values[name]), default=None)
            value = "" if group is None else conditions.pop(group)
            by_group = self._scopes.setdefault(str(PurePosixPath(folder)), {})
            by_group.setdefault(group, {}).setdefault(value, []).append(_Scope(number, tuple(conditions.items())))
        exclusions = [
            (number, folder, left_out)
            for number, (folder, where) in enumerate(scopes)
            if (left_out := exclusions_of(where))
        ]
        self._excluded_numbers = [number for number, _, _ in exclusions]
        self._excluded = ScopeIndex((folder, where) for _, folder, where in exclusions) if exclusions else None

    def scopes_of(self, path: str, values: Callable[[str], Sequence[str]]) -> list[int]:
        """Return the numbers of the scopes that a case is in, in order; `values` are those that it has of a group."""
        numbers = {
            scope.number
            for folder in self._above(path)
            for group, by_value in self._scopes[folder].items()
            for value in ([""] if group is None else values(group))
            for scope in by_value.get(value, ())
            if all(required in values(name) for name, required in scope.conditions)
        }
        if self._excluded is not None:
            numbers.difference_update(self._excluded_numbers[n] for n in self._excluded.scopes_of(path, values))
        return sorted(numbers)

    def _above(self, path: str) -> Sequence[str]:
        """Return the folders of scopes that a path is below."""
        if path not in self._folders_above:
            place = PurePosixPath(path)
            beyond_root = (folder for folder in self._scopes if set(PurePosixPath(folder).parts) == {".."})
            folders = dict.fromkeys([*map(str, (place, *place.parents)), *beyond_root])
            self._folders_above[path] = [
                folder for folder in folders if folder in self._scopes and is_below(path, folder)
            ]
        return self._folders_above[path]


def conditions_of(where: Where) -> dict[str, str]:
    """Return the value that each group must have, without what `not` excludes."""
    return {name: value for name, value in where.items() if isinstance(value, str)}


def exclusions_of(where: Where) -> Where:
    """Return what `not` excludes: the cases with all of these values of groups."""
    exclusions = where.get("not", {})
    return {} if isinstance(exclusions, str) else {**exclusions}


def where_text(where: Where) -> str:
    """Return in words which cases a gate is about; empty if it is about all.

    >>> where_text({"kind": "sql", "source": "shop", "not": {"tag": "slow", "difficulty": "hard"}})
    ' of sql cases on shop but not hard slow cases'
    """
    included_cases = _cases_text(conditions_of(where))
    if exclusions := exclusions_of(where):
        words = f"{included_cases} but not" if included_cases else "all but"
        return f" of {words} {_cases_text(conditions_of(exclusions))}"
    return f" of {included_cases}" if included_cases else ""


def _cases_text(conditions: Mapping[str, str]) -> str:
    before: list[str] = []
    behind: list[str] = []
    for name in in_order_of_words(conditions):
        group = GROUPS.get(name)
        if group is not None and group.position != "phrase":
            before.append(conditions[name])
        else:
            behind.append(f"{group.preposition if group and group.preposition else f'with {name}'} {conditions[name]}")
    return " ".join([*before, "cases", *behind]) if conditions else ""


def folder_text(folder: str) -> str:
    """Return where a gate is in words; empty for the root folder."""
    return "" if folder in ("", ".") else f" in {folder}"
