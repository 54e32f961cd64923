"""One predictor is called: for the case at hand in the main thread, or for many cases at once on an event loop."""

from __future__ import annotations

import asyncio
import inspect
import math
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, TypeVar

from pytest_queryeval.core.errors import PredictorError, SourceError, TimeLimitExceeded
from pytest_queryeval.core.model import Case, Prediction
from pytest_queryeval.evaluation.prediction_call import (
    PREDICTOR_LABEL,
    CallClock,
    PredictionCall,
    Progress,
    retry_pause,
    time_limit,
)
from pytest_queryeval.predictors import Predictor
from pytest_queryeval.predictors.answer import user_frames, wrap_predictor_errors

T = TypeVar("T")

END_SECONDS = 1.5  # for cancelled calls to end
GRACE_SECONDS = 1.0  # for a call to end after its time limit
WAIT_SECONDS = 0.25  # between two checks for an answer
MAX_UNREACHABLE = 5  # cases in a row, each after its retries, until the predictor is given up


class EventLoopThread:
    """An event loop in a daemon thread of its own, which runs coroutines until `shutdown`."""

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
        """Start a coroutine on the loop and return its future; cancelling the future cancels its task."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def cancel_all(self) -> None:
        """Cancel all tasks of the loop, without waiting for their end."""
        self._loop.call_soon_threadsafe(self._cancel_tasks)

    def shutdown(self, close: Callable[[], Any]) -> None:
        """Let the loop cancel all tasks, call or await `close`, and end its thread; return at once."""
        self.start(self._shut_down(close))

    def join(self, deadline: float) -> None:
        """Wait for the end of the thread, at most until `deadline`, a moment of `time.monotonic`."""
        self._thread.join(max(0.0, deadline - time.monotonic()))

    def blocked_seconds(self) -> float:
        """Return for how many seconds the loop has not answered a ping; 0 if it has answered the last ping.

        Call it periodically: if no ping is open, it sends one.
        """
        pinged_at = self._pinged_at
        if pinged_at is not None:
            return self._clock() - pinged_at
        self._pinged_at = self._clock()
        self._loop.call_soon_threadsafe(setattr, self, "_pinged_at", None)
        return 0.0

    def stack(self) -> traceback.StackSummary:
        """Return the current call stack of the loop's thread."""
        return traceback.extract_stack(sys._current_frames().get(self._thread.ident or 0))

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._is_ending:
            with suppress(SystemExit, KeyboardInterrupt):  # of code of users: `core/process.py`
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
    """Cancel tasks that are not being cancelled yet: a second cancellation would interrupt their cleaning up."""
    for task in tasks:
        if not task.cancelling():
            task.cancel()


