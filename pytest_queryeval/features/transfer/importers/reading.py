"""Files of test sets as records: JSON lines, rows of tables, and lists or mappings of ids in JSON, YAML and TOML."""

from __future__ import annotations

import json
import math
import shlex
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Any, TypeAlias

from pytest_queryeval.core.errors import CaseError, QueryEvalError, did_you_mean
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.documents.document import MAX_JSONL_LINE, MEBIBYTE, File, file_at
from pytest_queryeval.documents.strict_json import DuplicateKeyError, StrictJson, refuse_duplicates, syntax_problem
from pytest_queryeval.documents.tables import Table, is_table, open_table
from pytest_queryeval.documents.values import json_value
from pytest_queryeval.documents.yaml_nodes import read_yaml
from pytest_queryeval.features.transfer.importers import ImportRequest, SkippedRecord
from pytest_queryeval.features.transfer.importers.fields import (
    NOTHING,
    OTHER_GOLDS,
    find_fields,
    guess_fields,
    has_named,
    value_at,
)
from pytest_queryeval.suites import is_suite_file
from pytest_queryeval.text.formatting import one_line

MAX_BYTES = 512 * MEBIBYTE
MAX_LEVELS = 90  # the loader reads 100, of which a suite needs a few itself
MAX_DIGITS = 4_000
MAX_NAMES = 10  # of fields in a message
LIST_DEPTH = 2  # of the list of records below keys
SAMPLE = 100  # records that say where the fields are
JSONL_SUFFIXES = (".jsonl", ".ndjson")
Items: TypeAlias = "Iterable[tuple[str, JsonValue | CaseError]]"  # by their places


class _Doubtful(dict[str, JsonValue]):
    """An object that has a key twice, so that it is not clear which value is meant; `problem` says so."""

    problem = ""


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    try:
        return refuse_duplicates(pairs)
    except DuplicateKeyError as error:
        doubtful = _Doubtful(pairs)
        doubtful.problem = f"not JSON: {error}"
        return doubtful


_JSON = StrictJson(read_object=_read_object, allow_nan=True)  # `check_size` refuses records, and no whole file


class RecordError(Exception):
    """Raised if a record cannot become a case; the message says why."""


@dataclass(frozen=True, slots=True)
class Record:
    """An object of the source: a row of a table, a line, or an item of a list."""

    place: str
    """Its line, its row, its key or its number in a list, for messages."""
    position: int
    fields: Mapping[str, JsonValue]
    problems: Mapping[str, str] = field(default_factory=dict)
    """What is wrong with cells that cannot be read, by their columns."""
    is_row: bool = False
    """Whether it is a row of a table."""
    keys: Mapping[str, JsonValue] = field(default_factory=dict)
    """Keys of its case in the form of suites."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The contents of files that the keys name, by their paths in the folder of the suites."""

    def value(self, name: str) -> JsonValue:
        """Return the value of a field by its dotted name; `NOTHING` if it is missing, or an empty cell.

        Raise `RecordError` for a cell that cannot be read.
        """
        if name in self.problems:
            raise RecordError(self.problems[name])
        value = value_at(self.fields, name) if name else NOTHING
        return NOTHING if self.is_row and value == "" else value

    def text(self, name: str) -> str:
        """Return a field as text: empty if it is missing or null, and JSON for other values than texts.

        Raise `RecordError` for a cell that cannot be read.
        """
        value = self.value(name)
        if value is None or value is NOTHING or isinstance(value, str):
            return value if isinstance(value, str) else ""
        return json.dumps(value, ensure_ascii=False)

    def required(self, name: str) -> JsonValue:
        """Return the value of a field; raise `RecordError`, which names the existing fields, if it is missing."""
        if not self.fields:
            raise RecordError(f"it is not an object with '{name}'")
        if (value := self.value(name)) is NOTHING:
            raise RecordError(f"it has no '{name}' (it has {self.names}): is it of another format?")
        return value

    @property
    def names(self) -> str:
        """The names of its first fields, joined for a message; empty cells are left out."""
        present = [name for name, value in self.fields.items() if value != "" or not self.is_row]
        return ", ".join(map(one_line, present[:MAX_NAMES]))

    def id(self, name: str) -> str:
        """Return the text of a field as id; if it is empty, the place of the record with hyphens."""
        return self.text(name) or self.place.replace(" ", "-")


