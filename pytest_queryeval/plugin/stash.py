"""Stash keys of the plugin's state, and tests for its nodes and items."""

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


def is_suite_node(nodeid: str) -> bool:
    """Return whether a node is a suite file or a case of one."""
    return nodeid.partition("::")[0].endswith(SUFFIXES)


def is_case_item(item: pytest.Item) -> TypeGuard[CaseItem]:
    """Return whether an item is a case of this plugin, without importing its class."""
    return hasattr(item, "queryeval_result")
