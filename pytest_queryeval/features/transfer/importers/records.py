"""Records, keys and predictions of a source, of which formats make cases.

Records are a JSON list, or JSON lines, which are read one by one. Keys of a case are the fields of its record that are
named like them, or by `--map`, and the database that it names, a file below a folder. Predictions belong to cases by
their position, or by their id or question.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from pytest_queryeval.core.errors import CaseError, QueryEvalError, SettingError, SuiteError, did_you_mean
from pytest_queryeval.core.groups import as_marker, as_markers
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import Abstention
from pytest_queryeval.documents.document import MAX_JSONL_LINE, MEBIBYTE, File, file_at, parse_json
from pytest_queryeval.documents.strict_json import StrictJson, syntax_problem
from pytest_queryeval.documents.values import json_value
from pytest_queryeval.documents.yaml_nodes import read_yaml
from pytest_queryeval.features.transfer.importers import (
    DEFAULT_LANGUAGE,
    Import,
    ImportedCase,
    ImportRequest,
    SkippedRecord,
)
from pytest_queryeval.languages import KINDS
from pytest_queryeval.predictors.file import check_file, columns_of, settings_of
from pytest_queryeval.predictors.file.predictions import (
    READERS,
    is_known,
    is_lines,
    normalize_key,
    read_entries,
    read_lines,
    split_marker,
)
from pytest_queryeval.suites import is_suite_file
from pytest_queryeval.text.formatting import one_line, pluralize, utf8_safe
from pytest_queryeval.text.redaction import mask_credentials, secrets_in_url

MAX_BYTES = 512 * MEBIBYTE
MAX_LEVELS = 90  # the loader reads 100, of which a suite needs a few itself
MAX_DIGITS = 4_000
MAX_NAMES = 10  # of fields in a message
JSONL_SUFFIXES = (".jsonl", ".ndjson")
Entry: TypeAlias = Mapping[str, JsonValue]
RecordT = TypeVar("RecordT")  # what a case is made of, such as a `Record`
_JSON = StrictJson()
ANSWERS = ("gold", "gold_any", "predicted")
IMPORT_KEYS = (
    "id",
    "question",
    "evidence",
    "difficulty",
    "tags",
    "source",
    "kind",
    "skip",
    "allow_empty",
    "answerable",
    "metadata",
    *ANSWERS,
)
MAX_NAME = 100  # of a database
_NO_FILE = file_at("gold")
_VARIABLE = re.compile(r"\$\{\w+\}")


@dataclass(frozen=True, slots=True)
class Record:
    """An object of the source."""

    place: str
    """Its line or its number in a list, for messages."""
    position: int
    fields: Mapping[str, JsonValue]

    def text(self, name: str) -> str:
        """Return a text, empty if it is missing or null; a number or flag becomes its text."""
        value = self.fields.get(name)
        if value is None or isinstance(value, str):
            return value or ""
        return json.dumps(value, ensure_ascii=False)

    def required(self, name: str) -> JsonValue:
        """Return the value of a field; raise `RecordError` with the fields that there are, if it is missing."""
        if not self.fields:
            raise RecordError(f"it is not an object with '{name}'")
        if name not in self.fields:
            names = ", ".join(one_line(field) for field in list(self.fields)[:MAX_NAMES])
            raise RecordError(f"it has no '{name}' (it has {names}): is it of another format?")
        return self.fields[name]

    def id(self, name: str) -> str:
        """Return the id in a field, else the place of the record."""
        return self.text(name) or self.place.replace(" ", "-")


def check_size(value: object, level: int = 0) -> None:
    """Raise ValueError for a value that is nested too deeply for the loader, or holds too large a number."""
    if level > MAX_LEVELS:
        raise ValueError(f"nested deeper than {MAX_LEVELS} levels")
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            check_size(item, level + 1)
    elif type(value) is int and value.bit_length() > MAX_DIGITS * 3:
        raise ValueError("a number has too many digits")


class RecordError(Exception):
    """A record cannot become a case; the message says why."""


def read_records(path: Path) -> Iterator[Record | SkippedRecord]:
    """Yield the objects of a file; raise `CaseError` if it is not a file of objects at all."""
    file = file_at(path)
    records: Iterable[tuple[str, JsonValue | CaseError]]
    if file.path.suffix.lower() in JSONL_SUFFIXES:
        records = _lines(file)
    else:
        items = read_json_file(file)
        if not isinstance(items, list):
            raise file.problem("expected a list of objects, `[{…}, …]`")
        records = ((f"item {number}", item) for number, item in enumerate(items, start=1))
    for position, (place, value) in enumerate(records):
        if isinstance(value, CaseError):
            yield SkippedRecord(place, value.problem)
        elif isinstance(value, dict):
            try:
                check_size(value)
            except ValueError as error:
                yield SkippedRecord(place, str(error))
            else:
                yield Record(place, position, value)
        else:
            yield SkippedRecord(place, 'expected an object, such as {"question": …}')


def numbered_records(items: list[JsonValue], word: str) -> Iterator[Record]:
    """Yield a record for each item, named `word` and its number, without fields where it is not an object."""
    for position, fields in enumerate(items):
        yield Record(f"{word} {position + 1}", position, fields if isinstance(fields, dict) else {})


def read_json_file(file: File) -> JsonValue:
    """Return the value in a JSON file; raise `CaseError`."""
    if file.is_yaml:
        if is_suite_file(file.path):
            raise file.problem(f"is a suite, not a data set in JSON: run `pytest {file.shown}` without an import")
        raise file.problem("is YAML, not JSON: use the JSON file of the data set")
    return _value(file, file.text(MAX_BYTES), 0)


def read_yaml_file(file: File) -> JsonValue:
    """Return the value in a YAML file; raise `CaseError`, also for an empty file."""
    document = read_yaml(file)
    for problem in document.problems:
        raise problem
    if document.root is None:
        raise file.problem("is empty: name the file with the questions")
    value: JsonValue = json_value(document.root)
    return value


def _lines(file: File) -> Iterator[tuple[str, JsonValue | CaseError]]:
    with file.open(sys.maxsize) as stream:
        try:
            for number in count(1):
                line = stream.readline(MAX_JSONL_LINE + 1)
                if not line:
                    return
                if len(line) > MAX_JSONL_LINE:
                    while line and not line.endswith(b"\n"):
                        line = stream.readline(MAX_JSONL_LINE)
                    yield f"line {number}", file.problem(f"longer than {MAX_JSONL_LINE // MEBIBYTE} MiB", number)
                elif line.strip():
                    value: JsonValue | CaseError
                    try:
                        value = _value(file, file.decoded(line, line=number).removeprefix("\ufeff").strip(), number)
                    except CaseError as error:
                        value = error
                    yield f"line {number}", value
        except OSError as error:
            raise file.unreadable(error) from error


def _value(file: File, text: str, line: int) -> JsonValue:
    try:
        value: JsonValue = _JSON.read(text)
    except json.JSONDecodeError as error:
        raise file.problem(syntax_problem(error), line or error.lineno, error.colno) from error
    except ValueError as error:
        raise file.problem(f"not JSON: {error}", line) from error
    return value


class Predictions:
    """Entries for a file of predictions, by the position of their case, or by its id or question."""

    def __init__(
        self,
        key_name: Literal["position", "id", "question"],
        entries: Mapping[str, Sequence[Entry]],
        databases: Mapping[str, str] | None = None,
    ) -> None:
        self._key_name = key_name
        self._entries = entries
        self._databases = databases or {}
        self._unused = dict.fromkeys(entries)

    def of(self, position: int, id_: str, question: str) -> Sequence[Entry]:
        """Return the entries of a case, none where there are none."""
        key = self._key(position, id_, question)
        self._unused.pop(key, None)
        return self._entries.get(key, ())

    def database_of(self, position: int, id_: str, question: str) -> str:
        """Return the database that BIRD's marker names behind the query of a case; empty without one."""
        return self._databases.get(self._key(position, id_, question), "")

    def _key(self, position: int, id_: str, question: str) -> str:
        return {"position": str(position), "id": id_, "question": normalize_key(question, "question")}[self._key_name]

    def unused(self) -> Iterator[SkippedRecord]:
        """Yield the predictions that belong to no case."""
        yield from (
            SkippedRecord(key, f"a prediction whose {self._key_name} is that of no case") for key in self._unused
        )


