"""The clock by which calls are limited, and the limit on a user's function in the main thread."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from pytest_queryeval.core.errors import TimeLimitExceeded

if TYPE_CHECKING:
    import asyncio

POLL_SECONDS = 0.05  # while the clock stands still


class CallClock:
    """A clock that stands still while a source lists its tables, which a predictor's `timeout` does not cover."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # reentrant: a signal's handler reads the clock, too
        self._pauses = 0
        self._paused_at = 0.0
        self._lost = 0.0

    def time(self) -> float:
        """Return seconds of `time.monotonic` without those of all pauses."""
        with self._lock:
            now = self._paused_at if self._pauses else time.monotonic()
            return now - self._lost

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock within the `with` statement, in any thread."""
        with self._lock:
            if not self._pauses:
                self._paused_at = time.monotonic()
            self._pauses += 1
        try:
            yield
        finally:
            with self._lock:
                self._pauses -= 1
                if not self._pauses:
                    self._lost += time.monotonic() - self._paused_at

    async def wait(self, task: asyncio.Task[Any], seconds: float) -> None:
        """Wait until the task is done, or until this clock has run for `seconds` seconds."""
        import asyncio  # not needed by a run without calls

        deadline = self.time() + seconds
        while not task.done() and (seconds_left := deadline - self.time()) > 0:
            await asyncio.wait({task}, timeout=max(seconds_left, POLL_SECONDS))


REPEAT_SECONDS = 1.0  # for the function to clean up


@contextmanager
def time_limit(seconds: float, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Raise `TimeLimitExceeded` within the `with` statement once it has taken `seconds` seconds by the clock.

    It is raised again every REPEAT_SECONDS, for a function that catches everything and tries again. There is no limit
    outside the main thread, where no signal arrives, nor if the alarm is already in use, as by a plugin that limits
    whole tests.
    """
    if threading.current_thread() is not threading.main_thread() or any(signal.getitimer(signal.ITIMER_REAL)):
        yield
        return
    is_running = True
    deadline = clock() + seconds

    def on_alarm(number: int, frame: FrameType | None) -> None:
        seconds_left = deadline - clock()
        if seconds_left > 0:  # the clock stood still
            signal.setitimer(signal.ITIMER_REAL, max(seconds_left, POLL_SECONDS), REPEAT_SECONDS)
        elif is_running:
            raise TimeLimitExceeded

    previous_handler = signal.signal(signal.SIGALRM, on_alarm)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT_SECONDS)
            yield
        finally:
            is_running = False
    finally:  # also where the alarm rings before the line above
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous_handler)
