"""Makes cases of the records of a source, with their keys, their databases and their predictions.

Keys of a case are fields of its record. The database that it names is a file below a folder. Predictions belong to
cases by their position, or by their id or question.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from pytest_queryeval.core.errors import CaseError, QueryEvalError, SettingError, did_you_mean
from pytest_queryeval.core.groups import as_marker, as_markers
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.core.model import Abstention
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.documents.tables import FLAGS, is_table
from pytest_queryeval.documents.values import flag_hint
from pytest_queryeval.features.transfer.importers import (
    DEFAULT_LANGUAGE,
    Import,
    ImportedCase,
    ImportRequest,
    Reading,
    SkippedRecord,
)
from pytest_queryeval.features.transfer.importers.fields import (
    NAMES,
    NOTHING,
    Fields,
    find_fields,
    messages_of,
    value_at,
)
from pytest_queryeval.features.transfer.importers.golds import gold_keys, gold_table
from pytest_queryeval.features.transfer.importers.reading import (
    SAMPLE,
    Record,
    RecordError,
    metadata_fields,
    read_test_set,
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
from pytest_queryeval.suites.answers import ROLES
from pytest_queryeval.text.formatting import one_line, pluralize, utf8_safe
from pytest_queryeval.text.redaction import mask_credentials, secrets_in_url

Entry: TypeAlias = Mapping[str, JsonValue]
RecordT = TypeVar("RecordT")  # what a case is made of, such as a `Record`
ANSWERS = ("gold", "gold_any", "gold_table", "predicted")
IMPORT_KEYS = (*NAMES, "metadata")
MAX_NAME = 100  # of a database
SCRIPT = ".sql"
PREDICTIONS = "predictions.jsonl"
SUFFIXES = (".sqlite", ".duckdb", ".db")
FOLDERS = ("database", "databases", "dev_databases", "train_databases", "test_databases", "test_database")
_VARIABLE = re.compile(r"\$\{\w+\}")


def open_test_set(request: ImportRequest) -> Reading:
    """Return the records of any file, with the fields of the keys of cases, by `--map` or by names and values.

    Raise `QueryEvalError` for a file that cannot be read, and if several fields could be a key.
    """
    records = read_test_set(request)
    first_records = list(islice(records, SAMPLE))
    sample = [record.fields for record in first_records if isinstance(record, Record)]
    fields = find_fields(sample, request.columns, request.kind)
    names = list(dict.fromkeys(name for record in sample for name in record))
    stated_records = _with_stated(chain(first_records, records), request.columns)
    return Reading(stated_records, fields, names, metadata_fields(request.columns))


def _with_stated(
    records: Iterable[Record | SkippedRecord], columns: Mapping[str, str]
) -> Iterator[Record | SkippedRecord]:
    """Yield the records; after the last, raise `QueryEvalError` if no record has a field that `--map` names.

    Tables are not checked, because their columns were checked before.
    """
    missing_fields = {*(name for key, name in columns.items() if key != "metadata"), *metadata_fields(columns)}
    last_fields: Mapping[str, JsonValue] = {}
    is_table = False
    for record in records:
        if isinstance(record, Record):
            last_fields, is_table = record.fields, record.is_row
            missing_fields = {name for name in missing_fields if value_at(last_fields, name) is NOTHING}
        yield record
    if missing_fields and not is_table:  # whose columns are known before
        name = min(missing_fields)
        raise QueryEvalError(f"--map: no record has a field '{name}'{did_you_mean(name, last_fields)}")


def import_cases(
    request: ImportRequest,
    reading: Reading,
    databases: Databases,
    *,
    id_of: Callable[[Record], str] | None = None,
    adapt: Callable[[Record], Record] = lambda record: record,
    predictions: Predictions | None = None,
    name: str = "",
) -> Import:
    """Return an import with a case for each record, whose keys are in the fields of `reading`.

    `adapt` changes a record first, or raises `RecordError` to skip it. `id_of` returns the id of a record; by default,
    the id is in the field of `id`. Each record is counted in `reading`. The import has a warning if no field contains
    the question. Raise `QueryEvalError` if `--map` makes an answer metadata.
    """
    fields = reading.fields
    answers = [fields.name(key) for key in ANSWERS]
    for stated in metadata_fields(request.columns):
        inside = (
            answer for answer in answers if f"{stated}.".startswith(f"{answer}.") or answer.startswith(f"{stated}.")
        )
        if answer := next(filter(None, inside), ""):
            raise QueryEvalError(f"--map metadata: '{answer}' is an answer, which predictors must not see")

    def case_of(id_: str, record: Record) -> ImportedCase:
        reading.count(record)
        adapted = adapt(record)
        return ImportedCase(id=id_, keys=_case_keys(adapted, request, fields, databases), files=adapted.files)

    warnings = [] if "question" in fields.by_key else ["no field has the question: name it, --map question=FIELD"]
    imported = import_records(
        request,
        reading.records,
        id_of or (lambda record: record.id(fields.name("id"))),
        case_of,
        settings=databases.settings,
        predictions=predictions,
        name=name,
    )
    return replace(imported, reading=reading, warnings=warnings)


def _case_keys(record: Record, request: ImportRequest, fields: Fields, databases: Databases) -> dict[str, JsonValue]:
    """Return the keys of a case without its id; raise `RecordError` if no case can be made of the record.

    The keys include the kind, question, right answer, prediction, source, skip and description. A chat becomes a
    conversation. The file of the case's database is added to `databases`.
    """
    kind = record.text(fields.name("kind")) or fields.kind
    if kind is None:
        answer = record.value(fields.name("gold"))
        if answer is NOTHING or isinstance(answer, str | int):
            _golds(record, "sql", fields, request)
        raise RecordError("it has no kind: say it with --kind")
    if kind not in KINDS:
        raise RecordError(f"unknown kind '{one_line(kind)}'{did_you_mean(kind, KINDS.names())}")
    question, messages = _question(record, fields)
    keys = description_keys(record, fields, metadata_fields(request.columns))
    keys = {"question": question, **({} if kind == fields.kind else {"kind": kind}), **keys}
    if _flag(record, fields.name("answerable")) is False:
        keys["answerable"] = False
    elif not record.keys.keys() & {"gold", "gold_file"}:
        keys |= _golds(record, kind, fields, request)
    predicted = record.value(fields.name("predicted"))
    if predicted is not None and predicted is not NOTHING and request.predictions is None:
        if KINDS[kind].has_queries and not isinstance(predicted, str):
            raise RecordError(f"'{fields.name('predicted')}' is not a query")
        keys["predicted"] = predicted
    if database := record.text(fields.name("source")):
        keys |= databases.source_of(database) or {"metadata": {**mapping(keys.get("metadata")), "db_id": database}}
    else:
        databases.check_shared(kind)
    keys |= _skip(record, fields.name("skip"))
    if _flag(record, fields.name("allow_empty")):
        keys["allow_empty"] = True
    keys |= record.keys
    return _conversation(keys, messages) if messages else keys


def description_keys(record: Record, fields: Fields, metadata_names: Sequence[str]) -> dict[str, JsonValue]:
    """Return the keys that describe a case: evidence, difficulty, tags and metadata; empty values are left out.

    A difficulty that is not a valid marker is also kept, as written, in the metadata.
    """
    keys: dict[str, JsonValue] = {}
    if evidence := record.text(fields.name("evidence")):
        keys["evidence"] = evidence
    values = {name: record.value(name) for name in metadata_names}
    metadata = {name: value for name, value in values.items() if value is not NOTHING}
    difficulty = record.text(fields.name("difficulty"))
    if marker := as_marker(difficulty):
        keys["difficulty"] = marker
    if marker != difficulty:
        metadata["difficulty"] = difficulty
    tags = record.value(fields.name("tags"))
    tag_list = tags if isinstance(tags, list) else record.text(fields.name("tags")).split(",")
    if markers := as_markers(str(tag).strip() for tag in tag_list):
        keys["tags"] = list[JsonValue](markers)
    if metadata:
        keys["metadata"] = metadata
    return keys


def _question(record: Record, fields: Fields) -> tuple[str, list[tuple[str, str]]]:
    """Return the question, and the messages before it if the field is a chat, whose last user message is the question.

    Raise `RecordError` for a chat without a user message or with an unknown role.
    """
    value = record.value(fields.name("question"))
    messages = messages_of(value)
    if messages is None:
        return record.text(fields.name("question")), []
    users = [place for place, (role, _) in enumerate(messages) if role == "user"]
    if not users:
        raise RecordError(f"'{fields.name('question')}' has no message of a user")
    if strange := next((role for role, _ in messages if role not in ROLES), None):
        raise RecordError(f"'{one_line(strange, 40)}' is no role of a message: write {', '.join(ROLES)}")
    return messages[users[-1]][1], messages[: users[-1]]


def _conversation(keys: Mapping[str, JsonValue], before: Sequence[tuple[str, str]]) -> dict[str, JsonValue]:
    """Return the keys of a case as a conversation: messages before it, the question, and gold as the target.

    Raise `RecordError` if the case has no single gold.
    """
    if "gold" not in keys:
        raise RecordError("a question in a chat has one query or value as right answer: leave the chat out")
    turns: list[JsonValue] = [{"role": role, "content": text} for role, text in before]
    turns += [{"role": "user", "content": keys["question"]}, {"role": "assistant", "target": keys["gold"]}]
    kept = excluding(keys, ("question", "gold"))
    return {**kept, "conversation": turns}


def _golds(record: Record, kind: str, fields: Fields, request: ImportRequest) -> dict[str, JsonValue]:
    if "gold_table" in fields.by_key and KINDS[kind].has_queries:
        stored = record.value(fields.name("gold_table"))
        if stored is not NOTHING:
            return {"gold_table": gold_table(stored)}
    for key in ("gold", "gold_any"):
        value = record.value(fields.name(key))
        if value is not NOTHING:
            is_several = key == "gold_any" or (isinstance(value, list) and KINDS[kind].has_queries)
            values = value if is_several else [value]
            if not isinstance(values, list):
                raise RecordError(f"'{fields.name(key)}' is not a list")
            return gold_keys(values, kind, request.split, is_several=is_several)
    gold = fields.by_key.get("gold_table") or fields.by_key.get("gold")
    if gold and gold.name != "gold":
        if not gold.is_guess and gold.name not in request.columns.values():
            record.required(gold.name)
        how = "which seems to have" if gold.is_guess else "where --map expects"
        raise RecordError(f"there is nothing in '{gold.name}', {how} its right answer (it has {record.names})")
    raise RecordError(f"it has no 'gold': name the field with --map gold=FIELD (it has {record.names})")


def _skip(record: Record, field: str) -> dict[str, JsonValue]:
    text = record.text(field).strip()
    if text.lower() not in FLAGS and flag_hint(text):
        raise RecordError(f"'{field}' is '{text}': write TRUE, FALSE or a reason")
    flag = FLAGS.get(text.lower(), text)
    return {} if flag in ("false", "") else {"skip": True if flag == "true" else flag}


def _flag(record: Record, field: str) -> bool | None:
    """Return whether a field says yes or no; None if it is empty; raise `RecordError` for another text."""
    text = record.text(field).strip()
    if not text:
        return None
    if text.lower() not in FLAGS:
        raise RecordError(f"'{field}' is '{one_line(text, 40)}': write TRUE or FALSE")
    return FLAGS[text.lower()] == "true"


def mapping(value: JsonValue | None) -> Mapping[str, JsonValue]:
    """Return the value if it is an object, else an empty object."""
    return value if isinstance(value, dict) else {}


class Predictions:
    """Entries for a file of predictions, by the position, id or question of their case."""

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
        """Return the entries of a case, which then count as used; empty if there are none."""
        key = self._key(position, id_, question)
        self._unused.pop(key, None)
        return self._entries.get(key, ())

    def database_of(self, position: int, id_: str, question: str) -> str:
        """Return the database that BIRD's marker names after the query of a case; empty without a marker."""
        return self._databases.get(self._key(position, id_, question), "")

    def _key(self, position: int, id_: str, question: str) -> str:
        return {"position": str(position), "id": id_, "question": normalize_key(question, "question")}[self._key_name]

    def unused(self) -> Iterator[SkippedRecord]:
        """Yield a skipped record for each prediction that no call of `of` has returned."""
        yield from (
            SkippedRecord(key, f"a prediction whose {self._key_name} is that of no case") for key in self._unused
        )


