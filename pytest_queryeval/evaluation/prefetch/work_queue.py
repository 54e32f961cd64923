"""Calls in their order, on an event loop of their own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any

from pytest_queryeval.evaluation.prefetch.event_loop import Background
from pytest_queryeval.evaluation.prefetch.prediction_call import Asked


class Line:
    """Calls wait here for one of `width` workers, each of which answers one call after the other."""

    def __init__(
        self, answer: Callable[[Asked], Coroutine[Any, Any, None]], *, width: int, clock: Callable[[], float]
    ) -> None:
        self.background = Background(clock)
        self._answer = answer
        self._width = width
        self._waiting: deque[Asked] = deque()
        self._working = 0
        self._tasks: set[asyncio.Task[None]] = set()  # asyncio keeps no tasks alive

    def add(self, calls: Iterable[Asked]) -> None:
        """Put calls at the end of the line."""
        self.background.soon(partial(self._extend, list(calls)))

    def widen(self) -> None:
        """Have one worker more, since one is with a call that heeds no cancellation."""
        self._width += 1
        self.add(())

    def stop(self) -> None:
        """Cancel the calls under way and begin no other; waits for none of them."""
        self._waiting.clear()
        self.background.cancel()

    def _extend(self, calls: list[Asked]) -> None:
        self._waiting.extend(calls)
        for _ in range(min(self._width - self._working, len(self._waiting))):
            self._working += 1
            task = asyncio.ensure_future(self._work())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._answer(self._waiting.popleft())
        finally:
            self._working -= 1
