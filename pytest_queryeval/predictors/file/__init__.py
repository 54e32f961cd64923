"""Predictions from a file that a run of the system has written."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from pytest_queryeval.core.errors import CaseError, PredictorError, SettingError, did_you_mean, names_beside
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import Abstention, Case, Failure, Prediction, PredictorSpec, StoredPrediction
from pytest_queryeval.core.shapes import (
    FILE_NAME,
    STRING,
    SettingValidator,
    choice_setting,
    is_mapping,
    mapping_shape,
    text_setting,
    validate_settings,
)
from pytest_queryeval.core.table import Table
from pytest_queryeval.documents.document import File, file_at
from pytest_queryeval.documents.tables import DELIMITER, is_delimiter
from pytest_queryeval.languages import KINDS
from pytest_queryeval.predictors import PredictorType
from pytest_queryeval.predictors.answer import PREDICTED, read_answer
from pytest_queryeval.predictors.file.predictions import (
    FIELDS,
    KEY_FIELDS,
    LINES_SUFFIXES,
    QUERY_KEYS,
    QUESTION,
    READERS,
    SUITE,
    Columns,
    Entry,
    OtherDatabases,
    is_known,
    is_lines,
    normalize_key,
    read_entries,
    read_lines,
    split_marker,
)
from pytest_queryeval.text.formatting import and_more, escape_invisible, first_of, one_line, pluralize

NAMED_ENTRIES = 10
NAMED_FIRST = 3
MISSING = ("error", "fail")
MAX_ROW_DIGITS = 9  # of the number of a row
MAX_COMPARISONS = 20_000  # of keys in a run, to suggest similar keys for cases without a prediction
_ALIKE = 0.6  # the share of equal characters
_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9])")
_DIGITS = re.compile(r"[0-9]+")
_KEY_CHARACTERS = 80
_WHICH = "remove one, or add `trial` if they are repeated, `suite` if they are for several suites"


def _unknown_field(value: Any) -> str:
    unknown = next((name for name in value if name not in FIELDS), None) if isinstance(value, dict) else None
    return "" if unknown is None else f": there is no '{unknown}'{did_you_mean(unknown, FIELDS)}"


SETTINGS = {
    "path": FILE_NAME,
    "key": text_setting("id, question, or the name of what contains the ids"),
    "columns": SettingValidator(
        lambda value: is_mapping(value, FIELDS.__contains__),
        "a mapping such as {id: No., predicted: SQL}",
        suggestion=_unknown_field,
        shape=mapping_shape(dict.fromkeys(FIELDS, STRING)),
    ),
    "answer": text_setting(
        "the name of what contains the answers", lambda value: value not in (*KEY_FIELDS, "seconds", "trial")
    ),
    "sheet": text_setting("the name of a sheet"),
    "delimiter": SettingValidator(is_delimiter, "one character, such as ';'", shape=DELIMITER),
    "abstain": text_setting("the text of an answer that is an abstention"),
    "missing": choice_setting(MISSING, "error or fail: fail counts a case without a prediction as failed"),
    "header_row": SettingValidator(
        lambda value: type(value) is int and value >= 1,
        "the number of a row",
        shape={"type": "integer", "minimum": 1},
    ),
}
TABLE_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "sheet": (".xlsx",),
    "delimiter": (".csv", ".tsv"),
    "header_row": (".xlsx", ".csv", ".tsv"),
}


class PredictionsFile:
    """Answers cases with the entries of a file, found by the case's id or question.

    A case without an entry raises `PredictorError`. With `missing_fails` its prediction is a failure instead, unless no
    case of the run has an entry.
    """

    def __init__(self, file: File, columns: Columns, *, missing_fails: bool = False) -> None:
        self._file = file
        self._missing_fails = missing_fails
        self._key_name, entries = read_entries(file, columns)
        self._entries = _by_key(entries, self._key_name)
        self._spare: Sequence[str] = [*self._entries]
        self._case_count = 0
        self._missing_count = 0
        self._suites: dict[tuple[str, str], dict[Path, None]] = {}  # those of the cases of each entry
        self._trials: dict[tuple[str, str], int] = {}  # that the cases of each entry ask for
        self._single_trials: list[int] = []  # that each case asks for whose only entry serves all
        self._databases = OtherDatabases(file.shown)
        self._comparisons = MAX_COMPARISONS

    def register_cases(self, cases: Sequence[Case]) -> None:
        """Take all cases of the run, to find entries of no case, of several suites, and for other databases."""
        self._case_count = len(cases)
        for case in cases:
            key = self._key(case)
            suite = self._suite_of(key, case)
            if suite is not None:
                self._suites.setdefault((key, suite), {})[_suite_path(case)] = None
                self._trials[key, suite] = max(case.settings.trials, self._trials.get((key, suite), 1))
                if case.settings.trials > 1 and 0 in self._entries[key][suite]:
                    self._single_trials.append(case.settings.trials)
                database = next(iter(self._entries[key][suite].values())).database
                self._databases.add(case.id, database, _database_names(case))
            self._missing_count += suite is None
        self._spare = [
            key for key, suites in self._entries.items() if any((key, suite) not in self._suites for suite in suites)
        ]

    def remarks(self) -> tuple[str, ...]:
        """Return sentences on entries that are not used or do not fit.

        They are entries of no case, of more trials than asked, of one trial for several, and for other databases.
        """
        unused = self._unused(self._spare) if self._case_count else ""
        single = single_trials(self._file, self._single_trials, self._case_count)
        return tuple(filter(None, (unused, self._unused_trials(), single, self._databases.remark())))

    def _unused_trials(self) -> str:
        unused = [
            (key, trial)
            for (key, suite), asked in self._trials.items()
            for trial in self._entries[key][suite]
            if trial > asked
        ]
        remedy = f": write `trials: {max(trial for _, trial in unused)}`" if unused else ""
        return self._unused([key for key, _ in unused], " of more trials") + remedy

    def _unused(self, keys: Sequence[str], which: str = "") -> str:
        """Return a sentence that counts and names unused entries; empty for no keys. A key may repeat.

        `which` describes the entries, as in " of more trials".
        """
        if not keys:
            return ""
        named = first_of([*map(_key_text, dict.fromkeys(keys))], NAMED_ENTRIES)
        noun, verb = ("prediction", "was") if len(keys) == 1 else ("predictions", "were")
        return f"{self._file.shown}: {len(keys):,} {noun}{which} {verb} not used: {named}"

    def predict(self, case: Case, trial: int) -> Prediction:
        """Return the file's entry for a case and a trial, with its answer read for the kind of the case.

        Raises `PredictorError` if there is no entry, if it was predicted for another question, or if it fits several
        suites. A missing entry may be a failed prediction instead: see the class.
        """
        key = self._key(case)
        suite = self._suite_of(key, case)
        if suite is None:
            return self._no_prediction(
                StoredPrediction, f"'{_key_text(key)}'{self._share_without_prediction()}{self._key_hint(key)}"
            )
        trials = self._entries[key][suite]
        entry = trials.get(0) or trials.get(trial)
        if entry is None:
            there = ", ".join(map(str, sorted(trials)[:NAMED_ENTRIES]))
            return self._no_prediction(Prediction, f"'{_key_text(key)}', trial {trial}: there are trials {there}")
        self._check_case(entry, case)
        by = f"{entry.location}: the prediction"
        answer = entry.prediction.answer
        if KINDS[case.settings.kind].answer_type is Table and not isinstance(answer, str | Abstention):
            raise PredictorError(f"{by} is not text: {self._remedy(answer)}")
        content = answer if isinstance(answer, Abstention) else read_answer(answer, case.settings.kind, by=by)
        return replace(entry.prediction, answer=content, predictor=_name(self._file))

    def _remedy(self, answer: object) -> str:
        """Return the remedy for an answer that is not text.

        Name the key that has the query, or write the query as text.
        """
        keys = [key for key, value in answer.items() if isinstance(value, str)] if isinstance(answer, dict) else []
        if not keys:
            is_listed = isinstance(answer, list) and len(answer) == 1 and isinstance(answer[0], str)
            return f"write the query {'without the brackets' if is_listed else 'in double quotes'}"
        key = one_line(next((key for key in keys if key in QUERY_KEYS), keys[0]), 40)
        return f"name the key that has the query, {self._short(f'predicted={key}')}"

    def _short(self, option: str) -> str:
        return f"`{self._file.path.name}?{option}`"

    def close(self) -> None:
        """Do nothing."""

    def _key(self, case: Case) -> str:
        return normalize_key(case.id if self._key_name == "id" else case.question, self._key_name)

    def _suite_of(self, key: str, case: Case) -> str | None:
        """Return the suite name of the entries that serve a case with this key; None if no entry does.

        The longest stated suite that ends the path of the case's suite wins. "" stands for entries that state no suite.
        """
        suites = self._entries.get(key, {})
        stated = [suite for suite in suites if suite and _is_end(suite, _suite_path(case))]
        return max(stated, key=len) if stated else "" if "" in suites else None

    def _check_case(self, entry: Entry, case: Case) -> None:
        """Raise `PredictorError` if an entry states another question, or may be for a case of another suite."""
        key = _key_text(entry.key)
        questions = {_words(case.question), _words(escape_invisible(case.question))}
        if entry.question and case.question and _words(entry.question) not in questions:
            asked = f"'{one_line(entry.question, _KEY_CHARACTERS)}', not '{one_line(case.question, _KEY_CHARACTERS)}'"
            remedy = "predict it again, or correct the id or the question"
            raise PredictorError(f"{entry.location}: '{key}' was predicted for another question, {asked}: {remedy}")
        suites = self._suites.get((entry.key, entry.suite), {})
        if len(suites) > 1:
            first, second, *more = suites
            paths = f"{first} and {second}" if not more else f"{first}, {second} and {len(more):,} more"
            remedy = f"add the field or column `{SUITE}` with the path of its suite, {first}"
            raise PredictorError(f"{entry.location}: '{key}' is a case of {len(suites)} suites, {paths}: {remedy}")

    def _no_prediction(self, prediction_type: type[Prediction], problem: str) -> Prediction:
        """Return a failed prediction with the problem if missing predictions count as failed.

        Otherwise raise `PredictorError`.
        """
        message = str(self._file.problem(f"no prediction for {problem}"))
        if self._missing_fails and (not self._case_count or self._missing_count < self._case_count):
            return prediction_type(Failure(kind="missing", message=message), predictor=_name(self._file))
        raise PredictorError(message)

    def _share_without_prediction(self) -> str:
        """Return the part of a message that says how many cases have no prediction; empty if that is not known."""
        if self._case_count < 2:
            return ""
        if self._missing_count == self._case_count:
            return f", nor for any of the {self._case_count:,} cases"
        verb = "has" if self._missing_count == 1 else "have"
        return f" ({self._missing_count:,} of {pluralize(self._case_count, 'case')} {verb} none)"

    def _key_hint(self, key: str) -> str:
        """Return the end of a message on a missing key.

        Similar keys of the file that no case has, or another remedy.
        """
        if not self._entries:
            return ": it is empty"
        if suites := self._entries.get(key):
            return f": its predictions name other suites, such as '{_key_text(next(iter(suites)))}'"
        if near := self._nearest(key):
            return f": it has {' and '.join(near)}, which no case has: write '{_key_text(key)}' there"
        if not self._spare:
            near = self._similar(key, [*self._entries])
            others = f" (nearest: {', '.join(near)}, each that of another case)" if near else ""
            remedy = "" if self._missing_fails else f", or count such cases as failed, {self._short('missing=fail')}"
            return f": add it{others}{remedy}"
        first = ", ".join(f"'{_key_text(spare)}'" for spare in self._spare[:NAMED_FIRST])
        first += and_more(len(self._spare) - NAMED_FIRST)
        keys = f"the {self._key_name}s"
        if self._missing_count == self._case_count > 1:
            return f": it has {first}, which no case has: correct {keys}, or name another file"
        return f": add it, or correct one of {keys} that no case has: {first}"

    @cached_property
    def _spare_by_letters(self) -> dict[str, str]:
        return {_letters(key): key for key in reversed(self._spare)}

    def _nearest(self, key: str) -> list[str]:
        """Return, in quotes, the unused key that differs only in case, punctuation and leading zeros.

        Without such a key, return similar unused keys with the same numbers.
        """
        if same := self._spare_by_letters.get(_letters(key)):
            return [f"'{_key_text(same)}'"]
        numbers = _DIGITS.findall(_letters(key))  # q301 is not meant for q30
        return self._similar(key, self._spare, lambda spare: _DIGITS.findall(_letters(spare)) == numbers)

    def _similar(self, key: str, keys: Sequence[str], is_meant: Callable[[str], bool] = lambda _: True) -> list[str]:
        """Return, in quotes, at most NAMED_FIRST of the keys that are similar to a key and satisfy `is_meant`.

        Return none once the run has made MAX_COMPARISONS comparisons.
        """
        if len(keys) > self._comparisons:
            return []
        self._comparisons -= len(keys)
        alike = get_close_matches(key, keys, n=NAMED_ENTRIES, cutoff=_ALIKE)
        return [f"'{_key_text(near)}'" for near in filter(is_meant, alike)][:NAMED_FIRST]


def _database_names(case: Case) -> Iterator[str]:
    """Yield the names that a benchmark may have for the database of a case, from its metadata and its source."""
    yield from (value for key in ("db_id", "database", "db") if isinstance(value := case.metadata.get(key), str))
    if (source := case.settings.source) is not None:
        places = (source.name, *source.settings.values())
        yield from (PurePosixPath(place).stem for place in places if isinstance(place, str))


class PredictedLines:
    """Answers the cases of a suite file with the lines of a file, in the same order."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._lines = [split_marker(line) for line in read_lines(file)]
        self._databases = OtherDatabases(file.shown)
        self._places: dict[tuple[Path, str], int] = {}
        self._counts: dict[Path, int] = {}
        self._trials: list[int] = []  # that each case asks for

    def register_cases(self, cases: Sequence[Case]) -> None:
        """Take all cases of the run; their places in the suite files decide which line answers which case."""
        for case in sorted(cases, key=lambda case: (case.location, case.row or case.location)):
            suite = case.location.path
            place = self._places[suite, case.id] = self._counts.get(suite, 0)
            self._counts[suite] = place + 1
            self._trials.append(case.settings.trials)
            if place < len(self._lines):
                self._databases.add(case.id, self._lines[place][1], _database_names(case))

    def remarks(self) -> tuple[str, ...]:
        """Return sentences on cases with several trials, and on lines for other databases."""
        several = [trials for trials in self._trials if trials > 1]
        return tuple(filter(None, (single_trials(self._file, several, len(self._trials)), self._databases.remark())))

    def predict(self, case: Case, trial: int) -> Prediction:
        """Return the line of a case, as the prediction for all trials.

        Raises `PredictorError` if the case is not registered, or there are not as many lines as cases in its suite
        file.
        """
        suite = case.location.path
        place = self._places.get((suite, case.id))
        if place is None:
            raise PredictorError(str(self._file.problem("plain lines are in the order of cases that are not known")))
        if self._counts[suite] != len(self._lines):
            counts = f"{pluralize(len(self._lines), 'line')} for {pluralize(self._counts[suite], 'case')} of {suite}"
            raise PredictorError(str(self._file.problem(f"{counts}: write one line for each case, in their order")))
        return StoredPrediction(self._lines[place][0], predictor=_name(self._file))

    def close(self) -> None:
        """Do nothing."""


