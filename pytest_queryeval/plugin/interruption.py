"""Ctrl-C and SIGTERM under pytest, as `core/interruption.py` describes it."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_queryeval.plugin.stash import RUN, is_case

if TYPE_CHECKING:
    from pytest_queryeval.core.interruption import SigtermHandler


class Interruption:
    """The hooks that SIGTERM and Ctrl-C need in runs with suites."""

    def __init__(self, config: pytest.Config) -> None:
        self._run = config.stash[RUN]
        self._sigterm: SigtermHandler | None = None  # until there is a case
        self._finishing: pytest.Session | None = None

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Handle SIGTERM if suites were collected."""
        self._begin([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Handle SIGTERM if a worker has collected suites."""
        self._begin(ids)

    def _begin(self, nodeids: Sequence[str]) -> None:
        if self._sigterm is None and any(map(is_case, nodeids)):
            from pytest_queryeval.core.interruption import SigtermHandler

            self._sigterm = SigtermHandler(self._ignore if self._run.is_worker else self._interrupt)
            self._sigterm.begin()

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Close the engines and predictors of a worker while there is time."""
        if self._run.is_worker:
            self._run.close()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Let the reports be completed after an interruption."""
        self._finishing = session
        return (yield)

    @pytest.hookimpl(trylast=True)  # once the run has stopped what it started
    def pytest_unconfigure(self) -> None:
        """Restore the earlier handler of SIGTERM."""
        self._end()

    def _end(self) -> None:
        if self._sigterm is not None:
            self._sigterm.end()

    def _interrupt(self) -> None:
        self._end()
        if self._finishing is None:
            raise KeyboardInterrupt("SIGTERM")
        self._finishing.exitstatus = pytest.ExitCode.INTERRUPTED

    def _ignore(self) -> None:
        """Do nothing; started programs would inherit SIG_IGN."""
