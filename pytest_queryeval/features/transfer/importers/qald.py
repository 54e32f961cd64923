"""Questions on graphs in several languages, with a query.

QALD is a JSON file that has answers as well, in the form of SPARQL JSON results. TEXT2SPARQL is a YAML file, whose
answers are found by `prefix:id-language`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from pytest_queryeval.core.groups import as_markers
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.features.transfer.importers import Import, ImportedCase, ImportRequest
from pytest_queryeval.features.transfer.importers.records import (
    Databases,
    Predictions,
    Record,
    RecordError,
    check_request,
    import_records,
    numbered_records,
    read_json_file,
    read_predictions,
    read_yaml_file,
)
from pytest_queryeval.languages.sparql.results import read_results
from pytest_queryeval.text.formatting import one_line

ANSWERS = "answers"


def import_qald(request: ImportRequest) -> Import:
    """Return a case for each question in the language: its query is right, or its stored answers where it has none.

    With `--map gold=answers` the stored answers are right for all, as in the benchmark's own tool.
    """
    check_request(request, columns=("gold",), kind="sparql", has_languages=True)
    databases = Databases(request, request.source)
    file = file_at(request.source)
    value = read_json_file(file)
    questions = value.get("questions") if isinstance(value, dict) else None
    if not isinstance(questions, list):
        raise file.problem('expected an object with a list of questions, {"questions": [{…}, …]}')

    def case_of(id_: str, record: Record) -> ImportedCase:
        databases.check_shared("sparql")
        questions = record.fields.get("question")
        texts = [text for text in (questions if isinstance(questions, list) else []) if isinstance(text, dict)]
        question = question_in(request.language, {str(text.get("language")): text.get("string") for text in texts})
        query = sparql_of(record).strip()
        if query and request.columns.get("gold") != ANSWERS:
            return ImportedCase(id=id_, keys={"question": question, "gold": query})
        answers = record.fields.get(ANSWERS)
        if not isinstance(answers, list) or len(answers) != 1:
            count = len(answers) if isinstance(answers, list) else 0
            raise RecordError(f"it has {count} stored answers: expected one")
        text = json.dumps(answers[0], ensure_ascii=False)
        try:
            read_results(text, ".srj")
            content = text.encode()
        except UnicodeEncodeError as error:
            raise RecordError("its stored answer holds half of a surrogate pair, which is not a character") from error
        except ValueError as error:
            raise RecordError(f"its stored answer {one_line(str(error))}") from error
        name = f"{ANSWERS}/{hashlib.sha256(content).hexdigest()[:16]}.srj"
        return ImportedCase(id=id_, keys={"question": question, "gold_file": name}, files={name: content})

    records = numbered_records(questions, "question")
    settings = {"kind": "sparql", **databases.settings}
    return import_records(request, records, lambda record: record.id("id"), case_of, settings=settings)


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

    records, predictions = numbered_records(questions, "question"), _predictions(request.predictions)
    settings = {"kind": "sparql", **databases.settings}
    return import_records(request, records, id_of, case_of, settings=settings, predictions=predictions)


def _predictions(path: Path | None) -> Predictions:
    """Return the answers that the published tool collected, by their `qname`, or another file of predictions."""
    if path is None or path.suffix.lower() != ".json":
        return read_predictions(path)
    answers = read_json_file(file_at(path))
    if not isinstance(answers, list) or not all(isinstance(answer, dict) and "qname" in answer for answer in answers):
        return read_predictions(path)
    queries = {str(answer["qname"]): answer.get("query") for answer in answers if isinstance(answer, dict)}
    return Predictions("id", {id_: [{"predicted": query}] for id_, query in queries.items() if isinstance(query, str)})


def question_in(language: str, texts: Mapping[str, JsonValue]) -> str:
    """Return the text in a language, of texts by language; raise `RecordError` if there is none."""
    questions = {code: text for code, text in texts.items() if isinstance(text, str) and text.strip()}
    if language not in questions:
        languages = ", ".join(map(one_line, questions))
        raise RecordError(f"it has no question in '{language}'" + (f": it is in {languages}" if languages else ""))
    return questions[language]


def sparql_of(record: Record) -> str:
    """Return the query of a question, empty if it has none."""
    query = record.fields.get("query")
    text = query.get("sparql") if isinstance(query, dict) else None
    return text if isinstance(text, str) and text.strip() else ""