def single_trials(file: File, asked: Sequence[int], case_count: int) -> str:
    """Return a sentence on cases that ask for several trials but have one answer; empty if there are none.

    `asked` contains the number of trials of these cases.
    """
    if not asked:
        return ""
    cases = f"{len(asked):,} of {pluralize(case_count, 'case')} {'has' if len(asked) == 1 else 'have'}"
    remedy = "write `trials: 1`, or an entry with `trial` for each"
    return f"{file.shown}: {cases} 1 of {max(asked)} trials: {remedy}"


def open_file(spec: PredictorSpec) -> PredictionsFile | PredictedLines:
    """Open the file under `path`: plain lines, or entries by key.

    Raises `PredictorError` for wrong settings, and for an entry that cannot be read, with its line.
    """
    settings = spec.settings
    try:
        check_file(settings)
        file = file_at(spec.folder / settings["path"])
        if is_lines(settings["path"]):
            return PredictedLines(file)
        return PredictionsFile(file, columns_of(settings), missing_fails=settings.get("missing") == "fail")
    except (SettingError, CaseError) as error:
        raise PredictorError(str(error)) from error


def check_file(settings: Mapping[str, Any]) -> None:
    """Raise `SettingError` for the first setting that is unknown, invalid, or does not fit the file's format.

    Missing `path`, and contradictory names for a field, are refused too. The file is not opened.
    """
    if (unknown := next((name for name in settings if name not in SETTINGS), None)) is not None:
        remedy = (
            f": it is a column, write `columns: {{{unknown}: HEADER}}`"
            if unknown in FIELDS
            else did_you_mean(unknown, (*SETTINGS, *FIELDS))
        )
        raise SettingError(unknown, f"unknown setting '{unknown}'{remedy}")
    validate_settings(settings, SETTINGS)
    if "path" not in settings:
        raise SettingError("path", "the predictor 'file' needs a `path`")
    path = settings["path"]
    if not is_known(path):
        suffix_list = ", ".join((*READERS, *LINES_SUFFIXES))
        hint = f": write a function as `predictor: {path}:FUNCTION`" if path.endswith(".py") else ""
        raise SettingError("path", f"'{path}' is no file of predictions ({suffix_list}){hint}")
    for name in ("key", "columns", "answer", "missing", "abstain"):
        if name in settings and is_lines(path):
            raise SettingError(name, f"'{name}' makes no sense with plain lines, one of which is for each case")
    for name, suffixes in TABLE_SETTINGS.items():
        if name in settings and Path(path).suffix.lower() not in suffixes:
            raise SettingError(name, f"'{name}' makes no sense with this file: it is for {' and '.join(suffixes)}")
    columns = settings.get("columns", {})
    if "answer" in settings and PREDICTED in columns:
        raise SettingError("answer", "'answer' is named under `columns` as `predicted` already: leave one out")
    key = settings.get("key", "id")
    if key not in (*KEY_FIELDS, columns.get("question")) and columns.get("id", key) != key:
        raise SettingError(
            "key", f"'key' and `columns` name different ids, '{key}' and '{columns['id']}': leave one out"
        )