class _DaemonExecutor(ThreadPoolExecutor):
    """An executor that runs each function in a new daemon thread.

    At its end, Python waits for the threads of other executors, even for a thread that never ends.
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


class PredictorRunner:
    """Calls one predictor, at most `concurrency` times at once.

    Coroutine functions are awaited on an event loop that only this predictor uses, so that it cannot block another
    predictor. Other functions are called in threads, or, if `in_main_thread` is true, in the thread that waits.
    """

    def __init__(self, predictor: Predictor, *, concurrency: int, in_main_thread: bool, clock: CallClock) -> None:
        self.progress = Progress(concurrency)
        self._predictor = predictor
        self._clock = clock
        self._is_async = inspect.iscoroutinefunction(predictor.predict)
        self._loop = None if in_main_thread and not self._is_async else EventLoopThread(clock.time)
        self._semaphore = asyncio.Semaphore(concurrency)
        self._prefetched: dict[tuple[int, int], PredictionCall] = {}
        self._queue: deque[PredictionCall] = deque()  # of calls to start later
        self._places: dict[tuple[int, int], int] = {}  # of prefetched calls, in their order
        self._started = 0  # how many of these have started
        self._batch: float = math.inf
        self._on_answer: Callable[[Case], None] | None = None
        self._failure = ""  # why the predictor was given up
        self._unreachable = 0  # cases in a row for which nothing answered at its address

    def prefetch(
        self, calls: Iterable[PredictionCall], *, by_batch: bool, on_answer: Callable[[Case], None] | None
    ) -> None:
        """Queue these calls to be made in their order, unless they are made in the thread that waits.

        All calls are started, or with `by_batch` as many as are made at once; then as many again beyond each awaited
        call. `on_answer` is called with the case, in another thread, when a call ends.
        """
        self._batch = self.progress.concurrency if by_batch else math.inf
        self._on_answer = on_answer
        for call in calls:
            self.progress.requested += 1
            if self._loop is not None:
                self._places[call.key] = self._started + len(self._queue)
                self._queue.append(call)
        self._start_before(self._batch)

    def _start_before(self, place: float) -> None:
        """Start the queued calls up to a position in their order, except calls whose answers are no longer needed."""
        while self._queue and self._started < place:
            call = self._queue.popleft()
            self._started += 1
            if self._loop is not None and call.key in self._places:
                self._start(self._loop, call)

    def _start(self, loop: EventLoopThread, call: PredictionCall) -> None:
        self._prefetched[call.key] = call
        call.answer = loop.start(self._answer(call))
        if (on_answer := self._on_answer) is not None:
            call.answer.add_done_callback(lambda _: on_answer(call.case))

    def has_begun(self, case: Case, trial: int) -> bool:
        """Return whether a prefetched call of a case's trial is under way or has ended."""
        call = self._prefetched.get((id(case), trial))
        return call is not None and call.has_begun

    def has_answer(self, case: Case, trial: int) -> bool:
        """Return whether `prediction` would return, or raise, without waiting for a prefetched call."""
        call = self._prefetched.get((id(case), trial))
        if call is None or self._loop is None or call.answer.done():
            return True
        with suppress(PredictorError):
            self._check_loop(self._loop, call)
        return bool(self._failure)

    def prediction(self, call: PredictionCall, tell_progress: Callable[[], None]) -> Prediction:
        """Return the answer to a call: make the call, or wait for the prefetched call.

        `tell_progress` is called now and then meanwhile. Raise `PredictorError` if there is no answer; then later
        trials of the case that have not begun are cancelled. Raise `SpendLimitReached` if the call may not begin.
        """
        if self._loop is None:
            with self.progress.counted():
                return call.begin() or call.record(self._retry_in_main_thread(call))
        if call.key in self._places:
            self._start_before(self._places[call.key] + 1 + self._batch)
            del self._places[call.key]
        elif call.key not in self._prefetched:
            self.progress.requested += 1
            self._start(self._loop, call)
        call = self._prefetched.pop(call.key)
        try:
            while not call.answer.done():
                self._check_loop(self._loop, call)
                wait([call.answer], timeout=WAIT_SECONDS)
                tell_progress()
            return call.answer.result()
        except CancelledError:
            raise PredictorError("the run was stopped before there was an answer") from None
        except PredictorError:
            # One trial failed, so those that have not begun decide nothing.
            for trial in range(call.trial + 1, call.case.settings.trials + 1):
                key = id(call.case), trial
                self._places.pop(key, None)
                if key in self._prefetched and not self._prefetched[key].has_begun:
                    self._prefetched.pop(key).answer.cancel()
            raise

    def stop(self) -> None:
        """Cancel all calls, without waiting for their end."""
        if self._loop is not None:
            self._loop.cancel_all()

    def shutdown(self) -> None:
        """Cancel all calls and close the predictor, on the event loop if there is one; `join` waits for the end."""
        if self._loop is None:
            self._predictor.close()
        else:
            self._loop.shutdown(self._predictor.close)

    def join(self, deadline: float) -> None:
        """Wait for the end of the event loop, if there is one, at most until the monotonic time `deadline`."""
        if self._loop is not None:
            self._loop.join(deadline)

    def _check_loop(self, loop: EventLoopThread, call: PredictionCall) -> None:
        """Raise `PredictorError` if something has blocked the event loop for longer than a call may take.

        The predictor is given up then, so that all its calls raise this error.
        """
        if not self._failure and loop.blocked_seconds() > call.spec.timeout + GRACE_SECONDS:
            remedy = "an async function has to await what takes long, or to be a plain function"
            place = user_frames(loop.stack())
            self._failure = f"the predictor '{call.spec.kind}' blocks its event loop{place}: {remedy}"
        if self._failure:
            raise PredictorError(self._failure)

    def _predict(self, call: PredictionCall) -> object:
        with wrap_predictor_errors(PREDICTOR_LABEL):
            return self._predictor.predict(call.view(), call.trial)

    def _retry_pause(self, call: PredictionCall, error: PredictorError, attempt: int) -> float:
        """Return the seconds until the next attempt; count a call that has failed for good, and raise its error."""
        retries = self._predictor.retries if call.spec.retries is None else call.spec.retries
        try:
            return retry_pause(error, attempt, retries)
        except PredictorError:
            call.count_failure()
            raise

    def _retry_in_main_thread(self, call: PredictionCall) -> object:
        attempt = 0
        while True:
            attempt += 1
            try:
                with time_limit(call.spec.timeout, self._clock.time):
                    return self._predict(call)
            except TimeLimitExceeded:
                pause = self._retry_pause(call, call.timeout_error(), attempt)
            except PredictorError as error:
                pause = self._retry_pause(call, error, attempt)
            time.sleep(pause)

    # From here on everything runs on the event loop.

    async def _answer(self, call: PredictionCall) -> Prediction:
        async with self._semaphore:
            if self._failure:
                raise PredictorError(self._failure)
            with self.progress.counted():
                if call.needs_schema and not call.schema_text.is_listed:
                    with suppress(SourceError):  # raised again when the schema is read
                        await asyncio.to_thread(call.schema_text)
                return call.begin() or call.record(await self._retry(call))

    async def _retry(self, call: PredictionCall) -> object:
        attempt = 0
        while True:
            attempt += 1
            try:
                answer = await self._attempt(call)
            except PredictorError as error:
                try:
                    pause = self._retry_pause(call, error, attempt)
                except PredictorError as last:
                    self._unreachable = self._unreachable + 1 if error.unreachable else 0
                    if self._unreachable >= MAX_UNREACHABLE:
                        self._failure = str(last)
                    raise
            else:
                self._unreachable = 0
                return answer
            await asyncio.sleep(pause)

    async def _attempt(self, call: PredictionCall) -> object:
        """Return the result of one call within its time limit; raise `PredictorError` if it takes longer.

        The call is a separate task, which is left alone if it ignores its cancellation.
        """
        task = asyncio.create_task(self._call(call))
        task.add_done_callback(lambda task: task.cancelled() or task.exception())  # else asyncio logs unread exceptions
        try:
            await self._clock.wait(task, call.spec.timeout)
            if task.cancelled():
                raise PredictorError("the predictor raised CancelledError")
            if task.done():
                return task.result()
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE_SECONDS)
            if task.done():
                raise call.timeout_error()
            raise PredictorError(f"{call.timeout_error()}, and the call cannot be stopped")
        finally:
            cancel([task])

    async def _call(self, call: PredictionCall) -> Any:
        with wrap_predictor_errors(PREDICTOR_LABEL, in_task=True):
            if self._is_async:
                return await self._predictor.predict(call.view(), call.trial)  # type: ignore[misc]
            return await asyncio.to_thread(self._predict, call)
