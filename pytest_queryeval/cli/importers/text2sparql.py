"""TEXT2SPARQL: a YAML file of questions in several languages; answers are found by `prefix:id-language`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_queryeval.cli.importers import Import, ImportedCase, ImportRequest, Skipped
from pytest_queryeval.cli.importers.columns import check_request
from pytest_queryeval.cli.importers.databases import Databases
from pytest_queryeval.cli.importers.predictions import Predictions, read_predictions
from pytest_queryeval.cli.importers.records import Record, RecordError, read_json_file
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.documents.values import json_value
from pytest_queryeval.documents.yaml_nodes import read_yaml
from pytest_queryeval.suites.markers import as_marker
from pytest_queryeval.text.truncation import one_line

ORDERED = "RESULT_ORDER_MATTERS"


def import_text2sparql(request: ImportRequest) -> Import:
    """Return a case for each question in the language, `prefix:id-lang`, as the published tool names it."""
    check_request(request, kind="sparql", has_languages=True)
    databases = Databases(request, request.source)
    dataset, questions = _questions(request.source)
    prefix = dataset.text("prefix")
    predictions = _predictions(request.predictions)

    def cases() -> Iterator[ImportedCase | Skipped]:
        for record in questions:
            number = record.text("id") or str(record.position + 1)
            id_ = f"{prefix}:{number}-{request.language}" if prefix else f"{number}-{request.language}"
            try:
                keys = _keys(record, request.language, dataset.text("id"))
            except RecordError as error:
                predictions.of(record.position, id_, "")
                yield Skipped(id_, str(error))
            else:
                yield ImportedCase(
                    id=id_, keys=keys, predictions=predictions.of(record.position, id_, str(keys["question"]))
                )
        yield from predictions.unused()

    return Import(
        name=request.source.stem,
        settings={"kind": "sparql", **databases.settings},
        cases=cases(),
        has_predictions=request.predictions is not None,
    )


def _questions(source: Path) -> tuple[Record, list[Record]]:
    """Return the description of the data set, and its questions."""
    file = file_at(source)
    document = read_yaml(file)
    for problem in document.problems:
        raise problem
    value: JsonValue = None if document.root is None else json_value(document.root)
    fields: Mapping[str, JsonValue] = value if isinstance(value, dict) else {}
    dataset, questions = fields.get("dataset"), fields.get("questions")
    if not isinstance(dataset, dict) or not isinstance(questions, list):
        raise file.problem("expected `dataset: {id: …, prefix: …}` and a list of `questions`")
    records = [
        Record(f"question {position + 1}", position, question if isinstance(question, dict) else {})
        for position, question in enumerate(questions)
    ]
    return Record("dataset", 0, dataset), records


def _keys(record: Record, language: str, dataset: str) -> dict[str, JsonValue]:
    texts, query = record.fields.get("question"), record.fields.get("query")
    question = texts.get(language) if isinstance(texts, dict) else None
    if not isinstance(question, str) or not question.strip():
        known = ", ".join(map(one_line, texts)) if isinstance(texts, dict) else ""
        raise RecordError(f"it has no question in '{language}'" + (f": it is in {known}" if known else ""))
    gold = query.get("sparql") if isinstance(query, dict) else None
    if not isinstance(gold, str) or not gold.strip():
        raise RecordError("it has no query.sparql")
    features = record.fields.get("features")
    named = [str(feature) for feature in features] if isinstance(features, list) else []
    keys: dict[str, JsonValue] = {"question": question, "gold": gold}
    if tags := [marker for feature in named if (marker := as_marker(feature))]:
        keys["tags"] = list(dict.fromkeys(tags))
    if ORDERED in named:
        keys["compare"] = {"row_order": "strict"}
    return {**keys, "metadata": {"dataset": dataset}}


def _predictions(path: Path | None) -> Predictions:
    """Return the answers that the published tool collected, by their `qname`, or another file of predictions."""
    if path is None or path.suffix.lower() != ".json":
        return read_predictions(path)
    answers = read_json_file(file_at(path))
    if not isinstance(answers, list) or not all(isinstance(answer, dict) and "qname" in answer for answer in answers):
        return read_predictions(path)
    queries = {str(answer["qname"]): answer.get("query") for answer in answers if isinstance(answer, dict)}
    return Predictions("id", {id_: [{"predicted": query}] for id_, query in queries.items() if isinstance(query, str)})