def read_predictions(path: Path | None) -> Predictions:
    """Return the predictions in a file that the predictor `file` reads, none for None; raise `QueryEvalError`.

    As in its short form, settings may stand behind a `?`. Plain lines belong to cases by their position.
    """
    if path is None:
        return Predictions("id", {})
    settings = settings_of(str(path))
    name = str(settings["path"])
    if not is_known(name):
        raise QueryEvalError(f"{path}: predictions are read from {', '.join(READERS)} and plain lines (.txt, .sql)")
    try:
        check_file(settings)
    except SettingError as error:
        raise QueryEvalError(f"{path}: {error}") from error
    file = file_at(Path(name))
    if is_lines(name):
        return positional_predictions(read_lines(file))
    key_name, entries = read_entries(file, columns_of(settings))
    entries_by_key: dict[str, list[Entry]] = {}
    databases = {entry.key: entry.database for entry in entries}
    for entry in entries:
        answer: Any = entry.prediction.answer
        stated = (
            {"abstained": True, "reason": answer.reason} if isinstance(answer, Abstention) else {"predicted": answer}
        )
        row = {**stated, **entry.prediction.metadata}
        row |= {"trial": entry.trial} if entry.trial else {}
        row |= {"seconds": entry.prediction.seconds} if entry.prediction.seconds else {}
        entries_by_key.setdefault(entry.key, []).append(row)
    return Predictions("id" if key_name == "id" else "question", entries_by_key, databases)


