"""What Ctrl-C and SIGTERM do in the processes of a run.

A run that is interrupted keeps the results of completed cases, writes its reports, and removes its child processes and
temporary files. Ctrl-C is SIGINT, which a terminal sends to all processes of its session; SIGTERM comes from `timeout`,
schedulers and CI services, to one process or to all of them. In Python, both are a `KeyboardInterrupt` in the main
thread.

**pytest** (`plugin/interruption.py`). pytest handles Ctrl-C. The plugin lets SIGTERM do the same once suites are
collected, unless somebody else handles it. The exit status is 2. A second SIGTERM kills the run. One that arrives while
reports are written changes the exit status only. The collector notes that the run was interrupted, and the verdict
says so.

**Workers of pytest-xdist** ignore SIGTERM, since they end with their controller, which writes the reports first. Then
execnet sends each worker SIGINT if it has not ended after 5 seconds, and SIGKILL after 10. So a worker stops what it
has started as soon as it is interrupted, before pytest formats the traceback, and without a further interruption.

**Commands** (`cli/__init__.py`) end with status 130 on Ctrl-C and SIGTERM, as `__main__.py` says in one line, which
also covers the import of the command. `queryeval evaluate` catches the interruption of its cases itself, and writes its
reports before it ends with this status. `evaluate` in Python closes what it has opened, and raises.

**Worker processes** of `queryeval evaluate --workers` leave Ctrl-C to their parent, which terminates them.

**Child processes** that run queries, and programs of predictors, are in sessions of their own, where no Ctrl-C of the
terminal arrives; the process that has started them kills them. Programs that run scripts and parse files are not, and
end with it.

**Code of users**, such as predictors, may raise anything. What has to end the run, or the call, is told apart by
`is_interruption`; everything else is an error of the case. On event loops, which are in threads, no Ctrl-C arrives: a
`KeyboardInterrupt` is one that code of users has raised, and no interruption.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType

from pytest_queryeval.core.errors import TimeLimitExceeded

INTERRUPTED = 130  # the exit status of commands


def interrupt() -> None:
    """Do as Ctrl-C does."""
    raise KeyboardInterrupt("SIGTERM")


class SigtermHandler:
    """A handler of SIGTERM that calls a function; forked processes do not inherit it."""

    def __init__(self, act: Callable[[], None] = interrupt) -> None:
        self._act = act

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Call the function; Python does so in the main thread."""
        self._act()

    def begin(self) -> None:
        """Handle SIGTERM from now on, unless another handler is set or this is not the main thread."""
        is_main_thread = threading.current_thread() is threading.main_thread()
        if is_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            _restore_default_in_forks()
            signal.signal(signal.SIGTERM, self)

    def end(self) -> None:
        """Restore the default, unless another handler was set in the meantime."""
        if signal.getsignal(signal.SIGTERM) is self:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@cache  # what is registered stays
def _restore_default_in_forks() -> None:
    def restore_default() -> None:
        handler = signal.getsignal(signal.SIGTERM)
        if isinstance(handler, SigtermHandler):
            handler.end()

    os.register_at_fork(after_in_child=restore_default)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore Ctrl-C in the main thread within the `with` statement."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, lambda *_: None)  # programs would inherit SIG_IGN
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def leave_interruptions_to_parent() -> None:
    """Ignore Ctrl-C, and exit on the SIGTERM by which the parent process ends this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())


def is_interruption(error: BaseException, *, in_task: bool = False) -> bool:
    """Return whether an exception out of code of users has to reach its caller.

    That is Ctrl-C, the end of its time limit and `pytest.exit()`; in a task of an event loop its cancellation and
    `pytest.exit()`.
    """
    pytest = sys.modules.get("pytest")  # which commands do not need
    if pytest is not None and isinstance(error, pytest.exit.Exception):
        return True
    if not in_task:
        return isinstance(error, KeyboardInterrupt | TimeLimitExceeded)
    from asyncio import CancelledError

    return isinstance(error, CancelledError) or (isinstance(error, GeneratorExit) and not _runs_in_task())


def _runs_in_task() -> bool:
    """Return whether a task is at work here; a coroutine that is thrown away meets GeneratorExit outside of one."""
    from asyncio import current_task

    try:
        return current_task() is not None
    except RuntimeError:  # no loop is running
        return False
