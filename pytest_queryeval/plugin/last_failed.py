"""Cases missed under `on_miss: xfail` in pytest's cache, so that --lf and --ff treat them as failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_queryeval.plugin.collector import ReportCollector


class LastFailed:
    """Adds the missed cases of a run to the tests that failed last."""

    def __init__(self, collector: ReportCollector) -> None:
        self._collector = collector

    @pytest.hookimpl(trylast=True)  # after pytest's own, which leaves out expected failures
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Add them to the cache of failed tests."""
        cache = getattr(session.config, "cache", None)  # gone under -p no:cacheprovider
        missed = {nodeid: True for nodeid, case in self._collector.cases.items() if case["outcome"] == "missed"}
        if cache is not None and missed:
            cache.set("cache/lastfailed", cache.get("cache/lastfailed", {}) | missed)
