"""The clock by which calls are limited."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

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
        """Wait until the task is done, or until this clock has run for so many seconds."""
        import asyncio  # which a run without calls does not need

        deadline = self.time() + seconds
        while not task.done() and (seconds_left := deadline - self.time()) > 0:
            await asyncio.wait({task}, timeout=max(seconds_left, POLL_SECONDS))
