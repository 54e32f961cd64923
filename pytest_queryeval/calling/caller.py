"""The system under test is called: in turn, or many cases at once and ahead of the tests that wait for them."""

from __future__ import annotations

import asyncio
import inspect
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from pytest_queryeval.calling.background import Background, in_thread
from pytest_queryeval.calling.time_limit import Overdue, time_limit
from pytest_queryeval.errors import PredictorError, QueryEvalError
from pytest_queryeval.model import Case, Prediction, PredictorSpec
from pytest_queryeval.predictors import Predictor

Call: TypeAlias = tuple[Case, int]  # a case, and for the how manieth time it is asked
Keep: TypeAlias = Callable[[Case, int, Prediction], None]

FIRST_PAUSE = 0.5  # seconds before a call is made again; doubled each time
LONGEST_PAUSE = 60.0
PROGRESS_SECONDS = 10.0
GRACE_SECONDS = 1.0  # until a call that does not heed its time limit is given up


@dataclass
class Counts:
    """How far a predictor is; `seconds` is the sum over the calls that are done."""

    asked: int = 0
    done: int = 0
    failed: int = 0
    seconds: float = 0.0


class Caller:
    """Calls one predictor, with its time limit, its retries, and at most `concurrency` calls under way at once.

    `keep` is given each prediction as it arrives, in any thread.
    """

    def __init__(self, predictor: Predictor, spec: PredictorSpec, background: Background, keep: Keep) -> None:
        self.concurrency = spec.concurrency or predictor.concurrency
        self.counts = Counts()
        self.predictor = predictor
        self._limit = spec.timeout
        self._retries = predictor.retries if spec.retries is None else spec.retries
        self._background = background
        self._keep = keep
        self._is_async = inspect.iscoroutinefunction(predictor.predict)
        self._places = asyncio.Semaphore(self.concurrency)
        self._ahead: dict[tuple[object, ...], Future[Prediction]] = {}
        self._began: dict[tuple[object, ...], float] = {}

    @property
    def in_turn(self) -> bool:
        """Whether calls are made one by one where their answer is needed, in that thread."""
        return not self._is_async and self.concurrency == 1

    def ahead(self, calls: Sequence[Call]) -> None:
        """Begin with these calls, in their order, as far as that may be done in the background."""
        if self.in_turn:
            return
        self.counts.asked += len(calls)
        for case, trial in calls:
            self._ahead[_key(case, trial)] = self._background.submit(self._answered(case, trial))

    def prediction(self, case: Case, trial: int, tell: Callable[[str], None]) -> Prediction:
        """What the system says, waited for if it is not there yet; raises `PredictorError`.

        `tell` is called with a line on the progress every PROGRESS_SECONDS.
        """
        if self.in_turn:
            return self._called_in_turn(case, trial)
        found = self._ahead.pop(_key(case, trial), None)
        if found is None:
            self.counts.asked += 1
            found = self._background.submit(self._answered(case, trial))
        return self._waited_for(found, _key(case, trial), tell)

    def close(self) -> None:
        """Give up the calls under way and close the predictor where it was called."""
        for future in self._ahead.values():
            future.cancel()
        self._ahead.clear()
        if self.in_turn or not self._background.is_running:
            closing: Any = self.predictor.close()
            if inspect.iscoroutine(closing):
                closing.close()  # it has nothing to close, since nothing was called
            return
        with suppress(NotYet):
            self._background.submit(_closed(self.predictor)).result(GRACE_SECONDS)

    def progress(self) -> str:
        """How far the calls are, in words."""
        counts, under_way = self.counts, len(self._began)
        each = counts.seconds / counts.done if counts.done else 0.0
        left = each * (counts.asked - counts.done) / self.concurrency
        known = f", {each:.1f} s a call, about {left:.0f} s left" if counts.done else ""
        done = f"{counts.done:,} of {counts.asked:,} predictions"
        return f"queryeval: {done}, {under_way:,} under way, {counts.failed:,} failed{known}"

    def _waited_for(
        self, future: Future[Prediction], key: tuple[object, ...], tell: Callable[[str], None]
    ) -> Prediction:
        told = time.monotonic()
        while True:
            try:
                return future.result(GRACE_SECONDS)
            except NotYet:
                if future.done():  # meanwhile, or with an error of that type
                    return future.result()
            except CancelledError:
                raise PredictorError("the run was stopped before there was an answer") from None
            began, now = self._began.get(key), time.monotonic()
            if began is not None and now > began + self._limit + GRACE_SECONDS:
                future.cancel()
                raise PredictorError(f"{_timed_out(self._limit)}, and cannot be stopped")
            if now > told + PROGRESS_SECONDS:
                told = now
                tell(self.progress())

    def _called_in_turn(self, case: Case, trial: int) -> Prediction:
        for attempt in range(1, self._retries + 2):
            try:
                with time_limit(self._limit), _told():
                    prediction: Any = self.predictor.predict(case, trial)
                self._keep(case, trial, prediction)
                return prediction  # type: ignore[no-any-return]  # no coroutine function
            except Overdue:
                error = PredictorError(_timed_out(self._limit), temporary=True)
            except PredictorError as raised:
                error = raised
            self._raise_for_good(error, attempt)
            time.sleep(_pause(error, attempt))
        raise AssertionError("the loop ends by itself")

    async def _answered(self, case: Case, trial: int) -> Prediction:
        async with self._places:
            start = time.monotonic()
            try:
                prediction = await self._tried(case, trial)
                self._keep(case, trial, prediction)
                return prediction
            except QueryEvalError:
                self.counts.failed += 1
                raise
            finally:
                self.counts.done += 1
                self.counts.seconds += time.monotonic() - start

    async def _tried(self, case: Case, trial: int) -> Prediction:
        for attempt in range(1, self._retries + 2):
            try:
                return await self._attempt(case, trial)
            except PredictorError as error:
                self._raise_for_good(error, attempt)
                await asyncio.sleep(_pause(error, attempt))
        raise AssertionError("the loop ends by itself")

    async def _attempt(self, case: Case, trial: int) -> Prediction:
        key = _key(case, trial)
        self._began[key] = time.monotonic()
        try:
            async with asyncio.timeout(self._limit):
                with _told():
                    return await self._call(case, trial)
        except TimeoutError as error:
            raise PredictorError(_timed_out(self._limit), temporary=True) from error
        finally:
            del self._began[key]

    def _call(self, case: Case, trial: int) -> Awaitable[Prediction]:
        if self._is_async:
            return self.predictor.predict(case, trial)  # type: ignore[return-value]  # a coroutine function
        return in_thread(lambda: self.predictor.predict(case, trial))  # type: ignore[arg-type, return-value]

    def _raise_for_good(self, error: PredictorError, attempt: int) -> None:
        """Raise the error unless another attempt may help soon, with how often it was tried."""
        if error.temporary and attempt <= self._retries and error.pause <= LONGEST_PAUSE:
            return
        if error.temporary and error.pause > LONGEST_PAUSE:
            raise PredictorError(f"{error} (it asks to wait {error.pause:.0f} s, which is too long)") from error
        if attempt == 1:
            raise error
        raise PredictorError(f"{error} (tried {attempt} times)") from error


@contextmanager
def _told() -> Iterator[None]:
    """A predictor of another package may raise anything."""
    try:
        yield
    except QueryEvalError:
        raise
    except Exception as error:
        raise PredictorError(f"the predictor raised {type(error).__name__}: {error}") from error


def _key(case: Case, trial: int) -> tuple[object, ...]:
    return case.location, case.id, trial


def _timed_out(limit: float) -> str:
    return f"no answer within {limit:g} s (`timeout` of the predictor)"


def _pause(error: PredictorError, attempt: int) -> float:
    """Seconds before the next attempt: doubled each time, less a random part, and what the system asked for at least.

    The random part (full jitter) keeps calls that failed together from coming back together.
    """
    longest = min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE)
    return max(error.pause, random.uniform(longest / 2, longest))  # noqa: S311 - no secret


async def _closed(predictor: Predictor) -> None:
    closing: Any = predictor.close()
    if inspect.isawaitable(closing):
        await closing
