"""One call of a predictor, and the pause before it is made again."""

from __future__ import annotations

import random
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_queryeval.core.case_view import CaseView, view_of
from pytest_queryeval.core.errors import PredictorError
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

    The pause is doubled each time, less a random part (equal jitter) so that calls which failed together do not come
    back together, and at least what the system asked for. Raises the error, with the number of attempts, where another
    attempt would not help.
    """
    if error.temporary and error.pause > MAX_PAUSE:
        raise PredictorError(f"{error} (it asks to wait {error.pause:.0f} s, which is too long)") from error
    if not error.temporary or attempt > retries:
        if attempt > 1:
            raise PredictorError(f"{error} (tried {attempt} times)") from error
        raise error
    pause = min(FIRST_PAUSE * 2 ** (attempt - 1), MAX_PAUSE)
    return max(error.pause, random.uniform(pause / 2, pause))  # noqa: S311 - no secret
