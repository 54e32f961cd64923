"""One call of a predictor: the clock that limits it, the schema that it may see, the pause until it is repeated.

What the calls of a run cost together may be limited, too.
"""

from __future__ import annotations

import json
import random
import signal
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import TYPE_CHECKING, Any

from pytest_queryeval.core.db_schema import (
    ColumnDefinition,
    ForeignKey,
    Schema,
    TableDefinition,
    create_table,
    script_of,
)
from pytest_queryeval.core.errors import (
    PredictorError,
    QueryEvalError,
    SourceError,
    TimeLimitExceeded,
    capture_error,
    unwrap,
)
from pytest_queryeval.core.json_value import JsonSchema
from pytest_queryeval.core.model import SECONDS_RULE, Case, Prediction, PredictorSpec, Source, is_seconds
from pytest_queryeval.core.steps import bounded_metadata, bounded_steps, plain_number
from pytest_queryeval.predictors import CaseView, view_of
from pytest_queryeval.predictors.answer import read_prediction, wrap_predictor_errors
from pytest_queryeval.text.formatting import one_line

if TYPE_CHECKING:
    import asyncio

    from pytest_queryeval.core.report import SpendReport
    from pytest_queryeval.evaluation.extensions import RecordedCall

POLL_SECONDS = 0.05  # while the clock stands still
FIRST_PAUSE = 0.5  # seconds before a call is made again; doubled each time
MAX_PAUSE = 60.0
PREDICTOR_LABEL = "the predictor"  # its name in error messages
# Of the spend limit.
SECONDS_NAME = "prediction_seconds"
MAX_UNSTATED = 10  # calls in a row without the number
MAX_AMOUNT = 1e15  # greater numbers are no amounts
_ROUNDING = 1e-9  # relative to the limit: a sum of many floats may be slightly too small


class CallClock:
    """A clock that stands still while a source lists its tables, which a predictor's `timeout` does not cover."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # reentrant: a signal's handler reads the clock, too
        self._pauses = 0
        self._paused_at = 0.0
        self._lost = 0.0

    def time(self) -> float:
        """Return the seconds of `time.monotonic` without those of all pauses."""
        with self._lock:
            now = self._paused_at if self._pauses else time.monotonic()
            return now - self._lost

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock within the `with` statement, which may be in any thread."""
        with self._lock:
            if not self._pauses:
                self._paused_at = time.monotonic()
            self._pauses += 1
        try:
            yield
        finally:
            with self._lock:
                self._pauses -= 1
                if not self._pauses:
                    self._lost += time.monotonic() - self._paused_at

    async def wait(self, task: asyncio.Task[Any], seconds: float) -> None:
        """Wait until the task is done, or until this clock has run for `seconds` seconds."""
        import asyncio  # not needed by a run without calls

        deadline = self.time() + seconds
        while not task.done() and (seconds_left := deadline - self.time()) > 0:
            await asyncio.wait({task}, timeout=max(seconds_left, POLL_SECONDS))


REPEAT_SECONDS = 1.0  # for the function to clean up


