"""JSON lines, JSON lists and tables, whose fields are named like the keys of a case, or by `--map`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_queryeval.core.errors import CaseError, QueryEvalError, did_you_mean
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.documents.tables import FLAGS, open_table
from pytest_queryeval.documents.values import flag_hint
from pytest_queryeval.features.transfer.importers import Import, ImportedCase, ImportRequest, SkippedRecord
from pytest_queryeval.features.transfer.importers.records import (
    IMPORT_KEYS,
    Databases,
    Record,
    RecordError,
    check_request,
    description_keys,
    gold_value,
    import_records,
    metadata_fields,
    read_records,
)
from pytest_queryeval.languages import KINDS
from pytest_queryeval.text.formatting import one_line


def import_jsonl(request: ImportRequest) -> Import:
    """Return a case for each object of a JSON list, or of JSON lines, which are read one by one."""
    check_request(request, columns=IMPORT_KEYS)
    return _import(request, _with_mapped(read_records(request.source), request.columns))


def import_table(request: ImportRequest) -> Import:
    """Return a case for each row of a workbook's first sheet, a CSV or a Parquet file, read one by one."""
    check_request(request, columns=IMPORT_KEYS, is_table=True)
    not_read: list[str] = []
    return replace(_import(request, _rows(request, not_read)), not_read=not_read)


def _rows(request: ImportRequest, not_read: list[str]) -> Iterator[Record | SkippedRecord]:
    """Yield the rows, and add to `not_read` the columns that no key is read from."""
    delimiter, sheet, header_row = request.delimiter, request.sheet, request.header_row
    with open_table(file_at(request.source), sheet=sheet, delimiter=delimiter, header_row=header_row) as table:
        metadata = metadata_fields(request.columns)
        headers = {key: name for key, name in request.columns.items() if key != "metadata"}
        names = [*(headers.get(key, key) for key in IMPORT_KEYS), *metadata]
        columns = [name for name in dict.fromkeys(names) if name in table.places]
        has_right_answer = any(headers.get(key, key) in table.places for key in ("gold", "gold_any", "answerable"))
        needed = [*headers.values(), *metadata, *([] if has_right_answer or "gold" in headers else ["gold"])]
        if missing_header := next((name for name in needed if name not in table.places), None):
            if request.header_row is None and (below := table.header_below(needed, "name it by --header-row {}")):
                raise below
            remedy = "" if "gold" in headers else "name the column of the right queries: --map gold=NAME"
            if table.file.other_sheets and sheet is None:
                remedy += f"{' ' if remedy else ''}or another sheet: {_sheet_options(table.file.other_sheets)}"
            raise table.missing_column(missing_header, remedy, setting="name what separates cells, --delimiter '{}'")
        not_read += (name for name in table.places if name not in columns)
        for position, row in enumerate(table.rows()):
            place = f"row {row.number}"
            try:
                cells: dict[str, JsonValue] = {name: text for name in columns if (text := row.text(name))}
            except CaseError as error:
                yield SkippedRecord(place, f"{error.location.cell}: {error.problem}")
            else:
                yield Record(place, position, cells)


def _sheet_options(sheets: Sequence[str]) -> str:
    """Return the option for some of these sheets, for a message."""
    return ", ".join(f"--sheet {shlex.quote(one_line(name, 40))}" for name in sheets[:5])


def _with_mapped(
    records: Iterable[Record | SkippedRecord], columns: Mapping[str, str]
) -> Iterator[Record | SkippedRecord]:
    """Yield the records; raise `QueryEvalError` at their end for a field in `--map` that none of them has."""
    missing_fields = {*(name for key, name in columns.items() if key != "metadata"), *metadata_fields(columns)}
    last_fields: Mapping[str, JsonValue] = {}
    for record in records:
        if isinstance(record, Record):
            last_fields = record.fields
            missing_fields.difference_update(last_fields)
        yield record
    if missing_fields:
        name = min(missing_fields)
        raise QueryEvalError(f"--map: no record has a field '{name}'{did_you_mean(name, last_fields)}")


def _import(request: ImportRequest, records: Iterable[Record | SkippedRecord]) -> Import:
    databases = Databases(request, request.source)
    id_field = request.columns.get("id", "id")
    kind: dict[str, JsonValue] = {} if request.kind is None else {"kind": request.kind}
    return import_records(
        request,
        records,
        lambda record: record.id(id_field),
        lambda id_, record: ImportedCase(id=id_, keys=_case_keys(record, request, databases)),
        settings={**kind, **databases.settings},
    )


def _case_keys(record: Record, request: ImportRequest, databases: Databases) -> dict[str, JsonValue]:
    """Return the keys of a case but its id; raise `RecordError` for a record that no case can be made of."""
    fields = {key: request.columns.get(key, key) for key in IMPORT_KEYS}
    keys = description_keys(record, request.columns)
    kind = record.text(fields["kind"]) or request.kind
    if kind is None:
        raise RecordError("it has no kind: say it with --kind")
    if kind not in KINDS:
        raise RecordError(f"unknown kind '{one_line(kind)}'{did_you_mean(kind, KINDS.names())}")
    if kind != request.kind:
        keys["kind"] = kind
    is_answerable = _flag(record, fields["answerable"]) is not False
    keys |= _golds(record, kind, fields) if is_answerable else {"answerable": False}
    predicted = record.fields.get(fields["predicted"])
    if predicted is not None and request.predictions is None:
        if KINDS[kind].has_queries and not isinstance(predicted, str):
            raise RecordError(f"'{fields['predicted']}' is not a query")
        keys["predicted"] = predicted
    if name := record.text(fields["source"]):
        keys |= databases.source_of(name)
    else:
        databases.check_shared(kind)
    skip = record.text(fields["skip"]).strip()
    if skip.lower() not in FLAGS and flag_hint(skip):
        raise RecordError(f"'{fields['skip']}' is '{skip}': write TRUE, FALSE or a reason")
    if (flag := FLAGS.get(skip.lower(), skip)) not in ("false", ""):
        keys["skip"] = True if flag == "true" else flag
    if _flag(record, fields["allow_empty"]):
        keys["allow_empty"] = True
    return keys


def _flag(record: Record, field: str) -> bool | None:
    """Return whether a field says yes or no; None if it is empty; raise `RecordError` for anything else."""
    text = record.text(field).strip()
    if not text:
        return None
    if text.lower() not in FLAGS:
        raise RecordError(f"'{field}' is '{one_line(text, 40)}': write TRUE or FALSE")
    return FLAGS[text.lower()] == "true"


def _golds(record: Record, kind: str, fields: Mapping[str, str]) -> dict[str, JsonValue]:
    golds = record.fields.get(fields["gold_any"])
    if fields["gold"] in record.fields:
        gold = record.fields[fields["gold"]]
        if not (isinstance(gold, list) and KINDS[kind].has_queries):
            return {"gold": gold_value(gold, kind)}
        golds = gold
    if golds is None:
        names = ", ".join(one_line(name) for name in list(record.fields)[:10])
        if fields["gold"] != "gold":
            problem = f"there is nothing in '{fields['gold']}', where --map expects its right answer"
        else:
            problem = "it has no 'gold': name the field with --map gold=FIELD"
        raise RecordError(f"{problem} (it has {names})")
    if not isinstance(golds, list):
        raise RecordError(f"'{fields['gold_any']}' is not a list")
    return {"gold_any": [gold_value(gold, kind) for gold in golds]}
