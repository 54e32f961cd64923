"""An event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

END_SECONDS = 1.5  # for cancelled calls to end


class EventLoopThread:
    """Runs coroutines on an event loop, until `shutdown`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pinged_at: float | None = None
        self._is_ending = False
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(_DaemonExecutor())
        # A daemon: a call that ignores its cancellation keeps no program alive.
        self._thread = threading.Thread(target=self._run, name="queryeval-loop", daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine; cancelling the future cancels its task."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def cancel_all(self) -> None:
        """Cancel all tasks, without waiting for their end."""
        self._loop.call_soon_threadsafe(self._cancel_tasks)

    def shutdown(self, close: Callable[[], Any]) -> None:
        """Cancel all tasks, then call or await `close`, then end the thread; `join` waits for that."""
        self.start(self._shut_down(close))

    def join(self, deadline: float) -> None:
        """Wait for the end of the thread until a moment of `time.monotonic`."""
        self._thread.join(max(0.0, deadline - time.monotonic()))

    def blocked_seconds(self) -> float:
        """Return for how long the loop has not reacted, as seen by periodic calls of this method."""
        pinged_at = self._pinged_at
        if pinged_at is not None:
            return self._clock() - pinged_at
        self._pinged_at = self._clock()
        self._loop.call_soon_threadsafe(setattr, self, "_pinged_at", None)
        return 0.0

    def stack(self) -> traceback.StackSummary:
        """Return the current call stack of the thread."""
        return traceback.extract_stack(sys._current_frames().get(self._thread.ident or 0))

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._is_ending:
            with suppress(SystemExit, KeyboardInterrupt):  # of code of users: `core/interruption.py`
                self._loop.run_forever()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def _cancel_tasks(self) -> set[asyncio.Task[Any]]:
        tasks = asyncio.all_tasks(self._loop) - {asyncio.current_task(self._loop)}
        cancel(tasks)
        return tasks

    async def _shut_down(self, close: Callable[[], Any]) -> None:
        try:
            if tasks := self._cancel_tasks():
                await asyncio.wait(tasks, timeout=END_SECONDS)
            closing = close()
            if asyncio.iscoroutine(closing):
                await closing
        finally:
            self._is_ending = True
            self._loop.stop()


def cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks once: a second time would interrupt what they do to clean up."""
    for task in tasks:
        if not task.cancelling():
            task.cancel()


class _DaemonExecutor(ThreadPoolExecutor):
    """Runs each function in a daemon thread of its own.

    Python waits at its end for the threads of other executors, also for one that never returns.
    """

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - as executors do
                future.set_exception(error)

        threading.Thread(target=run, name="queryeval-call", daemon=True).start()
        return future
