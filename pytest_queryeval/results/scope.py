"""Which cases a gate or a comparison is about: those below a folder, and of these the ones that `where` names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from pytest_queryeval.core.model import GROUPS, GroupName, Where


@lru_cache(maxsize=4_096)  # as many cases are in a file
def is_below(path: str, folder: str) -> bool:
    """Return whether a path lies below a folder; both are relative to the root, and `..` leads above it."""
    parts, above = PurePosixPath(path).parts, PurePosixPath(folder).parts
    if set(above) == {".."}:  # a folder above the root holds the root, and all that is no further up
        return parts[:1] != ("/",) and parts.count("..") <= len(above)
    return parts[: len(above)] == above and parts[len(above) :][:1] not in (("..",), ("/",))


def matches(where: Where, values: Callable[[GroupName], Sequence[str]]) -> bool:
    """Return whether a case whose `values` of each group are given is one of those that `where` names.

    >>> matches({"kind": "sql", "not": {"tag": "slow"}}, {"kind": ["sql"], "tag": ["nightly"]}.__getitem__)
    True
    """
    if (excluded := where.get("not")) and matches(excluded, values):
        return False
    return all(where[group] in values(group) for group in GROUPS if group in where)


def where_text(where: Mapping[str, object]) -> str:
    """Return in words which cases a gate is about; empty where it is about all.

    >>> where_text({"kind": "sql", "source": "shop", "not": {"tag": "slow", "difficulty": "hard"}})
    ' of sql cases on shop but not hard slow cases'
    """
    named = _cases_text(where)
    if isinstance(excluded := where.get("not"), Mapping) and excluded:
        return f" of {f'{named} but not' if named else 'all but'} {_cases_text(excluded)}"
    return f" of {named}" if named else ""


def _cases_text(where: Mapping[str, object]) -> str:
    words = [str(where[group]) for group in ("difficulty", "tag", "kind") if group in where]
    places = [
        f"{word} {where[group]}"
        for group, word in (("feature", "with"), ("source", "on"), ("file", "in"))
        if group in where
    ]
    return " ".join([*words, "cases", *places]) if words or places else ""


def folder_text(folder: str) -> str:
    """Return where a gate is in words; empty for the root folder."""
    return "" if folder in ("", ".") else f" in {folder}"
