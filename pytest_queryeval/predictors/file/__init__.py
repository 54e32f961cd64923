"""Predictions from a file that a run of the system has written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_queryeval.core.errors import CaseError, PredictorError, SettingError, did_you_mean, names_beside
from pytest_queryeval.core.model import Case, Prediction, PredictorSpec, QueryOrAnswer
from pytest_queryeval.core.setting_validators import (
    FILE_NAME,
    TEXT,
    SettingValidator,
    choice_shape,
    is_text,
    validate_settings,
)
from pytest_queryeval.documents.document import File, file_at
from pytest_queryeval.documents.tables import DELIMITER, is_delimiter
from pytest_queryeval.predictors import PredictorType
from pytest_queryeval.predictors.answer import read_answer
from pytest_queryeval.predictors.file.predictions import (
    KEYS,
    LINES_SUFFIXES,
    READERS,
    Columns,
    Entry,
    comparable,
    is_known,
    is_lines,
    read_entries,
    read_lines,
)
from pytest_queryeval.text.truncation import one_line

NAMED_ENTRIES = 10
MAX_COMPARED = 200  # keys among which a near one is searched, for each case without a prediction
_KEY_CHARACTERS = 80
SETTINGS = {
    "path": FILE_NAME,
    "key": SettingValidator(lambda value: value in KEYS, f"one of {', '.join(KEYS)}", shape=choice_shape(KEYS)),
    "answer": SettingValidator(
        lambda value: isinstance(value, str) and bool(value) and value not in (*KEYS, "seconds", "trial"),
        "the name of what holds the answers",
        shape=TEXT,
    ),
    "sheet": SettingValidator(is_text, "the name of a sheet", shape=TEXT),
    "delimiter": SettingValidator(is_delimiter, "one character, such as ';'", shape=DELIMITER),
}


class PredictionsFile:
    """Answers each case with the entry of its id, or of its question."""

    concurrency = 1
    retries = 0

    def __init__(self, file: File, columns: Columns) -> None:
        self._file = file
        self._named, entries = read_entries(file, columns)
        self._entries = _by_key(entries, self._named)
        self._spare: Iterable[str] = self._entries
        self._expected = False

    def register_cases(self, cases: Sequence[Case]) -> None:
        """Take all cases of the run, to find the entries that belong to none of them."""
        needed = {self._key(case) for case in cases}
        self._spare = [key for key in self._entries if key not in needed]
        self._expected = True

    def unused(self) -> tuple[str, ...]:
        """Return a sentence on the entries that belong to no expected case; empty where there are none."""
        spare = list(self._spare) if self._expected else []
        if not spare:
            return ()
        named = ", ".join(map(_shown, spare[:NAMED_ENTRIES]))
        more = f" and {len(spare) - NAMED_ENTRIES:,} more" if len(spare) > NAMED_ENTRIES else ""
        verb = "prediction was" if len(spare) == 1 else "predictions were"
        return (f"{self._file.shown}: {len(spare):,} {verb} not used: {named}{more}",)

    def predict(self, case: Case, trial: int) -> Prediction:
        """Return the file's entry for the case; raises `PredictorError` where there is none."""
        entry = self._entry(case, trial)
        by = f"{entry.location}: the prediction"
        stated = read_answer(entry.answer, case.kind, by=by)
        return Prediction(content=stated, predictor=_name(self._file), seconds=entry.seconds, metadata=entry.metadata)

    def close(self) -> None:
        """Do nothing."""

    def _key(self, case: Case) -> str:
        return comparable(case.id if self._named == "id" else case.question, self._named)

    def _entry(self, case: Case, trial: int) -> Entry:
        key = self._key(case)
        trials = self._entries.get(key)
        if trials is None:
            raise PredictorError(str(self._file.problem(f"no prediction for '{_shown(key)}'{self._hint(key)}")))
        entry = trials.get(0) or trials.get(trial)
        if entry is None:
            there = ", ".join(map(str, sorted(trials)[:NAMED_ENTRIES]))
            problem = f"no prediction for '{_shown(key)}', trial {trial}: there are trials {there}"
            raise PredictorError(str(self._file.problem(problem)))
        return entry

    def _hint(self, key: str) -> str:
        """Return the nearest key that no case asks for, else what keys there are."""
        spare = [_shown(other) for other in islice(self._spare, MAX_COMPARED + 1)] if self._named == "id" else []
        if len(spare) <= MAX_COMPARED and (near := did_you_mean(key, spare)).endswith("?"):
            return near
        named = ", ".join(f"'{_shown(other)}'" for other in islice(self._entries, NAMED_ENTRIES))
        more = len(self._entries) - NAMED_ENTRIES
        return f": the file predicts {named}{f' and {more:,} more' if more > 0 else ''}" if named else ": it is empty"


