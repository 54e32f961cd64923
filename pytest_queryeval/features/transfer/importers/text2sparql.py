"""TEXT2SPARQL: a YAML file of questions in several languages; answers are found by `prefix:id-language`."""

from __future__ import annotations

from pathlib import Path

from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.features.transfer.importers import Import, ImportedCase, ImportRequest
from pytest_queryeval.features.transfer.importers.databases import Databases
from pytest_queryeval.features.transfer.importers.keys import check_request
from pytest_queryeval.features.transfer.importers.predictions import Predictions, cases_of, read_predictions
from pytest_queryeval.features.transfer.importers.questions import question_in, question_records, sparql_of
from pytest_queryeval.features.transfer.importers.records import Record, RecordError, read_json_file, read_yaml_file
from pytest_queryeval.suites.markers import as_markers

ORDERED = "RESULT_ORDER_MATTERS"


def import_text2sparql(request: ImportRequest) -> Import:
    """Return a case for each question in the language, `prefix:id-lang`, as the published tool names it."""
    check_request(request, kind="sparql", has_languages=True)
    databases = Databases(request, request.source)
    file = file_at(request.source)
    value = read_yaml_file(file)
    fields, questions = (value.get("dataset"), value.get("questions")) if isinstance(value, dict) else (None, None)
    if not isinstance(fields, dict) or not isinstance(questions, list):
        raise file.problem("expected `dataset: {id: …, prefix: …}` and a list of `questions`")
    dataset = Record("dataset", 0, fields)
    prefix = dataset.text("prefix")

    def id_of(record: Record) -> str:
        number = record.text("id") or str(record.position + 1)
        return f"{prefix}:{number}-{request.language}" if prefix else f"{number}-{request.language}"

    def case_of(id_: str, record: Record) -> ImportedCase:
        databases.check_shared("sparql")
        texts, features = record.fields.get("question"), record.fields.get("features")
        question = question_in(request.language, texts if isinstance(texts, dict) else {})
        gold = sparql_of(record)
        if not gold:
            raise RecordError("it has no query.sparql")
        feature_names = [str(feature) for feature in features] if isinstance(features, list) else []
        keys: dict[str, JsonValue] = {"question": question, "gold": gold}
        if tags := as_markers(feature_names):
            keys["tags"] = list[JsonValue](tags)
        if ORDERED in feature_names:
            keys["compare"] = {"row_order": "strict"}
        return ImportedCase(id=id_, keys={**keys, "metadata": {"dataset": dataset.text("id")}})

    return Import(
        name=request.source.stem,
        settings={"kind": "sparql", **databases.settings},
        cases=cases_of(question_records(questions), id_of, case_of, _predictions(request.predictions)),
        has_predictions=request.predictions is not None,
    )


def _predictions(path: Path | None) -> Predictions:
    """Return the answers that the published tool collected, by their `qname`, or another file of predictions."""
    if path is None or path.suffix.lower() != ".json":
        return read_predictions(path)
    answers = read_json_file(file_at(path))
    if not isinstance(answers, list) or not all(isinstance(answer, dict) and "qname" in answer for answer in answers):
        return read_predictions(path)
    queries = {str(answer["qname"]): answer.get("query") for answer in answers if isinstance(answer, dict)}
    return Predictions("id", {id_: [{"predicted": query}] for id_, query in queries.items() if isinstance(query, str)})