def read_predictions(path: Path | None) -> Predictions:
    """Return the predictions in a file that the predictor `file` reads; no predictions for None.

    As in the predictor's short form, settings may follow the path after a `?`. Plain lines belong to cases by position.
    Raise `QueryEvalError` for an unknown format, and for a file that cannot be read.
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
    """Return predictions for the cases at their positions; BIRD's marker is removed from the answers."""
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
    """Return an import with a case for each record, and a skipped record if `case_of` raises an error.

    `case_of` gets the id and the record, and raises `RecordError` or `CaseError`. By default, the request names the
    predictions, and its source names the import. Predictions without a case become skipped records at the end.
    """
    of_cases = read_predictions(request.predictions) if predictions is None else predictions

    def cases() -> Iterator[ImportedCase | SkippedRecord]:
        for position, record in enumerate(records):
            if isinstance(record, SkippedRecord):
                yield record
                continue
            id_ = id_of(record)
            try:
                case = case_of(id_, record)
            except (RecordError, CaseError) as error:
                of_cases.of(position, id_, "")
                yield SkippedRecord(id_, error.problem if isinstance(error, CaseError) else str(error))
            else:
                found = of_cases.of(position, id_, str(case.keys.get("question", "")))
                yield replace(case, predictions=found or case.predictions)
        yield from of_cases.unused()

    return Import(
        name=name or request.source.stem,
        settings=settings,
        cases=cases(),
        predictions="" if request.predictions is None else PREDICTIONS,
    )


