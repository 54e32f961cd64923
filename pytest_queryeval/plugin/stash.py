"""Stash keys of the plugin's state, and tests for its nodes, items and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

import pytest

if TYPE_CHECKING:
    from pytest_queryeval.plugin.collector import ReportCollector
    from pytest_queryeval.plugin.items import CaseItem
    from pytest_queryeval.plugin.run import Run

RUN: pytest.StashKey[Run] = pytest.StashKey()
COLLECTOR: pytest.StashKey[ReportCollector] = pytest.StashKey()
SUFFIXES = (".queryeval.yaml", ".queryeval.yml", ".queryeval.jsonl")
# The options under which pytest lists something and runs no test.
LISTING = ("collectonly", "setuponly", "setupplan", "showfixtures", "show_fixtures_per_test", "cacheshow")


def is_suite_node(nodeid: str) -> bool:
    """Return whether a node id is that of a suite file or of a case in it."""
    return nodeid.partition("::")[0].endswith(SUFFIXES)


def is_listing(config: pytest.Config) -> bool:
    """Return whether pytest only lists tests, so that no system is called and no report is written."""
    return any(getattr(config.option, name, False) for name in LISTING)


def is_case_item(item: pytest.Item) -> TypeGuard[CaseItem]:
    """Return whether an item is a case of this plugin, without importing its class."""
    return hasattr(item, "queryeval_result")
