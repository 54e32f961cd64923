"""One call of a predictor, the pause before it is made again, and the progress of all calls."""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_queryeval.core.case_view import CaseView, view_of
from pytest_queryeval.core.errors import PredictorError, QueryEvalError
from pytest_queryeval.core.model import Case, Prediction, PredictorSpec
from pytest_queryeval.evaluation.calls.schema_text import SchemaText

if TYPE_CHECKING:
    from pytest_queryeval.evaluation.recordings import RecordedCall

FIRST_PAUSE = 0.5  # seconds before a call is made again; doubled each time
MAX_PAUSE = 60.0
PREDICTOR = "the predictor"  # its name in error messages


@dataclass(eq=False, slots=True)
class PredictionCall:
    """One trial of a case, under the settings of its suite."""

    case: Case
    trial: int
    spec: PredictorSpec
    list_schema: SchemaText
    needs_schema: bool = False
    """Whether the schema has to be listed before the call."""
    recorded: RecordedCall | None = None
    has_begun: bool = False
    answer: Future[Prediction] = field(init=False)
    """The answer, if the call is made on an event loop."""

    @property
    def key(self) -> tuple[int, int]:
        """Equal for calls of the same trial of the same case object: suites may share a file of cases."""
        return id(self.case), self.trial

    def view(self) -> CaseView:
        """Return a fresh view of the case for one attempt, without changes by an earlier one."""
        return view_of(self.case, self.list_schema)

    def find_recorded(self) -> Prediction | None:
        """Return the recorded prediction, None without one; raises `PredictorError` in a replay without one."""
        return None if self.recorded is None else self.recorded.load()

    def record(self, prediction: object) -> Prediction:
        """Return the prediction, and save it in a recording; raises `PredictorError` for any other object."""
        if not isinstance(prediction, Prediction):
            raise PredictorError(f"the predictor returned {type(prediction).__name__}, not a Prediction")
        return prediction if self.recorded is None else self.recorded.save(prediction)

    def timed_out(self) -> PredictorError:
        """Return the error of a call that took too long."""
        remedy = "raise the predictor's `timeout`, or make it faster"
        return PredictorError(f"no answer within {self.spec.timeout:g} s: {remedy}", temporary=True)


def retry_pause(error: PredictorError, attempt: int, retries: int) -> float:
    """Return the seconds to wait after the `attempt`th attempt, from 1.

    The pause doubles with each attempt, less a random part of up to half of it (equal jitter), so that calls that
    failed together are not repeated together; it is at least what the system asked for. Raises the error, with the
    number of attempts, if another attempt would not help.
    """
    if error.temporary and error.pause > MAX_PAUSE:
        reason = f"it asks to wait {error.pause:.0f} s, and calls wait {MAX_PAUSE:.0f} s at most"
        raise PredictorError(f"{error} ({reason})") from error
    if not error.temporary or attempt > retries:
        if attempt > 1:
            raise PredictorError(f"{error} (tried {attempt} times)") from error
        raise error
    pause = min(FIRST_PAUSE * 2 ** (attempt - 1), MAX_PAUSE)
    return max(error.pause, random.uniform(pause / 2, pause))  # noqa: S311 - no secret


@dataclass
class Progress:
    """The progress of the calls of one predictor."""

    concurrency: int
    requested: int = 0
    under_way: int = 0
    done: int = 0
    failed: int = 0
    seconds: float = 0.0
    """The duration of all finished calls together."""

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the call that is made within the `with` statement."""
        start = time.monotonic()
        self.under_way += 1
        try:
            yield
        except QueryEvalError:
            self.failed += 1
            raise
        finally:
            self.under_way -= 1
            self.done += 1
            self.seconds += time.monotonic() - start

    @property
    def seconds_left(self) -> float:
        """The estimated seconds until the last call is done."""
        return self.seconds / max(self.done, 1) * (self.requested - self.done) / self.concurrency


def progress_line(predictors: Collection[Progress]) -> str:
    """Return a line on the calls of all predictors."""
    requested, under_way, done, failed = (
        sum(getattr(progress, name) for progress in predictors) for name in ("requested", "under_way", "done", "failed")
    )
    line = f"queryeval: {done:,} of {requested:,} predictions, {under_way:,} under way, {failed:,} failed"
    if not done:
        return line
    seconds = sum(progress.seconds for progress in predictors) / done
    seconds_left = max(progress.seconds_left for progress in predictors)
    return f"{line}, {seconds:.1f} s a call, about {seconds_left:.0f} s left"
