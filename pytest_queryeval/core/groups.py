"""Groups: properties that cases share, by which reports break scores down; names of markers.

Gates and comparisons are about the cases below a folder, and of these the ones that `where` names by groups.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Literal, TypeAlias, get_args

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.model import Case, Where
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.text.formatting import utf8_safe
from pytest_queryeval.text.redaction import redact

# Tables of means, filters of the page, columns of the CSV file and of the workbook, lines of `queryeval explain` and of
# failures, tables of a comparison of systems.
Surface: TypeAlias = Literal["tables", "filters", "csv", "workbook", "explanation", "failure", "comparison"]
# Where messages put a value of `where`: an adjective before "cases", a noun next to it as in "sql cases", or a phrase
# after it.
Position: TypeAlias = Literal["adjective", "noun", "phrase"]
POSITIONS: Sequence[Position] = get_args(Position)
PYTEST_MARKERS = ("skip", "xfail", "skipif", "parametrize", "usefixtures", "filterwarnings")
_NO_MARKER = re.compile(r"[^\w-]+|^_+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A property that cases may share, such as their difficulty, with the words and the places that show it."""

    values: Callable[[Case, str], Sequence[str]]
    """Returns the distinct values of a case, given the path of its file; empty if it has none."""
    heading: str
    """The heading of its column, such as `tags`."""
    plural: str
    """The word for its values, as in `all difficulties`."""
    position: Position = "phrase"
    preposition: str = ""
    """The words before the value of a phrase: `on` in `cases on shop`."""
    is_name: bool = False
    """Whether its values identify cases: they stay as they are, even where they look like a secret."""
    shown: frozenset[Surface] = frozenset(get_args(Surface))
    """The surfaces that show the group."""


KIND = Group(
    values=lambda case, _: (case.settings.kind,),
    heading="kind",
    plural="kinds",
    position="noun",
    is_name=True,
    shown=frozenset({"tables", "filters", "csv", "workbook", "explanation", "comparison"}),
)
TAG = Group(
    values=lambda case, _: tuple(dict.fromkeys(case.tags)),
    heading="tags",
    plural="tags",
    position="adjective",
    is_name=True,
    shown=frozenset({"tables", "filters", "csv", "workbook", "explanation", "comparison"}),
)
SOURCE = Group(
    values=lambda case, _: (case.settings.source.name,) if case.settings.source else (),
    heading="source",
    plural="sources",
    preposition="on",
    shown=frozenset({"csv", "workbook", "comparison"}),
)
FILE = Group(
    values=lambda _, path: (path,),
    heading="file",
    plural="files",
    preposition="in",
    is_name=True,
    shown=frozenset(),
)
WRITTEN_CASE = Group(
    values=lambda case, _: (case.written_id,) if case.parameters else (),
    heading="case",
    plural="cases",
    preposition="of",
    is_name=True,
    shown=frozenset({"tables", "filters"}),
)
PARAMETER = Group(
    values=lambda case, _: case.parameters,
    heading="parameters",
    plural="parameters",
    preposition="with",
    is_name=True,
    shown=frozenset({"tables", "filters"}),
)


GROUPS: Registry[Group] = Registry(
    "group",
    group="pytest_queryeval.groups",
    used_by_workers=True,
    members={
        "kind": KIND,
        "difficulty": "pytest_queryeval.languages:DIFFICULTY",
        "tag": TAG,
        "feature": "pytest_queryeval.languages:FEATURE",
        "source": SOURCE,
        "file": FILE,
        "case": WRITTEN_CASE,
        "parameter": PARAMETER,
    },
)


def groups_shown(surface: Surface) -> dict[str, Group]:
    """Return the registered groups that a surface shows, by name."""
    return {name: group for name, group in GROUPS.available().items() if surface in group.shown}


def in_order_of_words(names: Iterable[str]) -> list[str]:
    """Return names of groups in the order in which their values stand in a sentence; unregistered names come last."""
    groups = GROUPS.available()
    order = sorted(groups, key=lambda name: POSITIONS.index(groups[name].position))
    return sorted(names, key=lambda name: order.index(name) if name in order else len(order))


def groups_of(case: CaseReport) -> Mapping[str, Sequence[str]]:
    """Return the values of a reported case by the name of the group.

    A report of an earlier version has no stored groups; then these are the built-in groups, with no values where the
    report has none.
    """
    if "groups" in case:
        return case["groups"]
    groups: dict[str, Sequence[str | None]] = {
        "kind": [case["kind"]],
        "difficulty": [case["difficulty"]],
        "tag": list(dict.fromkeys(case["tags"])),
        "feature": case.get("features", []),
        "source": [case["source"]],
        "file": [case["path"]],
    }
    return {name: [value for value in values if value is not None] for name, values in groups.items()}


def group_values(case: CaseReport, group: str) -> Sequence[str]:
    """Return the values that a reported case has in a group; empty if it has none."""
    return groups_of(case).get(group, ())