class PredictedLines:
    """Answers the first case of a suite file with the first line of a file, and so on."""

    concurrency = 1
    retries = 0

    def __init__(self, file: File) -> None:
        self._file = file
        self._lines = read_lines(file)
        self._places: dict[tuple[Path, str], int] = {}
        self._counts: dict[Path, int] = {}

    def register_cases(self, cases: Sequence[Case]) -> None:
        """Take all cases of the suite, in whose order the lines are."""
        for case in sorted(cases, key=lambda case: (case.location, case.row or case.location)):
            suite = case.location.path
            self._places[suite, case.id] = self._counts.get(suite, 0)
            self._counts[suite] = self._places[suite, case.id] + 1

    def unused(self) -> tuple[str, ...]:
        """Return nothing: there are as many lines as cases, or no case is answered."""
        return ()

    def predict(self, case: Case, trial: int) -> Prediction:
        """Return the line of the case; raises `PredictorError` where there are not as many lines as cases."""
        suite = case.location.path
        place = self._places.get((suite, case.id))
        if place is None:
            raise PredictorError(str(self._file.problem("plain lines are in the order of cases that are not known")))
        if self._counts[suite] != len(self._lines):
            found = f"{len(self._lines):,} lines for {self._counts[suite]:,} cases of {suite}"
            raise PredictorError(str(self._file.problem(f"{found}: plain lines are one for each case")))
        return Prediction(content=QueryOrAnswer(query=self._lines[place]), predictor=_name(self._file))

    def close(self) -> None:
        """Do nothing."""


def open_file(spec: PredictorSpec) -> PredictionsFile | PredictedLines:
    """Read the file under `path`; raises `PredictorError` with the line that is wrong."""
    settings = spec.settings
    try:
        check_file(settings)
        file = file_at(spec.folder / settings["path"])
        if is_lines(settings["path"]):
            return PredictedLines(file)
        return PredictionsFile(file, Columns(**{name: settings[name] for name in settings.keys() - {"path"}}))
    except (SettingError, CaseError) as error:
        raise PredictorError(str(error)) from error


def check_file(settings: Mapping[str, Any]) -> None:
    """Raise `SettingError` for the first setting that cannot be right."""
    validate_settings(settings, SETTINGS)
    if "path" not in settings:
        raise SettingError("path", "the predictor 'file' needs a `path`")
    path = settings["path"]
    if not is_known(path):
        known = ", ".join((*READERS, *LINES_SUFFIXES))
        raise SettingError("path", f"'path' does not end as files of predictions do: {known}")
    for name in ("key", "answer"):
        if name in settings and is_lines(path):
            raise SettingError(name, f"'{name}' makes no sense with plain lines, which hold answers only")
    for name, suffixes in {"sheet": (".xlsx",), "delimiter": (".csv", ".tsv")}.items():
        if name in settings and Path(path).suffix.lower() not in suffixes:
            raise SettingError(name, f"'{name}' makes no sense with this file: it is for {' and '.join(suffixes)}")


def check_there(spec: PredictorSpec) -> None:
    """Raise `SettingError` where the file does not exist."""
    name = spec.settings["path"]
    path = spec.folder / name
    if not os.path.exists(path):  # noqa: PTH110 - Path.exists raises for names that are too long
        beside = filter(is_known, names_beside(path, name))
        raise SettingError("path", f"there is no file {name}{did_you_mean(name, beside)}")


def _by_key(entries: Iterable[Entry], named: str) -> dict[str, dict[int, Entry]]:
    """Return the entries by key and trial; raises `CaseError` for one that contradicts an earlier one."""
    found: dict[str, dict[int, Entry]] = {}
    for entry in entries:
        trials = found.setdefault(entry.key, {})
        other = trials.get(entry.trial) or (
            next(iter(trials.values()), None) if not entry.trial or 0 in trials else None
        )
        if other is None:
            trials[entry.trial] = entry
        elif named == "id" or other.trial != entry.trial or other.answer != entry.answer:
            trial = f", trial {entry.trial}," if entry.trial and entry.trial == other.trial else ""
            hint = "" if entry.trial and other.trial else ": say under `trial` which is which, if they are several"
            first = other.location
            place = f"in {first.cell}" if first.cell else f"on line {first.line}"
            problem = f"'{_shown(entry.key)}'{trial} was predicted {place} already{hint}"
            raise CaseError(entry.location, problem)
    return found


def _shown(key: str) -> str:
    return one_line(key, _KEY_CHARACTERS)


def _name(file: File) -> str:
    return f"file:{file.path.name}"


FILE = PredictorType(
    opener=open_file,
    text_setting="path",
    check=check_file,
    settings=SETTINGS,
    check_files=check_there,
    calls=False,
)