def read_records(path: Path, list_key: str = "") -> Iterator[Record | SkippedRecord]:
    """Yield the objects of a file that is no table; other items are yielded as skipped records.

    `list_key` is the dotted key of the list of objects. By default, it is the key below which questions or answers are
    found. Raise `CaseError` if the file contains no such list.
    """
    file = file_at(path)
    for position, (place, value) in enumerate(_items_with_places(file, list_key)):
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


def read_rows(request: ImportRequest) -> Iterator[Record | SkippedRecord]:
    """Yield the rows of a table as records; cells that cannot be read are problems of their record.

    Raise `CaseError` if the table lacks a column that `--map` names, or a column of right answers.
    """
    with _open_table(request) as table:
        _check_columns(table, request)
        for position, row in enumerate(table.rows()):
            cells: dict[str, JsonValue] = {}
            problems: dict[str, str] = {}
            for name in table.places:
                try:
                    cells[name] = row.text(name)
                except CaseError as error:
                    problems[name] = f"{error.location.cell}: {error.problem}"
            yield Record(f"row {row.number}", position, cells, problems, is_row=True)


def _open_table(request: ImportRequest) -> AbstractContextManager[Table]:
    file, row = file_at(request.source), request.header_row
    return open_table(file, sheet=request.sheet, delimiter=request.delimiter, header_row=row)


def _check_columns(table: Table, request: ImportRequest) -> None:
    stated = excluding(request.columns, ["metadata"])
    needed = [*stated.values(), *metadata_fields(request.columns)]
    answers = ("gold", *OTHER_GOLDS)
    if not stated.keys() & {*answers} and not any(has_named(key, list(table.places)) for key in answers):
        sample: list[Mapping[str, JsonValue]] = []
        with (
            suppress(CaseError),
            _open_table(request) as again,
        ):  # since `header_below` needs rows that nothing has read
            sample = [{name: row.text(name) for name in again.places} for row in islice(again.rows(), SAMPLE)]
        needed += [] if "gold" in find_fields(sample, request.columns).by_key else ["gold"]
    missing = (name for name in needed if name not in table.places and name.partition(".")[0] not in table.places)
    if (missing_header := next(missing, None)) is None:
        return
    if request.header_row is None and (below := table.header_below(needed, "name it by --header-row {}")):
        raise below
    remedy = "" if "gold" in stated else "name the column of the right queries: --map gold=NAME"
    if table.file.other_sheets and request.sheet is None:
        sheets = ", ".join(f"--sheet {shlex.quote(one_line(name, 40))}" for name in table.file.other_sheets[:5])
        remedy += f"{' ' if remedy else ''}or another sheet: {sheets}"
    raise table.missing_column(missing_header, remedy, setting="name what separates cells, --delimiter '{}'")


def metadata_fields(columns: Mapping[str, str]) -> list[str]:
    """Return the names in `--map metadata=a,b`: the fields that become metadata."""
    return [name for name in columns.get("metadata", "").split(",") if name]


def read_test_set(request: ImportRequest) -> Iterator[Record | SkippedRecord]:
    """Yield the records of any file: rows of a table, lines, or items in JSON, YAML or TOML.

    Raise `CaseError` as `read_rows` and `read_records` do.
    """
    if is_table(request.source):
        return read_rows(request)
    return read_records(request.source, request.records)


def read_value(file: File) -> JsonValue:
    """Return the value in a file of YAML or TOML, by its suffix, else of JSON.

    Raise `CaseError` if the file is a suite, empty, too large or not valid.
    """
    suffix = file.path.suffix.lower()
    if is_suite_file(file.path):
        raise file.problem(f"is a suite, not a test set: run `pytest {file.shown}` without an import")
    if suffix in (".yaml", ".yml"):
        document = read_yaml(file)
        for problem in document.problems:
            raise problem
        if document.root is None:
            raise file.problem("is empty: name the file with the questions")
        value: JsonValue = json_value(document.root)
        return value
    text = file.text(MAX_BYTES)
    if suffix == ".toml":
        try:
            text = json.dumps(tomllib.loads(text), default=str)
        except (ValueError, RecursionError) as error:
            raise file.problem(f"not TOML: {error or 'nested too deeply'}") from error
    return _json_value(file, text, 0)


