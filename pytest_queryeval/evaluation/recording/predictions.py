"""What the system under test said, an entry for each case and trial, and what identifies it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from collections.abc import Set as AbstractSet
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from pytest_queryeval.core.answer_json import (
    Entry,
    JsonObject,
    decode,
    decode_answer,
    decode_lines,
    encode,
    encode_answer,
)
from pytest_queryeval.core.errors import PredictorError, SourceError
from pytest_queryeval.core.jsonable import to_jsonable
from pytest_queryeval.core.model import Case, Prediction, PredictorSpec, QueryOrAnswer
from pytest_queryeval.evaluation.recording.sources import name_without_folders, without_credentials
from pytest_queryeval.evaluation.recording.store import RECORD, EntryIndex, EntryKey, EntryType, Facts, digest
from pytest_queryeval.predictors import PREDICTORS
from pytest_queryeval.text.redaction import is_secret_name
from pytest_queryeval.text.truncation import one_line

ListSchema: TypeAlias = Callable[[], str | None]
METADATA_LEVELS = 100  # predictors send no more
# Settings that say who asks and over which connection, not what is asked.
_NOT_COUNTED = frozenset({"auth", "headers", "verify", "env"})
# Where they run does not depend on the folder of the suite.
_PLACELESS = frozenset({"http", "hook"})
# In this order: where the predictor is another one, its settings are no news.
_CHANGES = {
    "question": "what is recorded under this id has another question",
    "kind": "its `kind` has changed since",
    "predictor": "its predictor was another one",
    "case": "its evidence, conversation or metadata has changed since",
    "seen": "its source, dialect, tags or difficulty has changed since",
    "schema": "the schema that its predictor sees has changed since",
    "settings": "the settings of its predictor have changed since",
}
_SCHEMA_UNKNOWN = "the schema that its predictor saw cannot be compared"


class RecordedCall:
    """One call of a predictor, identified before it is made: what is done to its case meanwhile does not matter.

    `schema` lists the schema, which is part of the identity where the predictor may see it. The methods may be called
    in any thread, and raise `SourceError` where a schema that the predictor sends cannot be listed.
    """

    def __init__(
        self, index: EntryIndex[Prediction], facts: Facts, predictor: PredictorSpec, schema: ListSchema
    ) -> None:
        self._index = index
        self._facts = facts
        self._predictor = predictor
        self._schema = schema
        self._schema_error: SourceError | None = None

    @cached_property
    def _key(self) -> EntryKey:
        predictor = PREDICTORS[self._predictor.kind]
        if "schema" not in predictor.sees(self._predictor.settings):
            return EntryKey(self._facts)
        try:
            text = self._schema()
        except SourceError as error:
            if predictor.sends:
                raise
            text, self._schema_error = None, error  # a function may read it or not: an error where it is read
        return EntryKey({**self._facts, "schema": None if text is None else digest(text)})

    def load(self) -> Prediction | None:
        """Return the recorded prediction, None where there is none that can be used.

        Raise `PredictorError` in a replay where it is missing or stale, and for a damaged entry.
        """
        try:
            return self._index.load(self._key)
        except PredictorError as error:
            if self._schema_error is None or not str(error).endswith(_SCHEMA_UNKNOWN):
                raise
            raise PredictorError(f"{error}: {self._schema_error}") from error

    def save(self, prediction: Prediction) -> Prediction:
        """Write the prediction unless one is there, and return what a replay will find.

        That is another one where another call with the same identity was answered before, and the same one where a
        secret in it keeps it from being replayed. Raise `PredictorError` where it cannot be written.
        """
        self._index.save(self._key, prediction)
        return self.load() or prediction


class PredictionKeys:
    """What identifies the calls of a run; folders in it are relative to `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._settings: dict[tuple[str, str], str] = {}
        self._cases: dict[tuple[int, frozenset[str]], tuple[Case, Facts]] = {}

    def facts(self, case: Case, spec: PredictorSpec, trial: int) -> Facts:
        """Return what identifies a call but for the schema; of the case, as it was when it was first asked for."""
        if spec.key not in self._settings:
            self._settings[spec.key] = _settings_digest(spec, self._root)
        sees = PREDICTORS[spec.kind].sees(spec.settings)
        key = (id(case), sees)
        if key not in self._cases:  # with the case, so that its number stays its own
            self._cases[key] = case, _case_facts(case, sees)
        facts = self._cases[key][1]
        return {**facts, "predictor": spec.kind, "settings": self._settings[spec.key], "trial": trial}


def _case_facts(case: Case, sees: AbstractSet[str]) -> Facts:
    """Return what every predictor may send of a case, and a digest of what else this one may see of it.

    `question` is there to be read; `case` is a digest of all that may be sent.
    """
    sent: JsonObject = {
        "question": case.question,
        "evidence": case.evidence,
        "conversation": [[message.role, message.content] for message in case.conversation],
        "metadata": to_jsonable(case.metadata, levels=METADATA_LEVELS),
    }
    surroundings: JsonObject = {
        "source": None if case.settings.source is None else name_without_folders(case.settings.source),
        "dialect": case.settings.dialect,
        "tags": [*case.tags],
        "difficulty": case.difficulty,
    }
    seen = {name: value for name, value in surroundings.items() if name in sees}
    facts: JsonObject = {"case": digest(sent), "id": case.id, "kind": case.settings.kind, "question": case.question}
    return {**facts, "seen": digest(seen)} if seen else facts


def _settings_digest(spec: PredictorSpec, root: Path) -> str:
    """Return a digest of the settings that an answer may depend on, and of the predictor's folder relative to `root`.

    What is left out is known by its name: secrets of the environment would give another digest where they are not set.
    """
    settings = {name: value for name, value in spec.settings.items() if name not in _NOT_COUNTED}
    folders = [f"{folder.absolute()}{os.sep}" for folder in (spec.folder, root)]
    place = "" if spec.kind in _PLACELESS else Path(os.path.relpath(spec.folder, root)).as_posix()
    return digest([place, _portable(to_jsonable(settings), folders)])


def _portable(value: Any, folders: Collection[str]) -> Any:
    """Return the value without texts under names of secrets, credentials in URLs, and paths of this machine."""
    if isinstance(value, dict):
        kept = {name: item for name, item in value.items() if not (isinstance(item, str) and is_secret_name(name))}
        return {name: _portable(item, folders) for name, item in kept.items()}
    if isinstance(value, list):
        return [_portable(item, folders) for item in value]
    if not isinstance(value, str):
        return value
    for folder in folders:
        value = value.removeprefix(folder)
    return without_credentials(value)


def encode_prediction(prediction: Prediction) -> JsonObject:
    """Return the content of an entry; raise TypeError or ValueError for what cannot be recorded."""
    content = prediction.content
    query: JsonObject = {} if content.query is None else {"query": content.query}
    return {
        **encode_answer(content.answer),
        **query,
        "metadata": encode(to_jsonable(prediction.metadata)),
        "predictor": prediction.predictor,
        "seconds": encode(float(prediction.seconds)),
    }


def decode_prediction(entry: Entry) -> Prediction:
    """Return the prediction in an entry; raise ValueError, TypeError or KeyError where it holds none."""
    query = decode_lines(entry["query"]) if "query" in entry else None
    content = QueryOrAnswer(query=query, answer=decode_answer(entry))
    if content == QueryOrAnswer():
        raise ValueError("neither a query nor an answer")
    metadata = decode(entry["metadata"])
    if not isinstance(metadata, dict):
        raise ValueError("metadata that is no object")
    return Prediction(
        content=content,
        predictor=decode_lines(entry["predictor"]),
        seconds=float(decode(entry["seconds"])),
        metadata=metadata,
    )


def _describe(facts: Facts) -> str:
    trial = "" if facts["trial"] == 1 else f" (trial {facts['trial']})"
    return f"prediction for '{one_line(str(facts['id']))}'{trial}"


def _explain(changed: AbstractSet[str], _: Entry, now: Entry) -> str:
    name = next(name for name in _CHANGES if name in changed)
    is_unknown = name == "schema" and now["schema"] is None  # the error of the schema, which follows, has the remedy
    return _SCHEMA_UNKNOWN if is_unknown else f"{_CHANGES[name]}: {RECORD}"


PREDICTIONS = EntryType(
    folder="predictions",
    error=PredictorError,
    asked=("id", "trial"),
    exact=("json", "query", "selection", "table"),
    encode=encode_prediction,
    decode=decode_prediction,
    describe=_describe,
    verb="is",
    explain=_explain,
)