def values_of(case: Case, path: str, group: str) -> Sequence[str]:
    """Return the values that a case has in a group before the case runs; `path` is that of its suite file.

    Secrets are removed. Raise `UnknownNameError` for a group that is not registered.
    """
    return _without_secrets(group, GROUPS[group].values(case, path))


def stored_groups(case: Case, path: str) -> dict[str, list[str]]:
    """Return the values of a case by group, only of the groups in which it has values; secrets are not removed."""
    return {name: list(values) for name, group in GROUPS.available().items() if (values := group.values(case, path))}


def redacted_groups(groups: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the groups with values in which known secrets are replaced and all characters can be written as UTF-8.

    Groups whose values are names of cases stay as they are.
    """
    return {name: list(_without_secrets(name, values)) for name, values in groups.items()}


def _without_secrets(group: str, values: Sequence[str]) -> Sequence[str]:
    is_name = group in GROUPS and GROUPS[group].is_name
    return values if is_name else [utf8_safe(redact(value)) for value in values]


def as_marker(name: str) -> str:
    """Return a name as a marker of pytest: a `-` replaces any characters other than letters, digits, `_` and `-`.

    A name that pytest uses itself gets `-` in front. The result is empty if only `-` and `_` are left.

    >>> as_marker("weo 2024"), as_marker("skip"), as_marker("?")
    ('weo-2024', '-skip', '')
    """
    fit = _NO_MARKER.sub("-", name)
    if not fit.strip("-_"):
        return ""
    return f"-{fit}" if fit in PYTEST_MARKERS else fit


def as_markers(names: Iterable[str]) -> list[str]:
    """Return names as markers without duplicates, in order; names of which nothing is left are dropped."""
    return list(dict.fromkeys(filter(None, map(as_marker, names))))


@lru_cache(maxsize=4_096)  # as many cases are in a file
def is_below(path: str, folder: str) -> bool:
    """Return whether a path lies in a folder or below it.

    Both are relative to the root, and `..` leads above the root.
    """
    parts, above = PurePosixPath(path).parts, PurePosixPath(folder).parts
    if set(above) == {".."}:  # a folder above the root holds the root, and everything that is not further up
        return parts[:1] != ("/",) and parts.count("..") <= len(above)
    return parts[: len(above)] == above and parts[len(above) :][:1] not in (("..",), ("/",))


class Scopes:
    """Scopes of gates, each a folder (None for any) and a `where`, numbered from 0.

    Finds the scopes that contain a case. The result is kept for cases with the same path and values of groups.

    >>> scopes = Scopes([("shop", {"kind": "sql"}), ("shop", {"not": {"tag": "slow"}}), ("bank", {})])
    >>> scopes.lookup("shop/a.queryeval.yaml", {"kind": ["sql"], "tag": ["slow"]}.__getitem__)
    [0]
    """

    def __init__(self, scopes: Iterable[tuple[str | None, Where]]) -> None:
        self._scopes = [
            (folder, {*conditions_of(where).items()}, {*conditions_of(exclusions_of(where)).items()})
            for folder, where in scopes
        ]
        self._groups = {name for _, *wheres in self._scopes for where in wheres for name, _ in where}
        self._known: dict[tuple[str, frozenset[tuple[str, str]]], list[int]] = {}

    def of_report(self, case: CaseReport) -> list[int]:
        """Return the numbers of the scopes that contain a reported case, in ascending order."""
        return self.lookup(case["path"], groups_of(case).get)

    def of_case(self, case: Case, path: str) -> list[int]:
        """Return the numbers of the scopes that contain a case that has not run, in ascending order.

        `path` is that of its suite file.
        """
        return self.lookup(path, lambda group: values_of(case, path, group))

    def lookup(self, path: str, values: Callable[[str], Sequence[str] | None]) -> list[int]:
        """Return the numbers of the scopes that contain a case, in ascending order.

        `path` is that of its suite file. `values` returns the values of the case in a group, None or empty if there are
        none.
        """
        found = frozenset((name, value) for name in self._groups for value in values(name) or ())
        if (path, found) not in self._known:
            self._known[path, found] = [
                number
                for number, (folder, included, excluded) in enumerate(self._scopes)
                if included <= found
                and not (excluded and excluded <= found)
                and (folder is None or is_below(path, folder))
            ]
        return self._known[path, found]


def conditions_of(where: Where) -> dict[str, str]:
    """Return the value that a `where` requires of each group, without the entry `not`."""
    return {name: value for name, value in where.items() if isinstance(value, str)}


def exclusions_of(where: Where) -> Where:
    """Return the entry `not` of a `where`: cases with all of its values are excluded.

    Empty if there is no such entry.
    """
    exclusions = where.get("not", {})
    return {} if isinstance(exclusions, str) else {**exclusions}


def where_text(where: Where) -> str:
    """Return in words which cases a `where` selects, to follow a noun; empty if it selects all cases.

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
    """Return the folder of a gate as a phrase, " in shop"; empty for the root folder."""
    return "" if folder in ("", ".") else f" in {folder}"
