"""What a run changes in its processes: what Ctrl-C and SIGTERM do, and how often garbage is collected.

An interrupted run keeps the results of completed cases, writes its reports, and removes its child processes and
temporary files. A terminal sends Ctrl-C as SIGINT to all processes of its session; `timeout`, schedulers and CI
services send SIGTERM, to one process or to all of them. Python raises `KeyboardInterrupt` in the main thread on
SIGINT, and here on SIGTERM as well.

**pytest**: pytest itself handles Ctrl-C. Once suites are collected, the plugin lets SIGTERM do the same, unless another
handler is set (`plugin/start.py`). The exit status is 2, and the verdict is INTERRUPTED. If the
first SIGTERM arrives while reports are written, they are completed, and only the exit status changes. A second SIGTERM
kills the process.

**Workers of pytest-xdist** ignore SIGTERM, since they end with their controller. It writes the reports, then asks them
to end; execnet sends SIGINT to a worker that has not ended 5 seconds later, and the controller kills it after 10. So an
interrupted worker first stops what it has started, before pytest formats the traceback, which may take seconds on a
machine under load. Further SIGINTs are ignored meanwhile.

**Commands** exit with 130 after Ctrl-C or SIGTERM and one line on stderr, also while modules are imported
(`__main__.py`, `cli/__init__.py`). `queryeval evaluate` catches the interruption of its cases, writes the reports, and
exits with 130. `evaluate` in Python closes what it has opened and lets `KeyboardInterrupt` pass.

**Worker processes** of `queryeval evaluate --workers` ignore Ctrl-C; their parent ends them by SIGTERM, on which they
close what they have opened (`features/evaluate/processes.py`).

**Child processes** that run queries, and the programs of command predictors, are in sessions of their own, which Ctrl-C
does not reach; the process that started them ends them. Short programs that only build a database are in the session
of the run and end with it.

**Code of users**, such as predictors, may raise anything. `is_interruption` tells which exceptions end the run or the
call; all others are errors of the case. Ctrl-C never reaches an event loop, which runs in a thread: a
`KeyboardInterrupt` there comes from code of users and is one of these errors.

**Garbage collection** is rarer during large runs, whose many cases stay alive.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_queryeval.core.errors import TimeLimitExceeded

if TYPE_CHECKING:
    from asyncio import Task

INTERRUPTED = 130  # the exit status of commands
GCThresholds: TypeAlias = tuple[int, int, int]
MIN_THRESHOLDS: GCThresholds = (50_000, 20, 0)  # measured by benchmarks/bench_garbage.py


def interrupt() -> None:
    """Raise the KeyboardInterrupt that Ctrl-C raises, with the text "SIGTERM"."""
    raise KeyboardInterrupt("SIGTERM")


class SigtermHandler:
    """A handler of SIGTERM that calls a function, by default `interrupt`.

    Forked processes get the default handler back.
    """

    def __init__(self, act: Callable[[], None] = interrupt) -> None:
        self._act = act

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Call the function; Python calls signal handlers in the main thread."""
        self._act()

    def begin(self) -> None:
        """Set this handler for SIGTERM, unless another handler is set or this is not the main thread."""
        is_main_thread = threading.current_thread() is threading.main_thread()
        if is_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            _restore_default_in_forks()
            signal.signal(signal.SIGTERM, self)

    def end(self) -> None:
        """Restore the default handler of SIGTERM, unless another handler was set in the meantime."""
        if signal.getsignal(signal.SIGTERM) is self:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@cache  # register once: fork handlers cannot be unregistered
def _restore_default_in_forks() -> None:
    def restore_default() -> None:
        handler = signal.getsignal(signal.SIGTERM)
        if isinstance(handler, SigtermHandler):
            handler.end()

    os.register_at_fork(after_in_child=restore_default)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore Ctrl-C within the `with` statement; do nothing in another thread than the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, lambda *_: None)  # programs would inherit SIG_IGN
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def leave_interruptions_to_parent() -> None:
    """Let this process ignore Ctrl-C, and exit on SIGTERM, by which its parent process ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())


def is_interruption(error: BaseException, *, task: Task[Any] | None = None) -> bool:
    """Return whether an exception that user code raised must end the run or the call, and so be re-raised.

    Without a `task`, these are Ctrl-C, an expired time limit and `pytest.exit()`. With the `task` of an event loop in
    which the code ran, these are its cancellation and `pytest.exit()`. There, GeneratorExit is one if the coroutine is
    closed from outside, such as by garbage collection in another task.
    """
    pytest = sys.modules.get("pytest")  # which commands do not need
    if pytest is not None and isinstance(error, pytest.exit.Exception):
        return True
    if task is None:
        return isinstance(error, KeyboardInterrupt | TimeLimitExceeded)
    from asyncio import CancelledError

    return isinstance(error, CancelledError) or (isinstance(error, GeneratorExit) and running_task() is not task)


def running_task() -> Task[Any] | None:
    """Return the task that the event loop of this thread runs now; None if no task or no loop runs."""
    from asyncio import current_task

    try:
        return current_task()
    except RuntimeError:  # no loop is running
        return None


class GarbageCollectionThrottle:
    """Makes garbage collection rarer between `begin` and `end`, which are both idempotent."""

    def __init__(self) -> None:
        self._initial: GCThresholds | None = None
        self._raised: GCThresholds = MIN_THRESHOLDS

    def begin(self) -> None:
        """Raise the thresholds of garbage collection.

        Keep thresholds that are higher, and do nothing if collection is off.
        """
        if self._initial is None and gc.get_threshold()[0]:
            self._initial = gc.get_threshold()
            gc.set_threshold(*map(max, self._initial, MIN_THRESHOLDS))
            self._raised = gc.get_threshold()

    def end(self) -> None:
        """Restore the thresholds that `begin` found, unless others were set in the meantime."""
        if self._initial is not None and gc.get_threshold() == self._raised:
            gc.set_threshold(*self._initial)
        self._initial = None
