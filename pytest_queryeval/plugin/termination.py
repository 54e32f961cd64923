"""SIGTERM as Ctrl-C: a run that a time limit or a scheduler ends keeps its results and stops what it started."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator, Sequence
from functools import cache
from types import FrameType

import pytest

from pytest_queryeval.plugin.stash import is_case


class Termination:
    """The handler of SIGTERM while the cases of a run are evaluated, unless another one is set.

    The first signal interrupts the run, a second one kills it. While reports are written, the first changes the exit
    status only. Workers of pytest-xdist ignore it, since they end with their controller, and the signal may be sent to
    all processes.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._handler = self._ignore if hasattr(config, "workerinput") else self._interrupt
        self._finishing: pytest.Session | None = None

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Set the handler where suites were collected."""
        self._begin([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Set the handler where a worker has collected suites."""
        self._begin(ids)

    def _begin(self, nodeids: Sequence[str]) -> None:
        is_default = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        is_main = threading.current_thread() is threading.main_thread()
        if is_default and is_main and any(map(is_case, nodeids)):
            os.register_at_fork(after_in_child=_restore)  # in processes of predictors
            signal.signal(signal.SIGTERM, self._handler)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Let reports be completed."""
        self._finishing = session
        return (yield)

    @pytest.hookimpl(trylast=True)  # once the run has stopped what it started
    def pytest_unconfigure(self) -> None:
        """Restore the default."""
        self.restore()

    def restore(self) -> None:
        """Restore the default, unless another handler was set in the meantime."""
        if signal.getsignal(signal.SIGTERM) == self._handler:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _interrupt(self, signum: int, frame: FrameType | None) -> None:
        self.restore()
        if self._finishing is None:
            raise KeyboardInterrupt("SIGTERM")
        self._finishing.exitstatus = pytest.ExitCode.INTERRUPTED

    def _ignore(self, signum: int, frame: FrameType | None) -> None:
        """Do nothing; started programs would inherit SIG_IGN."""


@cache
def _restore() -> None:
    termination = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    if isinstance(termination, Termination):
        termination.restore()