def positional_predictions(answers: Iterable[str]) -> Predictions:
    """Return predictions, each for the case at its position, without BIRD's marker."""
    parts = {str(number): split_marker(answer) for number, answer in enumerate(answers)}
    entries: dict[str, list[Entry]] = {number: [{"predicted": query}] for number, (query, _) in parts.items()}
    return Predictions("position", entries, {number: database for number, (_, database) in parts.items()})


def import_records(
    request: ImportRequest,
    records: Iterable[RecordT | SkippedRecord],
    id_of: Callable[[RecordT], str],
    case_of: Callable[[str, RecordT], ImportedCase],
    *,
    settings: Mapping[str, JsonValue],
    predictions: Predictions | None = None,
    name: str = "",
) -> Import:
    """Return the import whose cases are those of `cases_of`.

    The default predictions are those that the request names; the default name is that of its source.
    """
    if predictions is None:
        predictions = read_predictions(request.predictions)
    return Import(
        name=name or request.source.stem,
        settings=settings,
        cases=cases_of(records, id_of, case_of, predictions),
        has_predictions=request.predictions is not None,
    )


def cases_of(
    records: Iterable[RecordT | SkippedRecord],
    id_of: Callable[[RecordT], str],
    case_of: Callable[[str, RecordT], ImportedCase],
    predictions: Predictions,
) -> Iterator[ImportedCase | SkippedRecord]:
    """Yield a case for each record with its predictions, or why there is none: `case_of` raises `RecordError`."""
    for position, record in enumerate(records):
        if isinstance(record, SkippedRecord):
            yield record
            continue
        id_ = id_of(record)
        try:
            case = case_of(id_, record)
        except RecordError as error:
            predictions.of(position, id_, "")
            yield SkippedRecord(id_, str(error))
        else:
            yield replace(case, predictions=predictions.of(position, id_, str(case.keys["question"])))
    yield from predictions.unused()


def check_count(predictions: int, cases: int, path: Path, *, empty: str) -> None:
    """Raise `QueryEvalError` if predictions cannot belong to cases by their position.

    `empty` is what a file has in place of a missing prediction.
    """
    if predictions != cases:
        counts = f"{pluralize(predictions, 'prediction')} for {pluralize(cases, 'case')}"
        raise QueryEvalError(f"{path}: {counts}: there has to be one for each, {empty} where there is none")


def check_request(
    request: ImportRequest,
    *,
    columns: Sequence[str] = (),
    kind: str | None = None,
    has_languages: bool = False,
    is_table: bool = False,
) -> None:
    """Raise `QueryEvalError` for an option that the format has no use for, and for an answer as metadata.

    `columns` are the keys that `--map` may name, `kind` is the only kind of the format, if it has one.
    """
    if kind is not None and request.kind not in (None, kind):
        raise QueryEvalError(f"--kind {request.kind}: cases of this format are of the kind '{kind}': leave it out")
    if request.language != DEFAULT_LANGUAGE and not has_languages:
        raise QueryEvalError(
            f"--language {request.language}: questions of this format are in one language: leave it out"
        )
    table_options = {"--delimiter": request.delimiter, "--sheet": request.sheet, "--header-row": request.header_row}
    for option, value in table_options.items():
        if value is not None and not is_table:
            raise QueryEvalError(f"{option}: this format is no table: leave it out")
    for key in request.columns:
        if key not in columns:
            remedy = did_you_mean(key, columns) if columns else ": the format names its fields itself, so leave it out"
            raise QueryEvalError(f"--map {key}: unknown key '{key}'{remedy}")
    answers = {*ANSWERS, *(request.columns.get(key, key) for key in ANSWERS)}
    if answer_fields := answers.intersection(metadata_fields(request.columns)):
        raise QueryEvalError(f"--map metadata: '{min(answer_fields)}' is an answer, which predictors must not see")


def metadata_fields(columns: Mapping[str, str]) -> list[str]:
    """Return the fields that become metadata, `--map metadata=a,b`."""
    return [name for name in columns.get("metadata", "").split(",") if name]


