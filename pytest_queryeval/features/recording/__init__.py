"""Recordings: predictions and sources' answers, kept in a folder so that a run can be repeated without the services."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from pytest_queryeval.core.answer_json import Entry
from pytest_queryeval.core.case_report import ChallengeReport
from pytest_queryeval.core.cause import Cause, SharedPatterns
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import QueryEvalError, SourceError
from pytest_queryeval.core.json_value import JsonValue, to_jsonable
from pytest_queryeval.core.model import Case, Execution, PredictorSpec, Source
from pytest_queryeval.engines.settings import state_of
from pytest_queryeval.evaluation.extensions import Times
from pytest_queryeval.features.recording.predictions import (
    PREDICTIONS,
    ListSchema,
    PredictionKeys,
    RecordedCall,
)
from pytest_queryeval.features.recording.sources import (
    CAUSES,
    CHALLENGES,
    DDL,
    EXECUTIONS,
    SCHEMAS,
    TIMES,
    RecordedExecution,
    SourceKeys,
    query_excerpt,
)
from pytest_queryeval.features.recording.store import RECORD, EntryIndex

T = TypeVar("T")


class Recording:
    """Predictions and sources' answers in `folder`, one file for each entry, keyed by all that an entry depends on.

    With `replay`, nothing is written, and a missing or stale entry is an error. Otherwise `load_*` returns None for it.
    Folders in the key of a prediction are relative to `root`, by default the current folder. Several processes and
    threads may use the folder at once. `load_*` and `save_*` raise `SourceError`, also if the state of the source
    cannot be determined. `save_*` keeps an existing entry.
    """

    def __init__(self, folder: Path, *, replay: bool, root: Path | None = None) -> None:
        self.replay = replay
        self._folder = folder
        self._root = root or Path.cwd()
        self._prediction_keys = PredictionKeys(self._root)
        self._source_keys = SourceKeys()
        self._predictions = EntryIndex(folder, PREDICTIONS, replay=replay)
        self._executions = EntryIndex(folder, EXECUTIONS, replay=replay)
        self._schemas = EntryIndex(folder, SCHEMAS, replay=replay)
        self._ddl = EntryIndex(folder, DDL, replay=replay)
        self._times = EntryIndex(folder, TIMES, replay=replay)
        self._causes = EntryIndex(folder, CAUSES, replay=replay)
        self._challenges = EntryIndex(folder, CHALLENGES, replay=replay)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the recording by its absolute folders, so that another process can use it."""
        return partial(Recording, replay=self.replay, root=self._root.absolute()), (self._folder.absolute(),)

    def check(self) -> None:
        """Raise `QueryEvalError` if there is no folder to replay, or the folder for entries cannot be made.

        Without `replay`, the folder is made.
        """
        if self.replay and os.path.isfile(self._folder):  # noqa: PTH113 - unlike Path.is_file, for any name
            raise QueryEvalError(f"{self._folder} is a file: name the folder of a recording, or {RECORD}")
        if self.replay and not os.path.isdir(self._folder):  # noqa: PTH112 - unlike Path.is_dir, for any name
            raise QueryEvalError(f"there is no folder {self._folder}: {RECORD}")
        if self.replay:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = "is a file: name a folder" if isinstance(error, FileExistsError) else error.strerror or error
            raise QueryEvalError(f"nothing can be recorded in {self._folder}: {reason}") from error

    def call(self, case: Case, spec: PredictorSpec, trial: int, schema: ListSchema = lambda: None) -> RecordedCall:
        """Return the entry of a predictor's call, which loads or saves its prediction; call this before the predictor.

        `schema` returns the schema, which is part of the key if the predictor may see it. The case enters the key as it
        was at the first call of this method.
        """
        facts = self._prediction_keys.facts(case, spec, trial)
        return RecordedCall(self._predictions, facts, spec, schema)

    def load_execution(self, query: str, source: Source, *, timeout: float, max_rows: int) -> Execution | None:
        """Return the recorded answer of the source, in its present state, to the query; None if there is none.

        The time limit in seconds is not part of the key. A recorded timeout counts only for time limits that are not
        longer than the recorded limit. In a replay, `SourceError` is raised instead of returning None.
        """
        recorded = self._executions.load(self._source_keys.key(source, query=query, max_rows=max_rows))
        if recorded is None:
            return None
        execution, time_limit = recorded
        if time_limit is None or timeout <= time_limit:
            return replace(execution, query=query)
        if self.replay:
            ran = f"ran out of time after {time_limit:g} s: whether {timeout:g} s are enough was not recorded"
            raise SourceError(f"the recorded execution of {query_excerpt(query)} on '{source.name}' {ran}")
        return None

    def save_execution(
        self, query: str, source: Source, execution: Execution, *, timeout: float, max_rows: int
    ) -> None:
        """Record an execution; it replaces a recorded timeout of a shorter time limit."""

        def had_less_time(existing_entry: Entry) -> bool:
            return float(existing_entry.get("timeout", timeout)) < timeout

        recorded = RecordedExecution(execution, timeout)
        self._save(self._executions, source, recorded, had_less_time, query=query, max_rows=max_rows)

    def load_schema(self, source: Source) -> Schema | None:
        """Return the recorded tables of the source in its present state; None if they are not recorded."""
        return self._schemas.load(self._source_keys.key(source))

    def save_schema(self, source: Source, schema: Schema) -> None:
        """Record the tables of a source."""
        self._save(self._schemas, source, schema)

    def load_ddl(self, source: Source) -> tuple[str | None] | None:
        """Return the recorded DDL of the source in its present state, in a tuple; None if it is not recorded.

        The tuple contains None if the engine has no DDL.
        """
        return self._ddl.load(self._source_keys.key(source))

    def save_ddl(self, source: Source, ddl: str | None) -> None:
        """Record the DDL of a source, or None if its engine has none."""
        self._save(self._ddl, source, (ddl,))

    def load_times(self, gold: str, predicted: str, source: Source, iterations: int) -> Times | None:
        """Return the recorded seconds of both queries, a pair for each iteration; None if they are not recorded."""
        return self._times.load(self._source_keys.key(source, gold=gold, predicted=predicted, iterations=iterations))

    def save_times(self, gold: str, predicted: str, source: Source, iterations: int, times: Times) -> None:
        """Record the seconds of both queries, a pair for each iteration."""
        self._save(self._times, source, times, gold=gold, predicted=predicted, iterations=iterations)

    def load_cause(self, gold: str, predicted: str, case: Case) -> tuple[Cause | SharedPatterns | None] | None:
        """Return the recorded cause why the predicted query is wrong, in a tuple; None if it is not recorded.

        The tuple contains None if no cause was found.
        """
        source, facts = _pair_request(gold, predicted, case)
        return self._causes.load(self._source_keys.key(source, **facts))

    def save_cause(self, gold: str, predicted: str, case: Case, cause: Cause | SharedPatterns | None) -> None:
        """Record the cause why the predicted query is wrong, or None if no cause was found."""
        source, facts = _pair_request(gold, predicted, case)
        self._save(self._causes, source, (cause,), lambda _: False, **facts)

    def load_challenge(self, gold: str, predicted: str, case: Case) -> ChallengeReport | None:
        """Return the recorded challenge of a predicted query by one gold query; None if it is not recorded."""
        source, facts = _pair_request(gold, predicted, case)
        return self._challenges.load(self._source_keys.key(source, **facts))

    def save_challenge(self, gold: str, predicted: str, case: Case, challenge: ChallengeReport) -> None:
        """Record the challenge of a predicted query by one gold query."""
        source, facts = _pair_request(gold, predicted, case)
        self._save(self._challenges, source, challenge, lambda _: False, **facts)

    def _save(
        self,
        index: EntryIndex[T],
        source: Source,
        content: T,
        replaces: Callable[[Entry], bool] = lambda _: False,
        **request: JsonValue,
    ) -> None:
        key = self._source_keys.key(source, **request)
        if state_of(source) != key.facts["state"]:  # it is unclear which state answered
            raise SourceError(f"source '{source.name}' has changed during the run: what it answers cannot be recorded")
        index.save(key, content, replaces=replaces)


def _pair_request(gold: str, predicted: str, case: Case) -> tuple[Source, dict[str, JsonValue]]:
    """Return the source of a case, and the other facts in the key of what is found about a pair of queries."""
    settings = case.settings
    assert settings.source is not None  # or queries would have no answers
    compare = to_jsonable(asdict(settings.policy))
    return settings.source, {"gold": gold, "predicted": predicted, "max_rows": settings.max_rows, "compare": compare}