@contextmanager
def time_limit(seconds: float, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Raise `TimeLimitExceeded` within the `with` statement once it has taken `seconds` seconds by the clock.

    It is raised again every REPEAT_SECONDS, for a function that catches everything and tries again. There is no limit
    outside of the main thread, where no signal arrives, nor if the alarm is already in use, for instance by a plugin
    that limits whole tests.
    """
    if threading.current_thread() is not threading.main_thread() or any(signal.getitimer(signal.ITIMER_REAL)):
        yield
        return
    is_running = True
    deadline = clock() + seconds

    def on_alarm(number: int, frame: FrameType | None) -> None:
        seconds_left = deadline - clock()
        if seconds_left > 0:  # the clock stood still
            signal.setitimer(signal.ITIMER_REAL, max(seconds_left, POLL_SECONDS), REPEAT_SECONDS)
        elif is_running:
            raise TimeLimitExceeded

    previous_handler = signal.signal(signal.SIGALRM, on_alarm)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT_SECONDS)
            yield
        finally:
            is_running = False
    finally:  # also where the alarm rings before the line above
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous_handler)


class SchemaText:
    """A schema as text, listed on the first call; meanwhile `clock` stands still, and other threads wait."""

    def __init__(self, list_schema: Callable[[], str | None], clock: CallClock) -> None:
        self._list_schema = list_schema
        self._clock = clock
        self._lock = threading.Lock()
        self._outcomes: list[str | SourceError | None] = []

    @property
    def is_listed(self) -> bool:
        """Whether the schema has been listed, successfully or not."""
        return bool(self._outcomes)

    def __call__(self) -> str | None:
        """Return the text, None if there is no schema.

        Raise the same `SourceError` every time if the listing failed.
        """
        if not self._outcomes:
            with self._clock.paused(), self._lock:
                if not self._outcomes:
                    self._outcomes.append(capture_error(self._list_schema, SourceError))
        return unwrap(self._outcomes[0])


class SchemaTexts:
    """The schemas of a run, shared by cases; `list_tables` returns the tables of a source as SQL."""

    def __init__(self, list_tables: Callable[[Source], str | None] = lambda _: None) -> None:
        self.clock = CallClock()
        self._list_tables = list_tables
        self._texts: dict[Hashable, SchemaText] = {}

    def of(self, case: Case) -> SchemaText:
        """Return the schema that a case's predictor sees: that of the suite, else for SQL that of the source.

        Its text is None if the case has no schema.
        """
        db_schema, source, dialect = case.db_schema, case.settings.source, case.settings.dialect
        json_schema = case.extra.get("json_schema") if case.settings.kind == "json" else None
        if isinstance(json_schema, JsonSchema):
            return self._text(id(json_schema), lambda: json.dumps(json_schema.document, indent=2, ensure_ascii=False))
        if case.settings.kind == "sql" and db_schema is not None:
            return self._text((id(db_schema), dialect), lambda: schema_script(db_schema, dialect))
        if case.settings.kind == "sql" and source is not None:
            return self._text(source.key, lambda: self._list_tables(source))
        return self._text(None, lambda: None)

    def _text(self, key: Hashable, list_schema: Callable[[], str | None]) -> SchemaText:
        """Return the schema of a key, created on first use.

        `list_schema` keeps the object alive whose id is the key.
        """
        if key not in self._texts:
            self._texts[key] = SchemaText(list_schema, self.clock)
        return self._texts[key]


def schema_script(schema: Schema, dialect: str) -> str:
    """Return the CREATE TABLE statements of a schema as one script.

    Tables are in the order of their names, whose letter case is ignored.
    """
    from pytest_queryeval.languages.sql.dialects import quote_in

    tables = schema.definitions or _definitions(schema)
    quote = quote_in(dialect)
    return script_of(create_table(table, quote) for table in sorted(tables, key=lambda table: table.name.lower()))


def _definitions(schema: Schema) -> list[TableDefinition]:
    """Return definitions of the tables of a schema that has only names and foreign keys."""
    return [
        TableDefinition(
            table,
            [ColumnDefinition(column) for column in columns],
            foreign_keys=[
                ForeignKey((column,), referred_table, (referred_column,))
                for (referring_table, column), (referred_table, referred_column) in schema.foreign_keys
                if referring_table == table
            ],
        )
        for table, columns in schema.tables.items()
    ]


@dataclass(eq=False, slots=True)
class PredictionCall:
    """A call of a predictor for one trial of a case, with the settings of its suite."""

    case: Case
    trial: int
    spec: PredictorSpec
    schema_text: SchemaText
    needs_schema: bool = False
    """Whether the schema has to be listed before the call."""
    recorded: RecordedCall | None = None
    spend: SpendLimit | None = None
    has_begun: bool = False
    answer: Future[Prediction] = field(init=False)
    """The answer, if the call is made on an event loop."""

    @property
    def key(self) -> tuple[int, int]:
        """A key that is equal for calls of the same trial of the same case object.

        The object counts and not the id of the case, because suites may share a file of cases.
        """
        return id(self.case), self.trial

    def view(self) -> CaseView:
        """Return a fresh view of the case for an attempt, without changes by an earlier attempt."""
        return view_of(self.case, self.schema_text)

    def find_recorded(self) -> Prediction | None:
        """Return the recorded prediction, marked as recorded; None if there is none.

        Raise `PredictorError` in a replay without a recorded prediction.
        """
        prediction = None if self.recorded is None else self.recorded.load()
        return None if prediction is None else replace(prediction, is_recorded=True)

    def begin(self) -> Prediction | None:
        """Mark the call as begun, and return the recorded prediction; None if the call has to be made.

        Raise `SpendLimitReached` if it may not be made, and `PredictorError` as `find_recorded` does.
        """
        recorded_prediction = self.find_recorded()
        if recorded_prediction is None and self.spend is not None:
            self.spend.check()
        self.has_begun = True
        return recorded_prediction

    def record(self, prediction: object) -> Prediction:
        """Count the result of a call towards the spend limit, save it in the recording, and return it.

        Its contents become plain JSON.

        Raise `PredictorError` for an object that is not a `Prediction`, and for contents that cannot be read.
        """
        with wrap_predictor_errors(PREDICTOR_LABEL):
            if self.spend is not None:
                self.spend.add(prediction)
            if not isinstance(prediction, Prediction):
                raise PredictorError(f"the predictor returned {type(prediction).__name__}, not a Prediction")
            prediction = read_prediction(prediction, self.case.settings.kind, by=PREDICTOR_LABEL)
            prediction = with_plain_contents(replace(prediction, predictor=prediction.predictor or self.spec.kind))
        return prediction if self.recorded is None else self.recorded.save(prediction)

    def count_failure(self) -> None:
        """Count a call without an answer towards the spend limit, if there is one."""
        if self.spend is not None:
            self.spend.add(None)

    def timeout_error(self) -> PredictorError:
        """Return, without raising it, the temporary error of a call that took too long."""
        remedy = "raise the predictor's `timeout`, or make it faster"
        return PredictorError(f"no answer within {self.spec.timeout:g} s: {remedy}", temporary=True)


def with_plain_contents(prediction: Prediction) -> Prediction:
    """Return a prediction whose metadata and steps are plain JSON, cut to a size that can be kept.

    Raise `PredictorError` for values that cannot be read, and for too many steps.
    """
    if not prediction.metadata and prediction.steps is None:
        return prediction
    by = f"{PREDICTOR_LABEL} '{one_line(prediction.predictor)}'"
    steps = None if prediction.steps is None else bounded_steps(prediction.steps, by=by)
    return replace(prediction, metadata=bounded_metadata(prediction.metadata, by=by), steps=steps)


def retry_pause(error: PredictorError, attempt: int, retries: int) -> float:
    """Return the seconds to wait before the next attempt, after the attempt numbered `attempt`, from 1.

    The pause doubles with each attempt, less a random part of up to half of it (equal jitter), so that calls that
    failed together are not repeated together. It is at least what the system asked for. Raise the error, with the
    number of attempts, if another attempt would not help, or after `retries` repetitions.
    """
    if not is_seconds(error.pause):  # of a user's error
        raise PredictorError(f"{error} (its `pause` has to be {SECONDS_RULE}: convert it with float())") from error
    if error.temporary and error.pause > MAX_PAUSE:
        reason = f"it asks to wait {error.pause:.0f} s, and calls wait {MAX_PAUSE:.0f} s at most"
        raise PredictorError(f"{error} ({reason})") from error
    if not error.temporary or attempt > retries:
        if attempt > 1:
            raise PredictorError(f"{error} (tried {attempt} times)") from error
        if error.temporary and not error.unreachable and not retries:
            raise PredictorError(f"{error} (not repeated: `retries` of the predictor is 0)") from error
        raise error
    pause = min(FIRST_PAUSE * 2 ** (attempt - 1), MAX_PAUSE)
    return max(error.pause, random.uniform(pause / 2, pause))  # noqa: S311 - no secret


@dataclass
class Progress:
    """The progress of the calls of one predictor, as numbers of calls."""

    concurrency: int
    requested: int = 0
    under_way: int = 0
    done: int = 0
    failed: int = 0
    seconds: float = 0.0
    """The duration of all finished calls together."""

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the call that is made within the `with` statement, and its duration.

        The call counts as failed if it raises `QueryEvalError`.
        """
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
        """The estimated seconds until the last requested call is done."""
        return self.seconds / max(self.done, 1) * (self.requested - self.done) / self.concurrency


def progress_line(predictors: Collection[Progress]) -> str:
    """Return a line on the progress of the calls of all predictors, with the time left once a call is done."""
    requested, under_way, done, failed = (
        sum(getattr(progress, name) for progress in predictors) for name in ("requested", "under_way", "done", "failed")
    )
    line = f"queryeval: {done:,} of {requested:,} predictions, {under_way:,} under way, {failed:,} failed"
    if not done:
        return line
    seconds = sum(progress.seconds for progress in predictors) / done
    seconds_left = max(progress.seconds_left for progress in predictors)
    return f"{line}, {seconds:.1f} s a call, about {seconds_left:.0f} s left"


class SpendLimitReached(Exception):  # noqa: N818 - neither the case nor the system is at fault
    """A call whose answer is not in the recording may not begin any more, because of the spend limit."""


class SpendLimit:
    """Adds up a number over the calls of a run; once the sum reaches the limit, no further call may begin.

    `name` is the name of a number in the metadata of predictions, or `prediction_seconds`; negative numbers do not
    count. Calls also end after MAX_UNSTATED calls in a row, in the order in which they end, that failed or do not state
    the number. All methods may be called in any thread.
    """

    def __init__(self, name: str, limit: float) -> None:
        self._name = name
        self._limit = limit
        self._lock = threading.Lock()
        self._sum = 0.0
        self._calls = 0
        self._unstated = 0
        self._unstated_in_a_row = 0

    @property
    def is_reached(self) -> bool:
        """Whether no further call may begin: the limit is reached, or too many calls in a row stated no number."""
        return self._is_unstated or self._sum >= self._limit * (1 - _ROUNDING)

    @property
    def _is_unstated(self) -> bool:
        return self._unstated_in_a_row >= MAX_UNSTATED

    def check(self) -> None:
        """Raise `SpendLimitReached`, with the reason, if no further call may begin."""
        if self.is_reached:
            unstated = f"{self._unstated_in_a_row} calls in a row reported no number '{one_line(self._name, 40)}'"
            reason = unstated if self._is_unstated else "the spend limit was reached"
            raise SpendLimitReached(f"{reason} before its turn")

    def add(self, answer: object) -> None:
        """Count a call that this run has made; `answer` states the number if it is a `Prediction` with it."""
        amount = plain_number(self._stated(answer) if isinstance(answer, Prediction) else None)
        is_amount = isinstance(amount, int | float) and not isinstance(amount, bool) and 0 <= amount < MAX_AMOUNT
        with self._lock:
            self._calls += 1
            self._unstated += not is_amount
            if not self._is_unstated:  # a call that was under way then changes nothing
                self._unstated_in_a_row = 0 if is_amount else self._unstated_in_a_row + 1
            self._sum += float(amount) if is_amount else 0.0

    def _stated(self, prediction: Prediction) -> object:
        if self._name == SECONDS_NAME:
            return prediction.seconds
        return prediction.metadata.get(self._name) if isinstance(prediction.metadata, Mapping) else None

    def report(self) -> SpendReport:
        """Return the limit and what was spent, as reports contain them."""
        report: SpendReport = {
            "name": self._name,
            "limit": self._limit,
            "sum": self._sum,
            "calls": self._calls,
            "unstated": self._unstated,
            "reached": self.is_reached,
        }
        return {**report, "unstated_in_a_row": self._unstated_in_a_row} if self._is_unstated else report
