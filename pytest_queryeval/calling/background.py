"""An event loop in a thread of its own, for calls that wait on others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

END_SECONDS = 2.0  # for calls to end that are cancelled


class Background:
    """Runs coroutines in the background; its thread starts with the first one."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether something was submitted, and the thread not ended since."""
        return self._loop is not None

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin with `work`; cancelling the future cancels it."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            # No other thread may be kept waiting at the end by one that does not heed its cancellation.
            self._thread = threading.Thread(target=self._run, args=(self._loop,), name="queryeval-calls", daemon=True)
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def cancel(self) -> None:
        """Cancel all that is under way and wait a little for it to end."""
        if self._loop is not None:
            ended = asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop)
            _wait(ended)

    def close(self) -> None:
        """Cancel what is under way and end the thread."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        self.cancel()
        self._loop = self._thread = None
        loop.call_soon_threadsafe(loop.stop)
        thread.join(END_SECONDS)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()


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


def _set_result(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _set_exception(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(RuntimeError(repr(error)) if isinstance(error, StopIteration) else error)


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=END_SECONDS)


def _wait(future: Future[None]) -> None:
    try:
        future.result(END_SECONDS + 0.5)
    except TimeoutError:  # a coroutine blocks the loop; its thread dies with the process
        future.cancel()
