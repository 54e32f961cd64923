"""Recordings: predictions and answers of sources that are kept, so that a run can be repeated without them.

Features and other packages register what keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from pytest_queryeval.core.cause import Cause, SharedPatterns
from pytest_queryeval.core.challenge import Challenge
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.model import Case, Execution, Prediction, PredictorSpec, Source
from pytest_queryeval.core.registry import Registry

DEFAULT_RECORDING = "folder"
Times: TypeAlias = Sequence[tuple[float, float]]
"""Seconds of gold and of predicted, a pair for each iteration."""


class RecordedCall(Protocol):
    """One call of a predictor, identified before the call; its methods may be called in any thread."""

    def load(self) -> Prediction | None:
        """Return the recorded prediction, or None without one; in a replay, raise `PredictorError` instead."""

    def save(self, prediction: Prediction) -> Prediction:
        """Keep the prediction unless there is one already, and return the one that a replay will use."""


class Recording(Protocol):
    """What a run has asked, and the answers; several processes and threads may use it at once, and it can be pickled.

    In a replay nothing is saved, and a missing or stale answer is an error, else `load_*` returns None for it.
    `load_*` and `save_*` raise `SourceError`.
    """

    replay: bool

    def check(self) -> None:
        """Raise `QueryEvalError` if there is nothing to replay, or nothing can be saved."""

    def call(self, case: Case, spec: PredictorSpec, trial: int, schema: Callable[[], str | None]) -> RecordedCall:
        """Return a call of a predictor; `schema` lists the schema that the predictor may see."""

    def load_execution(self, query: str, source: Source, *, timeout: float, max_rows: int) -> Execution | None:
        """Return the answer of the source to the query in its present state."""

    def save_execution(
        self, query: str, source: Source, execution: Execution, *, timeout: float, max_rows: int
    ) -> None:
        """Keep the answer of the source to the query."""

    def load_schema(self, source: Source) -> Schema | None:
        """Return the tables of the source in its present state."""

    def save_schema(self, source: Source, schema: Schema) -> None:
        """Keep the tables of a source."""

    def load_ddl(self, source: Source) -> tuple[str | None] | None:
        """Return the DDL of the source in its present state, or None in a tuple where its engine has none."""

    def save_ddl(self, source: Source, ddl: str | None) -> None:
        """Keep the DDL of a source, None if its engine has none."""

    def load_times(self, gold: str, predicted: str, source: Source, iterations: int) -> Times | None:
        """Return the seconds that both queries took."""

    def save_times(self, gold: str, predicted: str, source: Source, iterations: int, times: Times) -> None:
        """Keep the seconds of both queries."""

    def load_cause(self, gold: str, predicted: str, case: Case) -> tuple[Cause | SharedPatterns | None] | None:
        """Return why a predicted query of the case is wrong, or None in a tuple where no cause was found."""

    def save_cause(self, gold: str, predicted: str, case: Case, cause: Cause | SharedPatterns | None) -> None:
        """Keep why a predicted query of the case is wrong, None if no cause was found."""

    def load_challenge(self, gold: str, predicted: str, case: Case) -> Challenge | None:
        """Return what came of challenging a predicted query of the case by one gold."""

    def save_challenge(self, gold: str, predicted: str, case: Case, challenge: Challenge) -> None:
        """Keep what came of challenging a predicted query."""


class OpenRecording(Protocol):
    """Opens a recording; folders in it are relative to `root`."""

    def __call__(self, folder: Path, *, replay: bool, root: Path) -> Recording:
        """Return the recording in a folder; read and write nothing yet."""


RECORDINGS: Registry[OpenRecording] = Registry("recording", group="pytest_queryeval.recordings", members={})
