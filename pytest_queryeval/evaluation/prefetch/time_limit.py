"""A limit on the time that a function of the user's takes in the main thread."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from pytest_queryeval.core.errors import TimeLimitExceeded
from pytest_queryeval.evaluation.prefetch.call_clock import POLL_SECONDS

PATIENCE = 1.0  # seconds for the function to clean up
INSISTENCE = 0.001


@contextmanager
def time_limit(seconds: float, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Raise `TimeLimitExceeded` within the `with` statement once it has taken so many seconds by the clock.

    A function that catches everything and goes on is told so again, PATIENCE later, and then without a pause: sooner or
    later it is told between two attempts, where it catches nothing.

    There is no limit outside of the main thread, where no signal arrives, and where the alarm is another one's, such as
    that of a plugin that limits whole tests.
    """
    if threading.current_thread() is not threading.main_thread() or any(signal.getitimer(signal.ITIMER_REAL)):
        yield
        return
    armed = True
    rung = 0
    deadline = clock() + seconds

    def ring(number: int, frame: FrameType | None) -> None:
        nonlocal rung
        if not armed:
            return
        left = deadline - clock()
        if left > 0:  # the clock stood still
            signal.setitimer(signal.ITIMER_REAL, max(left, POLL_SECONDS), PATIENCE)
            return
        rung += 1
        if rung == 2:
            signal.setitimer(signal.ITIMER_REAL, INSISTENCE, INSISTENCE)
        raise TimeLimitExceeded

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, PATIENCE)
        yield
    finally:
        armed = False
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
        finally:  # an alarm that rang just before
            signal.signal(signal.SIGALRM, before)
