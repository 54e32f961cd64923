"""BIRD and its mini-dev: a list with `question_id`, `db_id`, `question`, `evidence`, `SQL` and `difficulty`."""

from __future__ import annotations

from pathlib import Path

from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.features.transfer.importers import Import, ImportedCase, ImportRequest
from pytest_queryeval.features.transfer.importers.databases import Databases
from pytest_queryeval.features.transfer.importers.keys import check_request, described, gold_value
from pytest_queryeval.features.transfer.importers.predictions import (
    Predictions,
    by_position,
    cases_of,
    check_count,
    read_predictions,
)
from pytest_queryeval.features.transfer.importers.records import Record, read_json_file, read_records
from pytest_queryeval.predictors.file.predictions import BIRD_MARKER

METRICS = ("execution_accuracy", "execution_accuracy_bird", "soft_f1_bird")
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
    settings: dict[str, JsonValue] = {"kind": "sql", **databases.settings, "metrics": list(METRICS)}

    def case_of(id_: str, record: Record) -> ImportedCase:
        gold = gold_value(record.required("SQL"), "sql")
        source = databases.source_of(record.text("db_id"))
        return ImportedCase(id=id_, keys={**described(record), "gold": gold, **source})

    def id_of(record: Record) -> str:
        return record.text("question_id") or str(record.position)

    return Import(
        name=request.source.stem,
        settings=settings,
        cases=cases_of(records, id_of, case_of, predictions),
        has_predictions=request.predictions is not None,
    )


def _predictions(path: Path, cases: int) -> Predictions:
    """Return predictions under the keys "0", "1" and so on: positions, not ids; what is no text counts as empty."""
    file = file_at(path)
    predictions = read_json_file(file)
    if not isinstance(predictions, dict):
        raise file.problem('expected predictions by position, `{"0": "SELECT …", …}`')
    if spare := next((key for key in predictions if key not in map(str, range(cases))), None):
        raise file.problem(f"'{spare}' is no position: predictions stand under 0 to {cases - 1:,}, not under ids")
    check_count(len(predictions), cases, path, empty='"" or null')
    answers = (predictions[str(position)] for position in range(cases))
    return by_position([answer.partition(BIRD_MARKER)[0] if isinstance(answer, str) else "" for answer in answers])
