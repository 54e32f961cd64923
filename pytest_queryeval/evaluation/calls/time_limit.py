"""A limit on the time that a user's function takes in the main thread."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from pytest_queryeval.core.errors import TimeLimitExceeded
from pytest_queryeval.evaluation.calls.call_clock import POLL_SECONDS

REPEAT_SECONDS = 1.0  # for the function to clean up


@contextmanager
def time_limit(seconds: float, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Raise `TimeLimitExceeded` within the `with` statement once it has taken so many seconds by the clock.

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
