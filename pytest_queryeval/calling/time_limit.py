"""A limit on the time that a function of the user's takes in the main thread."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Overdue(BaseException):
    """The time is up; no `Exception`, which the function may catch."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `Overdue` within the `with` statement once it has taken so many seconds.

    There is no limit outside of the main thread, where no signal arrives, and where the alarm is another one's, such as
    that of a plugin that limits whole tests.
    """
    if threading.current_thread() is not threading.main_thread() or any(signal.getitimer(signal.ITIMER_REAL)):
        yield
        return
    armed = True

    def ring(number: int, frame: FrameType | None) -> None:
        if armed:
            raise Overdue

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
