"""Questions of Spider and of BIRD, with the databases beside them.

Spider is `dev.json` with `db_id`, `question` and `query`, or a file of gold queries, `SQL<tab>db_id` a line. BIRD and
its mini-dev are a list with `question_id`, `db_id`, `question`, `evidence`, `SQL` and `difficulty`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.features.transfer.importers import Import, ImportedCase, ImportRequest, Skipped
from pytest_queryeval.features.transfer.importers.databases import Databases, relative
from pytest_queryeval.features.transfer.importers.keys import check_request, described, gold_value
from pytest_queryeval.features.transfer.importers.predictions import (
    Predictions,
    by_position,
    check_count,
    import_records,
    read_predictions,
)
from pytest_queryeval.features.transfer.importers.records import Record, RecordError, read_json_file, read_records
from pytest_queryeval.predictors.file.predictions import BIRD_MARKER, is_lines, read_lines
from pytest_queryeval.text.formatting import one_line

TABLES = "tables.json"
METRICS = ("execution_accuracy", "execution_accuracy_spider")
OF_SCHEMA = "exact_set_match_spider"
# A system gives many wrong answers to a benchmark: their share decides, and none is shown as the failure of a test.
GATED: Mapping[str, JsonValue] = {"on_miss": "xfail", "gates": [{"metric": METRICS[0], "min": 0.8}]}
EMPTY = "an empty line"


def import_spider(request: ImportRequest) -> Import:
    """Return a case for each question. Its id is its position, by which its prediction is found."""
    check_request(request, kind="sql")
    source = request.source / "dev.json" if request.source.is_dir() else request.source
    records: list[Record | Skipped]
    if is_lines(source.name):
        records = [Record(f"line {place + 1}", place, gold) for place, gold in enumerate(_gold_lines(source))]
    else:
        records = _with_golds(list(read_records(source)), source.with_name(f"{source.stem}_gold.sql"))
    databases = Databases(request, source, ("database", "databases", "test_database"))
    predictions = read_predictions(request.predictions)
    if request.predictions and is_lines(request.predictions.name):
        # The published tools read a line up to its first tab.
        answers = [line.partition("\t")[0].strip() for line in read_lines(file_at(request.predictions))]
        check_count(len(answers), len(records), request.predictions, empty=EMPTY)
        predictions = by_position(answers)
    settings: dict[str, JsonValue] = {"kind": "sql", **databases.settings, "metrics": list(METRICS), **GATED}
    tables = source.with_name(TABLES)
    database_names: set[str] | None = None
    if tables.is_file():
        schemas = read_json_file(file_at(tables))
        if not isinstance(schemas, list):
            raise file_at(tables).problem("expected a list of schemas")
        database_names = {str(schema.get("db_id")) for schema in schemas if isinstance(schema, dict)}
        settings |= {"metrics": [*METRICS, OF_SCHEMA], "db_schema": relative(tables, request.output)}

    def case_of(id_: str, record: Record) -> ImportedCase:
        name = record.text("db_id")
        if database_names is not None and name not in database_names:
            raise RecordError(f"{TABLES} has no schema of the database '{one_line(name)}'")
        keys: dict[str, JsonValue] = {
            "question": record.text("question"),
            "gold": gold_value(record.required("query"), "sql"),
        }
        # The schema is found by `db_id` where the source does not have its name.
        keys |= databases.source_of(name) or {"metadata": {"db_id": name}}
        return ImportedCase(id=id_, keys=keys)

    return import_records(
        request,
        records,
        lambda record: str(record.position),
        case_of,
        settings=settings,
        predictions=predictions,
        name=source.stem,
    )


def _gold_lines(path: Path) -> Iterator[dict[str, JsonValue]]:
    for number, line in enumerate(read_lines(file_at(path)), start=1):
        query, tab, name = line.strip().rpartition("\t")
        if line.strip() and not tab:
            raise file_at(path).problem("no tab: each line of a file of golds is `SQL<tab>db_id`", number)
        yield {"query": query.strip(), "db_id": name}


def _with_golds(records: list[Record | Skipped], golds: Path) -> list[Record | Skipped]:
    """Return the records with queries from the file of golds where they have none, as those of test sets."""
    if any(not isinstance(record, Record) or "query" in record.fields for record in records) or not golds.is_file():
        return records
    lines = list(_gold_lines(golds))
    check_count(len(lines), len(records), golds, empty=EMPTY)
    return [
        Record(record.place, record.position, {**record.fields, **line})
        for record, line in zip(records, lines, strict=True)
        if isinstance(record, Record)
    ]


BIRD_METRICS = ("execution_accuracy", "execution_accuracy_bird", "soft_f1_bird")
FOLDERS = ("dev_databases", "train_databases", "test_databases", "databases", "database")


def import_bird(request: ImportRequest) -> Import:
    """Return a case for each question; predictions are found by position, as the published tool does."""
    check_request(request, kind="sql")
    records = list(read_records(request.source))
    databases = Databases(request, request.source, FOLDERS)
    if request.predictions and request.predictions.suffix.lower() == ".json":
        predictions = _predictions(request.predictions, len(records))
    else:
        predictions = read_predictions(request.predictions)
    settings: dict[str, JsonValue] = {"kind": "sql", **databases.settings, "metrics": list(BIRD_METRICS)}

    def case_of(id_: str, record: Record) -> ImportedCase:
        gold = gold_value(record.required("SQL"), "sql")
        source = databases.source_of(record.text("db_id"))
        return ImportedCase(id=id_, keys={**described(record), "gold": gold, **source})

    def id_of(record: Record) -> str:
        return record.text("question_id") or str(record.position)

    return import_records(request, records, id_of, case_of, settings=settings, predictions=predictions)


def _predictions(path: Path, cases: int) -> Predictions:
    """Return predictions under the keys "0", "1" and so on: positions, not ids; what is not text counts as empty."""
    file = file_at(path)
    predictions = read_json_file(file)
    if not isinstance(predictions, dict):
        raise file.problem('expected predictions by position, `{"0": "SELECT …", …}`')
    if spare := next((key for key in predictions if key not in map(str, range(cases))), None):
        raise file.problem(f"'{spare}' is not a position: predictions stand under 0 to {cases - 1:,}, not under ids")
    check_count(len(predictions), cases, path, empty='"" or null')
    answers = (predictions[str(position)] for position in range(cases))
    return by_position([answer.partition(BIRD_MARKER)[0] if isinstance(answer, str) else "" for answer in answers])
