"""Groups: properties that cases share, by which reports break scores down and gates select cases; names of markers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.model import Case
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
    """A property that cases may share, such as their difficulty."""

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
    },
)


def groups_shown(surface: Surface) -> dict[str, Group]:
    """Return the groups that a surface shows, by name."""
    return {name: group for name, group in GROUPS.available().items() if surface in group.shown}


def in_order_of_words(names: Iterable[str]) -> list[str]:
    """Return the names of groups in the order in which their values stand in a sentence; unknown ones come last."""
    groups = GROUPS.available()
    order = sorted(groups, key=lambda name: POSITIONS.index(groups[name].position))
    return sorted(names, key=lambda name: order.index(name) if name in order else len(order))


def groups_of(case: CaseReport) -> Mapping[str, Sequence[str]]:
    """Return the values of a case by group; for a report without stored groups, those of the built-in groups."""
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
    """Return the values that a case has in a group."""
    return groups_of(case).get(group, ())


def values_of(case: Case, path: str, group: str) -> Sequence[str]:
    """Return the values that a case which has not run has in a group; `path` is that of its file.

    Raise `UnknownNameError` for a group that is not registered.
    """
    return _without_secrets(group, GROUPS[group].values(case, path))


def stored_groups(case: Case, path: str) -> dict[str, list[str]]:
    """Return the values of a case by group, without removing secrets."""
    return {name: list(values) for name, group in GROUPS.available().items() if (values := group.values(case, path))}


def redacted_groups(groups: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return groups without the secrets that this process knows, and with text that UTF-8 can encode."""
    return {name: list(_without_secrets(name, values)) for name, values in groups.items()}


def _without_secrets(group: str, values: Sequence[str]) -> Sequence[str]:
    is_name = group in GROUPS and GROUPS[group].is_name
    return values if is_name else [utf8_safe(redact(value)) for value in values]


def as_marker(name: str) -> str:
    """Return the name as a marker, with `-` for other characters and before pytest's own; empty if nothing is left.

    >>> as_marker("weo 2024"), as_marker("skip"), as_marker("?")
    ('weo-2024', '-skip', '')
    """
    fit = _NO_MARKER.sub("-", name)
    if not fit.strip("-_"):
        return ""
    return f"-{fit}" if fit in PYTEST_MARKERS else fit


def as_markers(names: Iterable[str]) -> list[str]:
    """Return the names as markers, each once, without those of which nothing is left."""
    return list(dict.fromkeys(filter(None, map(as_marker, names))))
