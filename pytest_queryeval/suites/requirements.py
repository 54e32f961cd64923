"""Reader of `requires`: extras of this package without which suites are skipped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, requires

from pytest_queryeval.core.errors import QueryEvalError, did_you_mean
from pytest_queryeval.core.shapes import TEXT, either, list_shape, shape
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.values import items, text

PACKAGE = "pytest-queryeval"
REQUIRES = "requires"
_REQUIREMENT = re.compile(r"""(?P<name>[\w.-]+).*\bextra\s*==\s*["'](?P<extra>[\w.-]+)""")


class MissingExtraError(QueryEvalError):
    """An extra that a suite requires is not installed; the message says how to install it."""


@shape(either(TEXT, list_shape(TEXT)))
def read_requires(node: Node) -> tuple[str, ...]:
    """Read the name of an extra, or a list of names; raise `CaseError` for an unknown one."""
    extra_nodes = items(node) if isinstance(node.value, list) else [node]
    for item in extra_nodes:
        if text(item) not in packages_of_extras():
            raise item.problem(f"unknown extra '{text(item)}'{did_you_mean(text(item), packages_of_extras())}")
    return tuple(text(item) for item in extra_nodes)


def check_required(top: Node) -> None:
    """Raise `MissingExtraError` if a file or a folder needs an extra that is missing.

    Then nothing else of it is read, since its sources may need the extra.
    """
    if isinstance(top.value, dict) and REQUIRES in top.value:
        check_installed(read_requires(top.value[REQUIRES]))


def check_installed(extras: Sequence[str]) -> None:
    """Raise `MissingExtraError` for the first extra that lacks a package."""
    for extra in extras:
        if missing_package := next((name for name in packages_of_extras()[extra] if not _is_installed(name)), None):
            raise MissingExtraError(f"needs {missing_package}: pip install '{PACKAGE}[{extra}]'")


@cache
def packages_of_extras() -> Mapping[str, tuple[str, ...]]:
    """Return the packages that each extra of this package installs, from its metadata."""
    packages_by_extra: dict[str, tuple[str, ...]] = {}
    for requirement in requires(PACKAGE) or ():
        if match := _REQUIREMENT.match(requirement):
            packages_by_extra[match["extra"]] = (*packages_by_extra.get(match["extra"], ()), match["name"])
    return packages_by_extra


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
