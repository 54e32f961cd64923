"""The clock by which calls are limited."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

POLL_SECONDS = 0.05  # while the clock stands still


class CallClock:
    """A clock that stands still while a source is listed: that is not what a predictor's `timeout` is for."""

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
        """Let it stand still within the `with` statement, in whichever thread."""
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


@asynccontextmanager
async def task_limit(seconds: float, clock: CallClock) -> AsyncIterator[None]:
    """Raise TimeoutError within the `async with` statement once it has taken so many seconds by the clock."""
    loop = asyncio.get_running_loop()
    deadline = clock.time() + seconds
    alarm: asyncio.TimerHandle | None = None

    def check() -> None:
        nonlocal alarm
        left = deadline - clock.time()
        if left > 0:
            alarm = loop.call_later(max(left, POLL_SECONDS), check)
        else:
            limit.reschedule(loop.time())

    async with asyncio.timeout(None) as limit:
        check()
        try:
            yield
        finally:
            if alarm:
                alarm.cancel()
