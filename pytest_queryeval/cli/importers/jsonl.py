"""JSON lines, or a JSON list: an object for each case, its fields named like keys of a case or by `--map`."""

from __future__ import annotations

from pytest_queryeval.cli.importers import Import, ImportRequest
from pytest_queryeval.cli.importers.columns import KEYS, case_keys, check_columns
from pytest_queryeval.cli.importers.databases import Databases
from pytest_queryeval.cli.importers.predictions import cases_of, read_predictions
from pytest_queryeval.cli.importers.records import Record, read_records
from pytest_queryeval.core.json_value import JsonValue


def import_jsonl(request: ImportRequest) -> Import:
    """Return a case for each object, read one by one from files of lines."""
    check_columns(request, KEYS)
    databases = Databases(request, request.source)
    predictions = read_predictions(request.predictions)
    id_field = request.columns.get("id", "id")

    def id_of(record: Record) -> str:
        return record.text(id_field) or record.place.replace(" ", "-")

    def keys_of(record: Record) -> dict[str, JsonValue]:
        return case_keys(record, request, databases)

    kind: dict[str, JsonValue] = {} if request.kind is None else {"kind": request.kind}
    return Import(
        name=request.source.stem,
        settings={**kind, **databases.settings},
        cases=cases_of(read_records(request.source), id_of, keys_of, predictions),
        has_predictions=request.predictions is not None,
    )
