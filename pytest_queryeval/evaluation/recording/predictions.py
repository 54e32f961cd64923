"""What the system under test said, an entry for each case and trial, and what identifies it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.jsonable import plain
from pytest_queryeval.core.model import Case, Prediction, PredictorSpec, Stated
from pytest_queryeval.evaluation.recording.answers import read, read_answer, read_lines, written, written_answer
from pytest_queryeval.evaluation.recording.entry_index import RECORD, Facts, Shelf, without_credentials
from pytest_queryeval.evaluation.recording.sources import name_without_folders
from pytest_queryeval.evaluation.recording.store import Store, digest
from pytest_queryeval.predictors import PREDICTORS
from pytest_queryeval.text.plain import one_line
from pytest_queryeval.text.redaction import is_secret_name

ListSchema: TypeAlias = Callable[[], str | None]
METADATA_LEVELS = 100  # predictors send no more
# They say who asks and over which connection, not what is asked.
_UNTOLD = frozenset({"auth", "headers", "verify", "env"})
# Where they run does not depend on the folder of the suite.
_PLACELESS = frozenset({"http", "hook"})
# In this order: where the predictor is another one, its settings are no news.
_CHANGES = {
    "kind": "its `kind` has changed since",
    "predictor": "its predictor was another one",
    "case": "its evidence, conversation or metadata has changed since",
    "seen": "its source, dialect, tags or difficulty has changed since",
    "schema": "the schema that its predictor sees has changed since",
    "settings": "the settings of its predictor have changed since",
}


class Predictions:
    """Recorded predictions; folders in what identifies them are relative to `root`."""

    def __init__(self, store: Store, *, root: Path, replay: bool) -> None:
        self._root = root
        self._settings: dict[tuple[str, str], str] = {}
        self._cases: dict[tuple[int, frozenset[str]], tuple[Case, Facts]] = {}
        self._shelf = Shelf(store, replay=replay, same=("id", "trial"), missing=_missing)

    def call(self, case: Case, spec: PredictorSpec, trial: int, schema: ListSchema = lambda: None) -> RecordedCall:
        """The call as it is identified now; of the case, as it was when it was first asked for."""
        if spec.key not in self._settings:
            self._settings[spec.key] = _settings_digest(spec, self._root)
        predictor = PREDICTORS[spec.kind]
        sees = predictor.sees(spec.settings)
        facts = {
            **self._case_facts(case, sees),
            "predictor": spec.kind,
            "settings": self._settings[spec.key],
            "trial": trial,
        }
        if "schema" not in sees:
            return RecordedCall(self._shelf, facts)
        return RecordedCall(self._shelf, facts, schema if predictor.sends else partial(_listed_if_it_can_be, schema))

    def _case_facts(self, case: Case, sees: frozenset[str]) -> Facts:
        key = (id(case), sees)
        if key not in self._cases:  # with the case, so that its number stays its own
            self._cases[key] = case, {**_sent(case), **_seen(case, sees)}
        return self._cases[key][1]


class RecordedCall:
    """One call of a predictor, identified before it is made: what is done to its case meanwhile does not matter.

    `schema` lists what the predictor may see of it, which is part of the identity. The methods may be called in any
    thread, and raise `SourceError` where the schema cannot be listed.
    """

    def __init__(self, shelf: Shelf, facts: Facts, schema: ListSchema | None = None) -> None:
        self._shelf = shelf
        self._known_facts = facts
        self._schema = schema

    @cached_property
    def _facts(self) -> Facts:
        """What identifies the call."""
        if self._schema is None:
            return self._known_facts
        text = self._schema()
        return {**self._known_facts, "schema": None if text is None else digest(text)}

    @cached_property
    def _name(self) -> str:
        return digest(self._facts)

    def found(self) -> Prediction | None:
        """The recorded prediction, None where there is none that can be used.

        Raises `PredictorError` in a replay where it is missing or stale, and for a damaged entry.
        """
        return self._shelf.found(self._name, self._facts, _prediction)

    def keep(self, prediction: Prediction) -> Prediction:
        """Write the prediction unless one is there, and give back what a replay will find.

        That is another one where another call with the same identity was answered before, and the same one where a
        secret in it keeps it from being replayed. Raises `PredictorError` where it cannot be written.
        """
        try:
            content = _content(prediction)
        except (TypeError, ValueError) as error:
            name = one_line(str(self._facts["id"]))
            raise self._shelf.fault(f"the prediction for '{name}' cannot be recorded: {error}") from error
        self._shelf.keep(self._name, self._facts, content)
        return self.found() or prediction


def _sent(case: Case) -> dict[str, Any]:
    """What every predictor may send of a case; `question` is there to be read, `case` is a digest of all of it."""
    told = {
        "question": case.question,
        "evidence": case.evidence,
        "conversation": [[message.role, message.content] for message in case.conversation],
        "metadata": plain(case.metadata, levels=METADATA_LEVELS),
    }
    return {"case": digest(told), "id": case.id, "kind": case.kind, "question": case.question}


def _seen(case: Case, names: frozenset[str]) -> dict[str, Any]:
    """What else a predictor may see of a case, but for the schema, which takes time to list."""
    told = {
        "source": None if case.source is None else name_without_folders(case.source),
        "dialect": case.dialect,
        "tags": list(case.tags),
        "difficulty": case.difficulty,
    }
    seen = {name: value for name, value in told.items() if name in names}
    return {"seen": digest(seen)} if seen else {}


def _listed_if_it_can_be(schema: ListSchema) -> str | None:
    """The schema for a function that may read it or not: one that cannot be listed is an error where it is read."""
    try:
        return schema()
    except SourceError:
        return None


def _relative(path: Path, root: Path) -> str:
    return Path(os.path.relpath(path, root)).as_posix()


def _settings_digest(spec: PredictorSpec, root: Path) -> str:
    """A digest of the settings that an answer may depend on, and of the predictor's folder relative to `root`.

    What is left out is known by its name: secrets of the environment would give another digest where they are not set.
    """
    settings = {name: value for name, value in spec.settings.items() if name not in _UNTOLD}
    folders = [f"{folder.absolute()}{os.sep}" for folder in (spec.folder, root)]
    place = "" if spec.kind in _PLACELESS else _relative(spec.folder, root)
    return digest([place, _portable(plain(settings), folders)])


def _portable(value: Any, folders: Collection[str]) -> Any:
    """The value without texts under names of secrets, credentials in URLs, and paths of this machine."""
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


def _content(prediction: Prediction) -> dict[str, Any]:
    stated = prediction.stated
    return {
        **written_answer(stated.answer),
        **({} if stated.query is None else {"query": stated.query}),
        "metadata": written(plain(prediction.metadata)),
        "predictor": prediction.predictor,
        "seconds": written(float(prediction.seconds)),
    }


def _prediction(entry: Facts) -> Prediction:
    query = read_lines(entry["query"]) if "query" in entry else None
    stated = Stated(query=query, answer=read_answer(entry))
    if stated == Stated():
        raise ValueError("neither a query nor an answer")
    metadata = read(entry["metadata"])
    if not isinstance(metadata, dict):
        raise ValueError("metadata that is no object")
    return Prediction(
        stated=stated,
        predictor=read_lines(entry["predictor"]),
        seconds=float(read(entry["seconds"])),
        metadata=metadata,
    )


def _missing(changed: Collection[str], found: Facts, now: Facts, where: str) -> str:
    trial = f" (trial {now['trial']})" if now["trial"] > 1 else ""
    name = f"'{one_line(read_lines(now['id']))}'{trial}"
    if not changed:
        return f"no recorded prediction for {name} in {where}: {RECORD}"
    if "question" in changed:
        return f"no recorded prediction for {name} in {where}: what is recorded under this id has another question"
    reason = next(reason for fact, reason in _CHANGES.items() if fact in changed)
    return f"the prediction for {name} in {where} is stale: {reason}"
