"""Recorded predictions of the system under test: an entry for each case and trial, and its key."""

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
from pytest_queryeval.core.json_value import to_jsonable
from pytest_queryeval.core.mappings import excluding, including
from pytest_queryeval.core.model import (
    Abstention,
    Case,
    Failure,
    Prediction,
    PredictorSpec,
    QueryOrAnswer,
    Step,
    is_seconds,
)
from pytest_queryeval.core.steps import step_json
from pytest_queryeval.features.recording.sources import name_without_folders, without_credentials
from pytest_queryeval.features.recording.store import RECORD, EntryIndex, EntryKey, EntryType, Facts, digest
from pytest_queryeval.predictors import PREDICTORS
from pytest_queryeval.text.formatting import one_line
from pytest_queryeval.text.redaction import is_secret_name

ListSchema: TypeAlias = Callable[[], str | None]
METADATA_DEPTH = 100  # predictors send no more
# Settings about the caller and the connection, which do not change the question.
_NOT_COUNTED = frozenset({"auth", "headers", "verify", "env"})
# Predictors whose answers do not depend on the folder of the suite.
_PLACELESS = frozenset({"http", "hook"})
# The first change is named: with another predictor, other settings are not news.
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
    """The entry of a predictor call; its key is from before the call, so that later changes to the case do not matter.

    `schema` returns the schema, which is part of the key if the predictor may see it. The methods may be called in any
    thread. They raise `SourceError` if a schema that the predictor sends cannot be listed.
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
            text, self._schema_error = None, error  # it is an error only if the function reads the schema
        return EntryKey({**self._facts, "schema": None if text is None else digest(text)})

    def load(self) -> Prediction | None:
        """Return the recorded prediction; None if there is no usable entry.

        Raise `PredictorError` for a damaged entry, and in a replay for a missing or stale entry.
        """
        try:
            return self._index.load(self._key)
        except PredictorError as error:
            if self._schema_error is None or not str(error).endswith(_SCHEMA_UNKNOWN):
                raise
            raise PredictorError(f"{error}: {self._schema_error}") from error

    def save(self, prediction: Prediction) -> Prediction:
        """Record the prediction unless there is an entry, and return the prediction that a replay will use.

        This is the recorded one if a call with the same key was answered before. If the prediction cannot be replayed
        because it has a secret, it is returned itself. Raise `PredictorError` if it cannot be written.
        """
        self._index.save(self._key, prediction)
        return self.load() or prediction


class PredictionKeys:
    """Makes the keys of a run's calls; folders in the keys are relative to `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._settings: dict[tuple[str, str], str] = {}
        self._cases: dict[tuple[int, frozenset[str]], tuple[Case, Facts]] = {}

    def facts(self, case: Case, spec: PredictorSpec, trial: int) -> Facts:
        """Return the facts in the key of a call, except the schema.

        The facts of a case are remembered from its first call.
        """
        if spec.key not in self._settings:
            # Settings are left out by their names: a digest must not depend on which secrets this environment has.
            settings = excluding(spec.settings, _NOT_COUNTED)
            folders = [f"{folder.absolute()}{os.sep}" for folder in (spec.folder, self._root)]
            place = "" if spec.kind in _PLACELESS else Path(os.path.relpath(spec.folder, self._root)).as_posix()
            self._settings[spec.key] = digest([place, _portable_settings(to_jsonable(settings), folders)])
        sees = PREDICTORS[spec.kind].sees(spec.settings)
        key = (id(case), sees)
        if key not in self._cases:  # keep the case alive, so that its id stays unique
            self._cases[key] = case, _case_facts(case, sees)
        facts = self._cases[key][1]
        return {**facts, "predictor": spec.kind, "settings": self._settings[spec.key], "trial": trial}


