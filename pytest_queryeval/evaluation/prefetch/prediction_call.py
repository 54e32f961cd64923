"""One call of a predictor: what is asked, how it may be made, and where its answer arrives."""

from __future__ import annotations

import random
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_queryeval.core.case_view import CaseView, view_of
from pytest_queryeval.core.errors import PredictorError
from pytest_queryeval.core.model import Case, Prediction, PredictorSpec
from pytest_queryeval.evaluation.prefetch.schema_text import SchemaText

if TYPE_CHECKING:
    from pytest_queryeval.evaluation.recording import RecordedCall

FIRST_PAUSE = 0.5  # seconds before a call is made again; doubled each time
LONGEST_PAUSE = 60.0


@dataclass(eq=False, slots=True)
class Asked:
    """A case, for the how manieth time it is asked, under the settings of its own suite.

    `list_schema` is what lists its schema, and `lists_ahead` whether that is needed before the call. `began` is the
    moment of the clock of calls at which the attempt under way began, 0 where none is.
    """

    case: Case
    trial: int
    spec: PredictorSpec
    retries: int
    list_schema: SchemaText
    lists_ahead: bool = False
    recorded: RecordedCall | None = None
    began: float = 0.0
    answer: Future[Prediction] = field(default_factory=Future)

    @property
    def key(self) -> tuple[int, int]:
        """Equal for calls for the same trial of the very same case: suites may share the file that it stands in."""
        return id(self.case), self.trial

    def view(self) -> CaseView:
        """What the predictor sees in one attempt: nothing that an earlier one may have left."""
        return view_of(self.case, self.list_schema)

    def found(self) -> Prediction | None:
        """What is recorded; raises `PredictorError` where a replay has nothing."""
        return None if self.recorded is None else self.recorded.load()

    def settle(self, end: Prediction | Exception) -> None:
        """Let the answer arrive, or the error, unless nobody waits for it any more."""
        with suppress(InvalidStateError):
            if isinstance(end, Prediction):
                self.answer.set_result(end)
            else:
                self.answer.set_exception(end)

    def kept(self, prediction: Any) -> Prediction:
        """The prediction, written down where the run is recorded; raises `PredictorError` for anything else."""
        if not isinstance(prediction, Prediction):
            raise PredictorError(f"the predictor returned {type(prediction).__name__}, not a Prediction")
        return prediction if self.recorded is None else self.recorded.save(prediction)

    def pause_after(self, error: PredictorError, attempt: int) -> float:
        """Seconds before the next attempt; raises the error, with how often it was tried, unless one may help soon.

        It is twice as long each time, less a random part (equal jitter), so that calls which failed together do not
        come back together, and as long as the system asked for at least.
        """
        if error.temporary and error.pause > LONGEST_PAUSE:
            raise PredictorError(f"{error} (it asks to wait {error.pause:.0f} s, which is too long)") from error
        if not error.temporary or attempt > self.retries:
            if attempt > 1:
                raise PredictorError(f"{error} (tried {attempt} times)") from error
            raise error
        longest = min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE)
        return max(error.pause, random.uniform(longest / 2, longest))  # noqa: S311 - no secret

    def timed_out(self) -> PredictorError:
        """The error of a call that took too long."""
        limit = f"{self.spec.timeout:g} s (`timeout` of the predictor)"
        return PredictorError(f"no answer within {limit}", temporary=True)
