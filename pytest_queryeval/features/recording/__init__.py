"""Recordings: predictions and answers of sources, kept in a folder so that a run can be repeated without them."""

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
    """Predictions and answers of sources in `folder`, one entry a file, keyed by everything that they depend on.

    With `replay`, nothing is written, and a missing or stale entry is an error; else `load_*` returns None for it.
    Folders in the key of a prediction are relative to `root`, by default the current folder. Several processes and
    threads may use one folder at once. `load_*` and `save_*` raise `SourceError`, also if the state of the source
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
        """Pickle the recording for another process, which uses the same folder."""
        return partial(Recording, replay=self.replay, root=self._root.absolute()), (self._folder.absolute(),)

    def check(self) -> None:
        """Raise `QueryEvalError` if there is nothing to replay, or if a folder for entries cannot be made."""
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
        """Return the entry of a call, to load or save its prediction; call this before the predictor.

        `schema` lists the schema, which is part of the key if the predictor may see it. The case enters the key as it
        was at the first call of this method.
        """
        facts = self._prediction_keys.facts(case, spec, trial)
        return RecordedCall(self._predictions, facts, spec, schema)

    def load_execution(self, query: str, source: Source, *, timeout: float, max_rows: int) -> Execution | None:
        """Return what the source answered to the query in its present state.

        The time limit, in seconds, is not part of the key, but a recorded execution that ran out of time counts only
        for time limits that are no longer than its own.
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
        """Write an execution; it replaces one that ran out of a shorter time limit."""

        def had_less_time(existing_entry: Entry) -> bool:
            return float(existing_entry.get("timeout", timeout)) < timeout

        recorded = RecordedExecution(execution, timeout)
        self._save(self._executions, source, recorded, had_less_time, query=query, max_rows=max_rows)

    def load_schema(self, source: Source) -> Schema | None:
        """Return the tables of the source in its present state."""
        return self._schemas.load(self._source_keys.key(source))

    def save_schema(self, source: Source, schema: Schema) -> None:
        """Write the tables of a source."""
        self._save(self._schemas, source, schema)

    def load_ddl(self, source: Source) -> tuple[str | None] | None:
        """Return the DDL of the source in its present state, or None in a tuple where its engine has none."""
        return self._ddl.load(self._source_keys.key(source))

    def save_ddl(self, source: Source, ddl: str | None) -> None:
        """Write the DDL of a source, None if its engine has none."""
        self._save(self._ddl, source, (ddl,))

    def load_times(self, gold: str, predicted: str, source: Source, iterations: int) -> Times | None:
        """Return the seconds that both queries took, a pair for each iteration."""
        return self._times.load(self._source_keys.key(source, gold=gold, predicted=predicted, iterations=iterations))

    def save_times(self, gold: str, predicted: str, source: Source, iterations: int, times: Times) -> None:
        """Write the seconds of both queries, a pair for each iteration."""
        self._save(self._times, source, times, gold=gold, predicted=predicted, iterations=iterations)

    def load_cause(self, gold: str, predicted: str, case: Case) -> tuple[Cause | SharedPatterns | None] | None:
        """Return why a predicted query of the case is wrong, or None in a tuple where no cause was found."""
        source, facts = _pair_request(gold, predicted, case)
        return self._causes.load(self._source_keys.key(source, **facts))

    def save_cause(self, gold: str, predicted: str, case: Case, cause: Cause | SharedPatterns | None) -> None:
        """Write why a predicted query of the case is wrong, None if no cause was found."""
        source, facts = _pair_request(gold, predicted, case)
        self._save(self._causes, source, (cause,), lambda _: False, **facts)

    def load_challenge(self, gold: str, predicted: str, case: Case) -> ChallengeReport | None:
        """Return what came of challenging a predicted query of the case by one gold."""
        source, facts = _pair_request(gold, predicted, case)
        return self._challenges.load(self._source_keys.key(source, **facts))

    def save_challenge(self, gold: str, predicted: str, case: Case, challenge: ChallengeReport) -> None:
        """Write what came of challenging a predicted query."""
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
    """Return the source of a case, and what the comparison of two queries depends on besides it."""
    settings = case.settings
    assert settings.source is not None  # or queries would have no answers
    compare = to_jsonable(asdict(settings.policy))
    return settings.source, {"gold": gold, "predicted": predicted, "max_rows": settings.max_rows, "compare": compare}