def settings_of(text: str) -> dict[str, JsonValue]:
    """Return the settings in a file's name, behind a `?`, as in `b.csv?id=No.&predicted=SQL`.

    A name among FIELDS becomes an entry of `columns`. Without a `?`, or for an unknown suffix, the text is the `path`.
    Names are not checked; `check_file` does that.
    """
    path, _, query = text.partition("?")
    if not query or not is_known(path):
        return {"path": text}
    settings: dict[str, JsonValue] = {"path": path}
    columns: dict[str, JsonValue] = {}
    for part in query.split("&"):
        name, _, value = part.partition("=")
        value = unquote(value)
        if name in FIELDS:
            columns[name] = value
        else:
            is_number = name == "header_row" and value.isdecimal() and len(value) <= MAX_ROW_DIGITS
            settings[name] = int(value) if is_number else value
    return {**settings, "columns": columns} if columns else settings


def columns_of(settings: Mapping[str, Any]) -> Columns:
    """Return how to read a file by its checked settings: `key`, `columns`, `answer`, and the layout of a table."""
    names, key = dict(settings.get("columns", {})), settings.get("key")
    if "answer" in settings:
        names[PREDICTED] = settings["answer"]
    if key is not None and key not in KEY_FIELDS:
        if key != names.get("question"):
            names["id"] = key
        key = "question" if key == names.get("question") else "id"
    others = {name: settings[name] for name in ("abstain", *TABLE_SETTINGS) if name in settings}
    return Columns(key=key, names=names, **others)