def _case_facts(case: Case, sees: AbstractSet[str]) -> Facts:
    """Return the facts of a case that are part of a key: id, kind, question, and digests.

    `case` is the digest of what every predictor may send, `seen` that of the `sees` that this predictor may see. The
    question is also in plain text for readers.
    """
    sent: JsonObject = {
        "question": case.question,
        "evidence": case.evidence,
        "conversation": [[message.role, message.content] for message in case.conversation],
        "metadata": to_jsonable(case.metadata, max_depth=METADATA_DEPTH),
    }
    surroundings: JsonObject = {
        "source": None if case.settings.source is None else name_without_folders(case.settings.source),
        "dialect": case.settings.dialect,
        "tags": [*case.tags],
        "difficulty": case.difficulty,
    }
    visible_facts = including(surroundings, sees)
    facts: JsonObject = {"case": digest(sent), "id": case.id, "kind": case.settings.kind, "question": case.question}
    return {**facts, "seen": digest(visible_facts)} if visible_facts else facts


def _portable_settings(value: Any, folders: Collection[str]) -> Any:
    """Return settings without secret texts, credentials in URLs, and the given folders at the start of texts."""
    if isinstance(value, dict):
        public_settings = {
            name: setting for name, setting in value.items() if not (isinstance(setting, str) and is_secret_name(name))
        }
        return {name: _portable_settings(setting, folders) for name, setting in public_settings.items()}
    if isinstance(value, list):
        return [_portable_settings(setting, folders) for setting in value]
    if not isinstance(value, str):
        return value
    for folder in folders:
        value = value.removeprefix(folder)
    return without_credentials(value)


def encode_prediction(prediction: Prediction) -> JsonObject:
    """Return the content of a prediction's entry; raise TypeError or ValueError if it cannot be recorded."""
    content = prediction.content
    fields: JsonObject
    if isinstance(content, Abstention):
        fields = {"abstained": True, "reason": content.reason}
    elif isinstance(content, Failure):
        raise TypeError("no prediction")
    else:
        fields = encode_answer(content.answer) | ({} if content.query is None else {"query": content.query})
    steps = None if prediction.steps is None else [encode(dict(step_json(step))) for step in prediction.steps]
    return {
        **fields,
        **({} if steps is None else {"steps": steps}),
        "metadata": encode(to_jsonable(prediction.metadata)),
        "predictor": prediction.predictor,
        "seconds": encode(float(prediction.seconds)),
    }


def decode_prediction(entry: Entry) -> Prediction:
    """Return the prediction of an entry; raise ValueError, TypeError or KeyError if its content is invalid."""
    content: QueryOrAnswer | Abstention
    if entry.get("abstained") is True:
        content = Abstention(decode_lines(entry["reason"]))
    else:
        query = decode_lines(entry["query"]) if "query" in entry else None
        content = QueryOrAnswer(query=query, answer=decode_answer(entry))
        if content == QueryOrAnswer():
            raise ValueError("neither a query nor an answer")
    metadata = decode(entry["metadata"])
    if not isinstance(metadata, dict):
        raise ValueError("metadata that is not an object")
    seconds = float(decode(entry["seconds"]))
    return Prediction(
        content,
        predictor=decode_lines(entry["predictor"]),
        seconds=seconds if is_seconds(seconds) else 0.0,  # earlier versions recorded what a system stated
        metadata=metadata,
        steps=[Step(**step) for step in decode(entry["steps"])] if "steps" in entry else None,
    )


def _explain(changed_names: AbstractSet[str], _: Entry, current_facts: Entry) -> str:
    name = next(name for name in _CHANGES if name in changed_names)
    is_unknown = name == "schema" and current_facts["schema"] is None  # the error of the schema has the remedy
    return _SCHEMA_UNKNOWN if is_unknown else f"{_CHANGES[name]}: {RECORD}"


PREDICTIONS = EntryType(
    folder="predictions",
    error=PredictorError,
    question_facts=("id", "trial"),
    exact_parts=("json", "query", "selection", "table"),
    encode=encode_prediction,
    decode=decode_prediction,
    describe=lambda facts: (
        f"prediction for '{one_line(str(facts['id']))}'" + ("" if facts["trial"] == 1 else f" (trial {facts['trial']})")
    ),
    verb="is",
    explain=_explain,
)
