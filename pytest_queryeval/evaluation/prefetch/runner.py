"""One predictor is called: in turn, or for many cases at once and ahead of the tests that wait for them."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pytest_queryeval.core.errors import PredictorError, QueryEvalError, SourceError, TimeLimitExceeded
from pytest_queryeval.core.model import Prediction
from pytest_queryeval.evaluation.prefetch.call_clock import CallClock, task_limit
from pytest_queryeval.evaluation.prefetch.event_loop import in_thread
from pytest_queryeval.evaluation.prefetch.prediction_call import Asked
from pytest_queryeval.evaluation.prefetch.time_limit import time_limit
from pytest_queryeval.evaluation.prefetch.work_queue import Line
from pytest_queryeval.predictors import Predictor
from pytest_queryeval.predictors.answer import wrap_predictor_errors

GRACE_SECONDS = 1.0  # until a call that does not heed its time limit is given up
PREDICTOR = "the predictor"  # in messages on one that does not say what it is
LOOPS = 20  # that a predictor may block before it is called no more


@dataclass
class Counts:
    """How far a predictor is; `seconds` is the sum over the calls that are done."""

    asked: int = 0
    done: int = 0
    failed: int = 0
    seconds: float = 0.0


class Caller:
    """Calls one predictor, at most `concurrency` times at once.

    A function that is called `in_turn` is called where its answer is waited for, in that thread, all others in the
    background.
    """

    def __init__(self, predictor: Predictor, *, concurrency: int, in_turn: bool, clock: CallClock) -> None:
        self.predictor = predictor
        self._clock = clock
        self.concurrency = concurrency
        self.counts = Counts()
        self._is_async = inspect.iscoroutinefunction(predictor.predict)
        self._in_turn = in_turn and not self._is_async
        self._line = Line(self._answer, width=concurrency, clock=clock.time)
        self._loops = 1
        self._asked: dict[tuple[int, int], Asked] = {}

    @property
    def under_way(self) -> int:
        """How many calls are being made."""
        return sum(bool(asked.began) for asked in list(self._asked.values()))

    def ahead(self, calls: Iterable[Asked]) -> None:
        """Begin with these calls, in their order, as far as that may be done in the background."""
        every = {asked.key: asked for asked in calls}
        self.counts.asked += len(every)
        if not self._in_turn:
            self._asked |= every
            self._line.add(every.values())

    def prediction(self, asked: Asked, wait: Callable[[], None]) -> Prediction:
        """What the system says, waited for if it is not there yet; raises `PredictorError`.

        `wait` is called now and then meanwhile.
        """
        if self._in_turn:
            return self._called_in_turn(asked)
        known = self._asked.get(asked.key)
        if known is None:
            known = self._asked[asked.key] = asked
            self.counts.asked += 1
            self._line.add([asked])
        try:
            return self._waited_for(known, wait)
        except PredictorError:
            self._drop(lambda other: other.case is known.case)  # its other trials decide nothing any more
            raise
        finally:
            self._asked.pop(asked.key, None)

    def stop(self) -> None:
        """Cancel all calls and begin no more; waits for none of them."""
        self._drop(lambda _: True)
        self._line.stop()

    def begin_to_end(self) -> None:
        """As `stop`, and close the predictor, in the background if that is where it was called."""
        self.stop()
        if self._line.background.is_running:
            self._line.background.begin_to_end(self.predictor.close)
            return
        closing: Any = self.predictor.close()
        if inspect.iscoroutine(closing):
            closing.close()  # it has nothing to close, since nothing was called

    def wait_for_end(self, deadline: float) -> None:
        """Wait until the background has ended, to a moment of `time.monotonic`."""
        self._line.background.wait_for_end(deadline)

    def _drop(self, which: Callable[[Asked], bool]) -> None:
        for asked in list(self._asked.values()):
            if not asked.began and which(asked):
                asked.answer.cancel()

    def _called_in_turn(self, asked: Asked) -> Prediction:
        start = time.monotonic()
        try:
            return asked.found() or asked.kept(self._tried_in_turn(asked))
        except QueryEvalError:
            self.counts.failed += 1
            raise
        finally:
            self._count(start)

    def _tried_in_turn(self, asked: Asked) -> object:
        attempt = 0
        while True:
            attempt += 1
            try:
                with time_limit(asked.spec.timeout, self._clock.time), wrap_predictor_errors(PREDICTOR):
                    return self.predictor.predict(asked.view(), asked.trial)
            except TimeLimitExceeded:
                error = asked.timed_out()
            except PredictorError as raised:
                error = raised
            time.sleep(asked.pause_after(error, attempt))

    def _count(self, start: float) -> None:
        self.counts.done += 1
        self.counts.seconds += time.monotonic() - start

    def _waited_for(self, asked: Asked, wait: Callable[[], None]) -> Prediction:
        while True:
            try:
                return asked.answer.result(GRACE_SECONDS)
            except NotYet:
                if asked.answer.done():  # meanwhile, or with an error of that type
                    return asked.answer.result()
            except CancelledError:
                raise PredictorError("the run was stopped before there was an answer") from None
            wait()
            longest = asked.spec.timeout + GRACE_SECONDS
            if asked.began and self._clock.time() > asked.began + longest:
                self._line.widen()
                raise PredictorError(f"{asked.timed_out()}, and the call cannot be stopped")
            if self._line.background.stalled > longest:
                self._leave_behind()

    def _leave_behind(self) -> None:
        """Go on with another event loop: a call blocks this one for longer than any call may take."""
        self._line.stop()
        self._line.background.begin_to_end(lambda: None)
        waiting = [asked for asked in self._asked.values() if not asked.began and not asked.answer.done()]
        self._loops += 1
        if self._loops > LOOPS:
            why = "the predictor blocks its event loop again and again: an async function has to await what takes long"
            for asked in waiting:
                asked.settle(PredictorError(why))
            return
        self._line = Line(self._answer, width=self.concurrency, clock=self._clock.time)
        self._line.add(waiting)

    async def _answer(self, asked: Asked) -> None:
        if asked.answer.done():
            return
        start = time.monotonic()
        try:
            await _list_ahead(asked)
            asked.settle(asked.found() or asked.kept(await self._tried(asked)))
        except QueryEvalError as error:
            self.counts.failed += 1
            asked.settle(error)
        except asyncio.CancelledError:
            if _is_cancelled():
                asked.answer.cancel()
                raise
            asked.settle(PredictorError("the predictor raised CancelledError"))
        except Exception as error:  # noqa: BLE001 - pytest.exit(), raised again where the answer is waited for
            asked.settle(error)
        finally:
            self._count(start)

    async def _tried(self, asked: Asked) -> object:
        attempt = 0
        while True:
            attempt += 1
            asked.began = self._clock.time()
            try:
                async with task_limit(asked.spec.timeout, self._clock):
                    with wrap_predictor_errors(PREDICTOR, in_task=True):
                        return await self._call(asked)
            except TimeoutError:
                error = asked.timed_out()
            except PredictorError as raised:
                error = raised
            finally:
                asked.began = 0.0
            await asyncio.sleep(asked.pause_after(error, attempt))

    def _call(self, asked: Asked) -> Awaitable[object]:
        if self._is_async:
            return self.predictor.predict(asked.view(), asked.trial)  # type: ignore[return-value]  # a coroutine function
        return in_thread(lambda: self._called_aside(asked))

    def _called_aside(self, asked: Asked) -> object:
        with wrap_predictor_errors(PREDICTOR, in_task=True):
            return self.predictor.predict(asked.view(), asked.trial)


async def _list_ahead(asked: Asked) -> None:
    """List the schema that a call needs from its start, in a thread: here all other calls would wait."""
    if asked.lists_ahead and not asked.list_schema.is_listed:
        with suppress(SourceError):  # raised again where it is needed
            await in_thread(asked.list_schema)


def _is_cancelled() -> bool:
    """Whether it was us who cancelled the task, and not what it calls."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
