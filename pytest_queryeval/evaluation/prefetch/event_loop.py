"""An event loop in a thread of its own, for calls that wait on others."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

HEARTBEAT_SECONDS = 0.2
END_SECONDS = 1.5  # for calls to end that are cancelled


class Background:
    """Runs functions on an event loop, whose thread starts with the first of them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._beat = 0.0
        self._is_ending = False

    @property
    def is_running(self) -> bool:
        """Whether the loop has begun."""
        return self._loop is not None

    @property
    def stalled(self) -> float:
        """For how many seconds the loop has done nothing: something that should wait blocks it."""
        return self._clock() - self._beat if self._loop is not None else 0.0

    def soon(self, work: Callable[[], object]) -> None:
        """Call `work` on the loop as soon as it is free."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._beat = self._clock()
            # A daemon: nobody is kept waiting at the end by a call that does not heed its cancellation.
            self._thread = threading.Thread(target=self._run, args=(self._loop,), name="queryeval-calls", daemon=True)
            self._thread.start()
        self._loop.call_soon_threadsafe(work)

    def cancel(self) -> None:
        """Cancel all that is under way; they end by themselves."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(_cancel_all)

    def begin_to_end(self, close: Callable[[], object]) -> None:
        """Cancel what is under way, then `close`, then leave the thread; waits for none of them."""
        if self._loop is not None and not self._is_ending:
            self._loop.call_soon_threadsafe(lambda: asyncio.ensure_future(self._finish(close)))

    def wait_for_end(self, deadline: float) -> None:
        """Wait for the thread until a moment of `time.monotonic`."""
        if self._thread is not None:
            self._thread.join(max(0.0, deadline - time.monotonic()))

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.set_default_executor(_Daemons())
        loop.call_soon(self._keep_beating, loop)
        while not self._is_ending:
            with suppress(SystemExit, KeyboardInterrupt):  # of a task that a function of the user's has begun
                loop.run_forever()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    def _keep_beating(self, loop: asyncio.AbstractEventLoop) -> None:
        self._beat = self._clock()
        loop.call_later(HEARTBEAT_SECONDS, self._keep_beating, loop)

    async def _finish(self, close: Callable[[], object]) -> None:
        loop = asyncio.get_running_loop()
        try:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            if others:
                await asyncio.wait(others, timeout=END_SECONDS)
            closing = close()
            if isinstance(closing, Awaitable):
                await closing
        finally:
            self._is_ending = True
            loop.stop()


class _Daemons(ThreadPoolExecutor):
    """Runs each function in a daemon thread of its own: look-ups of names and whatever else must keep no program alive.

    Python waits at its end for the threads of other executors, also for one that hangs.
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

        threading.Thread(target=run, name="queryeval-aside", daemon=True).start()
        return future


async def in_thread(work: Callable[[], T]) -> T:
    """What `work` returns or raises in a thread of its own, which is left to itself where its caller gives up."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            end: Callable[[], None] = partial(_set_result, future, work())
        except BaseException as error:  # noqa: BLE001 - it belongs to the caller, whatever it is
            end = partial(_set_exception, future, error)
        with suppress(RuntimeError):  # the loop is closed, nobody waits
            loop.call_soon_threadsafe(end)

    threading.Thread(target=run, name="queryeval-call", daemon=True).start()
    return await future


def _cancel_all() -> None:
    for task in asyncio.all_tasks():
        task.cancel()


def _set_result(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _set_exception(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(RuntimeError(repr(error)) if isinstance(error, StopIteration) else error)