def check_count(predictions: int, cases: int, path: Path, *, empty: str) -> None:
    """Raise `QueryEvalError` if there are not as many predictions as cases, so that positions do not fit.

    `empty` says what the file should contain for a missing prediction.
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
    is_any_file: bool = False,
) -> None:
    """Raise `QueryEvalError` for an option that the format does not use.

    `columns` are the keys that `--map` may name; `kind` is the only kind of the format, if it has one.
    """
    if kind is not None and request.kind not in (None, kind):
        raise QueryEvalError(f"--kind {request.kind}: cases of this format are of the kind '{kind}': leave it out")
    if request.language != DEFAULT_LANGUAGE and not has_languages:
        raise QueryEvalError(
            f"--language {request.language}: questions of this format are in one language: leave it out"
        )
    options = {
        "--delimiter": request.delimiter,
        "--sheet": request.sheet,
        "--header-row": request.header_row,
        "--records": request.records or None,
        "--split": request.split,
    }
    reason, fit = "this format says itself where its cases are", set[str]()
    if is_any_file and is_table(request.source):
        reason, fit = "a table has rows and no list below a key", {*options} - {"--records"}
    elif is_any_file:
        reason, fit = "this format is no table", {"--records", "--split"}
    for option, value in options.items():
        if value is not None and option not in fit:
            raise QueryEvalError(f"{option}: {reason}: leave it out")
    for key in request.columns:
        if key not in columns:
            remedy = did_you_mean(key, columns) if columns else ": the format names its fields itself, so leave it out"
            raise QueryEvalError(f"--map {key}: unknown key '{key}'{remedy}")


class Databases:
    """The sources of the cases of an import.

    `settings` contains the keys of `queryeval.yaml`; `source_of` adds the sources that cases name. Names come from the
    data set, so a name that leads out of the folder is refused.
    """

    def __init__(
        self,
        request: ImportRequest,
        source: Path,
        settings: Mapping[str, JsonValue] | None = None,
        beside: Sequence[str] = FOLDERS,
    ) -> None:
        """Use the folder or the source of the request, else the first folder in `beside` that is next to the test set.

        Raise `QueryEvalError` for a folder that does not exist, and for a source with a password.
        """
        self.settings: dict[str, JsonValue] = {**(settings or {})}
        self._sources: dict[str, JsonValue] = {}
        self._output = request.output
        self._folder: Path | None = None
        if request.database is not None:
            if any(secrets_in_url(_VARIABLE.sub("", request.database))):
                problem = f"--source {mask_credentials(request.database)}: its password would be in the settings"
                raise QueryEvalError(f"{problem} of the suites: write a variable in its place, such as ${{PASSWORD}}")
            path = relative(Path(request.database), request.output, otherwise=request.database)
            is_script = path.lower().endswith(SCRIPT)
            self.settings["source"] = {"sqlite": {"script": path}} if is_script else path
            return
        folders = (folder for name in beside if (folder := source.parent / name).is_dir())
        self._folder = request.databases or next(folders, None)
        if self._folder is not None and not self._folder.is_dir():
            raise QueryEvalError(f"{self._folder}: is not a folder: --databases names the one with the databases")

    def check_shared(self, kind: str) -> None:
        """Raise `RecordError` if `--source` is missing for a kind with queries, or is given for a kind without."""
        if KINDS[kind].has_queries and "source" not in self.settings:
            raise RecordError("no --source says where its queries run: add it with a path or a URL")
        if not KINDS[kind].has_queries and "source" in self.settings:
            raise RecordError(f"--source is for queries, and it is of the kind '{kind}': import it without")

    def source_of(self, name: str) -> dict[str, JsonValue]:
        """Return the `source` key for a case on the database `name`, and add its file to the settings.

        The result is empty if all cases share one source. Raise `RecordError` if there is no folder, if the name is
        invalid, or if the folder lacks the database.
        """
        if "source" in self.settings:
            return {}
        if self._folder is None:
            own = f"it has a database of its own, '{one_line(name, MAX_NAME)}'"
            raise RecordError(f"{own}: name their folder with --databases, or the source of all with --source")
        if name in self._sources:
            return {"source": name}
        shown_name = one_line(name, MAX_NAME)
        is_unfit = len(name) > MAX_NAME or utf8_safe(name) != name
        if name in ("", ".", "..") or is_unfit or any(sign in name for sign in ("/", "\\", "\0", "${")):
            raise RecordError(f"'{shown_name}' is not a name of a database")
        folder = os.path.realpath(self._folder)
        for suffix in SUFFIXES:
            for path in (self._folder / name / f"{name}{suffix}", self._folder / f"{name}{suffix}"):
                if not os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for names that no file can have
                    continue
                if not Path(os.path.realpath(path)).is_relative_to(folder):
                    raise RecordError(f"{path} is a link that leads out of the folder: replace it with the file")
                self._sources[name] = relative(path, self._output)
                self.settings["sources"] = self._sources
                return {"source": name}
        places = f"{shown_name}/{shown_name}.sqlite or {shown_name}.sqlite"
        raise RecordError(f"there is no database {places} (or .duckdb) in {self._folder}")


def relative(path: Path, output: Path, *, otherwise: str | None = None) -> str:
    """Return the path of a file relative to `output`, as suites in that folder name it.

    For a file that does not exist, return `otherwise` if it is given. Raise `QueryEvalError` if suites cannot name it.
    """
    if otherwise is not None and not os.path.exists(path):  # noqa: PTH110 - as above
        return otherwise
    relative_path = os.path.relpath(os.path.abspath(path), output)  # noqa: PTH100 - links are not followed
    if utf8_safe(relative_path) != relative_path:
        raise QueryEvalError(f"{relative_path}: is not a name in UTF-8, in which suites are written: rename it")
    if "${" in relative_path:
        raise QueryEvalError(f"{relative_path}: suites would take `${{` for a variable: rename the folder")
    return relative_path