def check_file_exists(spec: PredictorSpec) -> None:
    """Raise `SettingError` if the file does not exist, with a similar name in its folder."""
    name = spec.settings["path"]
    path = spec.folder / name
    if not os.path.exists(path):  # noqa: PTH110 - Path.exists raises for names that are too long
        beside = filter(is_known, names_beside(path, name))
        hint = did_you_mean(name, beside) or f": correct the path, which leads to {path.absolute()}"
        raise SettingError("path", f"there is no file {name}{hint}")


def _by_key(entries: Iterable[Entry], key_name: str) -> dict[str, dict[str, dict[int, Entry]]]:
    """Return the entries by key, suite and trial.

    Equal answers to the same question count once. Raises `CaseError` for an entry that contradicts an earlier entry.
    """
    entries_by_key: dict[str, dict[str, dict[int, Entry]]] = {}
    for entry in entries:
        trials = entries_by_key.setdefault(entry.key, {}).setdefault(entry.suite, {})
        earlier = trials.get(entry.trial) or (
            next(iter(trials.values()), None) if not entry.trial or 0 in trials else None
        )
        if earlier is None:
            trials[entry.trial] = entry
        elif key_name == "id" or earlier.trial != entry.trial or earlier.prediction.answer != entry.prediction.answer:
            trial = f", trial {entry.trial}," if entry.trial and entry.trial == earlier.trial else ""
            hint = "" if entry.trial and earlier.trial else f": {_WHICH}"
            first = earlier.location
            place = f"in {first.cell}" if first.cell else f"on line {first.line}"
            problem = f"'{_key_text(entry.key)}'{trial} was predicted {place} already{hint}"
            raise CaseError(entry.location, problem)
    return entries_by_key


def _suite_path(case: Case) -> Path:
    return case.suite or case.location.path


def _is_end(suite: str, path: Path) -> bool:
    """Return whether a text is the end of a suite's absolute path, with or without `.queryeval.` and its suffix."""
    parts = PurePosixPath(suite).parts
    name = path.name.partition(".queryeval.")[0]
    return any(names[-len(parts) :] == parts for names in (path.absolute().parts, (*path.absolute().parts[:-1], name)))


def _words(text: str) -> str:
    return normalize_key(text, QUESTION)


def _letters(key: str) -> str:
    """Return the letters and digits of a key, case-folded, without leading zeros of numbers."""
    return _ZEROS.sub("", "".join(filter(str.isalnum, key.casefold())))


def _key_text(key: str) -> str:
    return one_line(key, _KEY_CHARACTERS)


def _name(file: File) -> str:
    return f"file:{file.path.name}"


FILE = PredictorType(
    opener=open_file,
    text_setting="path",
    read_text=settings_of,
    check=check_file,
    settings=SETTINGS,
    check_files=check_file_exists,
    calls=False,
)