def description_keys(record: Record, columns: Mapping[str, str] | None = None) -> dict[str, JsonValue]:
    """Return the keys of a case that describe it: question, evidence, difficulty, tags and metadata."""
    columns = columns or {}
    fields = {key: columns.get(key, key) for key in IMPORT_KEYS}
    keys: dict[str, JsonValue] = {"question": record.text(fields["question"])}
    if evidence := record.text(fields["evidence"]):
        keys["evidence"] = evidence
    metadata = {name: record.fields[name] for name in metadata_fields(columns) if name in record.fields}
    difficulty = record.text(fields["difficulty"])
    if marker := as_marker(difficulty):
        keys["difficulty"] = marker
    if marker != difficulty:
        metadata["difficulty"] = difficulty
    tags = record.fields.get(fields["tags"])
    tag_list = tags if isinstance(tags, list) else record.text(fields["tags"]).split(",")
    if markers := as_markers(str(tag).strip() for tag in tag_list):
        keys["tags"] = list[JsonValue](markers)
    if metadata:
        keys["metadata"] = metadata
    return keys


def gold_value(value: JsonValue, kind: str) -> JsonValue:
    """Return a right answer in the form of suites; raise `RecordError` for one that the loader would refuse."""
    if KINDS[kind].has_queries:
        if not isinstance(value, str) or not value.strip():
            raise RecordError("its right answer is not a query")
        return value
    gold = "null" if value is None else value  # in a suite, null is not a value; its text is read as JSON
    try:
        KINDS[kind].read_gold(parse_json(json.dumps(gold), _NO_FILE, line=0))
    except (CaseError, SuiteError) as error:
        problem = error.problems[0].problem if isinstance(error, SuiteError) else error.problem
        raise RecordError(f"its right answer cannot be read: {problem}") from error
    return gold


class Databases:
    """The sources of an import.

    `settings` has the keys of `queryeval.yaml` that name them; sources by name are added as cases ask for them. Names
    come from the source, so one that leads out of the folder is refused.
    """

    def __init__(self, request: ImportRequest, source: Path, beside: Sequence[str] = ()) -> None:
        """Use the folder of the request, else the first existing folder of those named `beside` the source."""
        self.settings: dict[str, JsonValue] = {}
        self._sources: dict[str, JsonValue] = {}
        self._output = request.output
        self._folder: Path | None = None
        if request.database is not None:
            if any(secrets_in_url(_VARIABLE.sub("", request.database))):
                problem = f"--source {mask_credentials(request.database)}: its password would be in the settings"
                raise QueryEvalError(f"{problem} of the suites: write a variable in its place, such as ${{PASSWORD}}")
            self.settings["source"] = relative(Path(request.database), request.output, otherwise=request.database)
            return
        folders = (folder for name in beside if (folder := source.parent / name).is_dir())
        self._folder = request.databases or next(folders, None)
        if self._folder is not None:
            if not self._folder.is_dir():
                raise QueryEvalError(f"{self._folder}: is not a folder: --databases names the one with the databases")
            self.settings["sources"] = self._sources

    def check_shared(self, kind: str) -> None:
        """Raise `RecordError` if `--source` is missing for cases with queries, or is given for cases without."""
        if KINDS[kind].has_queries and "source" not in self.settings:
            raise RecordError("no --source says where its queries run: add it with a path or a URL")
        if not KINDS[kind].has_queries and "source" in self.settings:
            raise RecordError(f"--source is for queries, and it is of the kind '{kind}': import it without")

    def source_of(self, name: str) -> dict[str, JsonValue]:
        """Return the `source` key of a case on a database, none where all share one; raise `RecordError`."""
        if "source" in self.settings:
            return {}
        if self._folder is None:
            raise RecordError("it has a database of its own: name their folder with --databases")
        if name in self._sources:
            return {"source": name}
        shown_name = one_line(name, MAX_NAME)
        is_unfit = len(name) > MAX_NAME or utf8_safe(name) != name
        if name in ("", ".", "..") or is_unfit or any(sign in name for sign in ("/", "\\", "\0", "${")):
            raise RecordError(f"'{shown_name}' is not a name of a database")
        for path in (self._folder / name / f"{name}.sqlite", self._folder / f"{name}.sqlite"):
            if os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for names that no file can have
                self._sources[name] = relative(path, self._output)
                return {"source": name}
        places = f"{shown_name}/{shown_name}.sqlite or {shown_name}.sqlite"
        raise RecordError(f"there is no database {places} in {self._folder}")


def relative(path: Path, output: Path, *, otherwise: str | None = None) -> str:
    """Return the path of a file relative to `output`, as suites there name it; `otherwise` if there is no such file.

    Raise `QueryEvalError` if suites cannot name it.
    """
    if otherwise is not None and not os.path.exists(path):  # noqa: PTH110 - as above
        return otherwise
    relative_path = os.path.relpath(os.path.abspath(path), output)  # noqa: PTH100 - links are not followed
    if utf8_safe(relative_path) != relative_path:
        raise QueryEvalError(f"{relative_path}: is not a name in UTF-8, in which suites are written: rename it")
    if "${" in relative_path:
        raise QueryEvalError(f"{relative_path}: suites would take `${{` for a variable: rename the folder")
    return relative_path
