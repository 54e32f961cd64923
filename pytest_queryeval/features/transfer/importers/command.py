"""Writes suites from a data set, a table or another tool's tests, case by case: memory does not limit their number."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from io import BufferedWriter
from pathlib import Path
from shutil import rmtree

from pytest_queryeval.cli.output import Result, first_lines, write_lines
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.files import unfinished_path
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.documents.document import MAX_JSONL_BYTES, MAX_JSONL_LINE, MEBIBYTE
from pytest_queryeval.documents.tables import is_delimiter
from pytest_queryeval.documents.yaml_nodes import MAX_YAML_BYTES as MAX_LOADED_BYTES
from pytest_queryeval.documents.yaml_nodes import to_yaml
from pytest_queryeval.features.transfer.importers import (
    DEFAULT_LANGUAGE,
    IMPORTERS,
    Import,
    ImportedCase,
    ImportRequest,
    SkippedRecord,
)
from pytest_queryeval.features.transfer.importers.reading import check_size
from pytest_queryeval.languages import KINDS
from pytest_queryeval.predictors.file.predictions import MAX_BYTES as MAX_PREDICTIONS_BYTES
from pytest_queryeval.suites.editor_schema import SCHEMA_FILES, SchemaName, schema_comment, schema_text
from pytest_queryeval.text.formatting import one_line, pluralize

EXAMPLE = "queryeval import spider spider/dev.json --databases spider/database -o suites/spider"
PROGRESS_CASES = 100_000
NAMES_CHARACTERS = 500
FIRST_CASES = 3  # that a dry run shows
GATES_HINT = "single wrong answers do not fail it (`on_miss: xfail`): set the `min` that your system has to reach"
OK, FINDINGS = 0, 1
MAX_YAML_CASES = 2_000  # more are written as JSON lines, which are read much faster
MAX_YAML_BYTES = MAX_JSONL_LINE  # as JSON lines: indented, they can be several times as large
MAX_SUITE_BYTES = MAX_JSONL_BYTES // 4
MAX_ID = 200
MAX_NAME = 60
SETTINGS, PREDICTOR = "queryeval.yaml", "predict.py"
PREDICTOR_TEXT = '''"""The predictor of the suites in this folder."""


def predict(case):
    """Return the answer of your system to `case.question`."""
    raise NotImplementedError("write your predictor here")
'''
_NOT_IN_NAMES = re.compile(r"[^\w\-.]|^\.")  # hidden files are not suites
_NOT_IN_IDS = re.compile(r"[^\w\-.:/]|:{2,}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the format, the source, the folder of the suites, and settings that the source lacks."""
    parser.add_argument("format", choices=IMPORTERS.names(), metavar="FORMAT", help=", ".join(IMPORTERS.names()))
    parser.add_argument("source", type=Path, metavar="SOURCE", help="the file with the questions and right answers")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("suites"), metavar="DIR", help="the folder of the suites (suites)"
    )
    parser.add_argument("--predictions", type=Path, metavar="FILE", help="predictions in the form of the format")
    parser.add_argument("--kind", choices=KINDS.names(), help="the kind of all cases, if the format does not say it")
    add_reading_options(parser)
    parser.add_argument("--dry-run", action="store_true", help="print the first cases and write nothing")
    parser.add_argument("--force", action="store_true", help="replace the suites of an earlier import")


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where the source has its cases, and where their databases are."""
    databases = parser.add_mutually_exclusive_group()
    of_each = "the folder with the database of each case, as DB/DB.sqlite or DB.sqlite"
    databases.add_argument("--databases", type=Path, metavar="DIR", help=of_each)
    databases.add_argument("--source", dest="database", metavar="SOURCE", help="the source of all cases: a path or URL")
    parser.add_argument(
        "--language", default=DEFAULT_LANGUAGE, metavar="CODE", help="the language of the questions (en)"
    )
    column = "read a key of the cases from this field, as in gold=golden_sql.sqlite; may be given again"
    parser.add_argument("--map", action="append", type=_key_and_field, default=[], metavar="KEY=FIELD", help=column)
    listed = "the list of records below this key, if several could be it"
    parser.add_argument("--records", default="", metavar="KEY", help=listed)
    several = "what separates several right answers in a text, such as ';'"
    parser.add_argument("--split", type=_mark, metavar="MARK", help=several)
    separator = "what separates the cells of a CSV file, such as ';'"
    parser.add_argument("--delimiter", type=_delimiter, metavar="MARK", help=separator)
    sheet = "the sheet of a workbook, if that is not the first one"
    parser.add_argument("--sheet", metavar="NAME", help=sheet)
    header = "the row of a table with the headers, if a title stands above it"
    parser.add_argument("--header-row", type=_row_number, metavar="N", help=header)


def _key_and_field(text: str) -> tuple[str, str]:
    key, separator, name = text.partition("=")
    if not separator or not key or not name:
        raise argparse.ArgumentTypeError(f"expected KEY=FIELD, found '{text}'")
    return key, name


def _delimiter(text: str) -> str:
    mark = text.replace("\\t", "\t")
    if not is_delimiter(mark):
        raise argparse.ArgumentTypeError(f"expected one character, such as ';', or \\t for a tab, found '{text}'")
    return mark


def _mark(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError(f"expected a mark, such as ';', found '{text}'")
    return text.strip()


def _row_number(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, found '{text}'")
    return int(text)


def run(arguments: argparse.Namespace, change: Callable[[Import], Import] = lambda imported: imported) -> Result:
    """Import a source, apply `change` to the import, and write its suites.

    A dry run prints the first cases and writes nothing. The exit status is 1 if records or predictions were skipped;
    else 0. Raise `QueryEvalError` for a source that cannot be read, and for files that would be overwritten.
    """
    request = request_of(arguments)
    imported = change(IMPORTERS[arguments.format](request))
    imported = replace(imported, cases=_with_progress(imported.cases), source=arguments.source)
    is_dry = arguments.dry_run
    written_suites = write_suites(imported, request.output, force=arguments.force, is_dry=is_dry)
    suites = [] if is_dry else [str(arguments.output / name) for name in written_suites.suites]
    reading = imported.reading
    unread_fields = one_line(", ".join(reading.not_read), NAMES_CHARACTERS) if reading else ""
    return Result(
        status=FINDINGS if written_suites.skipped else OK,
        lines=[
            *(to_yaml({"cases": list[JsonValue](written_suites.first)}).splitlines() if is_dry else []),
            *(f"suite: {path}" for path in suites),
            f"{pluralize(written_suites.cases, 'case')}, {len(written_suites.skipped):,} skipped",
            *([reading.line()] if reading else []),
            *(
                [f"a run fails by the gate in {arguments.output / SETTINGS}: {GATES_HINT}"]
                if "gates" in imported.settings
                else []
            ),
            *(f"warning: {warning}" for warning in imported.warnings),
            *([f"not read: {unread_fields} (--map KEY=FIELD reads one)"] if unread_fields else []),
            *first_lines([f"skipped {entry.id}: {entry.reason}" for entry in written_suites.skipped]),
        ],
        data={
            "suites": suites,
            "cases": written_suites.cases,
            "skipped": [entry._asdict() for entry in written_suites.skipped],
            "warnings": list(imported.warnings),
            "not_read": reading.not_read if reading else [],
            "fields": {}
            if reading is None
            else {
                key: {"name": place.name, "guessed": place.is_guess, "records": reading.counts[key]}
                for key, place in reading.fields.by_key.items()
            },
        },
    )


def request_of(arguments: argparse.Namespace) -> ImportRequest:
    """Return the parsed arguments as a request, with an absolute output folder."""
    return ImportRequest(
        source=arguments.source,
        output=Path(os.path.realpath(arguments.output)),
        predictions=arguments.predictions,
        databases=arguments.databases,
        database=arguments.database,
        kind=arguments.kind,
        language=arguments.language,
        columns=dict(arguments.map),
        records=arguments.records,
        split=arguments.split,
        delimiter=arguments.delimiter,
        sheet=arguments.sheet,
        header_row=arguments.header_row,
    )


def _with_progress(cases: Iterable[ImportedCase | SkippedRecord]) -> Iterator[ImportedCase | SkippedRecord]:
    """Yield the cases, and write their number so far to stderr after every PROGRESS_CASES."""
    for number, case in enumerate(cases):
        if number and not number % PROGRESS_CASES:
            write_lines([f"{pluralize(number, 'case')} read"], sys.stderr)
        yield case


@dataclass(slots=True)
class WrittenSuites:
    """What an import has written."""

    suites: list[str] = field(default_factory=list)
    """The names of the suite files."""
    cases: int = 0
    """The number of cases in them."""
    first: list[dict[str, JsonValue]] = field(default_factory=list)
    """The first cases, for a dry run."""
    skipped: list[SkippedRecord] = field(default_factory=list)
    """The records and predictions that are in no suite."""


def write_suites(imported: Import, folder: Path, *, force: bool, is_dry: bool = False) -> WrittenSuites:
    """Write the suites, settings, schemas and predictions of an import into a folder, all or nothing.

    With `is_dry`, they are written to a temporary folder and removed. Without `force`, no file is overwritten; existing
    JSON Schemas are kept. A `predict.py` is never overwritten. Raise `QueryEvalError` if a file exists or cannot be
    written, or if there is no case.
    """
    name = _NOT_IN_NAMES.sub("-", imported.name)[:MAX_NAME]
    staging = Path(tempfile.mkdtemp()) / "suites" if is_dry else unfinished_path(folder)
    try:
        suite = re.compile(rf"{re.escape(name)}(-\d+)?\.queryeval\.(yaml|jsonl)")
        there = sorted(folder.iterdir()) if folder.exists() else []
        earlier_files = [
            path for path in there if path.name in (SETTINGS, imported.predictions) or suite.fullmatch(path.name)
        ]
        if earlier_files and not force and not is_dry:
            raise _exists_error(earlier_files[0])
        staging.mkdir(parents=True)
        suites = _write_into(staging, imported, name)
        if is_dry:
            return suites
        targets = {path: folder / path.relative_to(staging) for path in staging.rglob("*") if path.is_file()}
        for kept_name in (PREDICTOR, *(() if force else SCHEMA_FILES.values())):
            if (folder / kept_name).exists():
                targets.pop(staging / kept_name, None)
        if not force and (existing_file := next((target for target in targets.values() if target.exists()), None)):
            raise _exists_error(existing_file)
        for target in targets.values():
            target.parent.mkdir(exist_ok=True)
        for path in earlier_files:
            path.unlink()
        for path, target in targets.items():
            path.replace(target)
    except OSError as error:
        raise QueryEvalError(f"{folder}: cannot be written: {error.strerror or error}") from error
    finally:
        rmtree(staging, ignore_errors=True)
    return suites


def _exists_error(path: Path) -> QueryEvalError:
    return QueryEvalError(f"{path}: already exists: write elsewhere, or replace it with --force")


def _write_into(folder: Path, imported: Import, name: str) -> WrittenSuites:
    written_suites, ids = WrittenSuites(), _Ids()
    with ExitStack() as stack:
        files = _Files(folder, name, stack, predictions=imported.predictions)
        for case in imported.cases:
            if isinstance(case, SkippedRecord):
                written_suites.skipped.append(SkippedRecord(case.id[:MAX_ID], case.reason))
            elif problem := _refusal(case) or files.add(case, id_ := ids.new(case.id)):
                written_suites.skipped.append(SkippedRecord(case.id[:MAX_ID], problem))
            else:
                written_suites.cases += 1
                if written_suites.cases <= FIRST_CASES:
                    written_suites.first.append({"id": id_, **case.keys})
        if not written_suites.cases:
            problem = "has no case: name a file with questions"
            if written_suites.skipped:
                id_, reason = written_suites.skipped[0]
                problem = f"no case could be imported, such as '{id_}': {reason}"
            raise QueryEvalError(f"{imported.source or imported.name}: {problem}")
        written_suites.suites = files.finish()
    predictor = imported.predictions or f"{PREDICTOR}:predict"
    _write_yaml(folder / SETTINGS, "settings", {**imported.settings, "predictor": predictor})
    if not imported.predictions:
        (folder / PREDICTOR).write_text(PREDICTOR_TEXT, encoding="utf-8")
    return written_suites


def _write_yaml(path: Path, schema: SchemaName, content: Mapping[str, JsonValue]) -> None:
    """Write a YAML file, and next to it the JSON Schema with which editors check the file."""
    path.write_text(f"{schema_comment(schema)}{to_yaml(content)}", encoding="utf-8")
    path.with_name(SCHEMA_FILES[schema]).write_text(schema_text(schema), encoding="utf-8")


class _Ids:
    """Makes ids of cases: valid in suites, and unique."""

    def __init__(self) -> None:
        self._used_ids: set[str] = set()
        self._repeats: dict[str, int] = {}

    def new(self, original: str) -> str:
        """Return the id of the next case: the original id without invalid characters.

        An empty id becomes `-`, a long one is cut, and a repeated one gets a number.
        """
        fit = new_id = _NOT_IN_IDS.sub(lambda match: "-" * len(match[0]), original)[:MAX_ID] or "-"
        while new_id in self._used_ids:
            self._repeats[fit] = self._repeats.get(fit, 1) + 1
            new_id = f"{fit}-{self._repeats[fit]}"
        self._used_ids.add(new_id)
        return new_id


def _refusal(case: ImportedCase) -> str | None:
    """Return why the loader of suites would refuse a case; None if it would not."""
    for name in ("gold", "gold_any"):
        gold = case.keys.get(name, 0)
        if gold in (None, []) or (isinstance(gold, str) and not gold.strip()):
            return "its right answer is empty"
    try:
        check_size([*case.keys.values(), *case.predictions])
    except ValueError as error:
        return str(error)
    return None


class _Files:
    """Writes the cases and predictions of an import: a few cases as one YAML file, more as files of JSON lines."""

    def __init__(self, folder: Path, name: str, stack: ExitStack, *, predictions: str) -> None:
        self._folder = folder
        self._name = name
        self._stack = stack
        self._suites: list[BufferedWriter] = []
        self._bytes = 0  # of the last one
        self._count = 0
        self._predictions = stack.enter_context((folder / predictions).open("xb")) if predictions else None
        self._predictions_bytes = 0

    def add(self, case: ImportedCase, new_id: str) -> str | None:
        """Write a case with its predictions and files; return why no file can contain it, None if it was written.

        If the id is new, the original id becomes metadata. A new file of JSON lines begins when the current one is
        full. Raise `QueryEvalError` if the predictions are too large.
        """
        keys: dict[str, JsonValue] = {"id": new_id, **case.keys}
        if new_id != case.id:
            metadata = keys.get("metadata")
            keys["metadata"] = {**(metadata if isinstance(metadata, dict) else {}), "original_id": case.id}
        try:
            line = _json_line(keys)
            turns = keys.get("conversation")
            turn_id = f"{new_id}.{len(turns)}" if isinstance(turns, list) else new_id  # as the loader calls it
            predictions = b"".join(_json_line({"id": turn_id, **prediction}) for prediction in case.predictions)
        except UnicodeEncodeError:
            return "a text contains half of a surrogate pair, which is not a character"
        if len(line) > MAX_JSONL_LINE:
            return f"it is larger than {MAX_JSONL_LINE // MEBIBYTE} MiB"
        self._predictions_bytes += len(predictions)
        if self._predictions_bytes > MAX_PREDICTIONS_BYTES:
            limit = MAX_PREDICTIONS_BYTES // MEBIBYTE
            raise QueryEvalError(f"{self._name}: more than {limit} MiB of predictions: import the source in parts")
        if self._predictions is not None:
            self._predictions.write(predictions)
        for name, content in case.files.items():
            (self._folder / name).parent.mkdir(exist_ok=True)
            (self._folder / name).write_bytes(content)
        self._count += 1
        if not self._suites or self._bytes + len(line) > MAX_SUITE_BYTES:
            for full in self._suites[-1:]:
                full.close()
            name = f"{self._name}-{len(self._suites) + 1:03}.queryeval.jsonl"
            self._suites.append(self._stack.enter_context((self._folder / name).open("xb")))
            self._bytes = 0
        self._suites[-1].write(line)
        self._bytes += len(line)
        return None

    def finish(self) -> list[str]:
        """Close the files, and return the names of all suites.

        A single file with few cases is replaced by a suite in YAML with its schema, unless that is too large for the
        loader.
        """
        for suite in self._suites:
            suite.close()
        lines = [Path(suite.name) for suite in self._suites]
        if len(lines) == 1 and self._count <= MAX_YAML_CASES and self._bytes <= MAX_YAML_BYTES:
            path = self._folder / f"{self._name}.queryeval.yaml"
            cases: list[JsonValue] = [json.loads(line) for line in lines[0].read_bytes().splitlines()]
            _write_yaml(path, "suite", {"cases": cases})
            unread = lines[0] if path.stat().st_size <= MAX_LOADED_BYTES else path
            unread.unlink()
            lines = [path for path in (path, *lines) if path != unread]
        return [path.name for path in lines]


def _json_line(value: Mapping[str, JsonValue]) -> bytes:
    return f"{json.dumps(value, ensure_ascii=False, allow_nan=False)}\n".encode()
