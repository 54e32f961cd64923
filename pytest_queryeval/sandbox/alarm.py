"""An alarm clock for child processes, which stops a query at its deadline. It imports the standard library only."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic


class Alarm:
    """Calls functions at their times, in one thread for all queries: a thread costs more than a small query."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._pending: list[tuple[float, Callable[[], object]]] = []
        self._wakes = math.inf
        self._rung = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def set(self, *calls: tuple[float, Callable[[], object]]) -> None:
        """Call each function in so many seconds, in this order; this replaces what was set before."""
        with self._changed:
            self._pending, self._rung = [(monotonic() + seconds, function) for seconds, function in calls], 0
            if self._pending[0][0] < self._wakes:
                self._changed.notify()

    def clear(self) -> int:
        """Forget the calls that are left, and return how many were made; one under way ends first."""
        with self._changed:
            rung, self._pending, self._rung = self._rung, [], 0
            return rung

    def _watch(self) -> None:
        with self._changed:
            while True:
                self._wakes = self._pending[0][0] if self._pending else math.inf
                left = self._wakes - monotonic()
                if left > 0:
                    self._changed.wait(None if left == math.inf else left)
                    continue
                _, function = self._pending.pop(0)
                self._rung += 1
                with suppress(Exception):  # the query has ended, or its connection broke: the parent's limit holds
                    function()
