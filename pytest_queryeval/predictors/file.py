"""Predictions from a file that a run of the system left behind: JSON lines `{"id": ..., "predicted": ...}`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_queryeval.errors import Location, PredictorError
from pytest_queryeval.model import Case, Prediction, PredictorSpec, Stated
from pytest_queryeval.predictors import text_of

OWN_KEYS = frozenset({"id", "predicted", "seconds"})
MAX_SECONDS = 1e9


class PredictionsFile:
    """Answers each case with the entry of its id; keys beside `id`, `predicted` and `seconds` become metadata."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries = {entry["id"]: entry for entry in _entries(path)}

    def predict(self, case: Case) -> Prediction:
        """The file's entry for the case; raises `PredictorError` where there is none."""
        entry = self._entries.get(case.id)
        if entry is None:
            raise PredictorError(f"{self._path}: no prediction for '{case.id}'")
        text = text_of(entry["predicted"], case)
        if text is None:
            raise PredictorError(f"{self._path}: the prediction for '{case.id}' is no text")
        return Prediction(
            stated=Stated(query=text),
            predictor=f"file:{self._path.name}",
            seconds=float(entry.get("seconds", 0.0)),
            metadata={key: value for key, value in entry.items() if key not in OWN_KEYS},
        )

    def close(self) -> None:
        """Nothing to free."""


def open_file(spec: PredictorSpec) -> PredictionsFile:
    """Read the file under `path`; raises `PredictorError` with the line that is wrong."""
    path = spec.settings.get("path")
    if not isinstance(path, str) or not path:
        raise PredictorError("the predictor 'file' needs a `path`")
    return PredictionsFile(spec.folder / path)


def _entries(path: Path) -> Iterator[Mapping[str, Any]]:
    seen: dict[str, int] = {}
    for number, line in _lines(path):
        place = Location(path, number)
        try:
            entry = json.loads(line, object_pairs_hook=_unique)
        except (ValueError, RecursionError) as error:
            raise PredictorError(f"{place}: not JSON: {error}") from error
        _check(entry, place)
        if entry["id"] in seen:
            raise PredictorError(f"{place}: '{entry['id']}' was predicted on line {seen[entry['id']]} already")
        seen[entry["id"]] = number
        yield entry


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; raises ValueError where a key stands twice, of which either could be meant."""
    entries: dict[str, Any] = {}
    for key, value in pairs:
        if key in entries:
            raise ValueError(f"duplicate key '{key[:40]}'")
        entries[key] = value
    return entries


def _check(entry: Any, place: Location) -> None:
    if not isinstance(entry, dict):
        raise PredictorError(f"{place}: a prediction is an object with `id` and `predicted`")
    if not isinstance(entry.get("id"), str) or entry.get("predicted") is None:
        raise PredictorError(f"{place}: a prediction needs an `id`, which is text, and a `predicted`")
    seconds = entry.get("seconds", 0.0)
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds <= MAX_SECONDS:
        raise PredictorError(f"{place}: `seconds` is a number from 0 to {MAX_SECONDS:,.0f}")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        if path.exists() and not path.is_file():  # a pipe would make the run wait for ever
            raise OSError("it is no file")
        with path.open(encoding="utf-8-sig") as file:
            yield from ((number, line) for number, line in enumerate(file, start=1) if line.strip())
    except (OSError, ValueError) as error:  # not UTF-8, or a name that no file can have
        reason = getattr(error, "strerror", None) or str(error)
        raise PredictorError(f"{path}: predictions cannot be read: {reason}") from error