def numbered_records(items: list[JsonValue], word: str) -> Iterator[Record]:
    """Yield a record for each item, with `word` and its number as place; items that are not objects have no fields."""
    for position, fields in enumerate(items):
        yield Record(f"{word} {position + 1}", position, fields if isinstance(fields, dict) else {})


def check_size(value: object, level: int = 0) -> None:
    """Raise ValueError for what the loader of suites refuses: too many levels, large numbers, NaN, duplicate keys."""
    if isinstance(value, _Doubtful):
        raise ValueError(value.problem)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not JSON: a number is NaN or infinite: write null")
    if level > MAX_LEVELS:
        raise ValueError(f"nested deeper than {MAX_LEVELS} levels")
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            check_size(item, level + 1)
    elif type(value) is int and value.bit_length() > MAX_DIGITS * 3:
        raise ValueError("a number has too many digits")


def _items_with_places(file: File, list_key: str) -> Items:
    if file.path.suffix.lower() in JSONL_SUFFIXES:
        return _json_lines(file)
    try:
        value = read_value(file)
    except CaseError as error:
        if not isinstance(error.__cause__, json.JSONDecodeError) or error.__cause__.msg != "Extra data":
            raise
        return _json_lines(file)  # under another suffix
    if not list_key and isinstance(value, dict):
        list_key = _list_key(value, file)
    if list_key:
        items = value_at(value, list_key) if isinstance(value, dict) else NOTHING
        if items is NOTHING or not isinstance(items, list | dict):
            keys = [*value] if isinstance(value, dict) else []
            raise file.problem(f"--records: there is no list under '{list_key}'{did_you_mean(list_key, keys)}")
        value = items
    if isinstance(value, dict) and not list_key and _has_cases([_without_objects(value)]):
        value = [value]
    if isinstance(value, dict) and value and all(isinstance(item, dict | str) for item in value.values()):
        return (
            (key, {"id": key, **(item if isinstance(item, dict) else {"gold": item})}) for key, item in value.items()
        )
    if not isinstance(value, list):
        raise file.problem("expected a list of objects, `[{…}, …]`, or a mapping of ids to objects or queries")
    return ((f"item {number}", item) for number, item in enumerate(value, start=1))


def _list_key(value: dict[str, JsonValue], file: File) -> str:
    """Return the dotted key of the list of records; empty if the mapping itself contains the records.

    Raise `CaseError` if there are several such lists.
    """
    lists = dict(_lists_of_objects(value))
    named = [key for key, items in lists.items() if _has_cases(items)]
    if not named and not _has_cases([_without_objects(value)]) and not _has_cases([*value.values()]):
        named = [*lists]
    if len(named) > 1:
        names = " or ".join(f"--records {one_line(key, 40)}" for key in named[:MAX_NAMES])
        raise file.problem(f"the records could be in several lists: choose one, {names}")
    return named[0] if named else ""


def _without_objects(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {key: item for key, item in value.items() if not isinstance(item, dict)}


def _lists_of_objects(
    value: Mapping[str, JsonValue], prefix: str = "", depth: int = 1
) -> Iterator[tuple[str, list[JsonValue]]]:
    for key, item in value.items():
        if isinstance(item, list) and any(isinstance(entry, dict) for entry in item[:SAMPLE]):
            yield f"{prefix}{key}", item
        elif isinstance(item, dict) and depth < LIST_DEPTH:
            yield from _lists_of_objects(item, f"{prefix}{key}.", depth + 1)


def _has_cases(items: Sequence[JsonValue]) -> bool:
    """Return whether some of these items have a question or a right answer, maybe in several fields."""
    try:
        found = guess_fields([item for item in items[:SAMPLE] if isinstance(item, dict)], {})
    except QueryEvalError:
        return True  # of several fields
    return found.kind is not None or "question" in found.by_key


def _json_lines(file: File) -> Items:
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
                        value = _json_value(
                            file, file.decoded(line, line=number).removeprefix("\ufeff").strip(), number
                        )
                    except CaseError as error:
                        value = error
                    yield f"line {number}", value
        except OSError as error:
            raise file.unreadable(error) from error


def _json_value(file: File, text: str, line: int) -> JsonValue:
    try:
        value: JsonValue = _JSON.read(text)
    except json.JSONDecodeError as error:
        problem, problem_line, column = syntax_problem(error)
        raise file.problem(problem, line or problem_line, column) from error
    except ValueError as error:
        raise file.problem(f"not JSON: {error}", line) from error
    return value
