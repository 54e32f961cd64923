"""Questions of Spider 2, lite and snow: JSON lines, and a folder `gold` with results and how they are compared."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.table import Table
from pytest_queryeval.documents.document import MEBIBYTE, Node, file_at
from pytest_queryeval.features.transfer.importers import Import, ImportedCase, ImportRequest, SkippedRecord
from pytest_queryeval.features.transfer.importers.reading import Record, RecordError, read_records
from pytest_queryeval.features.transfer.importers.records import (
    Databases,
    Predictions,
    check_request,
    import_records,
    relative,
)
from pytest_queryeval.languages import KINDS
from pytest_queryeval.text.formatting import one_line

MAX_TEXT_BYTES = 2 * MEBIBYTE
# Numbers are equal within 0.01, and within the default of Python's `math.isclose`.
NUMBERS: Mapping[str, JsonValue] = {"abs": 0.01, "rel": 1e-9}
GOLD_FOLDERS = ("evaluation_suite/gold", "gold")
DATABASE_FOLDERS = ("resource/databases/spider2-localdb", "resource/databases")
DOCUMENTS = "resource/documents"
_GOLD_FILE = re.compile(r"(?P<id>.+)_[a-z]\.csv")


def import_spider2(request: ImportRequest) -> Import:
    """Return a case for each question with published results, any of which is right.

    Predictions are files in a folder, named by id.
    """
    check_request(request, kind="sql")
    read = _Reader(request)
    imported = import_records(
        request,
        read_records(request.source),
        lambda record: record.id("instance_id"),
        read.case,
        settings=read.databases.settings,
        predictions=Predictions("id", {}),
    )

    def cases() -> Iterator[ImportedCase | SkippedRecord]:
        yield from imported.cases
        yield from (SkippedRecord(name, "a prediction whose id is that of no case") for name in read.unused_predictions)

    return replace(imported, cases=cases())


class _Reader:
    """Makes cases from the source, the files next to it (results, rules, documents, databases) and the predictions."""

    def __init__(self, request: ImportRequest) -> None:
        folder = request.source.parent
        gold = next((path for name in GOLD_FOLDERS if (path := folder / name).is_dir()), None)
        if gold is None:
            raise QueryEvalError(f"{folder}: the folder {GOLD_FOLDERS[0]} with results is not next to the source")
        self.databases = Databases(request, request.source, {"kind": "sql"}, DATABASE_FOLDERS)
        self._output = request.output
        self._rules = _rules(gold)
        results = _files(gold / "exec_result", ".csv").values()
        self._golds: dict[str, list[Path]] = {}  # `ID.csv`, or else `ID_a.csv`, `ID_b.csv` and so on, by id
        for path in results:
            if match := _GOLD_FILE.fullmatch(path.name):
                self._golds.setdefault(match["id"], []).append(path)
        self._golds |= {path.stem: [path] for path in results}
        self._documents = _files(folder / DOCUMENTS, ".md")
        if request.predictions is not None and not request.predictions.is_dir():
            raise QueryEvalError(
                f"{request.predictions}: is not a folder: predictions are files in one, ID.sql or ID.csv"
            )
        self._predictions = {} if request.predictions is None else _files(request.predictions, ".sql", ".csv")
        self.unused_predictions = dict.fromkeys(self._predictions)

    def case(self, id_: str, record: Record) -> ImportedCase:
        """Return the case of a record, with its document as evidence, published results as golds, and its prediction.

        A stored result as prediction needs no database. The prediction then counts as used. Raise `RecordError` or
        `CaseError` if a file is missing or invalid.
        """
        names = (f"{id_}.csv", f"{id_}.sql")
        stored, query = map(self._predictions.get, names)
        for name in names:
            self.unused_predictions.pop(name, None)
        database = record.text("db") or record.text("db_id")
        keys: dict[str, JsonValue] = {"question": record.text("question") or record.text("instruction")}
        if knowledge := record.text("external_knowledge"):
            if knowledge not in self._documents:
                raise RecordError(f"there is no document '{one_line(knowledge)}' in {DOCUMENTS}")
            keys["evidence"] = file_at(self._documents[knowledge]).text(MAX_TEXT_BYTES)
        answer, files = _answer_keys(self._golds.get(id_, []), self._rules.get(id_), self._output)
        keys |= {**answer, "metadata": {"db": database}}
        if stored:
            _stored_table(stored)
            return ImportedCase(id=id_, keys={**keys, "predicted_file": relative(stored, self._output)}, files=files)
        try:
            keys |= self.databases.source_of(database)
        except RecordError as error:
            remedy = "give the folder of the SQLite databases as --databases, or the source of all as --source"
            raise RecordError(f"database '{one_line(database)}' is not there: {remedy}") from error
        predictions = [{"predicted": file_at(query).text(MAX_TEXT_BYTES)}] if query else []
        return ImportedCase(id=id_, keys=keys, predictions=predictions, files=files)


def _files(folder: Path, *suffixes: str) -> dict[str, Path]:
    """Return the files of a folder with these suffixes by name, without links that lead out of the folder."""
    if not folder.is_dir():
        return {}
    paths = (path for path in sorted(folder.iterdir()) if path.suffix in suffixes and path.is_file())
    return {path.name: path for path in paths if path.resolve().parent == folder.resolve()}


def _rules(gold: Path) -> dict[str, Record]:
    files = _files(gold, ".jsonl")
    if len(files) != 1:
        raise QueryEvalError(f"{gold}: expected one file of JSON lines with `condition_cols`, found {len(files)}")
    (path,) = files.values()
    records = (record for record in read_records(path) if isinstance(record, Record))
    return {record.text("instance_id"): record for record in records}


def _answer_keys(
    paths: Sequence[Path], rules: Record | None, output: Path
) -> tuple[dict[str, JsonValue], Mapping[str, bytes]]:
    """Return the keys of right answers and their comparison, and new files for answers with their own columns.

    Raise `RecordError` if there are no results, no rules, or a column that does not exist.
    """
    if rules is None or not paths:
        raise RecordError("it has no published result" if rules else "it has no published rules of comparison")
    compare: dict[str, JsonValue] = {"numbers": dict(NUMBERS), "extra_columns": "allow"}
    compare["row_order"] = "ignore" if rules.fields.get("ignore_order") else "strict"
    tables = [_stored_table(path) for path in paths]
    columns = _compared_columns(rules.fields.get("condition_cols"), tables)
    files: dict[str, bytes] = {}
    names: list[str] = []
    if len(set(columns)) == 1:
        names = [relative(path, output) for path, _ in zip(paths, columns, strict=False)]
        compare |= {"gold_columns": list(columns[0])} if columns[0] else {}
    else:  # answers of which other columns count
        for path, answer_columns in zip(paths, columns, strict=False):
            name = f"gold/{path.name}" if answer_columns else relative(path, output)
            if answer_columns:
                rows = csv.reader(io.StringIO(file_at(path).text(MAX_TEXT_BYTES * 16), newline=""))
                text = io.StringIO(newline="")
                csv.writer(text).writerows([row[column] for column in answer_columns] for row in rows if row)
                files[name] = text.getvalue().encode()
            names.append(name)
    gold: dict[str, JsonValue] = {"gold_file": names[0]}
    if len(names) > 1:
        gold = {"gold_any": [{"file": name} for name in names]}
    return {**gold, "compare": compare}, files


def _compared_columns(conditions: JsonValue, tables: Sequence[Table]) -> list[tuple[int, ...]]:
    """Return for each answer the columns that count, an empty tuple if all do.

    Raise `RecordError` for a column that does not exist.
    """
    lists = conditions if isinstance(conditions, list) else []
    nested = [columns for columns in lists if isinstance(columns, list)]
    # As in the published tool, answers without a list do not count.
    column_lists = nested if any(nested) else [[] if nested else lists] * len(tables)
    for columns, table in zip(column_lists, tables, strict=False):
        for column in columns:
            if type(column) is not int or not 0 <= column < len(table.columns):
                raise RecordError(f"a result has no column {one_line(str(column))}: it has {len(table.columns)}")
    return [tuple(column for column in columns if isinstance(column, int)) for columns in column_lists[: len(tables)]]


def _stored_table(path: Path) -> Table:
    """Return the table of a stored answer as the loader reads it; raise `CaseError` if it cannot."""
    file = file_at(path)
    answer = KINDS["sql"].read_file(Node(path.name, 0, "quoted", file)).answer
    assert isinstance(answer, Table)
    return answer
