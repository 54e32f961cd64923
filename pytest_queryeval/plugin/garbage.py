"""Rarer garbage collection while suites are collected and cases run, but not during other tests."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_queryeval.plugin.stash import SUFFIXES, is_case, is_case_item

if TYPE_CHECKING:
    from pytest_queryeval.runs.garbage import RareCollection


class GarbageCollection:
    """Hooks around the collection of suites, consecutive cases, and the end of runs with cases."""

    def __init__(self, config: pytest.Config) -> None:
        self._collection: RareCollection | None = None  # until there is a case
        # After the cleanups of pytest's plugins, which collect all garbage: to restore thresholds before that would
        # make Python collect it once more.
        config.add_cleanup(self._end)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collect_file(self, file_path: Path) -> Generator[None, object, object]:
        """Import what the first suite needs."""
        if self._collection is not None or not file_path.name.endswith(SUFFIXES):
            return (yield)
        self._begin()
        try:
            return (yield)
        finally:
            self._end()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, object, object]:
        """Collect a suite."""
        if not is_case(collector.nodeid):
            return (yield)
        self._begin()
        try:
            return (yield)
        finally:
            self._end()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Receive the reports of workers, which run all tests, until the end."""
        if any(map(is_case, ids)):
            self._begin()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Run a case; garbage collection stays rare between two consecutive cases."""
        if is_case_item(item):
            self._begin()
        try:
            return (yield)
        finally:
            if nextitem is not None and not is_case_item(nextitem):  # the last one is followed by the end
                self._end()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Evaluate gates and write reports."""
        if self._collection is not None:
            self._begin()

    def _begin(self) -> None:
        if self._collection is None:
            from pytest_queryeval.runs.garbage import RareCollection

            self._collection = RareCollection()
        self._collection.begin()

    def _end(self) -> None:
        if self._collection is not None:
            self._collection.end()
