"""Reader of records: a JSON list, or JSON lines, which are read one by one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from pytest_queryeval.core.errors import CaseError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.documents.document import MAX_JSONL_LINE, MEBIBYTE, File, file_at
from pytest_queryeval.documents.strict_json import StrictJson, syntax_problem
from pytest_queryeval.documents.values import json_value
from pytest_queryeval.documents.yaml_nodes import read_yaml
from pytest_queryeval.features.transfer.importers import Skipped
from pytest_queryeval.suites import is_suite_file
from pytest_queryeval.text.formatting import one_line

MAX_BYTES = 512 * MEBIBYTE
MAX_LEVELS = 90  # the loader reads 100, of which a suite needs a few itself
MAX_DIGITS = 4_000
MAX_NAMES = 10  # of fields in a message
LINES_SUFFIXES = (".jsonl", ".ndjson")
_JSON = StrictJson()


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


def read_records(path: Path) -> Iterator[Record | Skipped]:
    """Yield the objects of a file; raise `CaseError` if it is not a file of objects at all."""
    file = file_at(path)
    records: Iterable[tuple[str, JsonValue | CaseError]]
    if file.path.suffix.lower() in LINES_SUFFIXES:
        records = _lines(file)
    else:
        items = read_json_file(file)
        if not isinstance(items, list):
            raise file.problem("expected a list of objects, `[{…}, …]`")
        records = ((f"item {number}", item) for number, item in enumerate(items, start=1))
    for position, (place, value) in enumerate(records):
        if isinstance(value, CaseError):
            yield Skipped(place, value.problem)
        elif isinstance(value, dict):
            try:
                check_size(value)
            except ValueError as error:
                yield Skipped(place, str(error))
            else:
                yield Record(place, position, value)
        else:
            yield Skipped(place, 'expected an object, such as {"question": …}')


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
        raise file.problem("is empty")
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
