"""Spider: `dev.json` with `db_id`, `question` and `query`, or a file of gold queries, `SQL<tab>db_id` a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_queryeval.cli.importers import Import, ImportRequest, Skipped
from pytest_queryeval.cli.importers.columns import check_request, gold_value
from pytest_queryeval.cli.importers.databases import Databases, relative
from pytest_queryeval.cli.importers.predictions import by_position, cases_of, check_count, read_predictions
from pytest_queryeval.cli.importers.records import Record, RecordError, read_json_file, read_records
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.predictors.file.predictions import is_lines, read_lines
from pytest_queryeval.text.truncation import one_line

TABLES = "tables.json"
METRICS = ("execution_accuracy", "execution_accuracy_spider")
OF_SCHEMA = "exact_set_match_spider"


def import_spider(request: ImportRequest) -> Import:
    """Return a case for each question, with its position as id, as its prediction is found by."""
    check_request(request, kind="sql")
    source = request.source / "dev.json" if request.source.is_dir() else request.source
    records = _with_golds(_records(source), source.with_name(f"{source.stem}_gold.sql"))
    databases = Databases(request, source, ("database", "databases", "test_database"))
    predictions = read_predictions(request.predictions)
    if request.predictions and is_lines(request.predictions.name):
        # The published tools read a line up to its first tab.
        answers = [line.partition("\t")[0].strip() for line in read_lines(file_at(request.predictions))]
        check_count(len(answers), len(records), request.predictions)
        predictions = by_position(answers)
    settings: dict[str, JsonValue] = {"kind": "sql", **databases.settings, "metrics": list(METRICS)}
    tables = source.with_name(TABLES)
    listed = _databases_in(tables) if tables.is_file() else None
    if listed is not None:
        settings |= {"metrics": [*METRICS, OF_SCHEMA], "db_schema": relative(tables, request.output)}

    def keys_of(record: Record) -> dict[str, JsonValue]:
        name = record.text("db_id")
        if listed is not None and name not in listed:
            raise RecordError(f"{TABLES} has no schema of the database '{one_line(name)}'")
        keys: dict[str, JsonValue] = {
            "question": record.text("question"),
            "gold": gold_value(record.fields.get("query"), "sql"),
        }
        # The schema is found by `db_id` where the source does not have its name.
        return keys | (databases.source_of(name) or {"metadata": {"db_id": name}})

    cases = cases_of(records, lambda record: str(record.position), keys_of, predictions)
    return Import(name=source.stem, settings=settings, cases=cases, has_predictions=request.predictions is not None)


def _records(source: Path) -> list[Record | Skipped]:
    if is_lines(source.name):
        return [Record(f"line {number}", number - 1, gold) for number, gold in enumerate(_gold_lines(source), start=1)]
    return list(read_records(source))


def _gold_lines(path: Path) -> Iterator[dict[str, JsonValue]]:
    for line in read_lines(file_at(path)):
        query, _, name = line.strip().rpartition("\t")
        yield {"query": query.strip(), "db_id": name}


def _with_golds(records: Sequence[Record | Skipped], golds: Path) -> list[Record | Skipped]:
    """Return the records with queries from the file of golds where they have none, as those of test sets."""
    if any(not isinstance(record, Record) or "query" in record.fields for record in records) or not golds.is_file():
        return list(records)
    lines = list(_gold_lines(golds))
    check_count(len(lines), len(records), golds)
    return [
        Record(record.place, record.position, {**record.fields, **line})
        for record, line in zip(records, lines, strict=True)
        if isinstance(record, Record)
    ]


def _databases_in(tables: Path) -> set[str]:
    file = file_at(tables)
    entries = read_json_file(file)
    if not isinstance(entries, list):
        raise file.problem("expected a list of schemas")
    return {str(entry.get("db_id")) for entry in entries if isinstance(entry, dict)}
