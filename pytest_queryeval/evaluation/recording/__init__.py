"""What systems said and what sources answered, kept in a folder, so that a run can be repeated without them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pytest_queryeval.core.errors import PredictorError, QueryEvalError
from pytest_queryeval.core.model import Case, Execution, PredictorSpec, Source
from pytest_queryeval.core.schema import Schema
from pytest_queryeval.evaluation.recording.entry_index import RECORD
from pytest_queryeval.evaluation.recording.predictions import ListSchema, Predictions, RecordedCall
from pytest_queryeval.evaluation.recording.sources import (
    Sources,
    read_ddl,
    read_schema,
    read_times,
    written_ddl,
    written_schema,
    written_times,
)
from pytest_queryeval.evaluation.recording.store import Store

__all__ = ["RecordedCall", "Recording"]


class Recording:
    """Predictions and answers of sources in `folder`, an entry a file, found by all that they depend on.

    With `replay` nothing is written, and what is missing or stale is an error; else None says that there is nothing to
    be had. Names of folders in what identifies a prediction are relative to `root`, by default the current folder.
    Several processes and threads may use one folder at once.
    """

    def __init__(self, folder: Path, *, replay: bool, root: Path | None = None) -> None:
        self.replay = replay
        self._folder = folder
        store = Store(folder / "predictions", PredictorError)
        self._predictions = Predictions(store, root=root or Path.cwd(), replay=replay)
        self._sources = Sources(folder, replay=replay)

    def check(self) -> None:
        """Raise `QueryEvalError` where there is nothing to replay, or where a folder for entries cannot be made."""
        if self.replay and not os.path.isdir(self._folder):  # noqa: PTH112 - unlike Path.is_dir, for any name
            raise QueryEvalError(f"there is no folder {self._folder} to replay: {RECORD}")
        if self.replay:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise QueryEvalError(f"nothing can be recorded in {self._folder}: {error.strerror or error}") from error

    def call(self, case: Case, spec: PredictorSpec, trial: int, schema: ListSchema = lambda: None) -> RecordedCall:
        """The call of a predictor that is to be made, to find its prediction, or to keep it; get it before the call.

        `schema` lists what it may see of it.
        """
        return self._predictions.call(case, spec, trial, schema)

    def execution(self, query: str, source: Source, *, timeout: float, max_rows: int) -> Execution | None:
        """What the source answered to the query in its present state; raises `SourceError`."""
        return self._sources.execution(query, source, timeout=timeout, max_rows=max_rows)

    def keep_execution(
        self, query: str, source: Source, execution: Execution, *, timeout: float, max_rows: int
    ) -> None:
        """Write an execution unless it is there already; raises `SourceError` where that fails."""
        self._sources.keep_execution(query, source, execution, timeout=timeout, max_rows=max_rows)

    def schema(self, source: Source) -> Schema | None:
        """The tables of the source in its present state; raises `SourceError`."""
        return self._sources.found("schemas", source, read_schema)

    def keep_schema(self, source: Source, schema: Schema) -> None:
        """Write the tables of a source unless they are there already; raises `SourceError` where that fails."""
        self._sources.keep("schemas", source, written_schema(schema))

    def ddl(self, source: Source) -> tuple[str | None] | None:
        """How the tables of the source are made, in its present state; raises `SourceError`."""
        return self._sources.found("ddl", source, read_ddl)

    def keep_ddl(self, source: Source, ddl: str | None) -> None:
        """Write how its tables are made unless that is there already; raises `SourceError` where that fails."""
        self._sources.keep("ddl", source, written_ddl(ddl))

    def times(self, gold: str, predicted: str, source: Source, iterations: int) -> Sequence[tuple[float, float]] | None:
        """The seconds that both queries took, a pair an iteration; raises `SourceError`."""
        return self._sources.found("times", source, read_times, gold=gold, predicted=predicted, iterations=iterations)

    def keep_times(
        self, gold: str, predicted: str, source: Source, iterations: int, times: Sequence[tuple[float, float]]
    ) -> None:
        """Write the seconds of both queries unless they are there already; raises `SourceError` where that fails."""
        content = written_times(times)
        self._sources.keep("times", source, content, gold=gold, predicted=predicted, iterations=iterations)
